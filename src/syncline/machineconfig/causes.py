"""Why a pool, a node or a machine config is not where it should be; pure.

``explain`` asks, and joins these causes with those of other rooms. A chain goes from the pool over its nodes to the
eviction that is refused, the pod that finds no node, and what would help; each proposal has been played on a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.base.cause import OR, Cause
from syncline.base.clock import time_or_none
from syncline.kube.holds import pause_writer
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, labels_of, name_of, ref_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.machineconfig.drain.feasible import Blocked, Homeless, Outlook, Sight, Verdict, judge
from syncline.machineconfig.drain.pods import leaves
from syncline.machineconfig.drain.progress import BlockedNote, Progress
from syncline.machineconfig.drain.proposals import proposals
from syncline.machineconfig.names import (
    CURRENT,
    DESIRED,
    DESIRED_DRAIN,
    FAILED_STATES,
    LAST_DRAIN,
    MACHINE_CONFIG,
    POOL,
    REASON,
)
from syncline.machineconfig.pools.candidates import LimitError, max_unavailable
from syncline.machineconfig.pools.membership import MembershipError, belonging, members
from syncline.machineconfig.pools.nodestate import is_done, is_unavailable, mcd_state, not_ready, target_of
from syncline.machineconfig.pools.status import condition_is
from syncline.machineconfig.whereabouts import NO_RECORDS, Records, Whereabouts, whereabouts_of

__all__ = ["APPLIED", "Told", "config_cause", "node_cause", "pool_cause"]

MAX_NODES = 3
"""Nodes in trouble that an explanation of a pool follows; they mostly share one reason."""
MAX_STEPS = 3
"""Proposals that are told; the evidence has all of them."""
APPLIED = "applied"
"""State of a machine config that all machines of its pools have."""
LOGS = ". Please see machine-config-controller logs"
ROLE = "machineconfiguration.openshift.io/role"


@dataclass(frozen=True, slots=True)
class Told:
    """``blocked``: something is wrong, not merely under way."""

    cause: Cause
    blocked: bool


# -- pools -----------------------------------------------------------------------------------------------------------


def pool_cause(pool: Obj, pools: Sequence[Obj], sight: Sight, now: datetime, records: Records = NO_RECORDS) -> Told:
    """Holds are not told here: they are objects of their own."""
    try:
        mine = members(pool, sight.nodes, pools)
        limit = max_unavailable(pool, len(mine))
    except (MembershipError, LimitError) as error:
        fix = f"correct the spec: kubectl edit machineconfigpool {name_of(pool)}"
        return Told(_of(pool, "Stalled", str(error), next_action=fix), blocked=True)
    conditions = dig(pool, "status", "conditions", default=[])
    said = {str(each.get("type")): each for each in conditions}
    because = (*_rendering(pool, said), *_nodes(pool, mine, sight, now, records), *_strays(sight.nodes, pools, pool))
    counts = _counts(pool, mine)
    if condition_is(conditions, "Degraded"):
        return Told(_of(pool, "Degraded", counts, _since(said, "Degraded"), because=because), blocked=True)
    # The condition is of the config that was reached last: until it is written anew, a newer one may be rendered.
    if condition_is(conditions, "Updated") and not because and _reached(pool) in ("", target_of(pool)):
        return Told(_of(pool, "Updated", counts, _since(said, "Updated")), blocked=False)
    if dig(pool, "spec", "paused") is True:
        return Told(_paused(pool, counts, said, because), blocked=True)
    state = next((each for each in ("DrainBlocked", "Updating") if condition_is(conditions, each)), "Waiting")
    counts += _turns(pool, mine, limit)
    blocked = any(_is_blocking(each) for each in because)
    full = _taken(mine, limit) if not any(_works(node) for node in mine) else ()
    told = _of(pool, state, counts, _since(said, state) or _since(said, "Updating"), because=(*because, *full))
    return Told(told, blocked=blocked or bool(full))


def _reached(pool: Obj) -> str:
    return str(dig(pool, "status", "configuration", "name", default="") or "")


def _counts(pool: Obj, nodes: Sequence[Obj]) -> str:
    target = target_of(pool)
    done = sum(is_done(node) and annotations_of(node).get(DESIRED) == target for node in nodes)
    return f"{done} of {len(nodes)} nodes are at {target or 'no rendered config yet'}"


def _turns(pool: Obj, nodes: Sequence[Obj], limit: int) -> str:
    """How many wait for a place among those that may be unavailable."""
    target = target_of(pool)
    waiting = sum(annotations_of(node).get(DESIRED) not in ("", None, target) for node in nodes)
    return f"; {waiting} wait for their turn, {limit} at a time" if target and waiting else ""


def _rendering(pool: Obj, said: dict[str, Obj]) -> tuple[Cause, ...]:
    condition = said.get("RenderDegraded", {})
    if condition.get("status") != "True":
        return ()
    fix = "correct or delete the machine config that it names"
    since = _since(said, "RenderDegraded")
    return (Cause("rendering", "Degraded", str(condition.get("message") or ""), since, next_action=fix),)


def _nodes(pool: Obj, nodes: Sequence[Obj], sight: Sight, now: datetime, records: Records) -> tuple[Cause, ...]:
    """Nodes in trouble first, then those that are at work."""
    busy = [node for node in nodes if _is_busy(node) or not_ready(node) is not None]
    told = [node_cause(node, pool, sight, now, records) for node in busy]
    blocked = [each.cause for each in told if each.blocked]
    working = [each.cause for each in told if not each.blocked]
    return tuple(blocked[:MAX_NODES]) or tuple(working[:MAX_NODES])


def _strays(nodes: Iterable[Obj], pools: Sequence[Obj], pool: Obj) -> tuple[Cause, ...]:
    """Nodes that would be this pool's, were they not in several custom ones."""
    found: list[Cause] = []
    for node in nodes:
        try:
            belonging(node, pools)
        except MembershipError as error:
            selector = label_selector_from(dig(pool, "spec", "nodeSelector"))
            if not selector.empty and selector.matches(labels_of(node)):
                fix = f"take a role label from it: kubectl label node {name_of(node)} node-role.kubernetes.io/ROLE-"
                found.append(Cause(str(_node_ref(node)), "in no pool", str(error), next_action=fix))
    return tuple(found[:MAX_NODES])


