"""Commands that serve until stopped, and backups of their data."""
