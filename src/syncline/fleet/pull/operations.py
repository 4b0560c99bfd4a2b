"""Keeps a requested sync in the work until the cluster has begun it; pure.

Upstream removes the operation from the hub's Application once the work is written, and from the work with the next
write: an agent that reads only the second state never sees it. Here it stays in the work until the cluster reports
another operation than before; a later change of the Application does not repeat it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from syncline.control.plan import Create, Patch, Plan, Replace
from syncline.fleet.conditions import find_condition
from syncline.fleet.pull.propagation import AppObserved
from syncline.fleet.pull.status import feedback_of
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig, generation

OPERATION_AFTER: Final = "syncline.dev/operation-after"
"""Annotation of a work with an operation: when the operation before it began, as the cluster reports it."""

MARK: Final = "After"
"""Entry of an operation's ``info``: when the operation before it began, where the agent could take it for that one."""


def started_at(work: Obj | None) -> str:
    """Return when the last operation that the cluster reports began; empty: it reports none."""
    for one in dig(work or {}, "status", "resourceStatus", "manifests") or ():
        if found := feedback_of(one).get("operationStateStartedAt"):
            return found
    return ""


def pending_start(work: Obj) -> str | None:
    """Return :func:`started_at` of a work that carries an operation not yet begun, else None."""
    return started_at(work) if OPERATION_AFTER in annotations_of(work) else None


def with_pending_operation(plan: Plan, seen: AppObserved) -> Plan:
    """Return the plan of an Application, with the operation that its cluster has not begun yet."""
    if "operation" in seen.app and any(isinstance(one, Patch) for one in plan.actions):  # else an order holds it back
        return _carrying(plan, _another(seen), started_at(seen.work))
    live = seen.work
    after = annotations_of(live or {}).get(OPERATION_AFTER)
    operation = _operation(live) if live is not None else None
    if after is None or operation is None or started_at(live) != after:
        return plan
    return _carrying(plan, operation, after)


def _another(seen: AppObserved) -> Any:
    """Return the requested operation. While the agent may not have seen the work without the one before, which the
    cluster has begun, the new one gets a mark: it may be equal, an equal work is no change for the agent, and the
    cluster would never begin it."""
    asked, started = seen.app["operation"], started_at(seen.work)
    work = seen.work or {}
    carries = annotations_of(work).get(OPERATION_AFTER, started) != started
    applied = find_condition(dig(work, "status", "conditions") or (), "Applied") or {}
    behind = applied.get("observedGeneration") not in (None, generation(work))
    if not started or not isinstance(asked, dict) or not (carries or behind):
        return asked
    info = asked.get("info")
    return {**asked, "info": [*(info if isinstance(info, list) else ()), {"name": MARK, "value": started}]}


def _operation(work: Obj) -> Any:
    return next((one.get("operation") for one in _applications(work)), None)


def _applications(work: Obj) -> list[Obj]:
    manifests = dig(work, "spec", "workload", "manifests") or ()
    return [one for one in manifests if one.get("kind") == APPLICATION.kind]


def _carrying(plan: Plan, operation: Any, after: str) -> Plan:
    return replace(plan, steps=tuple(tuple(_with(one, operation, after) for one in step) for step in plan.steps))


def _with(action: Any, operation: Any, after: str) -> Any:
    if not isinstance(action, Create | Replace) or not _applications(action.obj):
        return action
    work = action.obj
    manifests = [
        {**one, "operation": operation} if one.get("kind") == APPLICATION.kind else one
        for one in work["spec"]["workload"]["manifests"]
    ]
    metadata = {**work["metadata"], "annotations": {**annotations_of(work), OPERATION_AFTER: after}}
    spec = {**work["spec"], "workload": {**work["spec"]["workload"], "manifests": manifests}}
    return replace(action, obj={**work, "metadata": metadata, "spec": spec})
