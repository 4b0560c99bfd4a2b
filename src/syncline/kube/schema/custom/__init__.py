"""Custom resources: definitions, structural schemas, values under them, rules."""
