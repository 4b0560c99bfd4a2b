"""The roles of a fleet: the hub's controllers, and the objects that they need."""
