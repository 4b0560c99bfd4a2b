"""Patches, merges and field ownership."""
