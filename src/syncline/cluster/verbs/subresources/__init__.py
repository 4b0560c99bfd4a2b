"""Subresources that are not part of their object: scale, eviction, binding, token, log."""
