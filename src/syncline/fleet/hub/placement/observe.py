"""Reads the input of the placement planner, and finds the Placements that a change concerns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from syncline.control.cache import Snapshot
from syncline.fleet.hub.placement.expressions import reads_scores
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL, Cluster, Hub, decided_names
from syncline.fleet.hub.placement.plan import Observed
from syncline.fleet.hub.placement.prioritizers import RESOURCES
from syncline.fleet.hub.placement.selectors import expressions_of
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL, sets_of
from syncline.kube.kinds.managedclusters import (
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
)
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, namespace_of
from syncline.kube.selectors import selector_from_labels

PLACEMENTS, CLUSTERS = PLACEMENT.group_kind, MANAGED_CLUSTER.group_kind
SETS, BINDINGS = CLUSTER_SET.group_kind, CLUSTER_SET_BINDING.group_kind
DECISIONS, SCORES = PLACEMENT_DECISION.group_kind, PLACEMENT_SCORE.group_kind
T = TypeVar("T")


class Reading:
    """Reads the cache. What all Placements read alike is made once for each version of a kind."""

    def __init__(self) -> None:
        self._made: dict[GroupKind, tuple[int, Any]] = {}
        self._pages: dict[int, list[str]] = {}
        """The counted pages of decisions, by their identity in the cache's view."""
        self._counts: Counter[str] = Counter()
        self._counted_version = -1

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        placement = cache.get(ref)
        if placement is None:
            return None
        needed = [CLUSTERS, SETS, BINDINGS, DECISIONS]
        if cache.mapper.preferred(SCORES) is not None:
            needed.append(SCORES)
        unread = {kind: why for kind in needed if (why := cache.unread(ObjectRef(*kind, "", "")))}
        unlisted = tuple(kind.kind for kind in needed if kind not in unread and not cache.has_synced(kind))
        return Observed(
            placement,
            self._hub(cache, ref) if not unread and not unlisted else Hub({}, {}),
            unlisted,
            tuple(f"cannot read {kind.kind}s: {why}" for kind, why in unread.items()),
        )

    def _hub(self, cache: Snapshot, ref: ObjectRef) -> Hub:
        selector = selector_from_labels({PLACEMENT_LABEL: ref.name})
        decisions = tuple(cache.selected(DECISIONS, ref.namespace, selector))
        elsewhere = self._counted(cache).copy()
        elsewhere.subtract(name for one in decisions for name in decided_names(one))
        return Hub(
            clusters=self._once(cache, CLUSTERS, lambda: {one.name: one for one in cache.views(CLUSTERS, _cluster)}),
            sets=self._once(cache, SETS, lambda: {name_of(one): one for one in cache.objects(SETS)}),
            bindings=tuple(cache.objects(BINDINGS, ref.namespace)),
            decisions=decisions,
            named={name_of(one): one for one in cache.objects(DECISIONS, ref.namespace)},
            elsewhere=elsewhere,
            scores=self._once(
                cache, SCORES, lambda: {(namespace_of(one), name_of(one)): one for one in cache.objects(SCORES)}
            ),
        )

    def _counted(self, cache: Snapshot) -> Counter[str]:
        """Return how often each cluster is decided on. Pages that have not changed are not counted again."""
        version = cache.changes(DECISIONS)
        if version != self._counted_version:
            pages = {id(names): names for names in cache.views(DECISIONS, _decided)}
            for key in self._pages.keys() - pages.keys():
                self._counts.subtract(self._pages[key])
            for key in pages.keys() - self._pages.keys():
                self._counts.update(pages[key])
            self._pages, self._counted_version = pages, version
        return self._counts

    def _once(self, cache: Snapshot, kind: GroupKind, make: Callable[[], T]) -> T:
        version = cache.changes(kind)
        known = self._made.get(kind)
        if known is None or known[0] != version:
            known = self._made[kind] = (version, make())
        found: T = known[1]
        return found


def _cluster(obj: Obj) -> Cluster:
    return Cluster.of(obj)


def _decided(decision: Obj) -> list[str]:
    return decided_names(decision)


# -- whom a change concerns ------------------------------------------------------------------------------------

EVERYTHING: Final = "everything"
"""An expression may read every field of a cluster."""
TAINTS, RESOURCES_OF = "taints", "resources"


@dataclass(frozen=True, slots=True)
class Interest:
    """What a Placement reads: its named sets, fields of clusters, scores by name (with expressions: all)."""

    ref: ObjectRef
    sets: frozenset[str]
    fields: frozenset[str]
    scores: frozenset[str]
    all_scores: bool


