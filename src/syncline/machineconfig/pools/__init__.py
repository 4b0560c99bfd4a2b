"""Pools: membership of nodes, the choice of the next nodes to update, and the pool's status."""
