"""The order in which clusters get a new release of the Applications that they pull."""
