"""What a step of a reconcile says and does: :class:`Step`; and the status that it leaves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import Plan, Requeue, set_status
from syncline.kube.objects import Obj, copied, dig, labels_of, meta, name_of, namespace_of
from syncline.patterns.installing.observe import PatternObserved
from syncline.patterns.installing.origin import left_open

DONE_S: Final = 180.0
ERROR_S: Final = 60.0
DELETING_S: Final = 120.0
MISSING, IN_SYNC, OUT_OF_SYNC, UNKNOWN = "Missing", "GitInSync", "GitOutOfSync", "Unknown"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a reconcile, after which it begins again. ``error`` is what upstream calls the last error: often only
    what it waits for. ``phase``: a new deletion phase."""

    name: str
    actions: tuple[Action, ...] = ()
    error: str = ""
    after_s: float | None = None
    phase: str | None = None
    missing: str | None = None
    """None: the condition Missing stays; empty: it goes."""


def ended(observed: PatternObserved, step: Step, now: datetime) -> Plan:
    """Return the plan of a step: its actions, and the status that says so."""
    status = status_of(observed, now, missing=step.missing)
    status |= {"lastStep": step.name, "lastError": step.error}
    if step.phase is not None:
        status["deletionPhase"] = step.phase
    after = step.after_s
    if after is None:
        after = ERROR_S if step.error else 0.0
    why = f"{step.name}: {step.error}" if step.error else step.name
    written = set_status(observed.read, _tidy(status), why)
    return Plan(tuple((one,) for one in step.actions), Requeue(after, why), why, written)


def status_of(observed: PatternObserved, now: datetime, *, missing: str | None) -> Obj:
    """Return the status without what a step says."""
    status: Obj = copied(observed.pattern.obj.get("status") or {})
    conditions = list(status.get("conditions") or ())
    if missing is not None:
        conditions = with_condition(conditions, MISSING, missing, now)
    conditions = with_condition(conditions, UNKNOWN, _unknown(observed), now)
    in_sync, out_of_sync = _drift(observed)
    if in_sync or out_of_sync:
        conditions = with_condition(conditions, IN_SYNC, in_sync, now)
        conditions = with_condition(conditions, OUT_OF_SYNC, out_of_sync, now)
    status["conditions"] = conditions
    labelled = [one for one in observed.applications if labels_of(one).get("validatedpatterns.io/pattern")]
    status["applications"] = [
        {
            "name": name_of(one),
            "namespace": namespace_of(one),
            "syncStatus": str(dig(one, "status", "sync", "status") or ""),
            "healthStatus": str(dig(one, "status", "health", "status") or ""),
        }
        for one in labelled[:MAX_LISTED]
    ]
    return status


MAX_LISTED: Final = 500
"""Limit of Applications in a status."""


def with_condition(conditions: Sequence[Any], kind: str, message: str, now: datetime) -> list[Any]:
    """Return conditions with one that is True with a message, or without it if the message is empty."""
    known = next((one for one in conditions if one.get("type") == kind), None)
    rest = [one for one in conditions if one.get("type") != kind]
    if not message:
        return rest
    if known is not None and known.get("message") == message:
        return list(conditions)
    since = known.get("lastTransitionTime") if known is not None else None
    stamp = format_time(now)
    made = {"type": kind, "status": "True", "message": message, "lastUpdateTime": stamp}
    return [*rest, made | {"lastTransitionTime": since or stamp}]


def _unknown(observed: PatternObserved) -> str:
    """Return what does not work here as upstream does."""
    found = []
    if not observed.openshift:
        found.append("the cluster has no ClusterVersion: its platform, version and domain are empty")
    if open_ := left_open(observed.pattern):
        found.append(open_)
    return "; ".join(found)


def _drift(observed: PatternObserved) -> tuple[str, str]:
    """Return that the repository is at the commit of its origin, or that it is not; both empty: not known."""
    mine, origin = observed.found, observed.origin
    if mine is None or origin is None or mine.error or origin.error:
        return "", ""
    if mine.commit == origin.commit:
        return "Git repositories are in sync", ""
    return "", f"Git repositories are out of sync: {mine.commit[:12]} here, {origin.commit[:12]} in the origin"


def _tidy(status: Obj) -> Obj:
    return {key: value for key, value in status.items() if value not in ("", [], None)}


def uid_and_version(obj: Obj) -> Obj:
    return {"uid": meta(obj).get("uid"), "resourceVersion": meta(obj).get("resourceVersion")}