def _paused(pool: Obj, counts: str, said: dict[str, Obj], because: tuple[Cause, ...]) -> Cause:
    writer, at = pause_writer(pool)
    by = f' by "{writer}"' if writer else ""
    fix = f"syncline pool resume {name_of(pool)} --spec"
    since = time_or_none(at) or _since(said, "Updating")
    return _of(pool, "Paused", f"spec.paused is set{by}; {counts}", since, next_action=fix, because=because)


def _taken(nodes: Sequence[Obj], limit: int) -> tuple[Cause, ...]:
    """Nobody works, and yet nobody is next: who takes the places."""
    down = [node for node in nodes if is_unavailable(node)]
    if len(down) < limit or not down:
        return ()
    names = ", ".join(name_of(node) for node in down[:MAX_NODES])
    text = f"maxUnavailable {limit} is used up by {names}: {not_ready(down[0]) or 'its agent works'}"
    fix = f"kubectl uncordon {name_of(down[0])}" if dig(down[0], "spec", "unschedulable") else ""
    if not_ready(down[0]) is None and not annotations_of(down[0]).get(CURRENT):
        text, fix = f"no agent has reported from {names} yet", f"is a node agent running on {name_of(down[0])}?"
    return (Cause("capacity", "used up", text, next_action=fix or "mend the node, or raise spec.maxUnavailable"),)


# -- nodes -----------------------------------------------------------------------------------------------------------


