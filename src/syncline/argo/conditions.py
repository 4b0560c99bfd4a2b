"""Conditions of an Application: its errors and warnings by type.

An evaluator passes the types that it evaluated; only those are replaced. An unchanged (type, message) keeps its time.
Rules: reference argocd-app §1.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.clock import format_time
from syncline.kube.objects import Obj


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """``type`` ends with ``Error`` or ``Warning``."""

    type: str
    message: str


def merge_conditions(
    existing: Sequence[Any], evaluated: Iterable[str], found: Sequence[Condition], now: datetime
) -> list[Obj]:
    """Return ``status.conditions`` after an evaluation, sorted by type, message and time."""
    looked_at = set(evaluated)
    known = [entry for entry in existing if isinstance(entry, dict)]
    times = {(entry.get("type"), entry.get("message")): entry.get("lastTransitionTime") for entry in known}
    kept = [dict(entry) for entry in known if entry.get("type") not in looked_at]
    for condition in dict.fromkeys(found):
        since = times.get((condition.type, condition.message)) or format_time(now)
        kept.append({"type": condition.type, "message": condition.message, "lastTransitionTime": since})
    return sorted(kept, key=lambda c: (c.get("type") or "", c.get("message") or "", c.get("lastTransitionTime") or ""))
