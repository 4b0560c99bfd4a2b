"""What the agent does next on its node."""
