"""Explains each wait that a reconcile of a pool notes; fixes are simulated on the same snapshot; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from syncline.base.cause import OR, Cause
from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of
from syncline.machineconfig.causes.nodes import node_cause
from syncline.machineconfig.causes.overview import Decided, Overview, awaited, cause_of, since_of, written_at
from syncline.machineconfig.names import ARBITER, CURRENT, DESIRED, MASTER
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.nodestate import facts_of, mcd_state, not_ready
from syncline.machineconfig.pools.observe import NODE
from syncline.machineconfig.pools.plan import PoolSettings, updating_since
from syncline.machineconfig.pools.rollout import World, pool_state
from syncline.machineconfig.pools.waits import Reason, Wait

MAX_NODES = 3
PATIENCE = timedelta(minutes=2)
"""Time until a node that may be targeted is overdue."""
BUILDERS_PATIENCE = timedelta(minutes=10)
NO_BUILDER = "is the builder of images running? see the pods of machine-os-builder"
CHECK_CONTROLLERS = "do the machine-config controllers run? no node is targeted"
SETTINGS = PoolSettings()


def rollout_causes(over: Overview, pool: Obj, nodes: Sequence[Obj]) -> tuple[Cause, ...]:
    """Return why the controller does not target nodes now, or which it is about to target. Pauses and Holds are left
    out."""
    decided = over.decided(name_of(pool))
    if decided is None:
        return ()
    found: dict[tuple[Reason, tuple[str, ...]], Cause] = {}
    for wait in decided.state.waits.get(name_of(pool), ()):
        cause = _cause(over, pool, nodes, decided, wait)
        if cause is not None:
            found.setdefault((wait.reason, wait.nodes), cause)
    return (*found.values(), *_about_to_begin(over, pool, decided))


def _cause(over: Overview, pool: Obj, nodes: Sequence[Obj], decided: Decided, wait: Wait) -> Cause | None:
    name, state = name_of(pool), str(wait.reason)
    edit = f"kubectl edit machineconfigpool {name}"
    match wait.reason:
        case Reason.PAUSED | Reason.HELD:
            return None
        case Reason.SELECTS_ALL:
            return Cause("nodeSelector", state, wait.message, next_action=f"name the labels of its nodes: {edit}")
        case Reason.LIMIT:
            return Cause("capacity", state, wait.message, next_action=f"set spec.maxUnavailable to 1 or more: {edit}")
        case Reason.CAPACITY:
            return _used_up(over, pool, nodes, decided.world, wait)
        case Reason.IMAGE:
            return _image(over, decided.world.layering(pool), wait)
        case Reason.CANARIES:
            return Cause("roll-out", state, wait.message, then="the other nodes begin")
        case Reason.QUORUM:
            return _quorum(over, pool, decided.world, wait)
        case Reason.GATHERING:
            return _gathers(over, pool, nodes, wait)
        case Reason.DEFERRED:
            return _deferred(over, decided, wait)
        case Reason.OPERATOR:
            text, then = f"{wait.message}: it goes last", "it goes when the other masters are done"
            return Cause(_node(wait), state, text, then=then)
        case Reason.UNLABELLED:
            fix = f"give it a label of its pool: kubectl label node {wait.nodes[0]} KEY=VALUE"
            return Cause(_node(wait), state, wait.message, next_action=fix)


def _node(wait: Wait) -> str:
    return str(ObjectRef(*NODE, "", wait.nodes[0]))


def _gathers(over: Overview, pool: Obj, nodes: Sequence[Obj], wait: Wait) -> Cause:
    """Explain that changes are collected before a roll-out, from the time at which the pool reports Updating."""
    since, settle = updating_since(pool), timedelta(seconds=SETTINGS.settle_s)
    if since is None:
        since, settle = written_at(pool, *nodes), settle + PATIENCE
    return awaited(
        Cause("roll-out", str(wait.reason), wait.message, since),
        over,
        settle,
        "the first node is targeted",
        CHECK_CONTROLLERS,
    ).cause


def _deferred(over: Overview, decided: Decided, wait: Wait) -> Cause:
    """Explain a node whose update is deferred for operations of Syncline controllers; the latest one counts."""
    begun = [time_or_none(dig(app, "status", "operationState", "startedAt")) for app in decided.observed.operations]
    since = max((each for each in begun if each is not None), default=None)
    keeps, text = timedelta(seconds=SETTINGS.defer_s), wait.message.removeprefix(f"{wait.nodes[0]}: ")
    report = awaited(
        Cause(_node(wait), str(wait.reason), text, since),
        over,
        keeps + PATIENCE,
        "it is updated all the same",
        CHECK_CONTROLLERS,
    )
    return report.cause


def _image(over: Overview, layering: Layering, wait: Wait) -> Cause:
    """Explain the image build that a pool in image mode waits for, or that there is none."""
    if layering.config is None:
        return Cause("image", "missing", wait.message)
    if layering.build is None:
        config = _typed(layering.config, "MachineOSConfig")
        message = cause_of(config, "waits for a build", wait.message, written_at(config))
        return awaited(message, over, BUILDERS_PATIENCE, "its image is built", NO_BUILDER).cause
    conditions = {str(each.get("type")): each for each in dig(layering.build, "status", "conditions", default=[])}
    states = ("Failed", "Interrupted", "Succeeded", "Building", "Prepared")
    state = next((kind for kind in states if layering.build_is(kind)), "created")
    said = str(conditions.get(state, {}).get("message") or "")
    text = f"{wait.message}: {said}" if said else wait.message
    message = cause_of(_typed(layering.build, "MachineOSBuild"), state.lower(), text, since_of(conditions, state))
    if state not in ("Failed", "Interrupted"):
        return replace(message, message=f"{text}; then nodes move to its image", then="nodes move to its image")
    fix = f"correct MachineOSConfig {name_of(layering.config)}, or the MachineConfigs: it is rebuilt"
    return replace(message, next_action=fix)


def _typed(obj: Obj, kind: str) -> Obj:
    return {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": kind} | obj


def _quorum(over: Overview, pool: Obj, world: World, wait: Wait) -> Cause:
    """Explain the turn of masters and arbiters: which nodes of the other pool are down, or how to find out."""
    other = world.pool(ARBITER if name_of(pool) == MASTER else MASTER)
    if other is None:
        return Cause("quorum", str(wait.reason), wait.message, next_action=f"make MachineConfigPool {MASTER}")
    down = [node for node in world.nodes_of(other) if facts_of(node).unavailable]
    below = tuple(node_cause(over, node, other).cause for node in down[:MAX_NODES])
    fix = "" if below else f"syncline explain pool/{name_of(other)}"
    return Cause("quorum", str(wait.reason), wait.message, next_action=fix, because=below)


# -- no place is free ------------------------------------------------------------------------------------------------


def _used_up(over: Overview, pool: Obj, nodes: Sequence[Obj], world: World, wait: Wait) -> Cause | None:
    """Explain which nodes use up ``maxUnavailable``; None while one of them is being updated."""
    if any(_works(node) for node in nodes):
        return None
    down = [node for node in nodes if name_of(node) in wait.takers]
    names = ", ".join(name_of(node) for node in down[:MAX_NODES])
    if not any(not_ready(node) for node in down) and not any(annotations_of(node).get(CURRENT) for node in down):
        fix = f"is a node agent running on {name_of(down[0])}?"
        return Cause("capacity", "used up", f"no agent has reported from {names} yet", next_action=fix)
    trouble = next((text for node in down if (text := not_ready(node))), "")
    text = f"{wait.message} by {names}" + (f": {trouble}" if trouble else "")
    fix = OR.join(_ways_out(pool, down, world, over.now)) or "mend the node"
    return Cause("capacity", str(wait.reason), text, next_action=fix)


def _ways_out(pool: Obj, down: Sequence[Obj], world: World, now: datetime) -> list[str]:
    """Return the fixes after which the controller would target a node."""
    found = []
    cordoned = [node for node in down if dig(node, "spec", "unschedulable")]
    freed = {name_of(node): node | {"spec": {**node["spec"], "unschedulable": False}} for node in cordoned}
    nodes = [freed.get(name_of(node), node) for node in world.nodes]
    if cordoned and _begins(replace(world, nodes=nodes), pool, now):
        found.append(f"kubectl uncordon {' '.join(sorted(freed))}")
    if name_of(pool) not in (MASTER, ARBITER):
        limit = len(down) + 1
        wider = pool | {"spec": {**pool["spec"], "maxUnavailable": limit}}
        pools = [wider if name_of(each) == name_of(pool) else each for each in world.pools]
        if _begins(replace(world, pools=pools), pool, now):
            body = f'{{"spec":{{"maxUnavailable":{limit}}}}}'
            command = f"kubectl patch machineconfigpool {name_of(pool)} --type=merge -p '{body}'"
            found.append(f"let {limit} nodes be unavailable: {command}")
    return found


def _begins(world: World, pool: Obj, now: datetime) -> bool:
    state = pool_state(replace(world, resting=frozenset()), name_of(pool), now)
    return any(DESIRED in write.annotations for write in state.writes)


def _works(node: Obj) -> bool:
    """Return whether the controllers are updating the node."""
    have = annotations_of(node)
    return bool(have.get(CURRENT)) and (have.get(CURRENT) != have.get(DESIRED) or mcd_state(node) == "Working")


# -- a node is next ------------------------------------------------------------------------------------------------


def _about_to_begin(over: Overview, pool: Obj, decided: Decided) -> tuple[Cause, ...]:
    """Explain that a node is next: its update starts soon, unless no controller runs."""
    mine = decided.world.nodes_of(pool)
    names = {name_of(node) for node in mine}
    following = [each.node for each in decided.state.writes if DESIRED in each.annotations and each.node in names]
    if not following:
        return ()
    times = (updating_since(pool), written_at(pool, *mine))
    since = max((each for each in times if each is not None), default=None)
    more = f" and {len(following) - MAX_NODES} more" if len(following) > MAX_NODES else ""
    message = Cause("roll-out", "about to begin", f"next: {', '.join(following[:MAX_NODES])}{more}", since)
    return (awaited(message, over, PATIENCE, "it is drained, or updated in place", CHECK_CONTROLLERS).cause,)
