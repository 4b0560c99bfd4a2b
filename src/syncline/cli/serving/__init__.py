"""Commands that run until stopped, and what they keep."""
