"""Plan a DaemonSet: one pod per eligible node, replaced stepwise when the template changes."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.pods import is_available, is_ready, until_available
from syncline.cluster.builtin.workloads.daemonset.observe import Observed
from syncline.cluster.builtin.workloads.daemonset.rolling import COMPONENT, manage, update
from syncline.cluster.builtin.workloads.history import HASH_LABEL, History, expired, history
from syncline.control.plan import Create, Delete, Done, Emit, Plan, Result, Retry, set_status
from syncline.kube.objects import Obj, dig, generation, is_terminating, labels_of, name_of

__all__ = ["COMPONENT", "plan", "settle"]


def plan(observed: Observed, now: datetime) -> Plan:
    """Claim pods; find the revision; manage; update. The status is written in any case."""
    if observed.patches:
        return Plan((observed.patches,), why="pods are adopted or released by the selector")
    known = history(observed.daemonset, observed.revisions, hash_label=HASH_LABEL)
    if is_terminating(observed.daemonset):
        return _status_plan(observed, known, now)
    if known.action is not None:
        return Plan(((known.action,),), why="a new revision begins")
    shown = _status_plan(observed, known, now)
    actions = manage(observed, known, now) or update(observed, known, now)
    if actions:
        why = f"{name_of(observed.daemonset)} wants one pod on each node it may run on"
        return Plan((actions,), shown.outcome, why, shown.status)
    used = {f"{name_of(observed.daemonset)}-{labels_of(pod).get(HASH_LABEL)}" for pod in observed.pods}
    gone = expired(observed.daemonset, known, used, live_count=True)
    return Plan((gone,), shown.outcome, "old revisions go", shown.status) if gone else shown


def _status_plan(observed: Observed, known: History, now: datetime) -> Plan:
    counts = dict.fromkeys(("current", "misscheduled", "desired", "ready", "updated", "available"), 0)
    for node, starts, _ in observed.places:
        here = observed.on(node)
        counts["desired"] += starts
        counts["misscheduled"] += bool(here) and not starts
        if starts and here:
            pod = here[0]
            counts["current"] += 1
            counts["ready"] += is_ready(pod)
            counts["available"] += is_available(pod, observed.min_ready_s, now)
            counts["updated"] += labels_of(pod).get(HASH_LABEL) == known.hash
    status: Obj = {
        "currentNumberScheduled": counts["current"],
        "numberMisscheduled": counts["misscheduled"],
        "desiredNumberScheduled": counts["desired"],
        "numberReady": counts["ready"],
        "observedGeneration": generation(observed.daemonset),
    }
    optional = {
        "updatedNumberScheduled": counts["updated"],
        "numberAvailable": counts["available"],
        "numberUnavailable": counts["desired"] - counts["available"],
    }
    status |= {name: number for name, number in optional.items() if number}
    for kept in ("collisionCount", "conditions"):
        if (value := dig(observed.daemonset, "status", kept)) is not None:
            status[kept] = value
    write = set_status(observed.daemonset, status, "the pods changed")
    return Plan(
        status=write, outcome=until_available(observed.pods, observed.min_ready_s, now), why="every node has its pod"
    )


def settle(observed: Observed, results: tuple[Result, ...]) -> tuple[Observed, Plan] | None:
    """Emit events for pods created and deleted."""
    events: list[Emit] = []
    failed = ""
    for result in results:
        if isinstance(result.action, Create) and result.action.target.kind == "Pod":
            text = f"Created pod: {name_of(result.value)}" if result.ok else f"Error creating: {result.error}"
            reason = "SuccessfulCreate" if result.ok else "FailedCreate"
            events.append(Emit(observed.daemonset, reason, text, COMPONENT, warning=not result.ok))
            failed = failed or ("" if result.ok else str(result.error))
        elif isinstance(result.action, Delete) and result.action.target.kind == "Pod" and result.ok:
            text = f"Deleted pod: {result.action.name}"
            events.append(Emit(observed.daemonset, "SuccessfulDelete", text, COMPONENT))
    if not events:
        return None
    return observed, Plan((tuple(events),), Retry(failed) if failed else Done(), "tell what became of the pods")
