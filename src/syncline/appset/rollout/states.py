"""The states of one Application in a rollout, and its transitions; pure.

Rules: ``UpdateApplicationSetApplicationStatus`` of upstream. With strict evidence an Application is Healthy only after
an operation that ran what is wanted now, and a health that was observed after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from syncline.argo.typed import normalized_spec
from syncline.base.clock import format_time, time_or_none
from syncline.kube.objects import Obj, dig

FINISHED: Final = ("Succeeded", "Failed", "Error")
SPEC_CHANGED: Final = "Application has pending changes (spec differs), setting status to Waiting"
REVISION_CHANGED: Final = "Application has pending changes, setting status to Waiting"
BOTH_CHANGED: Final = "Application has pending changes (revision and spec differ), setting status to Waiting"
FIRST_SEEN: Final = "No Application status found, defaulting status to Waiting"
PENDING: Final = "Application moved to Pending status, watching for the Application resource to start Progressing"
STALE: Final = "its health was observed before the end of its last sync"
OLDER: Final = timedelta(seconds=1)
"""Times of Applications are whole seconds: an observation of the same second may be from before."""


class State(StrEnum):
    """``status`` of an entry of ``status.applicationStatus``."""

    WAITING = "Waiting"
    PENDING = "Pending"
    PROGRESSING = "Progressing"
    HEALTHY = "Healthy"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of ``status.applicationStatus``."""

    application: str
    status: str
    step: str
    message: str
    revisions: tuple[str, ...]
    since: str = ""
    """``lastTransitionTime``; empty: none."""

    @classmethod
    def parse(cls, entry: Obj) -> Entry:
        texts = {key: str(entry.get(key) or "") for key in ("application", "status", "step", "message")}
        revisions = tuple(str(one) for one in entry.get("targetRevisions") or ())
        return cls(**texts, revisions=revisions, since=str(entry.get("lastTransitionTime") or ""))

    def as_obj(self) -> Obj:
        time = {"lastTransitionTime": self.since} if self.since else {}
        texts = {"application": self.application, "status": str(self.status), "step": self.step}
        return {**texts, "message": self.message, "targetRevisions": list(self.revisions), **time}

    def moved(self, to: State, message: str, now: datetime) -> Entry:
        return replace(self, status=to, message=message, since=format_time(now))


