"""The Kubernetes version of the embedded API, defined once so that all parts agree."""

from __future__ import annotations

MAJOR = "1"
MINOR = "36"
SUFFIX = "+syncline"
"""The suffix of the version of every embedded cluster, and of no other."""
GIT_VERSION = f"v{MAJOR}.{MINOR}.0{SUFFIX}"
