"""Decides on one snapshot of a pool: taints, topology, targets and the resulting status. Use :func:`pool_state`.

Pure and without our own rules about time, which are in the plan. Source: Machine Config Operator
``syncMachineConfigPool`` and ``updatePools``; reference machine-config 3.4 to 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from syncline.kube.objects import Obj, dig, is_terminating, name_of
from syncline.machineconfig.names import ARBITER, CONTROLLER_CONFIG_NAME, DESIRED, MASTER, TOPOLOGY, UPDATE_TAINT
from syncline.machineconfig.pools.blocked import blocked_drains, chains
from syncline.machineconfig.pools.candidates import (
    Chosen,
    LimitError,
    NodeWrite,
    Said,
    all_candidates,
    canaries_left,
    choose_targets,
    max_unavailable,
    unavailable,
)
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.membership import MembershipError, members, selects_all
from syncline.machineconfig.pools.nodestate import Nodes, candidates_of, facts_of_all, target_of, wants_build
from syncline.machineconfig.pools.status import PoolNodes, pool_status, update_line
from syncline.machineconfig.pools.waits import Reason, Wait

ARBITER_TOPOLOGY = "HighlyAvailableArbiter"


@dataclass(frozen=True)
class World:
    """The input of a decision. ``rendered``: rendered configs by name; ``layerings`` by name of pool.

    ``held``: by pool, the Hold that stops its updates; ``resting``: pools whose nodes are not targeted yet;
    ``deferred``: nodes that wait, each with a short reason.
    """

    pools: Sequence[Obj]
    nodes: Sequence[Obj]
    machine_config_nodes: Mapping[str, Obj] = field(default_factory=dict)
    controller_config: Obj | None = None
    operator_pods: Sequence[Obj] = ()
    rendered: Mapping[str, Obj] = field(default_factory=dict)
    layerings: Mapping[str, Layering] = field(default_factory=dict)
    gates: frozenset[str] = frozenset()
    held: Mapping[str, str] = field(default_factory=dict)
    resting: frozenset[str] = frozenset()
    deferred: Mapping[str, str] = field(default_factory=dict)

    def pool(self, name: str) -> Obj | None:
        return next((pool for pool in self.pools if name_of(pool) == name), None)

    def layering(self, pool: Obj) -> Layering:
        return self.layerings.get(name_of(pool), Layering())

    def nodes_of(self, pool: Obj) -> Nodes:
        """Return the nodes that the pool owns. Raises MembershipError if its own selector is invalid."""
        name = name_of(pool)
        if name not in self._members:
            self._members[name] = members(pool, self.nodes, self.pools)
        return self._members[name]

    @cached_property
    def _members(self) -> dict[str, Nodes]:
        return {}

    def paused(self, pool: Obj) -> bool:
        return dig(pool, "spec", "paused") is True or name_of(pool) in self.held

    @property
    def topology(self) -> str:
        return str(dig(self.controller_config, "spec", "infra", "status", "controlPlaneTopology", default="") or "")


@dataclass(slots=True)
class PoolState:
    """The decision. ``writes`` in order (a node may be written twice); ``targets`` of MachineConfigNodes; ``statuses``,
    ``events`` and ``waits`` by pool; ``wakes``: pools to reconcile, too (watches do that). ``error``: why the decision
    is incomplete, ``fix``: what a user can do."""

    writes: list[NodeWrite] = field(default_factory=list)
    targets: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, Obj] = field(default_factory=dict)
    events: list[tuple[str, Said]] = field(default_factory=list)
    wakes: list[str] = field(default_factory=list)
    waits: dict[str, list[Wait]] = field(default_factory=dict)
    error: str = ""
    fix: str = ""

    def wait(self, pool: Obj, *waits: Wait) -> None:
        self.waits.setdefault(name_of(pool), []).extend(waits)

    def waits_for(self, reason: Reason) -> list[str]:
        """Return the pools whose nodes wait for this reason."""
        return [name for name, waits in self.waits.items() if any(each.reason is reason for each in waits)]


def pool_state(world: World, name: str, now: datetime) -> PoolState:
    """Return the decision about a pool. Never raises for the content of objects, which ``error`` describes."""
    state = PoolState()
    pool = world.pool(name)
    if pool is None or not target_of(pool):
        return state  # the render controller has not rendered it yet
    try:
        _look(state, world, pool, now)
    except MembershipError as error:
        state.error = str(error)
    return state


def _look(state: PoolState, world: World, pool: Obj, now: datetime) -> None:
    if world.controller_config is None:
        missing = f'controllerconfig.machineconfiguration.openshift.io "{CONTROLLER_CONFIG_NAME}" not found'
        state.error = f'error getting controllerconfig "{CONTROLLER_CONFIG_NAME}", error: {missing}'
        state.fix = f"bring ControllerConfig {CONTROLLER_CONFIG_NAME} back: who installs the cluster makes it"
        return
    with_arbiter = world.topology == ARBITER_TOPOLOGY
    if name_of(pool) == ARBITER and not _arbiter_alone(state, world, pool, with_arbiter):
        tell_status(state, world, pool, now)
        return
    pools = [pool]
    if name_of(pool) == MASTER and with_arbiter:
        arbiter = world.pool(ARBITER)
        if arbiter is None:
            message = "not found in HighlyAvailableArbiterMode; cluster may be misconfigured"
            state.error = f'arbiter pool "{ARBITER}" {message}'
            state.fix = f"make MachineConfigPool {ARBITER}"
            return
        pools.append(arbiter)
    masters_down = 0
    for each in pools:
        going = _update(state, world, each, pools, masters_down, now)
        if going is None:
            return
        masters_down = going if name_of(each) == MASTER else masters_down


def _arbiter_alone(state: PoolState, world: World, arbiter: Obj, with_arbiter: bool) -> bool:
    """Return whether the arbiter is updated now without the masters: only while these are paused and all up, since two
    control-plane nodes down may lose the quorum."""
    masters = world.pool(MASTER)
    if masters is None:
        state.wait(
            arbiter, Wait(Reason.QUORUM, f"arbiters are updated together with pool {MASTER}, which is not there")
        )
        return False
    if with_arbiter and world.paused(masters):
        doing = f"pool {ARBITER}: failed to get master nodes for quorum check"
        down = [name_of(node) for node in unavailable(_nodes_for(world, masters, doing))]
        if down:
            text = f"masters are down while their pool is paused: {', '.join(down)}"
            state.wait(arbiter, Wait(Reason.QUORUM, text, takers=tuple(down)))
        return not down
    if not with_arbiter:
        text = f"arbiters are updated in the control-plane topology {ARBITER_TOPOLOGY} only; this is {world.topology}"
        state.wait(arbiter, Wait(Reason.QUORUM, text))
    state.wakes.append(MASTER)
    return False


def _update(
    state: PoolState, world: World, pool: Obj, pools: Sequence[Obj], masters_down: int, now: datetime
) -> int | None:
    """Update one pool; return how many of its nodes are or may then be down, or None to stop here."""
    if selects_all(pool):
        text = "This machineconfigpool is selecting all nodes. A non-empty selector is required."
        state.events.append((name_of(pool), Said("SelectingAll", text, warning=True)))
        state.wait(pool, Wait(Reason.SELECTS_ALL, "spec.nodeSelector {} selects all nodes: it gets none"))
        return None
    if is_terminating(pool) or not _may_go_on(state, world, pool):
        if not state.error:
            tell_status(state, world, pool, now)
        return None
    layering = world.layering(pool)
    nodes = _nodes_for(world, pool, f'error getting nodes for pool "{name_of(pool)}", sync error')
    try:
        limit = max_unavailable(pool, len(nodes))
        canaries = canaries_left(pool, nodes, layering)
    except LimitError as error:
        tell_status(state, world, pool, now)
        state.error, state.fix = str(error), error.fix
        return None
    with_arbiter = world.topology == ARBITER_TOPOLOGY
    arbiter_down = name_of(pool) == MASTER and with_arbiter and _some_down(world, pools, ARBITER)
    _write_marks(state, world, pool, nodes)
    if name_of(pool) == ARBITER and with_arbiter and masters_down:
        state.wait(pool, *_behind(pool, nodes, layering, Reason.QUORUM, "masters are updated first, all of them"))
        tell_status(state, world, pool, now)
        return 0
    _take_again(state, world, pool, nodes)
    candidates, capacity = all_candidates(pool, nodes, 0 if arbiter_down else limit, layering)
    if arbiter_down:
        state.wait(pool, *_behind(pool, nodes, layering, Reason.QUORUM, "an arbiter is down: masters wait for it"))
    elif capacity <= 0:
        state.wait(pool, *_no_place(pool, nodes, layering, limit))
    going = len(unavailable(nodes)) + len(candidates)
    if candidates:
        _take(state, world, pool, candidates, capacity, canaries)
    tell_status(state, world, pool, now)
    return going


def _may_go_on(state: PoolState, world: World, pool: Obj) -> bool:
    """Return whether the pool is neither paused nor held and, in image mode, has its image."""
    if world.paused(pool):
        held = world.held.get(name_of(pool))
        paused = Wait(Reason.PAUSED, "spec.paused is set")
        state.wait(pool, Wait(Reason.HELD, f"held by {held}") if held is not None else paused)
        return False
    layering = world.layering(pool)
    if not layering.layered:
        return True
    progress = layering.progress()
    state.error = progress.error
    if not progress.goes_on:
        state.wait(pool, Wait(Reason.IMAGE, progress.reason))
    return progress.goes_on


def _behind(pool: Obj, nodes: Sequence[Obj], layering: Layering, reason: Reason, text: str) -> tuple[Wait, ...]:
    """Return the wait if a node is behind its pool, else nothing."""
    candidate = candidates_of(pool, layering)
    return (Wait(reason, text),) if any(candidate(each) for each in facts_of_all(nodes)) else ()


def _no_place(pool: Obj, nodes: Sequence[Obj], layering: Layering, limit: int) -> tuple[Wait, ...]:
    """Return the wait if no more nodes may be down: the limit is negative, or down nodes use it up."""
    if limit < 0:
        return _behind(pool, nodes, layering, Reason.LIMIT, f"maxUnavailable is {limit}: no node may ever begin")
    candidate = candidates_of(pool, layering)
    facts = facts_of_all(nodes)
    if not any(candidate(each) for each in facts):
        return ()
    takers = tuple(each.name for each in facts if each.unavailable or (each.failing and not candidate(each)))
    return (Wait(Reason.CAPACITY, f"maxUnavailable {limit} is used up", takers=takers),)


def _some_down(world: World, pools: Sequence[Obj], name: str) -> bool:
    doing = f"pool {MASTER}: failed to get {name} nodes"
    return any(bool(unavailable(_nodes_for(world, pool, doing))) for pool in pools if name_of(pool) == name)


def _nodes_for(world: World, pool: Obj, doing: str) -> Sequence[Obj]:
    """Return the pool's nodes. Raises MembershipError with ``doing`` as its beginning."""
    try:
        return world.nodes_of(pool)
    except MembershipError as error:
        raise MembershipError(f"{doing}: {error}") from None


