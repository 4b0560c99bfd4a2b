"""Causes of what blocks a fleet: clusters, Placements, works, replica sets, add-ons; as their hub sees them."""
