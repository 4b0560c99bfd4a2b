"""The controllers of cluster sets and of their bindings: they keep the status; they decide nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ, spec_differs
from syncline.control.plan import Create, Done, Patch, Plan, Stalled, set_status
from syncline.fleet.hub.clustersets.defaults import SELECTORS, kept
from syncline.fleet.hub.clustersets.status import binding_status_of, set_status_of
from syncline.fleet.hub.sets import SetError, sets_of
from syncline.kube.kinds.managedclusters import CLUSTER_SET, CLUSTER_SET_BINDING, MANAGED_CLUSTER
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, ref_of, resource_version, uid_of

CLUSTERS: Final = GroupKind(MANAGED_CLUSTER.group, MANAGED_CLUSTER.kind)
SETS: Final = GroupKind(CLUSTER_SET.group, CLUSTER_SET.kind)
BINDINGS: Final = GroupKind(CLUSTER_SET_BINDING.group, CLUSTER_SET_BINDING.kind)


@dataclass(frozen=True, slots=True)
class SetObserved:
    """A set, None if ``default`` or ``global`` is missing, and all clusters."""

    name: str
    cluster_set: Obj | None
    clusters: tuple[Obj, ...]


@dataclass(frozen=True, slots=True)
class BindingObserved:
    """A binding and its set, None if there is none."""

    binding: Obj
    cluster_set: Obj | None


def plan_set(observed: SetObserved, now: datetime) -> Plan:
    """Plan one reconcile of a set: its status; that ``default`` and ``global`` exist with their selector."""
    live, name = observed.cluster_set, observed.name
    found = kept(name, live) if name in SELECTORS else None
    if live is None:
        made = found.create if found is not None else None
        return Plan(((Create(made, "every hub has it"),),) if made else (), Done(), "the set is missing")
    if found is not None and found.selector is not None:
        metadata = {"uid": uid_of(live), "resourceVersion": resource_version(live)}
        wanted = {**dict.fromkeys(dig(live, "spec", "clusterSelector") or ()), **found.selector}
        if wanted.get("labelSelector") == {}:
            labels = dig(live, "spec", "clusterSelector", "labelSelector") or {}
            wanted["labelSelector"] = dict.fromkeys(labels)
        body = {"metadata": metadata, "spec": {"clusterSelector": wanted}}
        return Plan(((Patch(CLUSTER_SET, "", name, body, found.why),),), Done(), found.why)
    try:
        status = set_status_of(live, observed.clusters, now)
    except SetError as error:
        return Plan((), Stalled(str(error), "change spec.clusterSelector of the set"), str(error))
    return Plan((), Done(), "the members are counted", set_status(live, status, "its members"))


def plan_binding(observed: BindingObserved, now: datetime) -> Plan:
    """Plan one reconcile of a binding: whether its set exists."""
    status = binding_status_of(observed.binding, observed.cluster_set, now)
    return Plan((), Done(), "the set is looked up", set_status(observed.binding, status, "whether its set exists"))


def set_controller() -> Controller[SetObserved]:
    """Return the controller of cluster sets."""

    def observe(cache: Snapshot, ref: ObjectRef) -> SetObserved | None:
        found = cache.get(ref)
        if found is None and ref.name not in SELECTORS:
            return None
        return SetObserved(ref.name, found, tuple(cache.objects(CLUSTERS)))

    def keys(cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in sets_of(cluster, cache.objects(SETS))]

    return Controller(
        name="cluster-set",
        kind=SETS,
        predicate=spec_differs,
        watches=(Watch(CLUSTERS, keys, differ(labels_of)),),
        observe=observe,
        plan=plan_set,
    )


def binding_controller() -> Controller[BindingObserved]:
    """Return the controller of bindings of cluster sets."""

    def observe(cache: Snapshot, ref: ObjectRef) -> BindingObserved | None:
        found = cache.get(ref)
        if found is None:
            return None
        return BindingObserved(found, cache.get(ObjectRef(*SETS, "", dig(found, "spec", "clusterSet", default=""))))

    def keys(cluster_set: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        name = name_of(cluster_set)
        return [ref_of(one) for one in cache.objects(BINDINGS) if dig(one, "spec", "clusterSet") == name]

    return Controller(
        name="cluster-set-binding",
        kind=BINDINGS,
        predicate=spec_differs,
        watches=(Watch(SETS, keys, comes_or_goes),),
        observe=observe,
        plan=plan_binding,
    )
