"""Holds: pools that start no node updates while a sync changes their machine configs."""
