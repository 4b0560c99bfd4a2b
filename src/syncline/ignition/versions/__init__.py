"""Configurations of one version of the specification as another."""
