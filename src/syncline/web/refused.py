"""Methods of argocd's API that are not served, each with the sentence that says why."""

from __future__ import annotations

from collections.abc import Mapping

REFUSED: Mapping[str, str] = {}
"""Method path → sentence; the others that have no handler are not served yet."""
