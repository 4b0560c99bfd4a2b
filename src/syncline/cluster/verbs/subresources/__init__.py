"""The addresses below an object that are no halves of it: scale, eviction, binding, token, log."""
