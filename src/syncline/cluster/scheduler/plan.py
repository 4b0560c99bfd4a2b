"""Places waiting pods, one after the other, each counted in before the next is looked at."""

from __future__ import annotations

from datetime import datetime

from syncline.base.clock import format_time
from syncline.cluster.builtin.storage.matching import CLAIM, edit, reserve
from syncline.cluster.scheduler.actions import Bind
from syncline.cluster.scheduler.observe import SCHEDULER, Observed
from syncline.control.plan import Emit, Patch, Plan, Requeue, Result, Retry, SetStatus, set_status
from syncline.kube.objects import Obj, annotations_of, dig, generation, name_of, namespace_of, uid_of
from syncline.kube.scheduling import Cluster, NodeState, choose, explain
from syncline.kube.volumes import SELECTED_NODE, PodVolumes

__all__ = ["MAX_PLACED", "plan", "settle"]

MAX_PLACED = 500
"""Pods placed in one pass; the rest follows in the next, woken by the bindings."""
CACHE_WAIT_S = 0.1


def plan(seen: Observed, now: datetime) -> Plan:
    """Bind what fits; say of the rest why not, once for each reason. A pod whose claims wait for its node gets their
    volumes first, and holds its room until they are bound."""
    if not seen.complete:
        return Plan((), Requeue(CACHE_WAIT_S, "claims are not listed yet"))
    cluster = Cluster.of(seen.nodes, seen.placed, seen.namespaces, seen.storage)
    states = {state.name: state for state in cluster.nodes}
    bindings: list[Bind | Patch] = []
    refusals: list[SetStatus | Emit] = []
    for pod in seen.waiting:
        node, refused = choose(pod, cluster)
        if node and len(bindings) < MAX_PLACED:
            volumes = PodVolumes(pod, cluster.storage)
            states[node].place(pod)
            if volumes.unbound:
                bindings += _provide(volumes, states[node])
                continue
            bindings.append(Bind(namespace_of(pod), name_of(pod), uid_of(pod), node, "it fits best there"))
        elif not node:
            refusals += _refusal(pod, explain(pod, refused), now)
    steps = (tuple(bindings), tuple(refusals)) if bindings else ((tuple(refusals),) if refusals else ())
    return Plan(steps, why=f"{len(seen.waiting)} pods wait for a node")


def _provide(volumes: PodVolumes, state: NodeState) -> list[Patch]:
    """Reserve the volumes that there are, and select the node for those that must be made."""
    found: list[Patch] = []
    for choice in volumes.choices(state.node) or ():
        if choice.volume is not None and not dig(choice.volume, "spec", "claimRef", "uid"):
            found.append(reserve(choice.volume, choice.claim))
        elif choice.volume is None and annotations_of(choice.claim).get(SELECTED_NODE) != state.name:
            note = {"metadata": {"annotations": {SELECTED_NODE: state.name}}}
            found.append(edit(choice.claim, CLAIM, note, "its pod is to run there"))
    return found


def _refusal(pod: Obj, message: str, now: datetime) -> list[SetStatus | Emit]:
    """The condition PodScheduled and an Event, unless the condition says just that already."""
    conditions: list[Obj] = dig(pod, "status", "conditions", default=[])
    old = next((each for each in conditions if each.get("type") == "PodScheduled"), None)
    if old is not None and (old.get("reason"), old.get("message")) == ("Unschedulable", message):
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
    event = Emit(pod, "FailedScheduling", message, SCHEDULER, warning=True, event_action="Scheduling")
    return [*set_status(pod, status, message), event]


def settle(seen: Observed, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    """Tell of the pods that were bound."""
    bound = [result.action for result in results if result.ok and isinstance(result.action, Bind)]
    if not bound:
        return None
    pods = {uid_of(pod): pod for pod in seen.waiting}
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
    told = Plan((events,), why="tell where the pods went")
    return seen, Plan(told.steps, Retry(failed), told.why) if failed else told
