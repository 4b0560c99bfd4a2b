"""Containers that pass through stages as data or a script says."""
