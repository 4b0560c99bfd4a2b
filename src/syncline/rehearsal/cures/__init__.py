"""Edits that would cure what a rehearsal found, each proved by rehearsing again."""