def interest_of(placement: Obj) -> Interest:
    """Return what a Placement reads of clusters: labels and claims by key, taints, resources, or everything."""
    spec = placement.get("spec") or {}
    selectors = [one.get("requiredClusterSelector") or {} for one in spec.get("predicates") or ()]
    groups = dig(spec, "decisionStrategy", "groupStrategy", "decisionGroups") or ()
    selectors += [one.get("groupClusterSelector") or {} for one in groups]
    fields = {TAINTS}
    for selector in selectors:
        labels, claims = selector.get("labelSelector") or {}, selector.get("claimSelector") or {}
        fields.update(f"label {key}" for key in labels.get("matchLabels") or ())
        fields.update(f"label {one.get('key')}" for one in labels.get("matchExpressions") or ())
        fields.update(f"claim {one.get('key')}" for one in claims.get("matchExpressions") or ())
    for one in dig(spec, "spreadPolicy", "spreadConstraints") or ():
        kind = "claim" if one.get("topologyKeyType") == "Claim" else "label"
        fields.add(f"{kind} {one.get('topologyKey')}")
    expressions = expressions_of(placement)
    if expressions:
        fields.add(EVERYTHING)
    scores = set()
    for one in dig(spec, "prioritizerPolicy", "configurations") or ():
        coordinate = one.get("scoreCoordinate") or {}
        if coordinate.get("builtIn") in RESOURCES:
            fields.add(RESOURCES_OF)
        scores.add(str(dig(coordinate, "addOn", "resourceName", default="")))
    return Interest(
        _ref(placement),
        frozenset(spec.get("clusterSets") or ()),
        frozenset(fields),
        frozenset(scores),
        reads_scores(expressions),
    )


def _ref(obj: Obj) -> ObjectRef:
    return ObjectRef(*PLACEMENTS, namespace_of(obj), name_of(obj))


def _interests(cache: Snapshot) -> list[Interest]:
    return cache.views(PLACEMENTS, interest_of)


class ClusterChange:
    """Notes what a change of a cluster has changed, and finds the Placements that read it.

    The loop asks first whether the change matters, then for the keys of the old and of the new state.
    """

    def __init__(self) -> None:
        self._changed: frozenset[str] | None = None

    def matters(self, old: Obj | None, new: Obj | None) -> bool:
        """Note the changed fields (None: all, the cluster has come or goes); return whether there are any."""
        self._changed = None if old is None or new is None else changed_fields(old, new)
        return self._changed is None or bool(self._changed)

    def keys(self, cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        all_sets = cache.objects(SETS)
        belongs = {name_of(one) for one in sets_of(cluster, all_sets)}
        if self._changed is None or any(f"label {key}" in self._changed for key in _set_keys(all_sets)):
            changed = frozenset((TAINTS,))  # every Placement of the sets: the members change
        else:
            changed = self._changed
        return [one.ref for one in _selecting(cache, belongs) if not changed.isdisjoint(one.fields)]


def changed_fields(old: Obj, new: Obj) -> frozenset[str]:
    """Return what a Placement may read of a cluster and what is not the same in both states."""
    one, other = Cluster.of(old), Cluster.of(new)
    found = {f"label {key}" for key in _differing(one.labels, other.labels)}
    found |= {f"claim {key}" for key in _differing(one.claims, other.claims)}
    if one.taints != other.taints or one.terminating != other.terminating:
        found.add(TAINTS)
    if any(dig(old, "status", part) != dig(new, "status", part) for part in ("allocatable", "capacity")):
        found.add(RESOURCES_OF)
    if found or _readable(old) != _readable(new):
        found.add(EVERYTHING)
    return frozenset(found)


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def _readable(cluster: Obj) -> Obj:
    """Return the cluster without what changes with every write."""
    metadata = cluster.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")}
    return {**cluster, "metadata": kept}


def _set_keys(sets: Iterable[Obj]) -> set[str]:
    """Return the labels that decide which sets a cluster is a member of."""
    found = {CLUSTER_SET_LABEL}
    for one in sets:
        selector = dig(one, "spec", "clusterSelector", "labelSelector") or {}
        found.update(selector.get("matchLabels") or ())
        found.update(str(each.get("key")) for each in selector.get("matchExpressions") or ())
    return found


def _selecting(cache: Snapshot, sets: set[str]) -> Iterable[Interest]:
    """Return the Placements that select from one of these sets: it is bound, and named if any are named."""
    bound: dict[str, set[str]] = {}
    for one in cache.objects(BINDINGS):
        if name_of(one) in sets:
            bound.setdefault(namespace_of(one), set()).add(name_of(one))
    return [
        one
        for one in _interests(cache)
        if one.ref.namespace in bound and (not one.sets or one.sets & bound[one.ref.namespace])
    ]


def placements_of_set(cluster_set: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [one.ref for one in _selecting(cache, {name_of(cluster_set)})]


def placements_of_binding(binding: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    namespace, name = namespace_of(binding), name_of(binding)
    return [
        one.ref for one in _interests(cache) if one.ref.namespace == namespace and (not one.sets or name in one.sets)
    ]


def placements_of_score(score: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the Placements that read a score, in a prioritizer or (upstream does not look there) an expression."""
    cluster = cache.get(ObjectRef(*CLUSTERS, "", namespace_of(score)))
    if cluster is None:
        return ()
    belongs = {name_of(one) for one in sets_of(cluster, cache.objects(SETS))}
    return [one.ref for one in _selecting(cache, belongs) if one.all_scores or name_of(score) in one.scores]


def placement_of_decision(decision: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    name = labels_of(decision).get(PLACEMENT_LABEL)
    return (ObjectRef(*PLACEMENTS, namespace_of(decision), name),) if name else ()
