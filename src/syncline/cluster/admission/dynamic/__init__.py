"""Admission configured by users: webhooks and policies, as Kubernetes calls and enforces them."""
