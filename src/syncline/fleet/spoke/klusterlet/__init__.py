"""Klusterlets: the agent of a cluster as an object of that cluster."""
