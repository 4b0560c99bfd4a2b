"""Plans a reconcile of a pool: respect Holds, target the next nodes, write the status; pure.

Rendering continues while a pool is held or paused, and its nodes wait, so that all changes of that time cost one reboot
(DECISIONS 28-30). ``machineconfig/pools/rollout.py`` chooses the nodes; this module adds the rules about time, and the
writes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from syncline.base.clock import LONG_AGO, time_or_none
from syncline.control.plan import Done, Emit, Patch, Plan, Requeue, Retry, SetStatus, set_status
from syncline.kube.kinds.holds import HELD, Hold, noted_holds
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_NODE, MACHINE_CONFIG_POOL
from syncline.kube.objects import GVK, Obj, dig, labels_of, name_of, namespace_of, resource_version
from syncline.machineconfig.names import MASTER
from syncline.machineconfig.pools.blocked import blocked_drains, sentence
from syncline.machineconfig.pools.candidates import NodeWrite, Said
from syncline.machineconfig.pools.membership import MembershipError
from syncline.machineconfig.pools.observe import Observed
from syncline.machineconfig.pools.rollout import PoolState, World, pool_state, tell_status
from syncline.machineconfig.pools.status import DEGRADED_GOES_ON, put_condition
from syncline.machineconfig.pools.waits import Reason

COMPONENT = "machineconfigcontroller-nodecontroller"
"""Component of Events, as upstream's."""
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
NODE = GVK("", "v1", "Node")
CLOCKS = timedelta(minutes=1)
"""Tolerated clock difference: a time further ahead comes from a wrong clock and is ignored."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Times. ``settle_s``: from a pool's change to its first node, so that changes in that time share one update
    (upstream's debounce). ``defer_s``: how long an operation of Syncline controllers defers the update of their node;
    afterwards the operation resumes from its notes."""

    settle_s: float = 5.0
    defer_s: float = 900.0


def plan(observed: Observed, now: datetime, settings: PoolSettings = PoolSettings()) -> Plan:
    name = name_of(observed.pool)
    living = [hold for hold in observed.holds if hold.lives(now)]
    note = _note_holds(observed.pool, [hold.name for hold in living if name in hold.pools])
    if note:
        return Plan((note,), Requeue(0.0, "what follows from it"), note[0].reason)
    world, state = looked(observed, now, settings)
    _tell_blocked_drains(state, world, now)
    steps = (*_writes(state, world), _events(state, world), _stalled(state, world, name))
    outcome = Retry(state.error) if state.error else _next_look(observed, world, state, living, now, settings)
    return Plan(tuple(step for step in steps if step), outcome, _why(state, world, name), _statuses(state, world))


def looked(observed: Observed, now: datetime, settings: PoolSettings = PoolSettings()) -> tuple[World, PoolState]:
    """Return the current decision about the pool with its input, for the plan and for explanations."""
    name = name_of(observed.pool)
    world = replace(
        observed.world,
        held=_held(hold for hold in observed.holds if hold.lives(now)),
        resting=frozenset({each for each in _pools_at_once(name) if _rests(observed.world.pool(each), now, settings)}),
        deferred=_deferred(observed, now, settings),
    )
    state = pool_state(world, name, now)
    if state.error and name not in state.statuses:
        # Upstream keeps the old status while an image build fails; here its counts stay correct.
        with contextlib.suppress(MembershipError):
            tell_status(state, world, observed.pool, now)
    return world, state


def _pools_at_once(name: str) -> tuple[str, ...]:
    return (name, "arbiter") if name == MASTER else (name,)


# -- who waits -------------------------------------------------------------------------------------------------------


def _held(living: Iterable[Hold]) -> dict[str, str]:
    """Return by pool the Hold that lasts longest."""
    latest: dict[str, Hold] = {}
    for hold in living:
        for pool in hold.pools:
            other = latest.get(pool)
            if other is None or (hold.expires, hold.name) > (other.expires, other.name):
                latest[pool] = hold
    return {pool: hold.sentence() for pool, hold in latest.items()}


