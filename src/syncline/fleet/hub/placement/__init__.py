"""Which clusters a Placement selects, and why; the PlacementDecisions that say so."""
