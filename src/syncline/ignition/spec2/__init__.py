"""Ignition 1 and 2.0 to 2.4: read, judged and brought to the newest 2.x, from where they continue to 3.x."""
