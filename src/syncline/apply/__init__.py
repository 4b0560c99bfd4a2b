"""Applies manifests and judges what they make: requests, classes of change, differences, health."""
