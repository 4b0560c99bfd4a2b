"""What the hub keeps about cluster sets: their status, their bindings, and the sets that always exist."""
