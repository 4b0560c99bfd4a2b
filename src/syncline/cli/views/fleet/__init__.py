"""Tables and texts about a hub and its clusters. Values in, text out; no requests."""
