"""The state of one reconcile: result rows, the operation's phase and message, and its wait.

It starts from the stored results of the last reconcile and is read at the end. Only the reconcile uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from syncline.apply.outcome import WaitKind
from syncline.base.clock import parse_time
from syncline.gitops.sync import messages
from syncline.gitops.sync.model import (
    GATE_DEADLINE,
    OperationPhase,
    ResultCode,
    ResultRow,
    SyncObserved,
    Wait,
    WaveDone,
)
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.results import images_of
from syncline.gitops.sync.task import Task
from syncline.kube.objects import ObjectRef, meta


@dataclass(slots=True)
class SyncState:
    observed: SyncObserved
    phase: OperationPhase
    message: str
    rows: dict[tuple[ObjectRef, SyncPhase], ResultRow]
    wait: Wait | None = None
    wave: WaveDone | None = None
    again: bool = False
    why: str = ""
    released: set[ObjectRef] = field(default_factory=set)
    """Hooks whose finalizer was removed in this reconcile."""

    @classmethod
    def open(cls, observed: SyncObserved) -> SyncState:
        return cls(observed, observed.phase, observed.message, {row.key: row for row in observed.results})

    @property
    def started(self) -> bool:
        """Return whether the dry run is done: a row exists."""
        return bool(self.rows)

    def note(self, task: Task, status: ResultCode, state: OperationPhase, message: str) -> None:
        """Record the result of a task; an empty message keeps the earlier one."""
        task.status, task.state = status, state
        task.message = message or task.message
        known = self.rows.get(task.key)
        if known is not None:
            self.rows[task.key] = replace(known, status=status, hook_phase=state, message=task.message)
            return
        self.rows[task.key] = ResultRow(
            ref=task.ref,
            version=task.gvk.version,
            sync_phase=task.phase,
            hook_type=str(task.phase) if task.is_hook else "",
            status=status,
            hook_phase=state,
            message=task.message,
            images=images_of(task.obj),
        )

    def attach(self, tasks: Sequence[Task]) -> None:
        """Copy each task's row into the task."""
        for task in tasks:
            row = self.rows.get(task.key)
            if row is not None:
                task.status, task.state, task.message = row.status, row.hook_phase, row.message
                task.deferred = task.pending

    def defer(self, task: Task, message: str) -> None:
        """Record that a task stays pending and its dry run is repeated at its turn."""
        task.deferred = True
        self.note(task, ResultCode.NONE, OperationPhase.NONE, message)

    def set_phase(self, phase: OperationPhase, message: str, why: str = "") -> None:
        self.phase, self.message, self.wait = phase, message, None
        self.why = why or message

    def set_waiting(self, tasks: Sequence[Task], kind: WaitKind) -> None:
        """Set the phase to Running, waiting for these tasks."""
        self.set_phase(OperationPhase.RUNNING, messages.waiting_message(tasks, kind))
        if not tasks:
            return
        if kind is WaitKind.HEALTH and any(task.is_hook for task in tasks):
            kind = WaitKind.HOOK
        since = min((waiting_since(task, self.observed.started_at) for task in tasks), default=self.observed.started_at)
        self.wait = Wait(kind, tuple(task.ref for task in tasks), since, since + GATE_DEADLINE)


def waiting_since(task: Task, otherwise: datetime) -> datetime:
    """Return when the awaited object was deleted or created, if later than the start of the operation."""
    times = meta(task.live or {})
    written = times.get("deletionTimestamp") or times.get("creationTimestamp")
    try:
        return max(parse_time(written), otherwise) if isinstance(written, str) else otherwise
    except ValueError:
        return otherwise
