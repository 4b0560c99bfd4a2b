"""What the hub decides about its clusters."""