def updating_since(pool: Obj) -> datetime | None:
    """Return since when the status reports Updating, or None. A degraded pool in image mode continues and counts,
    too."""
    for condition in dig(pool, "status", "conditions", default=[]):
        goes_on = condition.get("status") == "True" or condition.get("message") == DEGRADED_GOES_ON
        if condition.get("type") == "Updating" and goes_on:
            return time_or_none(condition.get("lastTransitionTime")) or LONG_AGO
    return None


def _rests(pool: Obj | None, now: datetime, settings: PoolSettings) -> bool:
    """Return whether the pool got its change just now, or has not reported it yet."""
    since = updating_since(pool) if pool is not None else None
    return since is None or since - CLOCKS <= now < since + timedelta(seconds=settings.settle_s)


def _deferred(observed: Observed, now: datetime, settings: PoolSettings) -> dict[str, str]:
    """Return nodes on which our controllers run a sync, with the reason: a reboot must not interrupt it."""
    running = [app for app in observed.operations if _counts(app, now, settings)]
    if not running:
        return {}
    first = f"{namespace_of(running[0])}/{name_of(running[0])}"
    why = f"Application {first}" + (f" and {len(running) - 1} more" if len(running) > 1 else "")
    hosts = [node for node, lease in observed.hosts.items() if _is_renewed(lease, now)]
    return {node: f"{node}: a controller that syncs {why} runs there" for node in sorted(hosts)}


def _counts(app: Obj, now: datetime, settings: PoolSettings) -> bool:
    started = time_or_none(dig(app, "status", "operationState", "startedAt"))
    return started is not None and started - CLOCKS <= now < started + timedelta(seconds=settings.defer_s)


def _is_renewed(lease: Obj, now: datetime) -> bool:
    renewed = time_or_none(dig(lease, "spec", "renewTime"))
    seconds = int(dig(lease, "spec", "leaseDurationSeconds", default=0) or 0)
    return renewed is not None and renewed - CLOCKS <= now < renewed + timedelta(seconds=seconds)


def _next_look(
    observed: Observed, world: World, state: PoolState, living: list[Hold], now: datetime, settings: PoolSettings
) -> Requeue | Done:
    """Return when time alone changes the decision."""
    name = name_of(observed.pool)
    due: list[tuple[float, str, bool]] = []
    ends = [hold.expires for hold in living if name in hold.pools and hold.expires is not None]
    due += [((end - now).total_seconds(), "a Hold expires", True) for end in ends]
    for pool in (world.pool(each) for each in state.waits_for(Reason.GATHERING)):
        since = (updating_since(pool) if pool is not None else None) or now
        left = (since - now).total_seconds() + settings.settle_s
        due.append((left, "changes that come together are taken together", False))
    if state.waits_for(Reason.DEFERRED):
        due.append((settings.defer_s / 15, "an operation runs on a node that is due", False))
    if not due:
        return Done()
    after, why, background = min(due)
    return Requeue(max(after, 0.0), why, background)


# -- writes ----------------------------------------------------------------------------------------------------------


def _note_holds(pool: Obj, names: list[str]) -> tuple[Patch, ...]:
    """Note the Holds on the pool. The holder waits for the note; afterwards no node of the pool starts an update."""
    if noted_holds(pool) == names:
        return ()
    note = json.dumps(names, separators=(",", ":")) if names else None
    body: Obj = {"metadata": {"annotations": {HELD: note}, "resourceVersion": resource_version(pool)}}
    why = f"held by {', '.join(names)}" if names else "no Hold is left"
    return (Patch(MACHINE_CONFIG_POOL, "", name_of(pool), body, why),)


