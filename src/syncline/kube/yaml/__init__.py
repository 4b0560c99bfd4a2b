"""YAML as Kubernetes reads and writes it."""
