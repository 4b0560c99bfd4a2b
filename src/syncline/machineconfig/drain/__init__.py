"""Draining: cordon, evictions within budgets, a ladder of retries, and whether a drain can end at all."""