def _write_marks(state: PoolState, world: World, pool: Obj, nodes: Sequence[Obj]) -> None:
    """Write the topology for agents, and the taint that keeps pods from nodes that are not updated yet."""
    layering = world.layering(pool)
    topology, target = world.topology, target_of(pool)
    for node, facts in zip(nodes, facts_of_all(nodes), strict=True):
        marks: dict[str, str | None] = {}
        if topology and facts.topology != topology:
            marks[TOPOLOGY] = topology
        in_place = not facts.between_images and facts.desired == target
        at_target = wants_build(facts, layering) if layering.layered else in_place
        taints = None if at_target != facts.tainted else _taints(node, at_target)
        if marks or taints is not None:
            state.writes.append(NodeWrite(facts.name, marks, {}, taints))


def _taints(node: Obj, without: bool) -> tuple[Obj, ...]:
    mark = (UPDATE_TAINT["key"], UPDATE_TAINT["effect"])
    others = [t for t in dig(node, "spec", "taints", default=[]) if (t.get("key"), t.get("effect")) != mark]
    return tuple(others) if without else (*others, UPDATE_TAINT)


def _take_again(state: PoolState, world: World, pool: Obj, nodes: Sequence[Obj]) -> None:
    """Target nodes again that are down since Ansible failed in their update: a new commit is the way to mend it, and
    takes no other node down. (Upstream leaves a node that failed after its drain to a person.)"""
    layering = world.layering(pool)
    candidate = candidates_of(pool, layering)
    again = [node for node, each in zip(nodes, facts_of_all(nodes), strict=True) if each.unplayed and candidate(each)]
    if again and name_of(pool) not in world.resting:
        _note_targets(state, world, pool, choose_targets(pool, again, len(again), layering))


