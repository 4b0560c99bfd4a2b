"""Place waiting pods one by one, each counted before the next is placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.cluster.builtin.storage.matching import CLAIM, edit, reserve
from syncline.cluster.scheduler.actions import Bind
from syncline.cluster.scheduler.observe import SCHEDULER, Observed
from syncline.control.plan import Delete, Emit, Patch, Plan, Requeue, Result, Retry, SetStatus, set_status
from syncline.kube.objects import Obj, annotations_of, dig, generation, is_terminating, name_of, namespace_of, uid_of
from syncline.kube.scheduling.filters import Cluster, Judgement, NodeState, choose, explain
from syncline.kube.scheduling.preemption import Preemption, preempt, priority_of
from syncline.kube.scheduling.volumes import SELECTED_NODE, PodVolumes

MAX_PLACED = 500
"""Pods placed per reconcile; the bindings trigger the next one for the rest."""
CACHE_WAIT_S = 0.1


@dataclass(slots=True)
class _Decided:
    """The decisions of one reconcile so far."""

    bindings: list[Bind | Patch] = field(default_factory=list)
    refusals: list[SetStatus | Emit] = field(default_factory=list)
    removals: list[Delete] = field(default_factory=list)
    events: list[Emit] = field(default_factory=list)
    going: set[str] = field(default_factory=set)
    """Uids of the pods that this reconcile preempts."""

    def steps(self) -> tuple[tuple[Action, ...], ...]:
        every: tuple[Sequence[Action], ...] = (self.bindings, self.refusals, self.removals, self.events)
        return tuple(tuple(step) for step in every if step)


def plan(observed: Observed, now: datetime) -> Plan:
    """Bind the pods that fit; report each reason once for the rest. A pod whose claims wait for a node gets its volumes
    first and reserves its resources until they are bound; so does a pod that waits for its victims."""
    if not observed.complete:
        return Plan((), Requeue(CACHE_WAIT_S, "claims are not listed yet"))
    cluster = Cluster.of(observed.nodes, observed.placed, observed.namespaces, observed.storage, observed.counted)
    states = {state.name: state for state in cluster.nodes}
    lowest = min((priority_of(pod) for _, pod in cluster.pods()), default=None)
    decided = _Decided()
    for pod in observed.waiting:
        node, refused = choose(pod, cluster)
        if node and len(decided.bindings) < MAX_PLACED:
            volumes = PodVolumes(pod, cluster.storage)
            states[node].place(pod)
            if volumes.unbound:
                decided.bindings += _provide(volumes, states[node])
            else:
                bind = Bind(namespace_of(pod), name_of(pod), uid_of(pod), node, "it fits best there")
                decided.bindings.append(bind)
        elif not node:
            higher = lowest is not None and lowest < priority_of(pod) and not _is_own_fault(refused)
            found = preempt(pod, cluster, refused, observed.budgets) if higher else Preemption()
            _refuse(pod, refused, found, decided, now)
            nominated = _nominated(pod, found)
            if nominated in states:
                states[nominated].place(pod)
    return Plan(decided.steps(), why=f"{len(observed.waiting)} pods wait for a node")


def _is_own_fault(refused: Judgement) -> bool:
    """Return whether the refusal applies to all nodes, so that preemption cannot help."""
    return any(refusal.everywhere for refusal in refused.values())


def _nominated(pod: Obj, found: Preemption) -> str:
    """Return the node that is being freed for the pod, or "" to clear a failed nomination."""
    if found.victims is not None:
        return found.victims.node
    return str(dig(pod, "status", "nominatedNodeName", default="")) if found.ineligible else ""


def _refuse(pod: Obj, refused: Judgement, found: Preemption, decided: _Decided, now: datetime) -> None:
    """Report why, nominate the node, and delete the victims."""
    instead = "" if found.victims is not None else found.ineligible or None
    message = explain(pod, refused, found.reasons, preemption=instead)
    decided.refusals += _refusal(pod, message, _nominated(pod, found), now, waits=bool(found.ineligible))
    for victim in found.victims.pods if found.victims is not None else ():
        if is_terminating(victim) or uid_of(victim) in decided.going:
            continue
        decided.going.add(uid_of(victim))
        decided.refusals += _doomed(victim, now)
        decided.removals.append(Delete.of(victim, f"{namespace_of(pod)}/{name_of(pod)} is more important"))
        said = f"Preempted by pod {uid_of(pod)} on node {_nominated(pod, found)}"
        decided.events.append(Emit(victim, "Preempted", said, SCHEDULER, event_action="Preempting"))


def _doomed(victim: Obj, now: datetime) -> tuple[SetStatus, ...]:
    """Return the condition DisruptionTarget, by which Jobs know that the pod did not fail."""
    condition = {
        "type": "DisruptionTarget",
        "observedGeneration": generation(victim),
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
        "reason": "PreemptionByScheduler",
        "message": f"{SCHEDULER}: preempting to accommodate a higher priority pod",
    }
    conditions: list[Obj] = dig(victim, "status", "conditions", default=[])
    others = [each for each in conditions if each.get("type") != "DisruptionTarget"]
    status = dict(victim.get("status") or {}) | {"conditions": [*others, condition]}
    return set_status(victim, status, "it makes room")


def _provide(volumes: PodVolumes, state: NodeState) -> list[Patch]:
    """Reserve existing volumes, and select the node for those that must be provisioned."""
    found: list[Patch] = []
    for choice in volumes.choices(state.node) or ():
        if choice.volume is not None and not dig(choice.volume, "spec", "claimRef", "uid"):
            found.append(reserve(choice.volume, choice.claim))
        elif choice.volume is None and annotations_of(choice.claim).get(SELECTED_NODE) != state.name:
            note = {"metadata": {"annotations": {SELECTED_NODE: state.name}}}
            found.append(edit(choice.claim, CLAIM, note, "its pod is to run there"))
    return found


def _refusal(pod: Obj, message: str, nominated: str, now: datetime, *, waits: bool) -> list[SetStatus | Emit]:
    """Return the condition PodScheduled and an Event; neither if the condition is unchanged, or still true because the
    pod ``waits`` for its victims to terminate."""
    conditions: list[Obj] = dig(pod, "status", "conditions", default=[])
    old = next((each for each in conditions if each.get("type") == "PodScheduled"), None)
    known = str(dig(pod, "status", "nominatedNodeName", default=""))
    same = old is not None and (old.get("reason"), old.get("message")) == ("Unschedulable", message)
    report = same or (old is not None and old.get("reason") == "Unschedulable" and waits)
    if report and known == nominated:
        return []
    since = old["lastTransitionTime"] if old is not None and old.get("status") == "False" else format_time(now)
    new: Obj = {
        "type": "PodScheduled",
        "observedGeneration": generation(pod),
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": "Unschedulable",
        "message": message,
    }
    others = [each for each in conditions if each.get("type") != "PodScheduled"]
    status = dict(pod.get("status") or {}) | {"conditions": [*others, new]}
    status.pop("nominatedNodeName", None)
    status |= {"nominatedNodeName": nominated} if nominated else {}
    event = Emit(pod, "FailedScheduling", message, SCHEDULER, warning=True, event_action="Scheduling")
    return [*set_status(pod, status, message), *(() if same else (event,))]


def settle(observed: Observed, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    """Emit an event for each pod that was bound."""
    bound = [result.action for result in results if result.ok and isinstance(result.action, Bind)]
    if not bound:
        return None
    pods = {uid_of(pod): pod for pod in observed.waiting}
    events = tuple(
        Emit(
            pods[each.uid],
            "Scheduled",
            f"Successfully assigned {each.namespace}/{each.name} to {each.node}",
            SCHEDULER,
            event_action="Binding",
        )
        for each in bound
    )
    failed = next((str(result.error) for result in results if not result.ok), "")
    report = Plan((events,), why="tell where the pods went")
    return observed, Plan(report.steps, Retry(failed), report.why) if failed else report
