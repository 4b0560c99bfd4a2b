"""Ignition 1 and 2.0 to 2.4: parsed, checked, and converted to the newest 2.x, from which they are converted to 3.x."""
