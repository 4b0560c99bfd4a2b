"""Validated Patterns on a cluster: installing them, their Argo CD, operators and policies."""
