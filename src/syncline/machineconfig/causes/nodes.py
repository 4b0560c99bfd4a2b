"""Explains the progress of a node to its config, and what blocks it; pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from syncline.base.cause import OR, Cause
from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.causes.overview import Diagnosis, Overview, awaited, node_ref, since_of, written_at
from syncline.machineconfig.causes.progress import LOOK_AT_AGENT, PATIENCE, progress_of
from syncline.machineconfig.causes.remedies import remedy
from syncline.machineconfig.drain.feasible import Blocked, Homeless, Outlook, judge
from syncline.machineconfig.drain.plan import UPSTREAM
from syncline.machineconfig.drain.pods import leaves
from syncline.machineconfig.drain.progress import BlockedNote, Progress
from syncline.machineconfig.drain.proposals import proposals
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, DONE, FAILED_STATES, LAST_DRAIN, REASON
from syncline.machineconfig.pools.nodestate import mcd_state, not_ready, target_of

TURN = "next or later"
"""State of a node that waits for its pool, which explains the wait."""
MAX_PODS = 3
MAX_STEPS = 3
"""Maximum proposals in a fix; the evidence has all of them."""
LOGS = ". Please see machine-config-controller logs"


def node_cause(over: Overview, node: Obj, pool: Obj | None) -> Diagnosis:
    """Return the cause of a node's state. ``pool`` None: the node is in no pool."""
    have, who = annotations_of(node), str(node_ref(node))
    asked = have.get(DESIRED_DRAIN, "")
    if asked.startswith("drain-") and asked != have.get(LAST_DRAIN):
        return _draining(over, node)
    state = mcd_state(node)
    if state in FAILED_STATES:
        return Diagnosis(_failed(over, node, state), blocked=True)
    if not have.get(CURRENT) and pool is not None:
        return _silent(over, node)
    if have.get(CURRENT) != have.get(DESIRED) or (state and state != DONE):
        return _updating(over, node)
    trouble = not_ready(node)
    if trouble is not None:
        return Diagnosis(_down(node, trouble, in_pool=pool is not None), blocked=True)
    if pool is not None and target_of(pool) not in ("", have.get(DESIRED)):
        return Diagnosis(Cause(who, TURN, f"waits for its turn to {target_of(pool)}"), blocked=False)
    where = f"in pool {name_of(pool)}" if pool is not None else "in no pool"
    config = f" at {have[CURRENT]}" if have.get(CURRENT) else ""
    return Diagnosis(Cause(who, "Ready", f"{where}{config}"), blocked=False)


def _failed(over: Overview, node: Obj, state: str) -> Cause:
    """Explain a failure. The agent retries; a reverted config is applied only once the node is schedulable."""
    said, reason = _conditions(over.records.get(name_of(node))), annotations_of(node).get(REASON, "")
    since = since_of(said, "NodeDegraded") if said.get("NodeDegraded", {}).get("status") == "True" else None
    fix = remedy(state, reason)
    if dig(node, "spec", "unschedulable"):
        fix += f"; a config that is taken back is taken up once the node takes pods: kubectl uncordon {name_of(node)}"
    return Cause(str(node_ref(node)), state, reason or "it gives no reason", since, next_action=fix)


def _silent(over: Overview, node: Obj) -> Diagnosis:
    """Explain a node whose agent has not reported yet: it may still be installed."""
    since = time_or_none(dig(node, "metadata", "creationTimestamp"))
    report = Cause(str(node_ref(node)), "Unknown", "its agent has not reported a config yet", since)
    return awaited(report, over, PATIENCE, "its pool updates it", f"is a node agent running on {name_of(node)}?")


def _down(node: Obj, trouble: str, *, in_pool: bool) -> Cause:
    """Explain a node that is cordoned by a user, or not ready."""
    text = f"{trouble}; it is not updated meanwhile" if in_pool else trouble
    if dig(node, "spec", "unschedulable"):
        fix = f"kubectl uncordon {name_of(node)}"
        return Cause(str(node_ref(node)), "cordoned", text, _cordoned_at(node), next_action=fix)
    since = since_of(_conditions(node), "Ready")
    return Cause(str(node_ref(node)), "NotReady", text, since, next_action="check its kubelet; is the machine on?")


def _cordoned_at(node: Obj) -> datetime | None:
    taints = dig(node, "spec", "taints", default=[])
    mine = (each for each in taints if each.get("key") == "node.kubernetes.io/unschedulable")
    return next((time_or_none(each.get("timeAdded")) for each in mine), None)


