"""Templates in policies: those of the hub and those of the cluster."""
