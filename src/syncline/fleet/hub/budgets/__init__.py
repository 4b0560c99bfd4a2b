"""FleetDisruptionBudgets: how many clusters are unavailable at once, over all roll-outs."""
