"""Rendered manifests as content-addressed chunks, on their way from a hub to the cluster that pulls an Application."""
