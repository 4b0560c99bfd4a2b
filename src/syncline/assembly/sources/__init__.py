"""Readers of sources for the controllers."""
