"""Commands about a hub and its clusters: Placements, works, acceptance."""
