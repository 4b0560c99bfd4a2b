"""Holds: pools that begin no new node updates while somebody works on their machine configs."""