def node_cause(node: Obj, pool: Obj | None, sight: Sight, now: datetime, records: Records = NO_RECORDS) -> Told:
    """How far a node is on its way to its config, and what keeps it. ``pool`` None: it is in no pool."""
    have = annotations_of(node)
    asked = have.get(DESIRED_DRAIN, "")
    if asked.startswith("drain-") and asked != have.get(LAST_DRAIN):
        return _draining(node, sight, now)
    state = mcd_state(node)
    if state in FAILED_STATES:
        fix = "correct what its reason says; a config that is taken back is taken up once the node is schedulable"
        if dig(node, "spec", "unschedulable"):
            fix += f": kubectl uncordon {name_of(node)}"
        told = Cause(str(_node_ref(node)), state, have.get(REASON, "") or "it gives no reason", next_action=fix)
        return Told(told, blocked=True)
    if not have.get(CURRENT) and pool is not None:
        return Told(Cause(str(_node_ref(node)), "Unknown", "its agent has not reported a config yet"), blocked=False)
    if have.get(CURRENT) != have.get(DESIRED) or (state and state != "Done"):
        return _updating(node, whereabouts_of(records.get(name_of(node)), have.get(DESIRED, "")), now)
    trouble = not_ready(node)
    if trouble is not None:
        cordoned = bool(dig(node, "spec", "unschedulable"))
        fix = f"kubectl uncordon {name_of(node)}" if cordoned else "look at its kubelet; is the machine on?"
        text = f"{trouble}; nobody updates it meanwhile" if pool is not None else trouble
        return Told(Cause(str(_node_ref(node)), "cordoned" if cordoned else "NotReady", text, next_action=fix), True)
    if pool is not None and target_of(pool) not in ("", have.get(DESIRED)):
        text = f"waits for its turn to {target_of(pool)}"
        return Told(Cause(str(_node_ref(node)), "next or later", text), blocked=False)
    where = f"in pool {name_of(pool)}" if pool is not None else "in no pool"
    config = f" at {have[CURRENT]}" if have.get(CURRENT) else ""
    return Told(Cause(str(_node_ref(node)), "Ready", f"{where}{config}"), blocked=False)


def _updating(node: Obj, at: Whereabouts | None, now: datetime) -> Told:
    """What it does just now, until when that is no reason to worry, and what comes then."""
    have, who = annotations_of(node), str(_node_ref(node))
    text = f"updates from {have.get(CURRENT) or 'nothing'} to {have.get(DESIRED) or 'nothing'}"
    if at is None:
        return Told(Cause(who, mcd_state(node) or "Targeted", text), blocked=False)
    text = f"{text}; then {at.then}"
    if at.overdue(now):
        late = f"{text}; expected by {at.until:%H:%M:%S}"
        return Told(Cause(who, at.doing, late, at.since, next_action=at.look), blocked=True)
    return Told(Cause(who, at.doing, text, at.since), blocked=False)


def _draining(node: Obj, sight: Sight, now: datetime) -> Told:
    progress, note = Progress.of(node), BlockedNote.of(node)
    leaving = [pod for pod in sight.pods if _is_on(pod, name_of(node)) and leaves(pod, sight.daemon_sets)]
    verdict = judge(sight, name_of(node), now)
    steps = tuple(str(each) for each in proposals(sight, verdict, now))
    because = tuple(_eviction(each, sight, steps) for each in verdict.blocked[:MAX_NODES])
    evidence = tuple(("would help", step) for step in steps)
    if progress is None:
        state = "drain not begun" if verdict.outlook is Outlook.BLOCKED else "about to be drained"
        text = "it is not cordoned, since the drain could not finish" if because else _waits(verdict)
        since = note.since if note is not None else None
        told = Cause(str(_node_ref(node)), state, text, since, evidence=evidence, because=because)
        return Told(told, blocked=verdict.outlook is Outlook.BLOCKED)
    reason = annotations_of(node).get(REASON, "").partition(LOGS)[0]  # what the logs would say comes below
    degraded = f"; {reason}" if mcd_state(node) in FAILED_STATES else ""
    text = f"{_have(len(leaving), 'pod')} to leave it{degraded}"
    told = Cause(str(_node_ref(node)), "draining", text, progress.began, evidence=evidence, because=because)
    return Told(told, blocked=bool(because) or bool(degraded))


def _have(count: int, what: str) -> str:
    return f"1 {what} has" if count == 1 else f"{count} {what}s have"


def _waits(verdict: Verdict) -> str:
    return verdict.message() or "the drain controller is asked"


def _eviction(blocked: Blocked, sight: Sight, steps: tuple[str, ...]) -> Cause:
    fix = OR.join(steps[:MAX_STEPS])
    if not blocked.budget:
        text = blocked.message()
        return Cause(str(blocked.pod), "eviction refused", text, next_action="leave one budget for the pod")
    text = f"by budget {blocked.budget} ({blocked.numbers()})"
    because = tuple(_pending(each, sight) for each in blocked.homeless[:1])
    if not because and blocked.unwell:
        text = f"{text}; {blocked.unwell[0]}"
    return Cause(str(blocked.pod), "eviction refused", text, next_action=fix, because=because)


def _pending(homeless: Homeless, sight: Sight) -> Cause:
    """The pod that waits, or will once its predecessor has gone."""
    if homeless.waits_already:
        return Cause(str(homeless.pod), "Pending", homeless.sentence)
    name = f"replacement of {homeless.pod.namespace}/{homeless.pod.name}"
    return Cause(name, "would be Pending", homeless.sentence)


