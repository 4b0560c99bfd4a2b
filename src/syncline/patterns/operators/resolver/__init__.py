"""Which versions are installed: versions and their ranges, constraints, a bounded search with OLM's preferences."""
