"""What an agent reports of the Applications that its cluster pulls."""
