"""Judges hooks and terminates running ones.

Called by the reconcile. Rules: gitops-engine ``pkg/sync/sync_context.go`` (getOperationPhase,
terminateHooksPreemptively).
"""

from __future__ import annotations

from collections.abc import Sequence

from syncline.apply.annotations import DeletePolicy
from syncline.apply.health import Health, HealthStatus
from syncline.gitops.sync.decide import delete_hook, read_object
from syncline.gitops.sync.model import OperationPhase
from syncline.gitops.sync.run import Flow, Runner, ask
from syncline.gitops.sync.state import SyncState
from syncline.gitops.sync.task import Task


def judge_hook(sync_state: SyncState, task: Task) -> None:
    """Record whether a hook still runs, by its object's health."""
    assert task.live is not None, "only a live hook can be judged"
    health = sync_state.observed.rules.health(task.live)
    if health is not None and health.failed:
        why = f"failed to get resource health: failed to get resource health: {health.why}"
        sync_state.note(task, task.status, OperationPhase.ERROR, why)
        return
    state, message = _state(task, health)
    sync_state.note(task, task.status, state, message)


def _state(task: Task, health: Health | None) -> tuple[OperationPhase, str]:
    made = f"{task.ref.name} created"
    if health is None:
        return OperationPhase.SUCCEEDED, made
    match health.status:
        case HealthStatus.UNKNOWN | HealthStatus.DEGRADED:
            return OperationPhase.FAILED, health.message
        case HealthStatus.PROGRESSING | HealthStatus.SUSPENDED:
            return OperationPhase.RUNNING, health.message
        case HealthStatus.HEALTHY:
            return OperationPhase.SUCCEEDED, health.message
        case HealthStatus.MISSING | HealthStatus.UNSTATED:
            return OperationPhase.SUCCEEDED, made


def terminate_hooks(state: SyncState, runner: Runner, tasks: Sequence[Task]) -> Flow[bool]:
    """Release and delete the running hooks; return whether all of that succeeded."""
    running = [task for task in tasks if task.is_hook and task.running]
    clean = True
    unseen = [task for task in running if task.live is None]
    for task, outcome in (yield from ask([unseen], read_object)):
        task.live = outcome.obj
        if not outcome.ok and not outcome.not_found:
            why = f"Failed to get live resource: failed to get resource: {outcome.message}"
            state.note(task, task.status, OperationPhase.ERROR, why)
            clean = False
        elif task.live is None:
            state.note(task, task.status, OperationPhase.SUCCEEDED, "Terminated")
    for task in running:
        if task.running and not (yield from _terminate(state, runner, task)):
            clean = False
    return clean


def _terminate(sync_state: SyncState, runner: Runner, task: Task) -> Flow[bool]:
    assert task.live is not None, "a hook that is not there has been dealt with"
    health = sync_state.observed.rules.health(task.live)
    unknown = health is not None and health.failed
    if health is not None and unknown:
        why = f"Failed to get hook health: failed to get resource health: {health.why}"
        sync_state.note(task, task.status, OperationPhase.ERROR, why)
    state, message = (OperationPhase.NONE, "") if unknown else _state(task, health)
    for _, outcome in (yield from runner.release([task], "the operation is terminated", one_by_one=True)):
        if not outcome.ok:
            why = f"Failed to remove hook finalizer: {outcome.message}"
            sync_state.note(task, task.status, OperationPhase.ERROR, why)
            return False
    if unknown or state is OperationPhase.RUNNING or task.has_policy(DeletePolicy.HOOK_FAILED):
        ((_, outcome),) = yield from ask(
            [[task]], lambda task: delete_hook(sync_state.observed, task, "the operation is terminated")
        )
        if not outcome.ok and not outcome.not_found:
            why = f"Failed to delete: failed to delete resource: {outcome.message}"
            sync_state.note(task, task.status, OperationPhase.FAILED, why)
            return False
    if state.completed:
        sync_state.note(task, task.status, state, message)
    elif task.state is not OperationPhase.ERROR:
        sync_state.note(task, task.status, OperationPhase.FAILED, "Terminated")
    return True
