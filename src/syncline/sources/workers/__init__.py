"""Render workers: processes with bounds."""
