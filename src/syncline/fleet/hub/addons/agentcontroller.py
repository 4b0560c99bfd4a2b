"""The controller of the agents of add-ons: it connects their planner with the cache and the watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.fleet.addons import (
    ADDON_LABEL,
    BUILT_IN,
    CLUSTER_WIDE,
    DEPLOYMENT_CONFIGS,
    MANAGED,
    TEMPLATES,
    built_in_ref,
    cluster_wide_ref,
    desired_of,
    index_value,
    index_value_of,
    stored_view,
)
from syncline.fleet.hub.addons.agents import RBAC, Agent
from syncline.fleet.hub.addons.controller import CLUSTERS, WORK_INDEX, WORKS, of_work, works_of
from syncline.fleet.hub.addons.deploying import Make, Observed, plan_agent
from syncline.fleet.hub.addons.templates.agent import template_agent, uses_template
from syncline.fleet.hub.addons.templates.values import IMAGE_REGISTRIES
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    labels_of,
    name_of,
    ref_of,
)

BINDINGS: Final = GroupKind(RBAC, "RoleBinding")
BY_DESIRED, RIGHTS = "add-ons by desired config", "bindings of add-ons"


def _desired(addon: Obj) -> list[str]:
    found = (desired_of(one) for one in dig(addon, "status", "configReferences") or ())
    return [index_value(one.kind, one.at) for one in found if one is not None]


def _configs(cache: Snapshot, addon: Obj) -> dict[GroupKind, Obj | None]:
    """Return the desired configs of built-in kinds; None for one whose content the hub has not decided on."""
    found: dict[GroupKind, Obj | None] = {}
    for entry in dig(addon, "status", "configReferences") or ():
        config = desired_of(entry)
        ref = None if config is None else built_in_ref(config)
        if config is not None and ref is not None and BUILT_IN[config.kind] not in found:
            found[BUILT_IN[config.kind]] = cache.get(ref) if config.spec_hash else None
    return found


def _rights(binding: Obj) -> Iterable[str]:
    return filter(None, (labels_of(binding).get(ADDON_LABEL),))


def agent_controller(name: str, make: Make, mine: Callable[[Obj, Obj | None], bool]) -> Controller[Observed]:
    """Return the controller that deploys the agents of the add-ons that are ``mine``: asked with an add-on and its
    ClusterManagementAddOn, None if that is gone."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        live, parent = cache.get(ref), cache.get(cluster_wide_ref(ref.name))
        addon = None if live is None else stored_view(live)
        if addon is None or not mine(addon, None if parent is None else stored_view(parent)):
            return None
        return Observed(
            addon,
            cache.get(ObjectRef(*CLUSTERS, "", ref.namespace)),
            works_of(cache, addon),
            _configs(cache, addon),
            {ref_of(one): one for one in cache.indexed(RIGHTS, ref.name)},
            all(map(cache.has_synced, (CLUSTER_WIDE, CLUSTERS, WORKS, BINDINGS, DEPLOYMENT_CONFIGS, TEMPLATES))),
        )

    def of_parent(parent: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in cache.objects(MANAGED) if name_of(one) == name_of(parent)]

    def of_cluster(cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in cache.objects(MANAGED, name_of(cluster))]

    def of_config(config: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in cache.indexed(BY_DESIRED, index_value_of(config))]

    def of_binding(binding: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        names = set(_rights(binding))
        return [ref_of(one) for one in cache.objects(MANAGED) if name_of(one) in names]

    def health(cluster: Obj) -> object:
        """What of a cluster changes its add-ons: its mirrors of images, and whether it answers."""
        conditions = dig(cluster, "status", "conditions") or ()
        said = [one.get("status") for one in conditions if one.get("type") == "ManagedClusterConditionAvailable"]
        return said, annotations_of(cluster).get(IMAGE_REGISTRIES), dig(cluster, "metadata", "deletionTimestamp")

    return Controller(
        name=name,
        kind=MANAGED,
        observe=observe,
        plan=plan_agent(make),
        watches=(
            Watch(CLUSTER_WIDE, of_parent, differ(lambda parent: parent.get("spec"))),
            Watch(CLUSTERS, of_cluster, differ(health)),
            Watch(DEPLOYMENT_CONFIGS, of_config, differ(lambda config: config.get("spec"))),
            Watch(TEMPLATES, of_config, differ(lambda config: config.get("spec"))),
            Watch(BINDINGS, of_binding, differ(lambda one: (one.get("subjects"), one.get("roleRef")))),
            Watch(WORKS, of_work, differ(annotations_of, labels_of, generation, lambda one: one.get("status"))),
        ),
        indices={
            **WORK_INDEX,
            BY_DESIRED: OfKind(MANAGED, _desired),
            RIGHTS: OfKind(BINDINGS, _rights),
        },
    )


def template_controller() -> Controller[Observed]:
    """Return the controller of add-ons that are made of AddOnTemplates."""

    def make(cluster: Obj, addon: Obj, configs: Mapping[GroupKind, Obj | None]) -> Agent:
        return template_agent(cluster, addon, dict(configs))

    return agent_controller("addon-template", make, uses_template)
