"""Joining of clusters: acceptance, their rights, leases, taints and departure."""
