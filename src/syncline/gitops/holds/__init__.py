"""Holds: pools that begin no new node updates while a sync changes their machine configs."""
