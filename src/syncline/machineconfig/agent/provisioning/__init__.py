"""First boot of an installed machine, and its joining as a node."""
