"""What the agent of a cluster decides."""
