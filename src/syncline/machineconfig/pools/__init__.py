"""Pools: which node belongs where, who is updated next, and what the pool says about it."""
