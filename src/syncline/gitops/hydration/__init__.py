"""The source hydrator: dry sources rendered into branches, from which Applications sync."""
