"""A commit rehearsed on a fleet: clusters that are equal up to their names are played once (``rehearsing.py``)."""