def _writes(state: PoolState, world: World) -> tuple[tuple[Patch, ...], tuple[Patch, ...]]:
    """Return the patches: MachineConfigNodes first, as targeted nodes need them, then one conditional patch per
    node."""
    merged: dict[str, NodeWrite] = {}
    for write in (*state.writes, *_control_plane_labels(state, world)):
        old = merged.get(write.node, NodeWrite(write.node))
        merged[write.node] = NodeWrite(
            write.node,
            {**old.annotations, **write.annotations},
            {**old.labels, **write.labels},
            write.taints if write.taints is not None else old.taints,
        )
    targets = tuple(
        Patch(MACHINE_CONFIG_NODE, "", name, {"spec": {"configVersion": {"desired": target}}}, "the node is targeted")
        for name, target in state.targets.items()
        if dig(world.machine_config_nodes[name], "spec", "configVersion", "desired") != target
    )
    nodes = {name_of(node): node for node in world.nodes} if merged else {}
    return targets, tuple(_node_patch(nodes[name], write) for name, write in merged.items() if name in nodes)


def _control_plane_labels(state: PoolState, world: World) -> list[NodeWrite]:
    """Return writes of the newer role label of masters."""
    pool = world.pool(MASTER) if MASTER in state.statuses else None
    nodes = world.nodes_of(pool) if pool is not None else ()
    return [NodeWrite(name_of(n), {}, {CONTROL_PLANE: ""}) for n in nodes if CONTROL_PLANE not in labels_of(n)]


def _node_patch(node: Obj, write: NodeWrite) -> Patch:
    metadata: Obj = {"resourceVersion": resource_version(node)}
    if write.annotations:
        metadata["annotations"] = dict(write.annotations)
    if write.labels:
        metadata["labels"] = dict(write.labels)
    body: Obj = {"metadata": metadata}
    if write.taints is not None:
        body["spec"] = {"taints": list(write.taints) or None}
    return Patch(NODE, "", name_of(node), body, "its pool moves on")


def _events(state: PoolState, world: World) -> tuple[Emit, ...]:
    pools = {name_of(pool): _typed(pool) for pool in world.pools}
    return tuple(_emit(pools[name], said) for name, said in state.events)


def _typed(pool: Obj) -> Obj:
    return {"apiVersion": MACHINE_CONFIG_POOL.api_version, "kind": MACHINE_CONFIG_POOL.kind} | pool


def _emit(pool: Obj, said: Said) -> Emit:
    return Emit(pool, said.reason, said.message, COMPONENT, warning=said.warning)


def _statuses(state: PoolState, world: World) -> tuple[SetStatus, ...]:
    found: list[SetStatus] = []
    for name, status in state.statuses.items():
        pool = world.pool(name)
        assert pool is not None, "it was read"
        found += set_status(_typed(pool), status, "the nodes changed")
    return tuple(found)


def _stalled(state: PoolState, world: World, name: str) -> tuple[Emit, ...]:
    """Return an Event about a stopped roll-out, which upstream reports only in its log."""
    pool = world.pool(name)
    if pool is None or not state.error:
        return ()
    text = f"no node of pool {name} is updated: {state.error}" + (f"; {state.fix}" if state.fix else "")
    return (_emit(_typed(pool), Said("RolloutStalled", text, warning=True)),)


def _why(state: PoolState, world: World, name: str) -> str:
    if state.error:
        return state.error
    if state.targets or state.writes:
        return f"MachineConfigPool {name}: {len(state.writes)} nodes are written"
    message = dict.fromkeys(each.message for each in state.waits.get(name, ()))
    return f"MachineConfigPool {name}: {'; '.join(message) or 'nothing to be written to nodes'}"


# -- drains that cannot finish ---------------------------------------------------------------------------------------


def _tell_blocked_drains(state: PoolState, world: World, now: datetime) -> None:
    """Set condition ``DrainBlocked`` from the drain controller's notes on nodes; add an Event if it is new."""
    for name, status in state.statuses.items():
        pool = world.pool(name)
        assert pool is not None, "it was read"
        message = sentence(blocked_drains(world.nodes_of(pool)))
        conditions: list[Obj] = status["conditions"]
        before = [dict(each) for each in conditions]
        if message:
            put_condition(conditions, "DrainBlocked", True, now, "DrainCannotFinish", message)
            if conditions != before:
                state.events.append((name, Said("DrainBlocked", message, warning=True)))
        elif any(each.get("type") == "DrainBlocked" for each in conditions):
            put_condition(conditions, "DrainBlocked", False, now)
