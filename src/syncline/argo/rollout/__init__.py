"""The steps of an ApplicationSet's RollingSync, and which of its Applications are in which."""
