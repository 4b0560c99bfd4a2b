"""``syncline ansible``."""
