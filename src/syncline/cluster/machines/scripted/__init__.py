"""Containers that follow stages, given as data, or a script."""
