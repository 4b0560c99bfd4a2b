"""What a rehearsal says: pure functions of its record."""
