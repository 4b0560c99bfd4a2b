"""Plan a Deployment's rollout from one template to the next.

The phases are tried in order; the first one that returns a plan ends the reconcile. Rules, reasons and messages are
those of Kubernetes' deployment controller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from syncline.cluster.builtin.conditions import find, put
from syncline.cluster.builtin.workloads.deployment.observe import Observed, spec_replicas
from syncline.cluster.builtin.workloads.deployment.revisions import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    annotations_for,
    collides,
    current_set,
    new_set,
    next_revision,
    revision_of,
)
from syncline.cluster.builtin.workloads.deployment.rollback import rollback
from syncline.cluster.builtin.workloads.deployment.rolling import (
    Sizes,
    first_size,
    grow_current,
    rescale,
    shrink_old,
    superfluous,
)
from syncline.cluster.builtin.workloads.deployment.status import (
    is_complete,
    progress_condition,
    rollout_status,
    seconds_until_deadline,
    status_of,
)
from syncline.control.plan import Create, Delete, Done, Emit, Outcome, Patch, Plan, Requeue, set_status
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

COMPONENT = "deployment-controller"


@dataclass(frozen=True, slots=True)
class _Rollout:
    """One reconcile: the observed objects, divided into current and old sets, and the current conditions."""

    observed: Observed
    current: Obj | None
    old: list[Obj]
    conditions: list[Obj]
    now: datetime

    @property
    def name(self) -> str:
        return name_of(self.observed.deployment)


def plan(observed: Observed, now: datetime) -> Plan:
    """Return the plan of one reconcile of one Deployment."""
    current = current_set(observed.deployment, observed.sets)
    old = [each for each in observed.sets if current is None or uid_of(each) != uid_of(current)]
    conditions = list(dig(observed.deployment, "status", "conditions", default=[]))
    rollout = _Rollout(observed, current, old, conditions, now)
    for phase in _PHASES:
        decided = phase(rollout)
        if decided is not None:
            return decided
    return _rollout_status(rollout)


def _claim(rollout: _Rollout) -> Plan | None:
    if not rollout.observed.patches:
        return None
    return Plan((rollout.observed.patches,), why="ReplicaSets are adopted or released by the selector")


def _leave_when_deleted(rollout: _Rollout) -> Plan | None:
    return _plain_status(rollout) if is_terminating(rollout.observed.deployment) else None


def _note_pause(rollout: _Rollout) -> Plan | None:
    """Record a pause or resume in the condition Progressing, so that the deadline stops meanwhile."""
    observed = rollout.observed
    if observed.deadline_s is None:
        return None
    old = find(rollout.conditions, "Progressing")
    if old is not None and old["reason"] == "ProgressDeadlineExceeded":
        return None
    was_paused = old is not None and old["reason"] == "DeploymentPaused"
    if observed.paused == was_paused:
        return None
    reason, message = "DeploymentResumed", "Deployment is resumed"
    if observed.paused:
        reason, message = "DeploymentPaused", "Deployment is paused"
    conditions = put(rollout.conditions, progress_condition("Unknown", reason, message, rollout.now))
    status = dict(observed.deployment.get("status") or {}) | {"conditions": conditions}
    return Plan(status=set_status(observed.deployment, status, message), why=message)


def _roll_back(rollout: _Rollout) -> Plan | None:
    return None if rollout.observed.paused else rollback(rollout.observed.deployment, rollout.observed.sets)


def _annotate_current(rollout: _Rollout) -> Plan | None:
    """Give the current set the newest revision and the Deployment's annotations."""
    current = rollout.current
    if current is None:
        return None
    wanted = annotations_for(rollout.observed.deployment, current, next_revision(rollout.old))
    body: Obj = {}
    if wanted != annotations_of(current):
        body["metadata"] = {"annotations": wanted}
    min_ready_s = dig(rollout.observed.deployment, "spec", "minReadySeconds", default=0)
    if min_ready_s != dig(current, "spec", "minReadySeconds", default=0):
        body["spec"] = {"minReadySeconds": min_ready_s}
    if not body:
        return None
    return Plan(((_patch(current, body, "it stands for the current template"),),), why="a new revision begins")


