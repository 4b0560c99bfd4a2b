"""The input of the drain planner: the node, the pods that must leave, and the cluster as far as a forecast needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from syncline.control.cache import IndexFn, OfKind, Snapshot
from syncline.kube.kinds.holds import Hold, holds_of
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.kube.scheduling.filters import Cluster, Counted
from syncline.kube.scheduling.volumes import Storage, attach_limits, claim_names
from syncline.machineconfig.drain.budgets import selector_of
from syncline.machineconfig.drain.feasible import Sight, waits
from syncline.machineconfig.drain.pods import departures
from syncline.machineconfig.drain.progress import BLOCKED, PROGRESS
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN, MACHINE_CONFIG_NODE, POOL
from syncline.machineconfig.pools.membership import MembershipError, primary_pool

NODE, POD, NAMESPACE = GroupKind("", "Node"), GroupKind("", "Pod"), GroupKind("", "Namespace")
DAEMON_SET = GroupKind("apps", "DaemonSet")
BUDGET = GroupKind("policy", "PodDisruptionBudget")
CLAIM, VOLUME = GroupKind("", "PersistentVolumeClaim"), GroupKind("", "PersistentVolume")
STORAGE_CLASS, CSI_NODE = GroupKind("storage.k8s.io", "StorageClass"), GroupKind("storage.k8s.io", "CSINode")
HOLDS = HOLD.group_kind
READS = (NAMESPACE, BUDGET, DAEMON_SET, POOL, MACHINE_CONFIG_NODE, CLAIM, VOLUME, STORAGE_CLASS, CSI_NODE)
ON_NODE = "drain/on-node"
"""Index: pods by the node that they are on."""
WAITING = "drain/waiting"
"""Index: pods without a node."""
HELD_BACK = "drain/held-back"
"""Index: nodes with a requested drain that cannot finish."""
NOT_BEGUN = "drain/not-begun"
"""Index: nodes with a requested drain that has not begun."""


def indices() -> dict[str, IndexFn]:
    return {
        ON_NODE: OfKind(POD, lambda pod: (str(name),) if (name := dig(pod, "spec", "nodeName")) else ()),
        WAITING: OfKind(POD, lambda pod: () if dig(pod, "spec", "nodeName") else ("",)),
        HELD_BACK: OfKind(NODE, lambda node: ("",) if BLOCKED in annotations_of(node) else ()),
        NOT_BEGUN: OfKind(NODE, lambda node: ("",) if _is_not_begun(node) else ()),
    }


def _is_not_begun(node: Obj) -> bool:
    have = annotations_of(node)
    return have.get(DESIRED_DRAIN, "") != have.get(LAST_DRAIN, "") and PROGRESS not in have


@dataclass(frozen=True)
class Observed:
    """The planner's input. ``leaving``: pods that must go; ``forecast``: called only before a cordon. ``trouble``: why
    the node is in no pool. ``evicts``: the server has the eviction subresource. ``holds``: those that name the pool."""

    node: Obj
    leaving: tuple[Obj, ...] = ()
    pool: Obj | None = None
    trouble: str = ""
    machine_config_node: Obj | None = None
    evicts: bool = True
    forecast: Callable[[], Sight] | None = field(default=None, compare=False)
    tries: int = 0
    """How often a write of the node was refused in this reconcile."""
    holds: tuple[Hold, ...] = ()

    def kept(self, now: datetime) -> str:
        """Return why no update of the node may begin, or an empty string."""
        return kept_back(self.pool, self.holds, now)


def kept_back(pool: Obj | None, holds: Iterable[Hold], now: datetime) -> str:
    """Return why the pool may not update (paused, or held), or an empty string."""
    if pool is None:
        return ""
    if dig(pool, "spec", "paused") is True:
        return f"pool {name_of(pool)} is paused (spec.paused)"
    living = [hold for hold in holds if hold.lives(now)]
    return f"pool {name_of(pool)} is held by {'; '.join(hold.sentence() for hold in living)}" if living else ""


def observe(cache: Snapshot, ref: ObjectRef, counted: Counted | None = None) -> Observed | None:
    """Return the input, or None for a node without a drain request and without notes. ``counted``: cached counts."""
    node = cache.get(ref)
    if node is None:
        return None
    have = annotations_of(node)
    asked = have.get(DESIRED_DRAIN, "") != have.get(LAST_DRAIN, "")
    if not asked and PROGRESS not in have and BLOCKED not in have:
        return None
    holds_are_known = cache.has_synced(HOLDS) or cache.mapper.preferred(HOLDS) is None  # or there can be no Hold
    if not holds_are_known or not all(cache.has_synced(kind) for kind in (POD, DAEMON_SET, BUDGET, POOL)):
        return None
    try:
        pool, trouble = primary_pool(node, cache.objects(POOL)), ""
    except MembershipError as error:
        pool, trouble = None, str(error)
    found = departures(ref.name, cache.indexed(ON_NODE, ref.name), daemon_sets(cache))
    pods = cache.mapper.preferred(POD)
    return Observed(
        node,
        tuple(each.pod for each in found if each.leaves),
        pool,
        trouble,
        cache.get(ObjectRef(*MACHINE_CONFIG_NODE, "", ref.name)),
        pods is None or "eviction" in pods.subresources,
        lambda: _Indexed(cache, counted),
        holds=holds_on(pool, cache.objects(HOLDS)),
    )


def holds_on(pool: Obj | None, holds: Iterable[Obj]) -> tuple[Hold, ...]:
    """Return the Holds that name the pool, including expired ones."""
    return tuple(each for each in holds_of(holds) if pool is not None and name_of(pool) in each.pools)


def daemon_sets(cache: Snapshot) -> frozenset[ObjectRef]:
    return frozenset(ref_of(each) for each in cache.objects(DAEMON_SET))


def sight(cache: Snapshot) -> Sight:
    """Return the whole cluster for a forecast."""
    pods = cache.objects(POD)
    namespaces = {name_of(each): labels_of(each) for each in cache.objects(NAMESPACE)}
    storage = _storage(cache) if any(claim_names(pod) for pod in pods) else Storage()
    return Sight(cache.objects(NODE), pods, cache.objects(BUDGET), daemon_sets(cache), namespaces, storage)


class _Indexed(Sight):
    """The same from a cache with :func:`indices`, which reads only what a request needs."""

    def __init__(self, cache: Snapshot, counted: Counted | None) -> None:
        object.__setattr__(self, "_cache", cache)
        object.__setattr__(self, "_counted", counted)

    _cache: Snapshot
    _counted: Counted | None

    @cached_property
    def nodes(self) -> Sequence[Obj]:
        return self._cache.objects(NODE)

    @cached_property
    def pods(self) -> Sequence[Obj]:
        return self._cache.objects(POD)

    @cached_property
    def budgets(self) -> Sequence[Obj]:
        return self._cache.objects(BUDGET)

    @cached_property
    def daemon_sets(self) -> frozenset[ObjectRef]:
        return daemon_sets(self._cache)

    @cached_property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        return {name_of(each): labels_of(each) for each in self._cache.objects(NAMESPACE)}

    @cached_property
    def storage(self) -> Storage:
        return _storage(self._cache)

    def on(self, node: str) -> Sequence[Obj]:
        return self._cache.indexed(ON_NODE, node)

    def under(self, budgets: Sequence[Obj]) -> list[Obj]:
        found = {_place(pod): pod for budget in budgets for pod in self._covered(budget)}
        return [found[place] for place in sorted(found)]

    def _covered(self, budget: Obj) -> list[Obj]:
        selector = selector_of(budget)
        return [] if selector is None else self._cache.selected(POD, namespace_of(budget), selector)

    def waiting(self) -> list[Obj]:
        return [pod for pod in self._cache.indexed(WAITING, "") if waits(pod)]

    def cluster(self, nodes: Sequence[Obj], placed: Sequence[Obj]) -> Cluster:
        return Cluster.of(nodes, (*self.pods, *placed), self.namespaces, self.storage, self._counted)


def _place(pod: Obj) -> tuple[str, str]:
    return namespace_of(pod), name_of(pod)


def _storage(cache: Snapshot) -> Storage:
    return Storage(
        {(namespace_of(each), name_of(each)): each for each in cache.objects(CLAIM)},
        {name_of(each): each for each in cache.objects(VOLUME)},
        {name_of(each): each for each in cache.objects(STORAGE_CLASS)},
        {name_of(each): limits for each in cache.objects(CSI_NODE) if (limits := attach_limits(each))},
    )


def node_of_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the node of a pod, if it is being drained."""
    name = dig(pod, "spec", "nodeName")
    node = cache.get(ObjectRef("", "Node", "", str(name))) if name else None
    if node is not None and PROGRESS in annotations_of(node):
        yield ref_of(node)


def held_back(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return nodes whose drain could not finish, to recheck them after a change of a budget or a node."""
    return (ref_of(node) for node in cache.indexed(HELD_BACK, ""))


def not_begun(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return nodes whose drain has not begun, to recheck them after a change of a pool or a Hold."""
    return (ref_of(node) for node in cache.indexed(NOT_BEGUN, ""))
