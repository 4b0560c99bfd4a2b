"""Runs users' scripts and expressions in child processes."""
