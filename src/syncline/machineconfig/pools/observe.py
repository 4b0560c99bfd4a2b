"""Reads the input of the pool planner: pools, nodes, Holds, and which nodes run our own controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from syncline.control.cache import IndexFn, OfKind, Snapshot
from syncline.control.leader import NODE as HOST
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.holds import Hold, holds_of
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, owner_references, ref_of
from syncline.machineconfig.names import (
    ARBITER,
    CONTROLLER_CONFIG,
    CONTROLLER_CONFIG_NAME,
    GROUP,
    MACHINE_CONFIG,
    MACHINE_CONFIG_NODE,
    MASTER,
    POOL,
)
from syncline.machineconfig.pools.candidates import OPERATOR
from syncline.machineconfig.pools.layered import layering_of
from syncline.machineconfig.pools.membership import MembershipError, belonging
from syncline.machineconfig.pools.nodestate import ObservedNode
from syncline.machineconfig.pools.observedrecords import ObservedRecord
from syncline.machineconfig.pools.rollout import World

NODE, POD = GroupKind("", "Node"), GroupKind("", "Pod")
LEASES = GroupKind("coordination.k8s.io", "Lease")
HOLDS = HOLD.group_kind
OS_CONFIG, OS_BUILD = GroupKind(GROUP, "MachineOSConfig"), GroupKind(GROUP, "MachineOSBuild")
READS = (LEASES, MACHINE_CONFIG)
OPERATOR_PODS = "pools/operator"
"""Index: pods of the machine config operator."""
RENDERED = "pools/rendered"
"""Index: machine configs that pools own: rendered ones."""
HOSTING = "pools/hosting"
"""Index: Leases of our controllers that name the node they run on."""
WORKING = "pools/working"
"""Index: Applications with a running operation."""


def _runs(app: Obj) -> bool:
    return bool(dig(app, "status", "operationState", "phase") == "Running")


_INDICES = {
    OPERATOR_PODS: OfKind(POD, lambda pod: ("",) if labels_of(pod).get(OPERATOR[0]) == OPERATOR[1] else ()),
    RENDERED: OfKind(MACHINE_CONFIG, lambda config: ("",) if owner_references(config) else ()),
    HOSTING: OfKind(LEASES, lambda lease: ("",) if HOST in (dig(lease, "metadata", "annotations") or {}) else ()),
    WORKING: OfKind(APPLICATION.group_kind, lambda app: ("",) if _runs(app) else ()),
}


def indices() -> dict[str, IndexFn]:
    return dict(_INDICES)


@dataclass(frozen=True)
class Observed:
    """The planner's input. ``world`` has no times: the plan evaluates Holds and operations. ``hosts``: Leases of our
    controllers by node name; ``operations``: Applications that are syncing."""

    pool: Obj
    world: World
    holds: tuple[Hold, ...] = ()
    hosts: Mapping[str, Obj] = field(default_factory=dict)
    operations: tuple[Obj, ...] = ()


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    return _observed(cache, ref, lambda index: cache.indexed(index, ""))


def observe_plainly(state: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return the same from a snapshot without our indices."""

    def found(index: str) -> list[Obj]:
        rule = _INDICES[index]
        return [obj for obj in state.objects(rule.kind) if tuple(rule(obj))]

    return _observed(state, ref, found)


def _observed(cache: Snapshot, ref: ObjectRef, indexed: Callable[[str], list[Obj]]) -> Observed | None:
    pool = cache.get(ref)
    holds_are_known = cache.has_synced(HOLDS) or cache.mapper.preferred(HOLDS) is None  # or there can be no Hold
    if pool is None or not (cache.has_synced(NODE) and holds_are_known):
        return None
    pools, nodes = cache.objects(POOL), cache.views(NODE, ObservedNode)
    records = cache.views(MACHINE_CONFIG_NODE, ObservedRecord)
    configs, builds = cache.objects(OS_CONFIG), cache.objects(OS_BUILD)
    world = World(
        pools,
        nodes,
        {each.facts.name: each for each in records},
        cache.get(ObjectRef(*CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME)),
        indexed(OPERATOR_PODS),
        {name_of(each): each for each in indexed(RENDERED)},
        {name_of(each): layering_of(each, configs, builds) for each in pools} if configs else {},
    )
    leases = indexed(HOSTING)
    return Observed(
        pool,
        world,
        holds_of(cache.objects(HOLDS)),
        {str(each["metadata"]["annotations"][HOST]): each for each in leases},
        tuple(indexed(WORKING)),
    )


# -- who has to look -------------------------------------------------------------------------------------------------


def pools_of_node(node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Yield the pools that match the node, even if none owns it; masters and arbiters wake each other's pool."""
    pools = cache.objects(POOL)
    try:
        found = belonging(node, pools).pools
    except MembershipError:
        found = tuple(pools)
    for pool in found:
        yield ref_of(pool)
        if name_of(pool) in (ARBITER, MASTER):
            other = MASTER if name_of(pool) == ARBITER else ARBITER
            yield ref_of(pool)._replace(name=other)


def every_pool(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(pool) for pool in cache.objects(POOL))


def held_pools(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    wanted = Hold.of(obj).pools
    return (ref_of(pool) for pool in cache.objects(POOL) if name_of(pool) in wanted)


def pool_of_machine_config_node(mcn: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    node = cache.get(ObjectRef(*NODE, "", name_of(mcn)))
    return pools_of_node(node, cache) if node is not None else ()


def master_of_arbiter(pool: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    if name_of(pool) in (ARBITER, MASTER):
        yield ref_of(pool)._replace(name=MASTER if name_of(pool) == ARBITER else ARBITER)
