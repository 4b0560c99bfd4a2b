"""Budgets, quotas and the status of policies."""
