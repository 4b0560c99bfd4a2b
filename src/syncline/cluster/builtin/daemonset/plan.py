"""One pod per eligible node, replaced step by step when the template changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from syncline.cluster.builtin.daemonset.placing import daemon_pod, node_of, should_run
from syncline.cluster.builtin.history import HASH_LABEL, History, expired, history
from syncline.cluster.builtin.pods import created_at, is_available, is_ready, phase, until_available
from syncline.control.plan import Create, Delete, Done, Emit, Patch, Plan, Result, Retry, set_status
from syncline.kube.objects import Obj, dig, generation, is_terminating, labels_of, name_of

__all__ = ["COMPONENT", "Observed", "plan", "settle"]

COMPONENT = "daemonset-controller"


@dataclass(frozen=True)
class Observed:
    daemonset: Obj
    pods: tuple[Obj, ...]
    patches: tuple[Patch, ...]
    nodes: tuple[Obj, ...]
    revisions: tuple[Obj, ...]

    @property
    def min_ready_s(self) -> int:
        return int(dig(self.daemonset, "spec", "minReadySeconds", default=0))

    @cached_property
    def _by_node(self) -> Mapping[str, list[Obj]]:
        found: dict[str, list[Obj]] = {}
        for pod in self.pods:
            found.setdefault(node_of(pod), []).append(pod)
        return {node: sorted(pods, key=lambda p: (created_at(p), name_of(p))) for node, pods in found.items()}

    def on(self, node: str) -> list[Obj]:
        """Pods of a node, oldest first."""
        return self._by_node.get(node, [])


def plan(seen: Observed, now: datetime) -> Plan:
    """Claim; know the revision; manage; update; then the status."""
    if seen.patches:
        return Plan((seen.patches,), why="pods are adopted or released by the selector")
    known = history(seen.daemonset, seen.revisions, hash_label=HASH_LABEL)
    if is_terminating(seen.daemonset):
        return _status_plan(seen, known, now)
    if known.action is not None:
        return Plan(((known.action,),), why="a new revision begins")
    actions = _manage(seen, known) or _update(seen, known, now)
    if actions:
        return Plan((actions,), why=f"{name_of(seen.daemonset)} wants one pod on each node it may run on")
    used = {f"{name_of(seen.daemonset)}-{labels_of(pod).get(HASH_LABEL)}" for pod in seen.pods}
    gone = expired(seen.daemonset, known, used)
    return Plan((gone,), why="old revisions go") if gone else _status_plan(seen, known, now)


def _manage(seen: Observed, known: History) -> tuple[Create | Delete, ...]:
    """Pods where there should be one and is none; none where there should not be, or two."""
    actions: list[Create | Delete] = []
    names = {name_of(node) for node in seen.nodes}
    for node in seen.nodes:
        starts, stays = should_run(seen.daemonset, node)
        here = [pod for pod in seen.on(name_of(node)) if not is_terminating(pod)]
        failed = [pod for pod in here if phase(pod) in ("Failed", "Succeeded")]
        if failed and stays:
            actions += [Delete.of(pod, "it failed, another takes its place") for pod in failed]
        elif starts and not seen.on(name_of(node)):
            pod = daemon_pod(seen.daemonset, name_of(node), known.hash)
            actions.append(Create(pod, f"{name_of(node)} has none"))
        elif not stays:
            actions += [Delete.of(pod, f"{name_of(node)} should not run it") for pod in here]
        else:
            actions += [Delete.of(pod, "one on each node is enough") for pod in here[1:]]
    lost = [pod for pod in seen.pods if node_of(pod) not in names and not is_terminating(pod)]
    return (*actions, *(Delete.of(pod, "its node is gone") for pod in lost))


def _update(seen: Observed, known: History, now: datetime) -> tuple[Delete, ...]:
    """Rolling update: old pods that are not available go at once, others as ``maxUnavailable`` allows."""
    if dig(seen.daemonset, "spec", "updateStrategy", "type", default="RollingUpdate") != "RollingUpdate":
        return ()
    broken: list[Obj] = []
    candidates: list[Obj] = []
    unavailable = 0
    wanted = [node for node in seen.nodes if should_run(seen.daemonset, node)[0]]
    for node in wanted:
        here = [pod for pod in seen.on(name_of(node)) if not is_terminating(pod)]
        works = any(is_available(pod, seen.min_ready_s, now) for pod in here)
        unavailable += not works
        old = [pod for pod in here if labels_of(pod).get(HASH_LABEL) != known.hash]
        (candidates if works else broken).extend(old)
    room = max(_max_unavailable(seen.daemonset, len(wanted)) - unavailable, 0)
    return tuple(Delete.of(pod, "it has an old template") for pod in [*broken, *candidates[:room]])


def _max_unavailable(daemonset: Obj, nodes: int) -> int:
    value = dig(daemonset, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable", default=1)
    if isinstance(value, int):
        return value
    return math.ceil(int(value.rstrip("%") or 0) * nodes / 100)


def _status_plan(seen: Observed, known: History, now: datetime) -> Plan:
    counts = dict.fromkeys(("current", "misscheduled", "desired", "ready", "updated", "available"), 0)
    for node in seen.nodes:
        starts, _ = should_run(seen.daemonset, node)
        here = seen.on(name_of(node))
        counts["desired"] += starts
        counts["misscheduled"] += bool(here) and not starts
        if starts and here:
            pod = here[0]
            counts["current"] += 1
            counts["ready"] += is_ready(pod)
            counts["available"] += is_available(pod, seen.min_ready_s, now)
            counts["updated"] += labels_of(pod).get(HASH_LABEL) == known.hash
    status: Obj = {
        "currentNumberScheduled": counts["current"],
        "numberMisscheduled": counts["misscheduled"],
        "desiredNumberScheduled": counts["desired"],
        "numberReady": counts["ready"],
        "observedGeneration": generation(seen.daemonset),
    }
    optional = {
        "updatedNumberScheduled": counts["updated"],
        "numberAvailable": counts["available"],
        "numberUnavailable": counts["desired"] - counts["available"],
    }
    status |= {name: number for name, number in optional.items() if number}
    for kept in ("collisionCount", "conditions"):
        if (value := dig(seen.daemonset, "status", kept)) is not None:
            status[kept] = value
    write = set_status(seen.daemonset, status, "the pods changed")
    return Plan(status=write, outcome=until_available(seen.pods, seen.min_ready_s, now), why="every node has its pod")


def settle(seen: Observed, results: tuple[Result, ...]) -> tuple[Observed, Plan] | None:
    """Events about pods made and removed."""
    events: list[Emit] = []
    failed = ""
    for result in results:
        if isinstance(result.action, Create) and result.action.target.kind == "Pod":
            text = f"Created pod: {name_of(result.value)}" if result.ok else f"Error creating: {result.error}"
            reason = "SuccessfulCreate" if result.ok else "FailedCreate"
            events.append(Emit(seen.daemonset, reason, text, COMPONENT, warning=not result.ok))
            failed = failed or ("" if result.ok else str(result.error))
        elif isinstance(result.action, Delete) and result.action.target.kind == "Pod" and result.ok:
            text = f"Deleted pod: {result.action.name}"
            events.append(Emit(seen.daemonset, "SuccessfulDelete", text, COMPONENT))
    if not events:
        return None
    return seen, Plan((tuple(events),), Retry(failed) if failed else Done(), "tell what became of the pods")