def _annotate_deployment(rollout: _Rollout) -> Plan | None:
    current = rollout.current
    if current is None:
        return None
    revision = annotations_of(current).get(REVISION, "")
    if annotations_of(rollout.observed.deployment).get(REVISION) == revision:
        return None
    body = {"metadata": {"annotations": {REVISION: revision}}}
    # Through /status, as upstream does: elsewhere, annotations of a Deployment count as a change of its spec.
    note = _patch(rollout.observed.deployment, body, f"revision {revision} is current", subresource="status")
    return Plan(((note,),), why="a new revision")


def _note_found(rollout: _Rollout) -> Plan | None:
    """Start the deadline for a set that already exists (adopted, or after a lost response)."""
    observed, current = rollout.observed, rollout.current
    if current is None or observed.deadline_s is None or find(rollout.conditions, "Progressing") is not None:
        return None
    message = f'Found new replica set "{name_of(current)}"'
    found = progress_condition("True", "FoundNewReplicaSet", message, rollout.now)
    status = dict(observed.deployment.get("status") or {}) | {"conditions": put(rollout.conditions, found)}
    return Plan(status=set_status(observed.deployment, status, message), why=message)


def _hold_or_rescale(rollout: _Rollout) -> Plan | None:
    """While paused, and right after ``spec.replicas`` changed, scale the sets but do not roll."""
    observed = rollout.observed
    if not observed.paused and not _replicas_changed(observed):
        return None
    steps = _resize(rollout, rescale(observed, rollout.current, rollout.old))
    if steps:
        return Plan(steps, why=f"{rollout.name} is scaled to {observed.replicas}")
    if not observed.paused:
        return None
    removed = _clean_up(rollout)
    return Plan((removed,), why="old revisions") if removed else _plain_status(rollout)


def _replicas_changed(observed: Observed) -> bool:
    """Return whether an active set's annotation differs from the wanted replicas (Kubernetes ``isScalingEvent``)."""
    for each in observed.sets:
        annotated = annotations_of(each).get(DESIRED_REPLICAS)
        if spec_replicas(each) > 0 and annotated is not None and annotated != str(observed.replicas):
            return True
    return False


def _recreate_shrinks_first(rollout: _Rollout) -> Plan | None:
    """For Recreate, wait until all old pods are deleted before creating new ones."""
    observed = rollout.observed
    if not observed.recreates:
        return None
    steps = _resize(rollout, tuple((each, 0) for each in rollout.old if spec_replicas(each) > 0))
    if steps:
        return Plan(steps, why="old pods go first", status=())
    if any(observed.running.get(uid_of(each), 0) for each in rollout.old):
        return _rollout_status(rollout)
    return None


def _create_current(rollout: _Rollout) -> Plan | None:
    observed, deployment = rollout.observed, rollout.observed.deployment
    if rollout.current is not None:
        return None
    if collides(deployment, observed.taken):
        status = dict(deployment.get("status") or {})
        status["collisionCount"] = int(status.get("collisionCount") or 0) + 1
        return Plan(status=set_status(deployment, status, "the name is taken"), why="the hash collides")
    size = first_size(observed, None)
    annotations = annotations_for(deployment, None, next_revision(rollout.old)) | _size_annotations(observed)
    made = new_set(deployment, size, annotations)
    create = Create(made, f"no ReplicaSet has the template of {rollout.name}")
    message = f'Created new replica set "{name_of(made)}"'
    conditions = rollout.conditions
    if observed.deadline_s is not None:
        reason = "NewReplicaSetCreated"
        conditions = put(conditions, progress_condition("True", reason, message, rollout.now))
    events = (_scaled(deployment, made, 0, size),) if size else ()
    grown = replace(observed, sets=(*observed.sets, made))
    reported = set_status(deployment, rollout_status(grown, made, conditions, rollout.now), message)
    return Plan(((create,), events, reported), why=message)


