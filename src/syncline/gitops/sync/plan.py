"""The entry points of the sync engine: plan a reconcile, record outcomes, preview an operation.

Called by the application controller with its observation, and by ``syncline plan``. The controller executes the steps,
records the outcomes and plans again until the plan ends the reconcile; then it writes phase, message and results to the
Application. Pure: no cluster, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from syncline.apply.actions import SyncAction
from syncline.apply.change import Change, classify_change
from syncline.gitops.sync.cause import missing_service_account
from syncline.gitops.sync.decide import apply_action, delete_hook, needs_confirmation, prune_action, prune_skipped
from syncline.gitops.sync.gates import PlannedWait, gate_after
from syncline.gitops.sync.model import Answers, OperationPhase, SyncObserved, SyncPlan
from syncline.gitops.sync.passes import dry_pass, sync_pass, terminate_pass
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.run import Flow
from syncline.gitops.sync.state import SyncState
from syncline.gitops.sync.task import Task
from syncline.gitops.sync.tasks import build_tasks
from syncline.kube.objects import ObjectRef

MAX_ROUNDS = 2000
"""Limit of rounds in one reconcile: usually a few, plus two per hook that a termination ends."""


def plan_sync(observed: SyncObserved, now: datetime) -> SyncPlan:
    """Return the next steps of this reconcile, or its end.

    It is planned again from its start with the outcomes in ``observed``; equal input gives an equal plan.
    """
    terminating = observed.phase is OperationPhase.TERMINATING
    return _sync_plan(observed, terminate_pass(observed, now) if terminating else sync_pass(observed, now))


def plan_termination(observed: SyncObserved, now: datetime) -> SyncPlan:
    """Return the next steps to terminate an operation, whatever its phase."""
    return _sync_plan(observed, terminate_pass(observed, now))


def plan_dry_run(observed: SyncObserved, now: datetime) -> SyncPlan:
    """Return the next steps of a dry run of the operation at the API server; it writes nothing."""
    return _sync_plan(observed, dry_pass(observed, now))


def _sync_plan(observed: SyncObserved, story: Flow[SyncState]) -> SyncPlan:
    assert len(observed.answers) <= MAX_ROUNDS, f"a pass of more than {MAX_ROUNDS} rounds does not end"
    try:
        steps = next(story)
        for answers in observed.answers:
            steps = story.send(answers)
    except StopIteration as end:
        return _ended(end.value)
    why = steps[0][0].reason
    return SyncPlan(steps, observed.phase, observed.message, observed.results, why)


def _ended(state: SyncState) -> SyncPlan:
    return SyncPlan(
        steps=(),
        phase=state.phase,
        message=state.message,
        results=tuple(state.rows.values()),
        why=state.why or state.message,
        wait=state.wait,
        wave=state.wave,
        again=state.again,
    )


def record(observed: SyncObserved, plan: SyncPlan, outcomes: Answers) -> SyncObserved:
    """Add the outcomes of a plan's steps; they have the shape of ``plan.steps``."""
    shapes = [len(step) for step in plan.steps], [len(step) for step in outcomes]
    assert shapes[0] == shapes[1], f"outcomes {shapes[1]} do not match steps {shapes[0]}"
    return replace(observed, answers=(*observed.answers, outcomes))


@dataclass(frozen=True, slots=True)
class PlannedWave:
    """The preview of a wave. ``notes``: prunes that will not happen, changes refused, hooks that will hang.

    ``waits``: what the gate after it waits for. ``refused``: objects whose change will be refused; ``invalid``: why the
    operation would not even start (both are in ``notes`` too).
    """

    phase: SyncPhase
    wave: int
    actions: tuple[SyncAction, ...]
    notes: tuple[str, ...] = ()
    waits: tuple[PlannedWait, ...] = ()
    refused: tuple[ObjectRef, ...] = ()
    invalid: tuple[str, ...] = ()


def plan_preview(observed: SyncObserved, now: datetime) -> list[PlannedWave]:
    """Return the preview of the whole operation, wave by wave, by the same tasks and decisions; SyncFail is last and
    runs only after a failure. ``now`` is unused so far."""
    waves: dict[tuple[SyncPhase, int], list[Task]] = {}
    made = build_tasks(observed)
    for task in made.tasks:
        waves.setdefault((task.phase, task.wave), []).append(task)
    problems = {id(problem.task): problem.message for problem in made.invalid}
    planned: list[PlannedWave] = []
    for (phase, wave), tasks in waves.items():
        invalid = _invalid(problems, tasks)
        refused = [task for task in tasks if _refusal(observed, task)]
        notes = [*_warnings(made.tasks, tasks), *invalid]
        actions = _preview(observed, tasks, notes)
        planned.append(
            PlannedWave(
                phase,
                wave,
                actions,
                notes=(*notes, *(_refusal(observed, task) for task in refused)),
                waits=gate_after(observed, tasks, made.tasks),
                refused=tuple(task.ref for task in refused),
                invalid=tuple(invalid),
            )
        )
    return planned


def _invalid(problems: Mapping[int, str], tasks: list[Task]) -> list[str]:
    return [f"{task.ref}: not valid: {problems[id(task)]}" for task in tasks if id(task) in problems]


def _warnings(everything: Sequence[Task], tasks: list[Task]) -> list[str]:
    found: list[str] = []
    for task in tasks:
        account = missing_service_account(task, everything)
        if account is not None:
            found.append(
                f"{task.ref}: runs as {account.ref}, which comes only in wave {account.wave} of {account.phase}; "
                "the hook waits for it for ever"
            )
    return found


def _preview(observed: SyncObserved, tasks: list[Task], notes: list[str]) -> tuple[SyncAction, ...]:
    """Return the actions of a wave; prunes that will not happen are noted."""
    actions: list[SyncAction] = []
    for task in tasks:
        if not task.is_prune:
            continue
        skipped = prune_skipped(observed, task)
        if skipped:
            notes.append(f"{task.ref}: {skipped}")
            continue
        if needs_confirmation(observed, task) and not observed.options.prune_confirmed:
            notes.append(f"{task.ref}: waits for pruning confirmation")
        actions.append(prune_action(observed, task))
    creates = [task for task in tasks if not task.is_prune]
    leftovers = [task for task in creates if task.delete_before_creation]
    actions += [delete_hook(observed, task, "its delete policy is BeforeHookCreation") for task in leftovers]
    actions += [apply_action(observed, task, dry=False) for task in creates]
    return tuple(actions)


def _refusal(observed: SyncObserved, task: Task) -> str:
    """Return why a change would be refused, or ""; a leftover hook is deleted first."""
    if task.target is None or task.live is None or task.delete_before_creation:
        return ""
    options = observed.options
    classified = classify_change(task.target, task.live, replace=options.replace, force=options.force)
    return classified.message if classified.change is Change.REFUSE else ""
