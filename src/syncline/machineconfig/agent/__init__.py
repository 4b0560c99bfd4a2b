"""The node agent: compares a node with its configuration, plans, writes, verifies and rolls back."""
