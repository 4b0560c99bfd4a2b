"""kubectl's columns for the built-in kinds, one module per family of kinds."""
