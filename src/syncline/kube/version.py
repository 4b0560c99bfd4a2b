"""The Kubernetes version whose API the embedded cluster speaks; one place, so that no two parts disagree."""

from __future__ import annotations

__all__ = ["GIT_VERSION", "MAJOR", "MINOR", "SUFFIX"]

MAJOR = "1"
MINOR = "36"
SUFFIX = "+syncline"
"""Ends the version of every embedded cluster, of others none."""
GIT_VERSION = f"v{MAJOR}.{MINOR}.0{SUFFIX}"
