"""What plans depend on: the observation of a set, and what is remembered between reconciles."""
