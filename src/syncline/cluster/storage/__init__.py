"""Versioned objects in memory, and the files that make them durable."""
