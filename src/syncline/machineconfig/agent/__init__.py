"""What a node does with the configuration it is given: compare, decide, write, check, roll back."""
