"""Turns one operation of an Application into a trace; pure.

A :class:`Story` receives plans, actions and states of the operation from the controllers and returns the spans that
have ended. Span ids are derived from the operation and the path of the span, so a process that takes an operation over
continues the same trace. Spans contain no values of objects: only names, phases, and messages that the status shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from syncline.apply.annotations import wave as declared_wave
from syncline.apply.outcome import WaitKind
from syncline.argo.application import AppView
from syncline.base.clock import time_or_none
from syncline.gitops.application.operating.operation import STARTED
from syncline.gitops.sync.model import OperationPhase, ResultCode, ResultRow, SyncObserved, SyncPlan, Wait
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.results import rows_from_status
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, ref_of, uid_of
from syncline.sources.errors import mask_credentials

MAX_TEXT = 4096
"""Maximum characters of an attribute; a message may quote a whole error."""
MAX_NAMES = 50
"""Maximum objects that a wait names; its count covers all."""

Value: TypeAlias = str | int | bool | tuple[str, ...]
Attributes: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Span:
    """A finished span. Ids are hexadecimal: ``trace`` has 16 bytes, ``id`` and ``parent`` have 8; the root has no
    parent. ``failure`` is the error message, or None."""

    trace: str
    id: str
    parent: str
    name: str
    began: datetime
    ended: datetime
    attributes: Attributes
    failure: str | None = None


@dataclass(slots=True)
class _Open:
    """A span that has begun and not ended."""

    path: str
    parent: str
    name: str
    began: datetime
    attributes: dict[str, Value]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class _Acted:
    began: datetime
    ended: datetime
    verb: str


def trace_of(app: Obj) -> str:
    """Return the trace id of the Application's last operation, or an empty string if there was none. A number that the
    controllers note distinguishes operations that begin in the same second."""
    state = AppView(app).operation_state or {}
    started = time_or_none(state.get("startedAt"))
    if started is None:
        return ""
    second = str(int(started.timestamp()))
    noted = annotations_of(app).get(STARTED, "")
    named = noted if noted.partition(".")[0] == second else second
    return hashlib.sha256(f"{uid_of(app)}/{named}".encode()).hexdigest()[:32]


class Story:
    """The trace of the running operation. ``resumed``: another process began the operation."""

    def __init__(self, app: Obj, now: datetime, *, resumed: bool = False) -> None:
        state = AppView(app).operation_state or {}
        self.trace = trace_of(app)
        self.began = time_or_none(state.get("startedAt")) or now
        self.has_rendered = False
        self._resumed = resumed
        self._attempt = _attempt(state)
        self._rows = {row.key: row for row in _rows(state)} if resumed else {}
        self._hooks: dict[tuple[ObjectRef, SyncPhase], _Open] = {}
        self._acted: dict[ObjectRef, _Acted] = {}
        self._phase: _Open | None = None
        self._wave: _Open | None = None
        self._wait: _Open | None = None
        self._dry: _Acted | None = None
        self._dry_runs = 0
        self._stepping: datetime | None = None
        self._compared = False
        self._count = 0

    # -- what is reported ------------------------------------------------------------------------------------------

    def rendered(self, began: datetime, ended: datetime, revisions: Iterable[str], error: str | None) -> list[Span]:
        self.has_rendered = True
        span = _Open(self._once("render", began), self._root, "render", began, {}, _text(error) if error else None)
        span.attributes["syncline.revision"] = _text(", ".join(revisions))
        return [self._end(span, ended)]

    def dry_run(self, began: datetime, ended: datetime) -> None:
        self._dry = _Acted(self._dry.began if self._dry else began, ended, "dry run")
        self._dry_runs += 1

    def applied(self, ref: ObjectRef, verb: str, began: datetime, ended: datetime) -> None:
        """Record that an object was written or deleted; its result row says how that ended."""
        before = self._acted.get(ref)
        self._acted[ref] = _Acted(before.began if before else began, ended, verb)
        self._stepping = self._stepping or began

    def planned(self, sync: SyncPlan, observed: SyncObserved, began: datetime, ended: datetime) -> list[Span]:
        """Record one planning round of a reconcile; the last round says which wave ran and what the sync waits for."""
        spans: list[Span] = []
        if not self._compared:
            self._compared = True
            span = _Open(self._once("compare", began), self._root, "compare", began, {})
            span.attributes["syncline.objects"] = len(observed.pairs)
            spans.append(self._end(span, ended))
        if not sync.ended:
            return spans
        spans += self._dry_ended()
        at = self._since(sync.wait, ended)
        if self._unseen and self._rows:
            self._take_over(sync.wait, observed)
        place = self._place(sync, observed)
        if place is not None and (self._wave is None or self._wave.path != _wave_path(*place)):
            spans += self._wave_begins(*place, at)
            self._compared = False
        spans += self._waiting(sync.wait, ended, at)
        self._stepping = None
        return spans

    def state(self, app: Obj, now: datetime) -> list[Span]:
        """Record a new state of the Application: new results, another attempt, or the end of the operation."""
        state = AppView(app).operation_state or {}
        spans = self._results(_rows(state), now)
        phase = str(state.get("phase") or "")
        attempt = _attempt(state)
        if attempt != self._attempt:
            spans += self._close(now)
            self._attempt, self._compared = attempt, False
            self._wait = _Open("retry", self._root, "wait for the next attempt", now, {"syncline.wait.kind": "retry"})
        elif self._wait is not None and self._wait.path == "retry" and not state.get("finishedAt"):
            spans += self._wait_ends(now)
        if phase in ("Succeeded", "Failed", "Error"):
            spans += [*self._close(now), self._operation(app, state, phase, now)]
        return spans

    def cut(self, app: Obj, now: datetime, why: str) -> list[Span]:
        """End all spans of an operation whose Application was deleted."""
        state = AppView(app).operation_state or {}
        return [*self._close(now), self._operation(app, {**state, "message": why}, "Error", now)]

    # -- phases, waves, waits ----------------------------------------------------------------------------------

    def _place(self, sync: SyncPlan, observed: SyncObserved) -> tuple[SyncPhase, int] | None:
        """Return the phase and wave that ran in this reconcile. If the wave failed, or another process began it, use
        what the applied or awaited objects declare."""
        if sync.wave is not None:
            return sync.wave.phase, sync.wave.wave
        refs = set(self._acted)
        if not refs and self._wave is None and sync.wait is not None:
            refs = set(sync.wait.refs)
        row = next((row for row in sync.results if row.ref in refs), None)
        if row is None:
            return None
        objects = [*(pair.obj for pair in observed.pairs), *observed.all_hooks]
        found = next((obj for obj in objects if ref_of(obj) == row.ref), None)
        return row.sync_phase, 0 if found is None else declared_wave(found)

    def _take_over(self, wait: Wait | None, observed: SyncObserved) -> None:
        """Continue the last wave that the result rows show, from the best start time that the API provides."""
        order = list(SyncPhase)
        waves = {
            ref_of(obj): declared_wave(obj) for obj in (*(pair.obj for pair in observed.pairs), *observed.all_hooks)
        }
        row = max(self._rows.values(), key=lambda row: (order.index(row.sync_phase), waves.get(row.ref, 0)))
        live = next(
            (pair.live for pair in observed.pairs if pair.live is not None and ref_of(pair.live) == row.ref), None
        )
        made = time_or_none(dig(live, "metadata", "creationTimestamp")) if live is not None else None
        at = max((wait.since if wait is not None else None) or made or self.began, self.began)
        self._wave_begins(row.sync_phase, waves.get(row.ref, 0), at)
        for row in self._rows.values():
            if row.hook_type and not row.hook_phase.completed and row.key not in self._hooks:
                self._hook_begins(row, at)

    def _since(self, wait: Wait | None, now: datetime) -> datetime:
        """Return when the wave of this reconcile began: at its first action; if another process began it, at its
        wait."""
        if self._stepping is not None or wait is None or not self._unseen:
            return self._stepping or now
        return wait.since or now

    @property
    def _unseen(self) -> bool:
        """Return whether another process began the wave that runs."""
        return self._resumed and self._wave is None

    def _wave_begins(self, phase: SyncPhase, number: int, at: datetime) -> list[Span]:
        spans = [*self._wait_ends(at), *self._ends("_wave", at)]
        if self._phase is None or self._phase.path != str(phase):
            spans += self._ends("_phase", at)
            self._phase = _Open(str(phase), self._root, str(phase), at, {"syncline.phase": str(phase)})
        fields: dict[str, Value] = {"syncline.phase": str(phase), "syncline.wave": number}
        self._wave = _Open(_wave_path(phase, number), self._id(str(phase)), f"{phase} wave {number}", at, fields)
        return spans

    def _waiting(self, wait: Wait | None, now: datetime, at: datetime) -> list[Span]:
        """Begin or end the span of a wait, which continues while its kind stays, even if fewer objects remain."""
        kind = str(wait.kind) if wait is not None else ""
        open_ = self._wait
        if open_ is not None and (wait is None or open_.attributes["syncline.wait.kind"] != kind):
            spans = self._wait_ends(self._stepping or now)
        else:
            spans = []
        if wait is None or wait.kind is WaitKind.RESULTS or self._wait is not None:
            return spans
        began = now if self._stepping is not None else at
        self._wait = _Open(self._once(f"wait/{kind}", began), self._inner, f"wait for {kind}", began, {})
        names = tuple(str(ref) for ref in wait.refs[:MAX_NAMES])
        self._wait.attributes |= {"syncline.wait.kind": kind, "syncline.wait.for": names}
        self._wait.attributes["syncline.wait.count"] = len(wait.refs)
        return spans

    def _dry_ended(self) -> list[Span]:
        if self._dry is None:
            return []
        span = _Open(self._once("dry run", self._dry.began), self._root, "dry run", self._dry.began, {})
        span.attributes["syncline.objects"] = self._dry_runs
        spans = [self._end(span, self._dry.ended)]
        self._dry, self._dry_runs = None, 0
        return spans

    # -- tasks -------------------------------------------------------------------------------------------------

    def _results(self, rows: tuple[ResultRow, ...], now: datetime) -> list[Span]:
        spans: list[Span] = []
        for row in rows:
            before = self._rows.get(row.key)
            if row.hook_type:
                spans += self._hook(row, before, now)
            elif row.status and (row.ref in self._acted or before is None or before.status != row.status):
                spans.append(self._task(row, now))
        self._rows = {row.key: row for row in rows}
        self._acted.clear()
        return spans

    def _task(self, row: ResultRow, now: datetime) -> Span:
        acted = self._acted.get(row.ref) or _Acted(now, now, "prune" if "Prune" in row.status else "apply")
        name = f"{acted.verb} {row.ref.kind}/{row.ref.name}"
        path = self._once(f"task/{row.sync_phase}/{row.ref}", acted.began)
        span = _Open(path, self._parent(row), name, acted.began, _attributes(row, acted.verb))
        if row.status is ResultCode.SYNC_FAILED:
            span.failure = _text(row.message)
            self._fails(row)
        return self._end(span, acted.ended)

    def _hook(self, row: ResultRow, before: ResultRow | None, now: datetime) -> list[Span]:
        """Trace a hook from its creation to its completion."""
        acted = self._acted.get(row.ref)
        if before is not None and before.hook_phase.completed:
            return []
        if row.key not in self._hooks:
            if acted is None and self._unseen and not row.hook_phase.completed:
                return []  # the next reconcile shows since when it runs
            self._hook_begins(row, acted.began if acted else now)
        if not row.hook_phase.completed:
            return []
        report = self._hooks.pop(row.key)
        report.attributes = _attributes(row, "hook")
        if row.hook_phase is not OperationPhase.SUCCEEDED:
            report.failure = _text(row.message)
            self._fails(row)
        return [self._end(report, now)]

    def _hook_begins(self, row: ResultRow, at: datetime) -> None:
        path = f"hook/{row.sync_phase}/{row.ref}"
        self._hooks[row.key] = _Open(path, self._parent(row), f"hook {row.ref.kind}/{row.ref.name}", at, {})

    def _parent(self, row: ResultRow) -> str:
        return self._inner if self._phase is not None and self._phase.path == str(row.sync_phase) else self._root

    def _fails(self, row: ResultRow) -> None:
        for place in (self._wave, self._phase):
            if place is not None:
                place.failure = place.failure or _text(f"{row.ref}: {row.message}")

    # -- ends --------------------------------------------------------------------------------------------------

    def _close(self, now: datetime) -> list[Span]:
        hooks = [self._end(hook, now) for hook in self._hooks.values()]
        self._hooks.clear()
        return [
            *self._dry_ended(),
            *hooks,
            *self._wait_ends(now),
            *self._ends("_wave", now),
            *self._ends("_phase", now),
        ]

    def _wait_ends(self, at: datetime) -> list[Span]:
        return self._ends("_wait", at)

    def _ends(self, which: str, at: datetime) -> list[Span]:
        span: _Open | None = getattr(self, which)
        setattr(self, which, None)
        return [] if span is None else [self._end(span, at)]

    def _end(self, opened: _Open, at: datetime) -> Span:
        attributes: dict[str, Value] = {"syncline.attempt": self._attempt, **opened.attributes}
        if self._resumed:
            attributes["syncline.resumed"] = True
        span = self._id(opened.path)
        ended = max(at, opened.began)
        return Span(self.trace, span, opened.parent, opened.name, opened.began, ended, attributes, opened.failure)

    def _operation(self, app: Obj, state: Obj, phase: str, now: datetime) -> Span:
        view = AppView(app)
        result = dig(state, "syncResult", default={})
        revisions = result.get("revisions") or [result.get("revision") or dig(state, "operation", "sync", "revision")]
        by = dig(state, "operation", "initiatedBy", default={})
        message = _text(state.get("message"))
        attributes: dict[str, Value] = {
            "syncline.application.name": view.name,
            "syncline.application.namespace": view.namespace,
            "syncline.project": view.project,
            "syncline.revision": _text(", ".join(str(one) for one in revisions if one)),
            "syncline.initiated_by": "automated" if by.get("automated") else _text(by.get("username")),
            "syncline.phase": phase,
            "syncline.message": message,
            "syncline.attempt": self._attempt,
        }
        failure = None if phase == "Succeeded" else message
        name = f"sync {view.namespace}/{view.name}"
        return Span(self.trace, self._root, "", name, self.began, max(now, self.began), attributes, failure)

    @property
    def _root(self) -> str:
        return _digest(self.trace)

    @property
    def _inner(self) -> str:
        place = self._wave or self._phase
        return self._id(place.path) if place is not None else self._root

    def _once(self, what: str, began: datetime) -> str:
        """Return a unique span path, for spans that no other process can continue."""
        self._count += 1
        return f"{what}/{began.isoformat()}/{self._count}{'/resumed' if self._resumed else ''}"

    def _id(self, path: str) -> str:
        return _digest(f"{self.trace}/{self._attempt}/{path}")


def _wave_path(phase: SyncPhase, number: int) -> str:
    return f"{phase}/{number}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _attempt(state: Obj) -> int:
    count = state.get("retryCount")
    return count if isinstance(count, int) else 0


def _rows(state: Obj) -> tuple[ResultRow, ...]:
    result = state.get("syncResult")
    return rows_from_status(result.get("resources")) if isinstance(result, dict) else ()


def _text(value: object) -> str:
    return mask_credentials(str(value or ""))[:MAX_TEXT]


def _attributes(row: ResultRow, verb: str) -> dict[str, Value]:
    result = str(row.hook_phase) if row.hook_type else str(row.status)
    return {
        "syncline.action": verb,
        "syncline.resource.group": row.ref.group,
        "syncline.resource.kind": row.ref.kind,
        "syncline.resource.namespace": row.ref.namespace,
        "syncline.resource.name": row.ref.name,
        "syncline.phase": str(row.sync_phase),
        "syncline.result": result,
        "syncline.message": _text(row.message),
    }
