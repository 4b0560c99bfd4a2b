"""From an installed machine to a node: first boot and joining."""
