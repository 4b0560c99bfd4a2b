"""Agents of managed clusters as processes: joining, running, leaving, and the files that they keep."""