def _conditions(obj: Obj | None) -> dict[str, Obj]:
    return {str(each.get("type")): each for each in dig(obj, "status", "conditions", default=[])}


def _updating(over: Overview, node: Obj) -> Diagnosis:
    """Explain the current step of an update, when it is overdue, and what follows."""
    have, who = annotations_of(node), str(node_ref(node))
    text = f"updates from {have.get(CURRENT) or 'nothing'} to {have.get(DESIRED) or 'nothing'}"
    at = progress_of(over.records.get(name_of(node)), have.get(DESIRED, ""))
    if at is None:
        state = mcd_state(node)  # of the previous update, until its agent begins this one
        report = Cause(who, state if state not in ("", DONE) else "Targeted", text, written_at(node))
        return awaited(report, over, PATIENCE, "it is done", LOOK_AT_AGENT)
    late = f"; expected by {at.until:%H:%M:%S}" if at.overdue(over.now) else ""
    report = Cause(who, at.doing, text, at.since)
    found = awaited(report, over, at.patience, at.then, at.check)
    return replace(found, cause=replace(found.cause, message=found.cause.message + late))


# -- drains ----------------------------------------------------------------------------------------------------------


def _draining(over: Overview, node: Obj) -> Diagnosis:
    sight, now = over.sight, over.now
    progress, note = Progress.of(node), BlockedNote.of(node)
    leaving = [pod for pod in sight.pods if _is_on(pod, name_of(node)) and leaves(pod, sight.daemon_sets)]
    verdict = judge(sight, name_of(node), now)
    steps = tuple(str(each) for each in proposals(sight, verdict, now))
    because = tuple(_eviction(each, steps) for each in verdict.blocked[:MAX_PODS])
    evidence = tuple(("would help", step) for step in steps)
    if progress is None:
        kept = over.kept(node)
        if kept:
            report = Cause(str(node_ref(node)), "drain not begun", kept, then="it begins once that is over")
            return Diagnosis(report, blocked=False)
        since = note.since if note is not None else None
        if verdict.outlook is Outlook.BLOCKED:
            text = "it is not cordoned, since the drain could not finish" if because else verdict.message()
            report = Cause(str(node_ref(node)), "drain not begun", text, since, evidence=evidence, because=because)
            return Diagnosis(report, blocked=True)
        asked = Cause(str(node_ref(node)), "about to be drained", verdict.message(), since or written_at(node))
        if asked.message:  # it waits for nodes that are being updated, each with its own time
            return Diagnosis(replace(asked, then="it is cordoned"), blocked=False)
        report = replace(asked, message="the drain controller is asked")
        return awaited(report, over, PATIENCE, "it is cordoned", "does the drain controller run?")
    reason = annotations_of(node).get(REASON, "").partition(LOGS)[0]  # deeper causes show what the logs would
    degraded = f"; {reason}" if mcd_state(node) in FAILED_STATES else ""
    text = f"{_have(len(leaving), 'pod')} to leave it{degraded}"
    until = None if degraded else progress.began + timedelta(seconds=UPSTREAM.limit_s)
    then = "" if degraded else "its agent says Degraded, and the drain goes on"
    report = Cause(
        str(node_ref(node)), "draining", text, progress.began, until, then, evidence=evidence, because=because
    )
    return Diagnosis(report, blocked=bool(because) or bool(degraded))


def _have(count: int, what: str) -> str:
    return f"1 {what} has" if count == 1 else f"{count} {what}s have"


def _eviction(blocked: Blocked, steps: tuple[str, ...]) -> Cause:
    fix = OR.join(steps[:MAX_STEPS])
    if not blocked.budget:
        text = blocked.message()
        return Cause(str(blocked.pod), "eviction refused", text, next_action=fix or "leave one budget for the pod")
    text = f"by budget {blocked.budget} ({blocked.numbers()})"
    because = tuple(_pending(each) for each in blocked.homeless[:1])
    if not because and blocked.unwell:
        text = f"{text}; {blocked.unwell[0]}"
    return Cause(str(blocked.pod), "eviction refused", text, next_action=fix, because=because)


def _pending(homeless: Homeless) -> Cause:
    """Return the cause of a pod without a node, or of the replacement that would be without one."""
    if homeless.waits_already:
        return Cause(str(homeless.pod), "Pending", homeless.sentence)
    name = f"replacement of {homeless.pod.namespace}/{homeless.pod.name}"
    return Cause(name, "would be Pending", homeless.sentence)


def _is_on(pod: Obj, node: str) -> bool:
    return str(dig(pod, "spec", "nodeName", default="")) == node
