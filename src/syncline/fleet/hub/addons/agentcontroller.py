"""The controller of the agents of add-ons: it connects their planner with the cache and the watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.fleet.addons import (
    BUILT_IN,
    CLUSTER_WIDE,
    DEPLOYMENT_CONFIGS,
    MANAGED,
    TEMPLATES,
    built_in_ref,
    cluster_wide_ref,
    config_of,
    desired_of,
    index_value,
    index_value_of,
    managed_ref,
    stored_view,
)
from syncline.fleet.hub.addons.agents import RBAC
from syncline.fleet.hub.addons.controller import CLUSTERS, WORK_INDEX, WORKS, of_work, works_of
from syncline.fleet.hub.addons.deploying import Make, Observed, plan_agent
from syncline.fleet.hub.addons.progressions import named_configs
from syncline.fleet.hub.addons.requests import Authority, Requested, addon_of, plan_request
from syncline.fleet.hub.addons.templates.agent import authorities, template_agent, uses_template
from syncline.fleet.hub.addons.templates.values import IMAGE_REGISTRIES
from syncline.fleet.hub.registration.approving import REQUESTS
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)

BINDINGS: Final = GroupKind(RBAC, "RoleBinding")
BY_DESIRED, RIGHTS = "add-ons by desired config", "bindings of add-ons"


def _desired(addon: Obj) -> list[str]:
    found = (desired_of(one) for one in dig(addon, "status", "configReferences") or ())
    return [index_value(one.kind, one.at) for one in found if one is not None]


def _configs(cache: Snapshot, addon: Obj, parent: Obj | None) -> dict[GroupKind, Obj | None]:
    """Return the desired configs of built-in kinds; None for one whose content the hub has not decided on.

    The cluster may write the status of its add-ons, so a config counts only where the hub's objects name it."""
    found: dict[GroupKind, Obj | None] = {}
    own = [config_of(one) for one in dig(addon, "spec", "configs") or ()]
    named = None if parent is None else {*named_configs(parent), *own}
    for entry in dig(addon, "status", "configReferences") or ():
        config = desired_of(entry)
        ref = None if config is None else built_in_ref(config)
        if config is None or (named is not None and replace(config, spec_hash="") not in named):
            continue
        if ref is not None and BUILT_IN[config.kind] not in found:
            found[BUILT_IN[config.kind]] = cache.get(ref) if config.spec_hash else None
    return found


def _pair(cache: Snapshot, ref: ObjectRef) -> tuple[Obj | None, Obj | None]:
    """Return an add-on and its ClusterManagementAddOn, both in v1alpha1."""
    addon, parent = cache.get(ref), cache.get(cluster_wide_ref(ref.name))
    return addon and stored_view(addon), parent and stored_view(parent)


def _rights(binding: Obj) -> Iterable[str]:
    return filter(None, (labels_of(binding).get(ADDON_NAME),))


def _nothing(_cluster: Obj) -> object:
    return None


def agent_controller(
    name: str, make: Make, mine: Callable[[Obj, Obj | None], bool], seen: Callable[[Obj], object] = _nothing
) -> Controller[Observed]:
    """Return the controller that deploys the agents of the add-ons that are ``mine``: asked with an add-on and its
    ClusterManagementAddOn, None if that is gone. ``seen``: what of a cluster ``make`` reads beside its mirrors."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        addon, parent = _pair(cache, ref)
        if addon is None or not mine(addon, parent):
            return None
        return Observed(
            addon,
            cache.get(ObjectRef(*CLUSTERS, "", ref.namespace)),
            works_of(cache, addon),
            _configs(cache, addon, parent),
            {ref_of(one): one for one in cache.indexed(RIGHTS, ref.name)},
            all(map(cache.has_synced, (CLUSTER_WIDE, CLUSTERS, WORKS, BINDINGS, DEPLOYMENT_CONFIGS, TEMPLATES))),
            parent is None,
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
        said = [one.get("status") for one in conditions if one.get("type") == AVAILABLE]
        return said, annotations_of(cluster).get(IMAGE_REGISTRIES), dig(cluster, "metadata", "deletionTimestamp")

    return Controller(
        name=name,
        kind=MANAGED,
        observe=observe,
        plan=plan_agent(make),
        watches=(
            Watch(CLUSTER_WIDE, of_parent, differ(lambda parent: parent.get("spec"))),
            Watch(CLUSTERS, of_cluster, differ(health, seen)),
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
    return agent_controller("addon-template", template_agent, uses_template)


Sign = Callable[[Mapping[GroupKind, Obj | None]], tuple[tuple[str, Authority], ...]]
"""Returns who signs for which signer, by the configs of an add-on."""
BY_ADDON: Final = "requests of an add-on"


def _no_signers(_configs: Mapping[GroupKind, Obj | None]) -> tuple[tuple[str, Authority], ...]:
    return ()


def _requester(csr: Obj) -> Iterable[str]:
    at = addon_of(csr)
    return ("/".join(at),) if at else ()


def request_controller(
    name: str, make: Make, mine: Callable[[Obj, Obj | None], bool], signers: Sign = _no_signers
) -> Controller[Requested]:
    """Return the controller of the certificate requests of add-ons that are ``mine`` (see :func:`agent_controller`)."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Requested | None:
        csr = cache.get(ref)
        at = None if csr is None else addon_of(csr)
        if csr is None or at is None:
            return None
        addon, parent = _pair(cache, managed_ref(*at))
        cluster = cache.get(ObjectRef(*CLUSTERS, "", at[0]))
        if addon is None or parent is None or cluster is None or not mine(addon, parent):
            return Requested(csr, None, 0)
        configs = _configs(cache, addon, parent)
        count = cache.count(BY_ADDON, "/".join(at))
        return Requested(csr, make(cluster, addon, configs), count, signers(configs))

    def of_addon(addon: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in cache.indexed(BY_ADDON, f"{namespace_of(addon)}/{name_of(addon)}")]

    return Controller(
        name=name,
        kind=REQUESTS,
        observe=observe,
        plan=plan_request,
        # A request may be older than what the hub decides about its add-on.
        watches=(Watch(MANAGED, of_addon, differ(lambda one: dig(one, "status", "configReferences"))),),
        indices={BY_ADDON: OfKind(REQUESTS, _requester)},
    )


def template_request_controller() -> Controller[Requested]:
    """Return the controller of the requests of add-ons that are made of AddOnTemplates."""
    return request_controller("addon-requests", template_agent, uses_template, authorities)
