"""How an agent answers questions about the Applications that its cluster pulls."""
