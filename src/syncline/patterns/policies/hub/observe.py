"""Reads what the hub's plans of policies are made of, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.control.cache import Snapshot
from syncline.kube.kinds.governance import BINDING, POLICY, POLICY_SET
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION
from syncline.kube.objects import Obj, ObjectRef, dig, labels_of, name_of, namespace_of, ref_of
from syncline.kube.selectors import selector_from_labels
from syncline.patterns.policies.hub.binding import Bound, decided_clusters
from syncline.patterns.policies.hub.replicating import root_of
from syncline.patterns.policies.names import ROOT_LABEL

POLICIES: Final = POLICY.group_kind
BINDINGS: Final = BINDING.group_kind
SETS: Final = POLICY_SET.group_kind
PLACEMENTS: Final = PLACEMENT.group_kind
DECISIONS: Final = PLACEMENT_DECISION.group_kind
CLUSTERS: Final = MANAGED_CLUSTER.group_kind
NEEDED: Final = (POLICIES, BINDINGS, SETS, PLACEMENTS, DECISIONS, CLUSTERS)
PLACEMENT_LABEL: Final = "cluster.open-cluster-management.io/placement"
COPIES: Final = "copies of a policy"


def copies_index(obj: Obj) -> Iterable[str]:
    """Index copies by the name of their root."""
    if obj.get("kind") == POLICY.kind and (root := labels_of(obj).get(ROOT_LABEL)):
        yield root


def unlisted(cache: Snapshot) -> tuple[str, ...]:
    """Return the kinds that are not listed yet, or may not be read."""
    return tuple(kind.kind for kind in NEEDED if not cache.has_synced(kind))


def is_root(policy: Obj, cache: Snapshot) -> bool:
    """Return whether a policy is people's own, and no copy in the namespace of a cluster."""
    inside = cache.get(ObjectRef(*CLUSTERS, "", namespace_of(policy))) is not None
    return ROOT_LABEL not in labels_of(policy) and not inside


def copies_of(cache: Snapshot, namespace: str, name: str) -> dict[str, Obj]:
    """Return the copies of a policy by cluster: those in the namespaces of managed clusters."""
    found = {}
    for one in cache.indexed(COPIES, f"{namespace}.{name}"):
        cluster = namespace_of(one)
        named = name_of(one) == f"{namespace}.{name}"
        if named and cache.get(ObjectRef(*CLUSTERS, "", cluster)) is not None:
            found[cluster] = one
    return found


def bound_of(cache: Snapshot, namespace: str) -> Bound:
    """Return what a namespace has about its policies."""
    bindings = tuple(cache.objects(BINDINGS, namespace))
    names = {str(dig(one, "placementRef", "name")) for one in bindings}
    decided = {
        one: decided_clusters(cache.selected(DECISIONS, namespace, selector_from_labels({PLACEMENT_LABEL: one})))
        for one in names
    }
    exist = frozenset(one for one in names if cache.get(ObjectRef(*PLACEMENTS, namespace, one)) is not None)
    kept = {name: clusters if name in exist else () for name, clusters in decided.items()}
    return Bound(bindings, {name_of(one): one for one in cache.objects(SETS, namespace)}, kept, exist)


# -- whom a change concerns --------------------------------------------------------------------------------------------


def root_of_copy(policy: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    found = root_of(labels_of(policy).get(ROOT_LABEL, ""))
    if found is not None:
        yield ObjectRef(*POLICIES, *found)


def policies_of_binding(binding: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the policies that a binding names, also through sets."""
    place = namespace_of(binding)
    for one in binding.get("subjects") or ():
        if one.get("kind") == POLICY.kind:
            yield ObjectRef(*POLICIES, place, str(one.get("name")))
        elif one.get("kind") == POLICY_SET.kind:
            found = cache.get(ObjectRef(*SETS, place, str(one.get("name"))))
            for each in dig(found, "spec", "policies") or () if found is not None else ():
                yield ObjectRef(*POLICIES, place, str(each))


def policies_of_set(policy_set: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the policies of a set, and those that depend on it."""
    place = namespace_of(policy_set)
    for each in dig(policy_set, "spec", "policies") or ():
        yield ObjectRef(*POLICIES, place, str(each))
    for one in cache.objects(POLICIES):
        if any(dep.get("kind") == POLICY_SET.kind and dep.get("name") == name_of(policy_set) for dep in _all(one)):
            yield ref_of(one)


def _all(policy: Obj) -> Iterable[Obj]:
    yield from dig(policy, "spec", "dependencies") or ()
    for one in dig(policy, "spec", "policy-templates") or ():
        yield from one.get("extraDependencies") or ()


def policies_of_placement(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the policies that are bound to a Placement, or to that of a PlacementDecision."""
    name = labels_of(obj).get(PLACEMENT_LABEL) if obj.get("kind") == DECISIONS.kind else name_of(obj)
    for one in cache.objects(BINDINGS, namespace_of(obj)):
        if dig(one, "placementRef", "name") == name:
            yield from policies_of_binding(one, cache)


def policies_of_cluster(cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the roots of the copies in a cluster's namespace."""
    for one in cache.objects(POLICIES, name_of(cluster)):
        yield from root_of_copy(one, cache)


def sets_of_policy(policy: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for one in cache.objects(SETS, namespace_of(policy)):
        if name_of(policy) in (dig(one, "spec", "policies") or ()):
            yield ref_of(one)


def sets_of_namespace(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(one) for one in cache.objects(SETS, namespace_of(obj))]
