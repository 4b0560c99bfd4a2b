"""The controllers of add-ons on the hub: they connect planners with the cache and the watches; they decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.fleet.addons import (
    ADDON_NAMESPACE_LABEL,
    CLUSTER_WIDE,
    DEPLOYMENT_CONFIGS,
    MANAGED,
    TEMPLATES,
    Config,
    built_in_ref,
    cluster_wide_ref,
    config_of,
    hosted,
    index_value,
    index_value_of,
    managed_ref,
    spec_hash,
    stored_view,
)
from syncline.fleet.hub.addons.clusters import Members, plan_members
from syncline.fleet.hub.addons.managed import Observed as ManagedObserved
from syncline.fleet.hub.addons.managed import plan_managed
from syncline.fleet.hub.addons.plan import Observed, Placed, plan_cluster_addon
from syncline.fleet.hub.addons.progressions import Content, by_placement, named_configs
from syncline.fleet.hub.budgets.observe import BUDGETS, observe_fleet
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL
from syncline.fleet.hub.replicasets.plan import decision_groups
from syncline.fleet.hub.rollout.model import RolloutError
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
    uid_of,
)

CLUSTERS: Final = MANAGED_CLUSTER.group_kind
WORKS: Final = MANIFEST_WORK.group_kind
PLACEMENTS: Final = PLACEMENT.group_kind
DECISIONS: Final = PLACEMENT_DECISION.group_kind
BY_NAME, BY_PLACEMENT, BY_CONFIG = "addons by name", "cluster add-ons by placement", "cluster add-ons by config"
DEBOUNCE_S: Final = 0.2
"""A rollout changes many add-ons; one plan covers them."""


def config_hashes(cache: Snapshot, configs: Iterable[Config]) -> dict[Config, Content]:
    """Return the contents of the configs of built-in kinds among these."""
    found = {}
    for one in configs:
        ref = built_in_ref(one)
        if ref is not None:
            obj = cache.get(ref)
            found[one] = Content() if obj is None else Content(spec_hash(obj), generation(obj))
    return found


def _placements(cluster_addon: Obj) -> list[tuple[str, str]]:
    if not by_placement(cluster_addon):
        return []
    strategies = dig(cluster_addon, "spec", "installStrategy", "placements") or ()
    return [(str(one.get("namespace") or ""), str(one.get("name") or "")) for one in strategies]


def _configs(cluster_addon: Obj) -> list[str]:
    return [index_value(one.kind, one.at) for one in named_configs(stored_view(cluster_addon))]


def _placed(cache: Snapshot, namespace: str, name: str) -> Placed | None:
    placement = cache.get(ObjectRef(*PLACEMENTS, namespace, name))
    if placement is None:
        return None
    try:
        return Placed(placement, tuple(decision_groups(name, cache.objects(DECISIONS, namespace))))
    except RolloutError as error:
        return Placed(placement, error=f"the decisions of placement {namespace}/{name} cannot be read: {error}")


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    live = cache.get(ref)
    if live is None:
        return None
    obj = stored_view(live)
    kinds = (MANAGED, PLACEMENTS, DECISIONS, CLUSTERS, DEPLOYMENT_CONFIGS, TEMPLATES)
    addons = tuple(stored_view(one) for one in cache.indexed(BY_NAME, ref.name))
    own = (config_of(each) for one in addons for each in dig(one, "spec", "configs") or ())
    placed = ((at, _placed(cache, *at)) for at in _placements(obj))
    return Observed(
        obj,
        addons,
        {at: one for at, one in placed if one is not None},
        config_hashes(cache, (*named_configs(obj), *own)),
        {name_of(one): one for one in cache.objects(CLUSTERS)} if by_placement(obj) else {},
        tuple(str(one) for one in kinds if not cache.has_synced(one)),
        observe_fleet(cache),
    )


def _every(_budget: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(one) for one in cache.objects(CLUSTER_WIDE)]


def _same_name(addon: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (cluster_wide_ref(name_of(addon)),)


def _of_placement(placement: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    value = f"{namespace_of(placement)}/{name_of(placement)}"
    return [cluster_wide_ref(name_of(one)) for one in cache.indexed(BY_PLACEMENT, value)]


def _of_decision(decision: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    value = f"{namespace_of(decision)}/{labels_of(decision).get(PLACEMENT_LABEL, '')}"
    return [cluster_wide_ref(name_of(one)) for one in cache.indexed(BY_PLACEMENT, value)]


def _of_config(config: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    value = index_value_of(config)
    named = {name_of(one) for one in cache.indexed(BY_CONFIG, value)}
    own = {name_of(one) for one in cache.indexed(OWN_CONFIG, value)}
    return [cluster_wide_ref(name) for name in sorted(named | own)]


OWN_CONFIG: Final = "add-ons by their own config"


def _own_configs(addon: Obj) -> list[str]:
    configs = [config_of(one) for one in dig(addon, "spec", "configs") or ()]
    return [index_value(one.kind, one.at) for one in configs]


def _spec(obj: Obj) -> Any:
    return obj.get("spec")


def _of_status(*names: str) -> tuple[Callable[[Obj], Any], ...]:
    return tuple(lambda obj, name=name: dig(obj, "status", name) for name in names)


def cluster_addon_controller() -> Controller[Observed]:
    """Return the controller of ClusterManagementAddOns: it installs add-ons on clusters and configures them."""
    return Controller(
        name="cluster-addon",
        kind=CLUSTER_WIDE,
        observe=_observe,
        plan=plan_cluster_addon,
        predicate=differ(_spec, uid_of, is_terminating, annotations_of),
        watches=(
            Watch(MANAGED, _same_name, differ(_spec, uid_of, is_terminating, *_of_status("configReferences"), _said)),
            Watch(PLACEMENTS, _of_placement, differ(_spec, uid_of, *_of_status("numberOfSelectedClusters"))),
            Watch(DECISIONS, _of_decision, differ(labels_of, *_of_status("decisions"))),
            Watch(DEPLOYMENT_CONFIGS, _of_config, differ(_spec)),
            Watch(TEMPLATES, _of_config, differ(_spec)),
            Watch(BUDGETS, _every, differ(_spec, *_of_status("places", "unavailable", "conditions"))),
        ),
        reads=(CLUSTERS,),
        indices={
            BY_NAME: OfKind(MANAGED, lambda obj: [name_of(obj)]),
            OWN_CONFIG: OfKind(MANAGED, _own_configs),
            BY_PLACEMENT: OfKind(CLUSTER_WIDE, lambda obj: ["/".join(at) for at in _placements(obj)]),
            BY_CONFIG: OfKind(CLUSTER_WIDE, _configs),
        },
        debounce_s=DEBOUNCE_S,
    )


def _said(addon: Obj) -> Any:
    """What the add-on says of its progress."""
    conditions: list[Obj] = dig(addon, "status", "conditions") or []
    return [one for one in conditions if one.get("type") in ("Progressing", "Configured")]


WATCHED: Final[tuple[GroupKind, ...]] = (CLUSTER_WIDE, MANAGED, DEPLOYMENT_CONFIGS, TEMPLATES)
"""The kinds of add-ons that the hub's controllers watch."""


