"""Explanations why a pool, a node or a machine config is not updated, and fixes."""
