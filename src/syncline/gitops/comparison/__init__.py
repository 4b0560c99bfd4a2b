"""Targets and live objects, paired and compared: differences, health, what is wrong."""
