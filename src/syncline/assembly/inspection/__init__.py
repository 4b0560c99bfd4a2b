"""What commands read of a cluster, and what they compute from it."""
