"""Add-ons on a managed cluster: the certificates of their agents, and their health by their leases."""
