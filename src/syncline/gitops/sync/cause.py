"""Explains what an operation waits for, as causes.

Called by ``explain`` and by the application's conditions with the observation and the plan that ended the reconcile.
Pure. It reports what these objects themselves show; other rooms add deeper causes (a pod that cannot be scheduled).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from syncline.apply.health import HealthStatus
from syncline.apply.outcome import WaitKind
from syncline.base.cause import Cause
from syncline.gitops.sync.model import SyncObserved, SyncPlan, Wait
from syncline.gitops.sync.task import Task
from syncline.gitops.sync.tasks import build_tasks
from syncline.kube.objects import Obj, ObjectRef, dig, finalizers, is_terminating, name_of

MAX_CAUSES = 20
"""Limit of named objects; the operation's message counts the rest."""

_THEN = "the operation goes on with the next wave"


def causes(observed: SyncObserved, plan: SyncPlan) -> tuple[Cause, ...]:
    """Return one cause per awaited object, in the order of the wave; none without a wait."""
    if plan.wait is None or plan.wait.kind is WaitKind.RESULTS:
        return ()
    tasks = build_tasks(observed).tasks
    by_ref = {task.ref: task for task in tasks}
    return tuple(_cause(observed, plan.wait, ref, by_ref.get(ref), tasks) for ref in plan.wait.refs[:MAX_CAUSES])


def _cause(observed: SyncObserved, wait: Wait, ref: ObjectRef, task: Task | None, tasks: Sequence[Task]) -> Cause:
    live = task.live if task is not None else None
    state, message = _state(observed, live)
    deeper: tuple[Cause, ...] = ()
    if task is not None and wait.kind is WaitKind.HOOK:
        account = missing_service_account(task, tasks)
        if account is not None:
            deeper = (_account_cause(account),)
    return Cause(
        subject=str(ref),
        state=state,
        message=message or f"waiting for its {wait.kind}",
        since=wait.since,
        until=wait.until,
        then=f"it counts as overdue, the operation goes on waiting; after it {_THEN}",
        next_action=_next_action(wait.kind, ref, live, state),
        evidence=_evidence(live),
        because=deeper,
    )


def _state(observed: SyncObserved, live: Obj | None) -> tuple[str, str]:
    if live is None:
        return "Missing", "not seen in the cluster yet"
    if is_terminating(live):
        left = ", ".join(finalizers(live))
        return "Terminating", f"held by finalizers: {left}" if left else "being deleted"
    health = observed.rules.health(live)
    return (str(health.status), health.message) if health is not None else ("Present", "")


def _next_action(kind: WaitKind, ref: ObjectRef, live: Obj | None, state: str) -> str:
    match kind:
        case WaitKind.CONFIRMATION:
            return "confirm with: syncline app confirm-deletion APP"
        case WaitKind.DELETION:
            held = live is not None and bool(finalizers(live))
            return f"find out who has to release the finalizers of {ref}" if held else ""
        case WaitKind.DEFINITION:
            return f"look why the definition of {ref.group}/{ref.kind} is not established"
        case WaitKind.ACCOUNT:
            return f"look why namespace {ref.namespace} gets no service account default"
        case WaitKind.HOOK | WaitKind.HEALTH:
            if state == HealthStatus.SUSPENDED:
                return f"resume {ref}, or end the operation with: syncline app terminate-op APP"
            return ""
        case WaitKind.RESULTS | WaitKind.CONDITION:
            return ""
        case _:
            assert_never(kind)


def _evidence(live: Obj | None) -> tuple[tuple[str, str], ...]:
    if live is None:
        return ()
    wanted = {
        "uid": dig(live, "metadata", "uid"),
        "resourceVersion": dig(live, "metadata", "resourceVersion"),
        "generation": dig(live, "metadata", "generation"),
        "observedGeneration": dig(live, "status", "observedGeneration"),
    }
    return tuple((name, str(value)) for name, value in wanted.items() if value is not None)


def missing_service_account(task: Task, tasks: Sequence[Task]) -> Task | None:
    """Return the ServiceAccount that a hook needs and that this operation creates only later: a deadlock; else None."""
    name = _account_of(task.obj)
    if not task.is_hook or not name:
        return None
    for other in tasks:
        is_account = (other.gvk.group, other.gvk.kind) == ("", "ServiceAccount") and other.target is not None
        same = is_account and name_of(other.obj) == name and other.ref.namespace == task.ref.namespace
        if same and other.live is None and tasks.index(other) > tasks.index(task):
            return other
    return None


def _account_of(obj: Obj) -> str:
    for path in (("spec", "template", "spec"), ("spec",)):
        name = dig(obj, *path, "serviceAccountName") or dig(obj, *path, "serviceAccount")
        if isinstance(name, str) and name:
            return name
    return ""


def _account_cause(account: Task) -> Cause:
    return Cause(
        subject=str(account.ref),
        state="Missing",
        message=f"the hook runs as this ServiceAccount, which the operation brings only in phase {account.phase}",
        next_action=f"make {account.ref} a PreSync hook of an earlier wave, or create it beforehand",
    )
