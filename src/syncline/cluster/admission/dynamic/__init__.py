"""Admission that people configure: webhooks and policies, called and enforced as Kubernetes does it."""