def entries_of(status: Obj) -> tuple[Entry, ...]:
    found = status.get("applicationStatus")
    return tuple(Entry.parse(one) for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def revisions_of(app: Obj) -> tuple[str, ...]:
    """Return the revisions that the Application was last compared with."""
    sync = dig(app, "status", "sync", default={}) or {}
    several = sync.get("revisions")
    if several:
        return tuple(str(one) for one in several)
    return (str(sync["revision"]),) if sync.get("revision") else ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a transition depends on: a live Application, its entry (None: none yet), its step, and what is wanted."""

    app: Obj
    entry: Entry | None
    step: str
    wanted: Obj | None
    """The normalized spec as generated, without automated sync; None: the Application is not generated any more."""
    spec_differs: bool
    strict: bool = False


def next_entry(seen: Seen, now: datetime) -> Entry:
    """Return the entry after this look at the Application."""
    revisions = revisions_of(seen.app)
    first = Entry(str(dig(seen.app, "metadata", "name")), State.WAITING, seen.step, FIRST_SEEN, revisions)
    before = seen.entry or replace(first, since=format_time(now))
    entry = replace(before, step=seen.step)
    revisions_changed = before.revisions != revisions
    if revisions_changed or seen.spec_differs:
        both = revisions_changed and seen.spec_differs
        message = BOTH_CHANGED if both else REVISION_CHANGED if revisions_changed else SPEC_CHANGED
        entry = replace(entry.moved(State.WAITING, message, now), revisions=revisions)
    if entry.status == State.WAITING:
        return _from_waiting(seen, entry, now)
    if before.status == State.PENDING:
        return _from_pending(seen, entry, now)
    if before.status == State.PROGRESSING and _is_done(seen):
        message = "Application resource became Healthy, updating status from Progressing to Healthy"
        return entry.moved(State.HEALTHY, message, now)
    return entry


def _from_waiting(seen: Seen, entry: Entry, now: datetime) -> Entry:
    """An Application that is Synced needs no sync; with strict evidence it does unless it ran what is wanted."""
    if not _is_synced(seen.app):
        return entry
    if seen.strict and (entry.message in (SPEC_CHANGED, BOTH_CHANGED) or not _is_done(seen)):
        return entry
    healthy = _health(seen.app) == "Healthy"
    state = State.HEALTHY if healthy else State.PROGRESSING
    return entry.moved(state, f"Application resource has synced, updating status to {state}", now)


def _from_pending(seen: Seen, entry: Entry, now: datetime) -> Entry:
    since = time_or_none(entry.since)
    reconciled = time_or_none(dig(seen.app, "status", "reconciledAt"))
    if reconciled is not None and not (since is not None and reconciled > since):
        return entry  # it did not change since
    if since is not None and started_after(seen.app, since):
        phase = str(dig(seen.app, "status", "operationState", "phase", default="") or "")
        said = {
            "Succeeded": "Application resource completed a sync successfully",
            "Failed": "Application resource completed a sync",
            "Error": "Application resource completed a sync",
        }.get(phase, "Application resource became Progressing")
        return entry.moved(State.PROGRESSING, f"{said}, updating status from Pending to Progressing", now)
    if has_error(seen.app):
        message = "Application resource has error and cannot sync, updating status to Progressing"
        return entry.moved(State.PROGRESSING, message, now)
    return entry


def started_after(app: Obj, since: datetime) -> bool:
    """Return whether the last operation began after this time."""
    started = time_or_none(dig(app, "status", "operationState", "startedAt"))
    return started is not None and started > since


def has_error(app: Obj) -> bool:
    """Return whether the Application cannot be reconciled or synced."""
    found = dig(app, "status", "conditions", default=[]) or []
    types = {one.get("type") for one in found if isinstance(one, dict)}
    return bool(types & {"InvalidSpecError", "UnknownError"})


def _health(app: Obj) -> str:
    return str(dig(app, "status", "health", "status", default="") or "")


def _is_synced(app: Obj) -> bool:
    return bool(dig(app, "status", "sync", "status") == "Synced")


def _is_done(seen: Seen) -> bool:
    """Return whether the Application is Synced and Healthy, with strict evidence of what is wanted now."""
    if not (_is_synced(seen.app) and _health(seen.app) == "Healthy"):
        return False
    return not seen.strict or not lacking_evidence(seen.app, seen.wanted)


def lacking_evidence(app: Obj, wanted: Obj | None) -> str:
    """Return what is missing before the Application counts as running what is wanted; empty if nothing is.

    Its last operation must have succeeded at the compared revisions and the wanted sources, and the health must have
    been observed after it. ``wanted``: the normalized spec; None: the live one.
    """
    spec = normalized_spec(app.get("spec") or {}) if wanted is None else wanted
    if app.get("operation"):
        return "a sync is requested"
    state = dig(app, "status", "operationState", default={}) or {}
    phase = str(state.get("phase") or "")
    if phase and phase not in FINISHED:
        return "a sync runs"
    if not _same(dig(app, "status", "sync", "comparedTo", default={}) or {}, spec, ("destination",)):
        return "its status is of an earlier spec"
    if phase != "Succeeded":
        return "its last sync did not succeed" if phase else "no sync has run"
    result = state.get("syncResult") or {}
    if not _same(result, spec, ()):
        return "its last sync ran an earlier spec"
    ran = tuple(result.get("revisions") or ()) or tuple(filter(None, (result.get("revision"),)))
    if ran != revisions_of(app):
        return "its last sync ran other revisions"
    return "" if observed_after_sync(app) else STALE


def observed_after_sync(app: Obj) -> bool:
    """Return whether the Application was compared after its last operation ended."""
    finished = time_or_none(dig(app, "status", "operationState", "finishedAt"))
    reconciled = time_or_none(dig(app, "status", "reconciledAt"))
    return finished is not None and reconciled is not None and reconciled >= finished + OLDER


def _same(made: Obj, spec: Obj, more: tuple[str, ...]) -> bool:
    """Return whether sources, and ``more`` fields, of a status are those of a spec (hydrated ones count as equal)."""
    if spec.get("sourceHydrator"):
        return True
    normal = normalized_spec(made)
    fields = ("sources", *more) if spec.get("sources") else ("source", *more)
    return all(_part(normal, field) == _part(spec, field) for field in fields)


def _part(spec: Obj, field: str) -> Any:
    return spec.get(field) or {}
