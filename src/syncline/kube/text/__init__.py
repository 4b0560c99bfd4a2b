"""Formats of texts: names, quantities, durations, patterns, paths."""