def member_controller() -> Controller[Members]:
    """Return the controller that labels clusters with their add-ons, and gives up on add-ons of lost clusters."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Members | None:
        cluster = cache.get(ref)
        if cluster is None:
            return None
        addons = tuple(stored_view(one) for one in cache.objects(MANAGED, ref.name))
        return Members(cluster, addons, cache.has_synced(MANAGED))

    def of_namespace(addon: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", namespace_of(addon)),)

    return Controller(
        name="cluster-addon-labels",
        kind=CLUSTERS,
        observe=observe,
        plan=plan_members,
        predicate=differ(labels_of, is_terminating, *_of_status("conditions")),
        watches=(Watch(MANAGED, of_namespace, differ(is_terminating, *_of_status("conditions"))),),
    )


WORKS_OF: Final = "works by add-on"


def addon_of_work(work: Obj) -> str:
    """Return the add-on of a work as ``NAMESPACE/NAME``; "" if it is of none."""
    labels = labels_of(work)
    name = labels.get(ADDON_NAME, "")
    return f"{labels.get(ADDON_NAMESPACE_LABEL) or namespace_of(work)}/{name}" if name else ""


def works_of(cache: Snapshot, addon: Obj) -> tuple[Obj, ...]:
    """Return the works of an add-on: those of its cluster, and of the cluster that hosts its agent. Works in other
    namespaces that claim to be its do not count."""
    near = (namespace_of(addon), hosted(addon))
    found = cache.indexed(WORKS_OF, f"{namespace_of(addon)}/{name_of(addon)}")
    return tuple(one for one in found if namespace_of(one) in near)


def of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    value = addon_of_work(work)
    return (managed_ref(*value.split("/", 1)),) if value else ()


WORK_INDEX: Final = {WORKS_OF: OfKind(WORKS, lambda work: filter(None, (addon_of_work(work),)))}


def _of_cluster(cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(one) for one in cache.objects(MANAGED, name_of(cluster))]


def _of_parent(parent: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(one) for one in cache.indexed(BY_NAME, name_of(parent))]


def managed_addon_controller() -> Controller[ManagedObserved]:
    """Return the controller that gives add-ons their owner and says how far they are."""

    def observe(cache: Snapshot, ref: ObjectRef) -> ManagedObserved | None:
        live = cache.get(ref)
        if live is None:
            return None
        addon, parent = stored_view(live), cache.get(cluster_wide_ref(ref.name))
        cluster = cache.get(ObjectRef(*CLUSTERS, "", ref.namespace))
        listed = all(map(cache.has_synced, (CLUSTER_WIDE, CLUSTERS, WORKS)))
        view = None if parent is None else stored_view(parent)
        return ManagedObserved(addon, view, cluster, works_of(cache, addon), listed)

    return Controller(
        name="managed-addon",
        kind=MANAGED,
        observe=observe,
        plan=plan_managed,
        watches=(
            Watch(CLUSTER_WIDE, _of_parent, differ(uid_of, _spec, annotations_of)),
            Watch(CLUSTERS, _of_cluster, differ(annotations_of)),
            Watch(WORKS, of_work, differ(annotations_of, labels_of, generation, *_of_status("conditions"))),
        ),
        indices=WORK_INDEX,
    )
