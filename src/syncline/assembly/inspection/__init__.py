"""Reads a cluster for commands, and computes plans and differences."""
