"""Commands that make and change the spec of an Application."""
