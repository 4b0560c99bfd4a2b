"""Draining: cordon, evictions within budgets, retries, and forecasts whether a drain can finish."""
