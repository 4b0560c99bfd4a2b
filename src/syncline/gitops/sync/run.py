"""Runs a set of tasks: removes finalizers, prunes, deletes leftovers, then applies manifests kind by kind.

Generators that yield steps of actions and are sent their outcomes; called by the reconcile. Rules: gitops-engine
``pkg/sync/sync_context.go`` (runTasks).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from itertools import groupby
from typing import TypeAlias, TypeVar

from syncline.apply.actions import ApplyObject, DryRun, SyncAction
from syncline.apply.annotations import has_hook_finalizer
from syncline.apply.outcome import Outcome, Refusal, WaitKind
from syncline.gitops.sync import messages
from syncline.gitops.sync.decide import (
    apply_action,
    delete_hook,
    dry_run,
    is_stranger,
    needs_confirmation,
    prune_action,
    prune_skipped,
    release_hook,
    stranger_message,
)
from syncline.gitops.sync.model import GATE_DEADLINE, Answers, OperationPhase, ResultCode
from syncline.gitops.sync.order import turn
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.state import SyncState
from syncline.gitops.sync.task import Task
from syncline.kube.objects import is_terminating, ref_of

R = TypeVar("R")
Steps: TypeAlias = tuple[tuple[SyncAction, ...], ...]
Flow: TypeAlias = Generator[Steps, Answers, R]


class RunState(IntEnum):
    """The result of running a set of tasks; the highest wins."""

    SUCCESSFUL = 0
    PENDING = 1
    FAILED = 2


RBAC = "rbac.authorization.k8s.io"

_STATE_OF_RESULT = {
    ResultCode.SYNCED: OperationPhase.RUNNING,
    ResultCode.SYNC_FAILED: OperationPhase.FAILED,
    ResultCode.PRUNED: OperationPhase.SUCCEEDED,
    ResultCode.PRUNE_SKIPPED: OperationPhase.SUCCEEDED,
}


def ask(groups: Sequence[Sequence[Task]], make: Callable[[Task], SyncAction]) -> Flow[list[tuple[Task, Outcome]]]:
    """Yield one step per group with one action per task; return each task with its outcome."""
    steps = tuple(tuple(make(task) for task in group) for group in groups if group)
    if not steps:
        return []
    answers = yield steps
    tasks = [task for group in groups for task in group]
    outcomes = [outcome for answer in answers for outcome in answer]
    return list(zip(tasks, outcomes, strict=True))


class Runner:
    """Runs tasks of one reconcile. ``waiting``: unfinished tasks, by what they wait for."""

    def __init__(self, state: SyncState, now: datetime) -> None:
        self.state = state
        self.observed = state.observed
        self.now = now
        self.waiting: dict[WaitKind, list[Task]] = {}

    def run(self, tasks: Sequence[Task], *, dry: bool, among: Sequence[Task] = ()) -> Flow[RunState]:
        """Run ``tasks`` in the engine's order; later stages only if the earlier ones did not fail or wait. ``among``:
        all tasks about to run, if a dry run covers a part of them."""
        dry = dry or self.observed.options.dry_run
        self.waiting = {}
        if not dry and (yield from self._release_leftovers(tasks)) is RunState.FAILED:
            return RunState.FAILED
        prunes = [task for task in tasks if task.is_prune]
        state = yield from self._prune(prunes, dry)
        if state is not RunState.SUCCESSFUL:
            return state
        creates = [task for task in tasks if not task.is_prune]
        if not dry:
            state = yield from self._delete_leftovers(creates)
            if state is not RunState.SUCCESSFUL:
                return state
        return (yield from self._apply(creates, dry, among or tasks))

    def _release_leftovers(self, tasks: Sequence[Task]) -> Flow[RunState]:
        leftovers = [task for task in tasks if task.is_hook and task.pending]
        answered = yield from self.release(leftovers, "it is left over from before", one_by_one=False)
        for task, outcome in answered:
            if not outcome.ok:
                self._fail(task, f"failed to remove hook finalizer: {outcome.message}")
        return RunState.SUCCESSFUL if all(outcome.ok for _, outcome in answered) else RunState.FAILED

    def _fail(self, task: Task, message: str) -> None:
        self.state.note(task, task.status, OperationPhase.ERROR, message)

    def _wait(self, task: Task, kind: WaitKind) -> None:
        self.waiting.setdefault(kind, []).append(task)

    def _prune(self, tasks: Sequence[Task], dry: bool) -> Flow[RunState]:
        if not self.observed.options.prune_confirmed:
            unconfirmed = [task for task in tasks if needs_confirmation(self.observed, task)]
            if unconfirmed:
                self.waiting[WaitKind.CONFIRMATION] = unconfirmed
                return RunState.PENDING
        written = not dry or self.observed.options.dry_run
        going: list[Task] = []
        for task in tasks:
            skipped = prune_skipped(self.observed, task)
            if skipped:
                self._record(task, ResultCode.PRUNE_SKIPPED, skipped, written)
            elif dry:
                self._record(task, ResultCode.PRUNED, "pruned (dry run)", written)
            elif is_terminating(task.obj):
                self._record(task, ResultCode.PRUNED, "pruned", written)
            else:
                going.append(task)
        return (yield from self._delete_pruned(going))

    def _delete_pruned(self, going: Sequence[Task]) -> Flow[RunState]:
        state = RunState.SUCCESSFUL
        for task, outcome in (yield from ask([going], lambda task: prune_action(self.observed, task))):
            # Gone is what was wanted; upstream fails here.
            if outcome.ok or (outcome.not_found and self.observed.durable):
                self._record(task, ResultCode.PRUNED, "pruned", True)
            else:
                self._record(task, ResultCode.SYNC_FAILED, outcome.message, True)
                state = RunState.FAILED
        return state

    def _record(self, task: Task, code: ResultCode, message: str, written: bool) -> None:
        if written:
            self.state.note(task, code, _STATE_OF_RESULT[code], message)

    def _delete_leftovers(self, tasks: Sequence[Task]) -> Flow[RunState]:
        state = RunState.SUCCESSFUL
        leftovers = [task for task in tasks if task.delete_before_creation]
        strangers = [task for task in leftovers if is_stranger(self.observed, task)]
        for task in strangers:
            self._record(task, ResultCode.SYNC_FAILED, stranger_message(task), True)
        if strangers:
            return RunState.FAILED

        def remove(task: Task) -> SyncAction:
            return delete_hook(self.observed, task, f"{task.ref} is deleted before it is created again")

        for task, outcome in (yield from ask([leftovers], remove)):
            if outcome.ok:
                state = max(state, RunState.PENDING)
                self._wait(task, WaitKind.DELETION)
            elif outcome.not_found:
                task.live = None
            else:
                self._fail(task, f"failed to delete resource: failed to delete resource: {outcome.message}")
                state = RunState.FAILED
        return state

    def _apply(self, tasks: Sequence[Task], dry: bool, among: Sequence[Task]) -> Flow[RunState]:
        # Kinds go one after another, the objects of a kind together; what has no dry run still parts them.
        groups = [list(group) for _, group in groupby(tasks, key=lambda task: task.gvk.kind)]
        if dry:
            makers = [task for task in tasks if task.live is None and makes_room(task)] if self.observed.durable else []
            groups = [[task for task in group if not _skips_dry_run(task, makers)] for group in groups]
        state = RunState.SUCCESSFUL
        for task, outcome in (yield from ask(groups, lambda task: self._action(task, dry))):
            if dry and self._may_be_cured(task, outcome, among):
                self._defer(task, outcome)
            else:
                state = max(state, self._note_applied(task, outcome, dry))
        return state

    def _may_be_cured(self, task: Task, outcome: Outcome, among: Sequence[Task]) -> bool:
        """Return whether an earlier task may make a refused dry run succeed (DECISIONS 39)."""
        if outcome.ok or outcome.pending is not None or not self.observed.durable:
            return False
        earlier = (one for one in among if _comes_before(one, task) and self._changes(one))
        match outcome.refusal:
            case Refusal.STATE:
                return any(True for _ in earlier)
            case Refusal.RIGHTS:
                return any(one.is_hook or one.gvk.group == RBAC for one in earlier)
        own = task.gvk.group, task.gvk.kind
        return any(not one.is_prune and one.facts.defines == own for one in earlier)

    def _changes(self, task: Task) -> bool:
        return task.is_hook or task.live is None or task.is_prune or ref_of(task.live) not in self.observed.in_sync

    def _defer(self, task: Task, outcome: Outcome) -> None:
        text = messages.deferred_message(outcome.message)
        if self.observed.options.dry_run:
            self.state.note(task, ResultCode.SYNCED, OperationPhase.SUCCEEDED, text)
        else:
            self.state.defer(task, text)

    def _action(self, task: Task, dry: bool) -> DryRun | ApplyObject:
        return dry_run(self.observed, task) if dry else apply_action(self.observed, task, dry=False)

    def _note_applied(self, task: Task, outcome: Outcome, dry: bool) -> RunState:
        if outcome.pending is not None and self.now < self.observed.started_at + GATE_DEADLINE:
            self._wait(task, outcome.pending)
            return RunState.PENDING
        if not outcome.ok:
            task.unauthorized = dry and outcome.refusal is Refusal.RIGHTS
            self._record(task, ResultCode.SYNC_FAILED, outcome.message, True)
            return RunState.FAILED
        if not dry:
            self._record(task, ResultCode.SYNCED, outcome.message, True)
        elif self.observed.options.dry_run:
            self.state.note(task, ResultCode.SYNCED, OperationPhase.SUCCEEDED, outcome.message)
        return RunState.SUCCESSFUL

    def release(self, tasks: Iterable[Task], why: str, *, one_by_one: bool) -> Flow[list[tuple[Task, Outcome]]]:
        """Remove the hook finalizer from live objects that still have it, once per object."""
        holding: list[Task] = []
        for task in tasks:
            if task.live is not None and has_hook_finalizer(task.live) and task.ref not in self.state.released:
                self.state.released.add(task.ref)
                holding.append(task)
        groups = [[task] for task in holding] if one_by_one else [holding]
        return (yield from ask(groups, lambda task: release_hook(task, f"{task.ref}: {why}")))

    def delete_hooks(self, tasks: Sequence[Task], why: str) -> Flow[None]:
        """Delete hooks without waiting; one that is already deleted is fine."""
        answered = yield from ask([[task] for task in tasks], lambda task: delete_hook(self.observed, task, why))
        for task, outcome in answered:
            if not outcome.ok and not outcome.not_found:
                self._fail(task, f"failed to delete resource: failed to delete resource: {outcome.message}")


def _comes_before(one: Task, task: Task) -> bool:
    """Return whether ``one`` is done before the turn of ``task``: in an earlier phase or wave, or earlier in its wave
    (prunes first, then kinds in order). ``SyncFail`` comes before nothing."""
    if one is task or one.phase is SyncPhase.SYNC_FAIL:
        return False
    return turn(one) < turn(task)


def _skips_dry_run(task: Task, makers: Sequence[Task]) -> bool:
    """Return whether to skip the dry run: the operation itself creates the kind or namespace first."""
    return task.skip_dry_run or any(makes_room_for(maker, task) for maker in makers)


def makes_room(task: Task) -> bool:
    """Return whether the task creates a Namespace or CRD, which other tasks may need."""
    return not task.is_prune and (task.facts.makes_namespace or task.facts.defines is not None)


def makes_room_for(maker: Task, task: Task) -> bool:
    """Return whether ``maker`` creates the Namespace or CRD that ``task`` needs."""
    assert not maker.is_prune, "only a manifest makes something"
    if maker.facts.makes_namespace:
        return maker.ref.name == task.ref.namespace and maker is not task
    return maker.facts.defines == (task.gvk.group, task.gvk.kind)
