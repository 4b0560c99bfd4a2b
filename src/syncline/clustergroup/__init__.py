"""Cluster groups of Validated Patterns: values in, Kubernetes objects out, as the clusterGroup chart renders them."""
