"""``syncline pattern``: Validated Patterns."""
