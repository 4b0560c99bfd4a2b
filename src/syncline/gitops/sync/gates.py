"""Predicts what the gate after a wave will wait for; pure.

Called by the preview. The rules are those of a reconcile (``passes.py``): hooks are always awaited, resources only if
the operation has more than one wave and something follows them, prunes until the objects are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncline.apply.outcome import WaitKind
from syncline.gitops.sync.decide import needs_confirmation, prune_skipped
from syncline.gitops.sync.model import SyncObserved
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.task import Task
from syncline.kube.objects import ObjectRef


@dataclass(frozen=True, slots=True)
class PlannedWait:
    """Objects that hold the gate, and the event it waits for."""

    kind: WaitKind
    refs: tuple[ObjectRef, ...]


def gate_after(observed: SyncObserved, wave: Sequence[Task], everything: Sequence[Task]) -> tuple[PlannedWait, ...]:
    """Return the waits in reading order: hooks, health, deletions, confirmations."""
    regular = [task for task in everything if task.phase is not SyncPhase.SYNC_FAIL]
    last = bool(regular) and _place(wave[0]) == _place(regular[-1])
    several = bool(everything) and _place(everything[0]) != _place(everything[-1])
    hooks = [task for task in wave if task.is_hook]
    waits = several and (not last or bool(hooks))
    applied = [task for task in wave if not task.is_hook and not task.is_prune]
    pruned = [task for task in wave if task.is_prune and not prune_skipped(observed, task)]
    unconfirmed = [
        task for task in pruned if needs_confirmation(observed, task) and not observed.options.prune_confirmed
    ]
    found = (
        (WaitKind.HOOK, hooks),
        (WaitKind.HEALTH, [task for task in applied if waits and _has_health(observed, task)]),
        (WaitKind.DELETION, [task for task in pruned if task not in unconfirmed]),
        (WaitKind.CONFIRMATION, unconfirmed),
    )
    return tuple(PlannedWait(kind, tuple(task.ref for task in tasks)) for kind, tasks in found if tasks)


def _place(task: Task) -> tuple[SyncPhase, int]:
    return task.phase, task.wave


def _has_health(observed: SyncObserved, task: Task) -> bool:
    """Return whether the kind has a health check; others are done once applied."""
    return observed.rules.health(task.obj) is not None
