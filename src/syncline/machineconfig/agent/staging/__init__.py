"""Staging of the operating system that the next boot runs."""
