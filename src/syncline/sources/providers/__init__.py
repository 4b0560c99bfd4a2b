"""Repositories and pull requests of Git hosts, read over their HTTP APIs for the generators of ApplicationSets."""
