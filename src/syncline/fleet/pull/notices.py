"""Conditions of the hub's Application that the hub itself finds; pure.

They stand beside those that the cluster reports (``details.py``), and neither replaces the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from syncline.argo.conditions import Condition, merge_conditions
from syncline.control.plan import SetStatus, set_status
from syncline.kube.objects import Obj, dig

CARRY_ERROR: Final = "CarryError"
"""Type of the condition of an Application that does not fit into a work."""
CONTENT_ERROR: Final = "ContentError"
"""Of an Application that the hub cannot render for its cluster."""
CONTENT_WAIT: Final = "ContentWaiting"
"""Of one whose content waits: for a repository, or for the cluster's agent."""
HUB_COPY_ERROR: Final = "HubCopyError"
"""Of one that cannot run on the hub, too."""
OF_HUB: Final = frozenset({CARRY_ERROR, CONTENT_ERROR, CONTENT_WAIT, HUB_COPY_ERROR})
"""Types that only the hub writes; what a cluster reports under such a name does not count."""


def of_hub(app: Obj) -> list[Obj]:
    """Return the conditions of an Application that the hub itself has found."""
    return [one for one in dig(app, "status", "conditions") or () if one.get("type") in OF_HUB]


def content_waits(app: Obj) -> str:
    """Return why the hub has no content for an Application yet; empty: nothing says so."""
    found = (one for one in dig(app, "status", "conditions") or () if one.get("type") in (CONTENT_ERROR, CONTENT_WAIT))
    return next((str(one.get("message") or "") for one in found), "")


def noted(app: Obj, evaluated: Iterable[str], found: Sequence[Condition], now: datetime) -> tuple[SetStatus, ...]:
    """Return the write of these conditions in place of the ``evaluated`` types; nothing if they are there."""
    status: Obj = app.get("status") or {}
    before = status.get("conditions") or []
    evaluated = frozenset(evaluated)
    if not found and not any(one.get("type") in evaluated for one in before):
        return ()
    made = merge_conditions(before, evaluated, found, now)
    new = {**status, "conditions": made} if made else {key: one for key, one in status.items() if key != "conditions"}
    return set_status(app, new, "; ".join(one.message for one in found) or "it is over", subresource="")