# -- machine configs -------------------------------------------------------------------------------------------------


def config_cause(config: Obj, pools: Sequence[Obj], sight: Sight, now: datetime, records: Records = NO_RECORDS) -> Told:
    """Where a machine config is on its way to the machines of its pools."""
    mine = [pool for pool in pools if _selects(pool, config)]
    owners = dig(config, "metadata", "ownerReferences", default=[])
    if not mine and any(owner.get("kind") == POOL.kind for owner in owners):
        return _rendered(config, pools, sight)
    if not mine:
        fix = f"label it: kubectl label machineconfig {name_of(config)} {ROLE}=worker"
        return Told(_of(config, "Unused", "no pool selects it", next_action=fix), blocked=True)
    told = [_in_pool(config, pool, pools, sight, now, records) for pool in mine]
    waiting = [each for each in told if each.cause.state != APPLIED]
    state = APPLIED if not waiting else "on its way"
    text = "; ".join(f"{name_of(pool)}: {each.cause.message}" for pool, each in zip(mine, told, strict=True))
    because = tuple(cause for each in waiting for cause in each.cause.because)
    since = min((cause.since for cause in because if cause.since is not None), default=None)
    return Told(_of(config, state, text, since, because=because), blocked=any(each.blocked for each in waiting))


def _rendered(config: Obj, pools: Sequence[Obj], sight: Sight) -> Told:
    target = [name_of(pool) for pool in pools if target_of(pool) == name_of(config)]
    at = sum(annotations_of(node).get(CURRENT) == name_of(config) for node in sight.nodes)
    text = f"{at} nodes are at it" + (f"; pool {', '.join(target)} moves to it" if target else "; no pool wants it now")
    return Told(_of(config, "rendered", text), blocked=False)


def _in_pool(config: Obj, pool: Obj, pools: Sequence[Obj], sight: Sight, now: datetime, records: Records) -> Told:
    name = name_of(config)
    above = pool_cause(pool, pools, sight, now, records)
    if name not in _sources(pool, "spec"):
        text = "not rendered yet" if not _sources(pool, "spec") else "not in what is rendered"
        return Told(_of(config, "not rendered", text, because=(above.cause,)), above.blocked)
    if above.cause.state == "Updated":
        return Told(_of(config, APPLIED, f"rendered in {target_of(pool)}, on all nodes"), blocked=False)
    return Told(_of(config, "on its way", f"rendered in {target_of(pool)}", because=(above.cause,)), above.blocked)


def _sources(pool: Obj, part: str) -> list[str]:
    return [str(each.get("name")) for each in dig(pool, part, "configuration", "source", default=[])]


def _selects(pool: Obj, config: Obj) -> bool:
    try:
        selector = label_selector_from(dig(pool, "spec", "machineConfigSelector"))
    except SelectorError:
        return False
    return not selector.empty and selector.matches(labels_of(config))


# -- shared ----------------------------------------------------------------------------------------------------------


def _of(
    obj: Obj,
    state: str,
    message: str,
    since: datetime | None = None,
    *,
    next_action: str = "",
    because: tuple[Cause, ...] = (),
) -> Cause:
    kind = MACHINE_CONFIG if obj.get("kind") == MACHINE_CONFIG.kind else POOL
    ref = ObjectRef(*kind, "", name_of(obj))
    return Cause(str(ref), state, message, since, next_action=next_action, because=because)


def _node_ref(node: Obj) -> ObjectRef:
    return ref_of({"apiVersion": "v1", "kind": "Node"} | node)


def _is_on(pod: Obj, node: str) -> bool:
    return str(dig(pod, "spec", "nodeName", default="")) == node


def _is_busy(node: Obj) -> bool:
    return not is_done(node)


def _works(node: Obj) -> bool:
    """On its way by our hand."""
    have = annotations_of(node)
    return bool(have.get(CURRENT)) and (have.get(CURRENT) != have.get(DESIRED) or mcd_state(node) == "Working")


def _is_blocking(cause: Cause) -> bool:
    return bool(cause.next_action) or any(_is_blocking(each) for each in cause.because)


def _since(said: dict[str, Obj], kind: str) -> datetime | None:
    return time_or_none(said.get(kind, {}).get("lastTransitionTime"))
