"""Applies manifests and judges the results: requests, kinds of change, differences, health."""
