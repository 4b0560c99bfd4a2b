"""Files, users and units of a machine."""
