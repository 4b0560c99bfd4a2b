"""Metrics and traces of the GitOps controllers."""
