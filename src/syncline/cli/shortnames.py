"""Kinds by the words that our own commands use for them."""

from __future__ import annotations

__all__ = ["SHORT"]

SHORT = {"app": "applications", "pool": "machineconfigpools"}
"""Word → resource; all others are looked up as kubectl does."""
