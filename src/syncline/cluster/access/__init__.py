"""Who asks, what they may do, and what is recorded of it."""
