"""Charts: reading, dependencies, values, rendering."""