def _roll(rollout: _Rollout) -> Plan | None:
    """Grow the current set, then shrink old ones: one direction per reconcile, so that each reads current numbers."""
    observed, current = rollout.observed, rollout.current
    if current is None:
        return None
    sizes = grow_current(observed, current)
    if not sizes and not observed.recreates:
        sizes = shrink_old(observed, current, rollout.old)
    steps = _resize(rollout, sizes)
    return Plan(steps, why=f"{rollout.name} rolls on") if steps else None


def _forget_old(rollout: _Rollout) -> Plan | None:
    done = is_complete(rollout.observed, status_of(rollout.observed, rollout.current, rollout.conditions, rollout.now))
    removed = _clean_up(rollout) if done else ()
    return Plan((removed,), why="old revisions beyond the limit go") if removed else None


_PHASES: tuple[Callable[[_Rollout], Plan | None], ...] = (
    _claim,
    _leave_when_deleted,
    _note_pause,
    _roll_back,
    _annotate_current,
    _annotate_deployment,
    _note_found,
    _hold_or_rescale,
    _recreate_shrinks_first,
    _create_current,
    _roll,
    _forget_old,
)


def _size_annotations(observed: Observed) -> dict[str, str]:
    return {DESIRED_REPLICAS: str(observed.replicas), MAX_REPLICAS: str(observed.replicas + observed.max_surge)}


def _resize(rollout: _Rollout, sizes: Sizes) -> tuple[tuple[Any, ...], ...]:
    """Return patches for sets with a wrong size or size annotation, then their events."""
    observed = rollout.observed
    patches: list[Patch] = []
    events: list[Emit] = []
    for each, size in sizes:
        has = spec_replicas(each)
        notes = _size_annotations(observed)
        if has == size and notes.items() <= annotations_of(each).items():
            continue
        body: Obj = {"metadata": {"annotations": notes}}
        if has != size:
            body["spec"] = {"replicas": size}
            events.append(_scaled(observed.deployment, each, has, size))
        patches.append(_patch(each, body, f"{size} replicas of revision {revision_of(each)}"))
    return (tuple(patches), tuple(events)) if patches else ()


def _scaled(deployment: Obj, each: Obj, before: int, after: int) -> Emit:
    direction = "up" if after > before else "down"
    message = f"Scaled {direction} replica set {name_of(each)} from {before} to {after}"
    return Emit(deployment, "ScalingReplicaSet", message, COMPONENT)


def _patch(obj: Obj, body: Obj, reason: str, *, subresource: str = "") -> Patch:
    """Return a patch with uid and resourceVersion of the observed object as preconditions."""
    observed = {"uid": uid_of(obj), "resourceVersion": resource_version(obj)}
    body = body | {"metadata": dict(body.get("metadata") or {}) | observed}
    return Patch(gvk_of(obj), namespace_of(obj), name_of(obj), body, reason, subresource=subresource)


def _clean_up(rollout: _Rollout) -> tuple[Delete, ...]:
    return tuple(Delete.of(each, "beyond the history limit") for each in superfluous(rollout.observed, rollout.old))


def _plain_status(rollout: _Rollout) -> Plan:
    status = status_of(rollout.observed, rollout.current, rollout.conditions, rollout.now)
    return Plan(status=set_status(rollout.observed.deployment, status, "the sets changed"), why="nothing is rolled")


def _rollout_status(rollout: _Rollout) -> Plan:
    observed = rollout.observed
    status = rollout_status(observed, rollout.current, rollout.conditions, rollout.now)
    wait_s = seconds_until_deadline(observed, status, rollout.now)
    outcome: Outcome = Done() if wait_s is None else Requeue(wait_s, "the rollout may miss its deadline")
    return Plan(
        status=set_status(observed.deployment, status, "the sets changed"),
        outcome=outcome,
        why="the sets are as wanted",
    )
