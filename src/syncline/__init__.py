"""Syncline: Git to clusters, nodes and fleets in one order."""

__version__ = "0.1.0"
