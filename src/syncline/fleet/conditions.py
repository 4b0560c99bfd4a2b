"""Conditions of objects as Kubernetes keeps them: one for each type, with the time of the last change of its truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from syncline.base.clock import format_time
from syncline.kube.objects import Obj


def find_condition(conditions: Iterable[Obj], kind: str) -> Obj | None:
    """Return the condition of a type."""
    return next((one for one in conditions if one.get("type") == kind), None)


def is_true(conditions: Iterable[Obj], kind: str) -> bool:
    return (find_condition(conditions, kind) or {}).get("status") == "True"


def condition(kind: str, status: str, reason: str, message: str = "", observed: int | None = None) -> Obj:
    """Return a condition without a time; ``observed``: the generation it is about."""
    generation = {} if observed is None else {"observedGeneration": observed}
    return {"type": kind, "status": status, **generation, "reason": reason, "message": message}


def with_condition(conditions: Sequence[Obj], new: Obj, now: datetime) -> list[Obj]:
    """Return the conditions with ``new`` in place of the one of its type, else at the end. Its time is ``now``, or the
    former one while the status stays (apimachinery ``SetStatusCondition``)."""
    before = find_condition(conditions, str(new.get("type")))
    same = before is not None and before.get("status") == new.get("status")
    since = before.get("lastTransitionTime") if before is not None and same else None
    made = {**(before or {}), **new, "lastTransitionTime": since or format_time(now)}
    return [made if one is before else one for one in conditions] + ([made] if before is None else [])


def with_conditions(conditions: Sequence[Obj], new: Iterable[Obj], now: datetime) -> list[Obj]:
    """Set several; see :func:`with_condition`."""
    made = list(conditions)
    for one in new:
        made = with_condition(made, one, now)
    return made