def _take(
    state: PoolState, world: World, pool: Obj, candidates: Sequence[Obj], capacity: int, canaries: int | None
) -> None:
    """Target the next nodes, and note why other candidates wait."""
    if name_of(pool) in world.resting:
        state.wait(pool, Wait(Reason.GATHERING, "changes that come together are taken together"))
        return
    if canaries is not None and canaries < len(candidates):
        text = "all canaries have to be at the new config before any other node begins"
        state.wait(pool, Wait(Reason.CANARIES, text))
    free = [node for node in candidates if name_of(node) not in world.deferred]
    for node in candidates:
        if name_of(node) in world.deferred:
            why = world.deferred[name_of(node)]
            state.events.append((name_of(pool), Said("DeferringNodeUpdate", f"Deferring update of node {why}")))
            state.wait(pool, Wait(Reason.DEFERRED, why, (name_of(node),)))
    if canaries is not None:
        capacity = min(capacity, canaries)
    if not free or capacity <= 0:
        return
    chosen = choose_targets(
        pool,
        free,
        capacity,
        world.layering(pool),
        operator_pods=world.operator_pods,
        pools=world.pools,
        rendered=world.rendered,
    )
    state.wait(pool, *chosen.waits)
    _note_targets(state, world, pool, chosen)


def _note_targets(state: PoolState, world: World, pool: Obj, chosen: Chosen) -> None:
    state.writes += chosen.writes
    state.events += [(name_of(pool), said) for said in chosen.events]
    layering = world.layering(pool)
    config = layering.rendered if layering.layered else target_of(pool)
    for write in chosen.writes:
        if write.node in chosen.targeted and write.node in world.machine_config_nodes:
            state.targets[write.node] = write.annotations.get(DESIRED) or config


def tell_status(state: PoolState, world: World, pool: Obj, now: datetime) -> None:
    """Compute the pool's status from the state before the writes of this reconcile."""
    nodes = world.nodes_of(pool)
    known = world.machine_config_nodes
    mcns = [known[facts.name] for facts in facts_of_all(nodes) if facts.name in known]
    layering = world.layering(pool)
    held = world.held.get(name_of(pool), "")
    observed = PoolNodes(
        pool, nodes, mcns, world.controller_config, layering, world.gates, held, chains(blocked_drains(nodes))
    )
    status = pool_status(observed, now)
    state.statuses[name_of(pool)] = status
    before = dig(pool, "status", "configuration", "name", default="") or ""
    if (status["configuration"].get("name") or "") != before:
        text = f"Pool {name_of(pool)} has completed update to {update_line(pool, layering)}"
        state.events.append((name_of(pool), Said("Completed", text)))
