"""Explains why a pool is not updated, from the pool over its nodes down to fixes; pure.

Each wait of the pool controller has a cause here, with start, expected end and next step as far as known.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.kube.kinds.holds import pause_writer
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of
from syncline.machineconfig.causes.nodes import node_cause
from syncline.machineconfig.causes.overview import (
    Diagnosis,
    Overview,
    cause_of,
    is_blocking,
    node_ref,
    since_of,
    written_at,
)
from syncline.machineconfig.causes.rendering import REFUSED, refusal_fix, rendering_cause
from syncline.machineconfig.causes.waits import rollout_causes
from syncline.machineconfig.names import DESIRED
from syncline.machineconfig.pools.candidates import LimitError, max_unavailable
from syncline.machineconfig.pools.membership import MembershipError, Pools, members, node_selector
from syncline.machineconfig.pools.nodestate import is_done, not_ready, target_of
from syncline.machineconfig.pools.status import condition_is

MAX_NODES = 3
"""Maximum failing nodes that an explanation of a pool lists; they mostly share one reason."""


def pool_cause(over: Overview, pool: Obj) -> Diagnosis:
    """Return the cause of a pool's state. Holds are explained as objects of their own."""
    try:
        mine: Sequence[Obj] = members(pool, over.nodes, over.pools)
    except MembershipError as error:
        fix = f"correct spec.nodeSelector: kubectl edit machineconfigpool {name_of(pool)}"
        return Diagnosis(cause_of(pool, "Stalled", str(error), next_action=fix), blocked=True)
    conditions = dig(pool, "status", "conditions", default=[])
    said = {str(each.get("type")): each for each in conditions}
    stalled = _stalled(over, pool)
    waits = () if stalled is not None else rollout_causes(over, pool, mine)
    because = (*_rendering(over, pool, said), *_nodes(over, pool, mine), *waits, *_strays(over, pool))
    counts = _counts(pool, mine)
    if condition_is(conditions, "Degraded"):
        fix = stalled.next_action if stalled is not None else ""
        counts += f"; {stalled.message}" if stalled is not None else ""
        report = cause_of(pool, "Degraded", counts, since_of(said, "Degraded"), because=because, next_action=fix)
        return Diagnosis(report, blocked=True)
    if stalled is not None:
        text = f"{stalled.message}; {counts}"
        report = cause_of(pool, "Stalled", text, written_at(pool), next_action=stalled.next_action, because=because)
        return Diagnosis(report, blocked=True)
    # The condition belongs to the last config reached: a newer one may be rendered already.
    if condition_is(conditions, "Updated") and not because and _reached(pool) in ("", target_of(pool)):
        return Diagnosis(cause_of(pool, "Updated", counts, since_of(said, "Updated")), blocked=False)
    if dig(pool, "spec", "paused") is True:
        return Diagnosis(_paused(pool, counts, said, because), blocked=True)
    state = next((each for each in ("DrainBlocked", "Updating") if condition_is(conditions, each)), "Waiting")
    counts += _turns(pool, mine)
    since = since_of(said, state) or written_at(pool)
    report = cause_of(pool, state, counts, since, because=because)
    return Diagnosis(report, blocked=any(is_blocking(each) for each in because))


def _reached(pool: Obj) -> str:
    return str(dig(pool, "status", "configuration", "name", default="") or "")


def _counts(pool: Obj, nodes: Sequence[Obj]) -> str:
    target = target_of(pool)
    done = sum(is_done(node) and annotations_of(node).get(DESIRED) == target for node in nodes)
    return f"{done} of {len(nodes)} nodes are at {target or 'no rendered config yet'}"


def _turns(pool: Obj, nodes: Sequence[Obj]) -> str:
    """Return how many nodes wait while ``maxUnavailable`` others are updated, as text."""
    target = target_of(pool)
    waiting = sum(annotations_of(node).get(DESIRED) not in ("", None, target) for node in nodes)
    try:
        limit = max_unavailable(pool, len(nodes))
    except LimitError:
        limit = 0
    wait = "waits for its turn" if waiting == 1 else "wait for their turn"
    return f"; {waiting} {wait}, {limit} at a time" if target and waiting and limit > 0 else ""


def _stalled(over: Overview, pool: Obj) -> Cause | None:
    """Return what stops the controller until a user changes something, or None; a failed build is a wait instead."""
    decided = over.decided(name_of(pool))
    if decided is None or not decided.state.error or decided.state.waits.get(name_of(pool)):
        return None
    return cause_of(pool, "Stalled", decided.state.error, next_action=decided.state.fix)


def _rendering(over: Overview, pool: Obj, said: dict[str, Obj]) -> tuple[Cause, ...]:
    condition = said.get("RenderDegraded", {})
    if condition.get("status") == "True":
        text = str(condition.get("message") or "")
        fix = refusal_fix(over, pool, text)
        now = rendering_cause(over, pool)
        if now is not None and now.blocked and now.cause.message not in text:
            return (now.cause,)  # the condition is of an earlier attempt
        return (Cause("rendering", "Degraded", text, since_of(said, "RenderDegraded"), next_action=fix),)
    found = rendering_cause(over, pool)
    if found is None:
        return ()
    # A render that is due does not explain a pool that has a target; one that never comes does.
    never = found.cause.state == REFUSED or bool(found.cause.because)
    return (found.cause,) if never or not target_of(pool) else ()


def _nodes(over: Overview, pool: Obj, nodes: Sequence[Obj]) -> tuple[Cause, ...]:
    """Return the causes of nodes in trouble, or else of nodes that are being updated."""
    busy = [node for node in nodes if not is_done(node) or not_ready(node) is not None]
    cause = [node_cause(over, node, pool) for node in busy]
    blocked = [each.cause for each in cause if each.blocked]
    working = [each.cause for each in cause if not each.blocked]
    return tuple(blocked[:MAX_NODES]) or tuple(working[:MAX_NODES])


def _strays(over: Overview, pool: Obj) -> tuple[Cause, ...]:
    """Return nodes that match this pool but also several custom ones, or a pool whose unreadable selector keeps all
    nodes out of all pools."""
    unreadable = unreadable_pool(over)
    if unreadable is not None:
        return (unreadable,)
    found: list[Cause] = []
    known, selector = Pools(over.pools), node_selector(pool)
    for node in over.nodes:
        try:
            known.belonging(node)
        except MembershipError as error:
            if not selector.empty and selector.matches(labels_of(node)):
                fix = f"take a role label from it: kubectl label node {name_of(node)} node-role.kubernetes.io/ROLE-"
                found.append(Cause(str(node_ref(node)), "in no pool", str(error), next_action=fix))
    return tuple(found[:MAX_NODES])


def unreadable_pool(over: Overview) -> Cause | None:
    """Return the pool whose unreadable selector keeps all nodes out of all pools, or None."""
    for pool in over.pools:
        try:
            node_selector(pool)
        except MembershipError as error:
            text = f"{error}: meanwhile no node is in any pool"
            fix = f"correct spec.nodeSelector: kubectl edit machineconfigpool {name_of(pool)}"
            return cause_of(pool, "unreadable", text, written_at(pool), next_action=fix)
    return None


def _paused(pool: Obj, counts: str, said: dict[str, Obj], because: tuple[Cause, ...]) -> Cause:
    writer, at = pause_writer(pool)
    by = f' by "{writer}"' if writer else ""
    fix = f"syncline pool resume {name_of(pool)} --spec"
    since: datetime | None = time_or_none(at) or since_of(said, "Updating")
    return cause_of(pool, "Paused", f"spec.paused is set{by}; {counts}", since, next_action=fix, because=because)
