"""The clusters of a hub as Argo CD sees them, and what their agents may report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from syncline.argo.clusters import is_cluster_secret, is_placeholder
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Create, Delete, Done, Patch, Plan, Replace, Retry, awaiting_lists
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.fleet.pull.clusters import plan_cluster
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.details import RIGHTS, report_rights
from syncline.fleet.pull.gitops import left_alone, plan_gitops
from syncline.fleet.pull.gitops_secrets import OURS, blank_import, field_of, imported_names
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.observe import (
    APPS,
    CLUSTERS,
    CONFIG_MAPS,
    DECISIONS,
    GITOPS_CLUSTERS,
    is_acted_on,
    unlisted,
    variant_of,
)
from syncline.kube.kinds.managedclusters import PLACEMENT
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    gvk_of,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    ref_of,
)

SECRETS: Final = GroupKind("", "Secret")
NAMESPACES: Final = GroupKind("", "Namespace")
ROLES: Final = GroupKind("rbac.authorization.k8s.io", "Role")
ROLE_BINDINGS: Final = GroupKind("rbac.authorization.k8s.io", "RoleBinding")
PLACEMENTS: Final = PLACEMENT.group_kind
_READ_BY_GITOPS: Final = {
    "GitOpsCluster": GITOPS_CLUSTERS,
    "Namespace": NAMESPACES,
    "Service": GroupKind("", "Service"),
    "ServiceAccount": GroupKind("", "ServiceAccount"),
    "ConfigMap": CONFIG_MAPS,
    "Role": ROLES,
    "RoleBinding": ROLE_BINDINGS,
    "Placement": PLACEMENTS,
    "PlacementDecision": DECISIONS,
    "ManagedCluster": CLUSTERS,
    "Secret": SECRETS,
    "Application": APPS,
}
"""The kinds that a pass over GitOpsClusters reads, by the names that it uses."""
EVERY_GITOPS: Final = ObjectRef(*GITOPS_CLUSTERS, "", "all")
"""The one key of the pass over GitOpsClusters."""


@dataclass(frozen=True, slots=True)
class _RightsOf:
    missing: tuple[Obj, ...]
    older: tuple[Obj, ...]
    """What is there with other rules: of an earlier version."""
    unlisted: str


def rights_controller() -> Controller[_RightsOf]:
    """Return the controller of the one Role in the namespace of each accepted cluster that agents have beyond
    upstream's: to report on Applications."""

    def observe(cache: Snapshot, ref: ObjectRef) -> _RightsOf | None:
        cluster = cache.get(ref)
        if cluster is None or is_terminating(cluster) or not dig(cluster, "spec", "hubAcceptsClient"):
            return None
        if cache.get(ObjectRef("", "Namespace", "", ref.name)) is None:
            return None
        live = [(one, cache.get(ref_of(one))) for one in report_rights(ref.name)]
        missing = tuple(one for one, found in live if found is None)
        older = tuple(one for one, found in live if found is not None and found.get("rules") != one.get("rules"))
        return _RightsOf(missing, older, unlisted(cache, (ROLES, ROLE_BINDINGS)))

    def plan(seen: _RightsOf, _now: datetime) -> Plan:
        if seen.unlisted:
            return Plan(*awaiting_lists((seen.unlisted,)))
        why = "agents report on Applications, and answer questions about them"
        made = tuple((Create(one, why),) for one in seen.missing)
        changed = tuple((_with_rules(one, why),) for one in seen.older)
        return Plan((*made, *changed), why=why)

    def of_namespace(namespace: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", name_of(namespace)),)

    def of_rights(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", namespace_of(obj)),) if name_of(obj) == RIGHTS else ()

    return Controller(
        name="pull-rights",
        kind=CLUSTERS,
        predicate=differ(lambda one: dig(one, "spec", "hubAcceptsClient"), is_terminating),
        watches=(
            Watch(NAMESPACES, of_namespace, comes_or_goes),
            Watch(ROLES, of_rights, differ(lambda one: one.get("rules"))),
            Watch(ROLE_BINDINGS, of_rights, comes_or_goes),
        ),
        observe=observe,
        plan=plan,
    )


def _with_rules(role: Obj, why: str) -> Patch:
    return Patch(gvk_of(role), namespace_of(role), name_of(role), {"rules": role["rules"]}, why)


@dataclass(frozen=True, slots=True)
class _SecretOf:
    name: str
    cluster: Obj | None
    secret: Obj | None
    wanted: bool
    unlisted: str


def secret_controller(settings: PullSettings) -> Controller[_SecretOf]:
    """Return the controller of the placeholder Secrets of clusters in Argo CD's namespace (basic variant)."""
    namespace = settings.argo_namespace

    def observe(cache: Snapshot, ref: ObjectRef) -> _SecretOf:
        secret = cache.get(ObjectRef(*SECRETS, namespace, f"{ref.name}-secret"))
        wanted = variant_of(cache, namespace, settings.variant) is Variant.BASIC
        missing = unlisted(cache, (CLUSTERS, SECRETS, GITOPS_CLUSTERS))
        return _SecretOf(ref.name, cache.get(ref), secret, wanted, missing)

    def plan(seen: _SecretOf, _now: datetime) -> Plan:
        if seen.unlisted:
            return Plan(*awaiting_lists((seen.unlisted,)))
        secret = seen.secret
        if secret is not None and not _is_own(secret, seen.name):
            return Plan(why=f"Secret {namespace}/{seen.name}-secret is not the placeholder: it stays as it is")
        if not seen.wanted and seen.cluster is not None:
            # As one that is not of the GitOpsCluster, the Secret would keep it from writing its own.
            why = f"a GitOpsCluster gives namespace {namespace} its clusters"
            return Plan(((Delete.of(secret, why),),) if secret is not None else (), why=why)
        return plan_cluster(seen.name, seen.cluster, secret, namespace)

    def of_secret(secret: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if namespace_of(secret) == namespace and name_of(secret).endswith("-secret") and is_cluster_secret(secret):
            yield ObjectRef(*CLUSTERS, "", name_of(secret).removesuffix("-secret"))

    def of_gitops(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return map(ref_of, cache.objects(CLUSTERS))

    return Controller(
        name="pull-cluster-secret",
        kind=CLUSTERS,
        predicate=differ(lambda one: meta(one).get("deletionTimestamp")),
        watches=(
            Watch(SECRETS, of_secret, comes_or_goes),
            Watch(GITOPS_CLUSTERS, of_gitops, differ(lambda one: one.get("spec"))),
        ),
        observe=observe,
        plan=plan,
    )


@dataclass(frozen=True, slots=True)
class _ImportOf:
    name: str
    wanted: bool
    live: Obj | None
    unlisted: str


def import_controller() -> Controller[_ImportOf]:
    """Return the controller of the Secret in each cluster's namespace that a GitOpsCluster copies for Argo CD.

    In Advanced Cluster Management an add-on leaves it there. Here the cluster pulls, so the Secret has a placeholder
    and no credential. One that is there, by whichever import, stays as it is.
    """

    def observe(cache: Snapshot, ref: ObjectRef) -> _ImportOf | None:
        cluster = cache.get(ref)
        if cluster is None or is_terminating(cluster) or not dig(cluster, "spec", "hubAcceptsClient"):
            return None
        there = cache.get(ObjectRef("", "Namespace", "", ref.name)) is not None
        acting = filter(is_acted_on, cache.objects(GITOPS_CLUSTERS))
        asked = (dig(one, "spec", "createBlankClusterSecrets") for one in acting)
        found = (cache.get(ObjectRef(*SECRETS, ref.name, each)) for each in imported_names(ref.name))
        live = next((one for one in found if one is not None), None)
        wanted = there and not all(asked)
        return _ImportOf(ref.name, wanted, live, unlisted(cache, (SECRETS, GITOPS_CLUSTERS)))

    def plan(seen: _ImportOf, _now: datetime) -> Plan:
        if seen.unlisted:
            return Plan(*awaiting_lists((seen.unlisted,)))
        if seen.live is not None or not seen.wanted:
            return Plan(why="no GitOpsCluster needs it, or it is there")
        why = "GitOpsClusters copy it for Argo CD"
        return Plan(((Create(blank_import(seen.name), why),),), why=why)

    def of_namespace(namespace: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", name_of(namespace)),)

    def of_secret(secret: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if name_of(secret) in imported_names(namespace_of(secret)):
            yield ObjectRef(*CLUSTERS, "", namespace_of(secret))

    def every(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return map(ref_of, cache.objects(CLUSTERS))

    return Controller(
        name="pull-import",
        kind=CLUSTERS,
        predicate=differ(lambda one: dig(one, "spec", "hubAcceptsClient"), is_terminating),
        watches=(
            Watch(NAMESPACES, of_namespace, comes_or_goes),
            Watch(SECRETS, of_secret, comes_or_goes),
            Watch(GITOPS_CLUSTERS, every, differ(lambda one: one.get("spec"))),
        ),
        observe=observe,
        plan=plan,
    )


def _is_own(secret: Obj, cluster: str) -> bool:
    """Return whether a Secret is the placeholder of a cluster, and not one that a GitOpsCluster made."""
    ours = is_cluster_secret(secret) and is_placeholder(secret) and OURS not in labels_of(secret)
    return ours and field_of(secret, "name") == cluster


@dataclass(frozen=True)
class _Gitops:
    cache: Snapshot
    unlisted: str


def gitops_controller() -> Controller[_Gitops]:
    """Return the controller of GitOpsClusters: one key, whose pass is over all of them."""

    def observe(cache: Snapshot, _ref: ObjectRef) -> _Gitops | None:
        if not cache.objects(GITOPS_CLUSTERS) and cache.has_synced(GITOPS_CLUSTERS):
            return None
        return _Gitops(cache, unlisted(cache, _READ_BY_GITOPS.values()))

    def plan(seen: _Gitops, now: datetime) -> Plan:
        if seen.unlisted:
            return Plan(*awaiting_lists((seen.unlisted,)))
        cache = seen.cache
        objs = cache.objects(GITOPS_CLUSTERS)
        made = plan_gitops(filter(is_acted_on, objs), partial(_get, cache), partial(_listed, cache), now)
        kept = [step for one in objs if not is_acted_on(one) for step in left_alone(one, now)]
        actions = tuple(one for one in made.actions if not (isinstance(one, Replace) and _is_live(cache, one.obj)))
        outcome = Retry(made.error) if made.error else Done()
        why = made.error or f"{len(objs)} GitOpsClusters"
        return Plan(tuple((one,) for one in actions), outcome, why, (*made.status, *kept))

    def every(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (EVERY_GITOPS,)

    def of_secret(secret: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (EVERY_GITOPS,) if is_cluster_secret(secret) else ()

    return Controller(
        name="gitops-cluster",
        kind=GITOPS_CLUSTERS,
        predicate=lambda _old, _new: False,
        watches=(
            Watch(GITOPS_CLUSTERS, every, differ(lambda one: one.get("spec"), annotations_of, _said)),
            Watch(PLACEMENTS, every, comes_or_goes),
            Watch(DECISIONS, every, differ(lambda one: dig(one, "status", "decisions"))),
            Watch(CLUSTERS, every, differ(lambda one: _bare(labels_of(one)))),
            Watch(SECRETS, of_secret, differ(labels_of, lambda one: one.get("data"))),
            Watch(_READ_BY_GITOPS["Namespace"], every, differ(labels_of)),
            Watch(_READ_BY_GITOPS["Service"], every, differ(labels_of)),
        ),
        reads=tuple(_READ_BY_GITOPS[kind] for kind in ("ConfigMap", "Role", "RoleBinding", "ServiceAccount")),
        observe=observe,
        plan=plan,
    )


def _said(gitops_cluster: Obj) -> Obj | None:
    """Return our condition on an object that we do not act on, whose status is its own controller's."""
    conditions = dig(gitops_cluster, "status", "conditions", default=[])
    return None if is_acted_on(gitops_cluster) else find_condition(conditions, "Ready")


def _bare(labels: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key != CLUSTER_SET_LABEL}


def _get(cache: Snapshot, kind: str, namespace: str, name: str) -> Obj | None:
    return cache.get(ObjectRef(*_READ_BY_GITOPS[kind], namespace, name))


def _listed(cache: Snapshot, kind: str, namespace: str) -> list[Obj]:
    return cache.objects(_READ_BY_GITOPS[kind], namespace)


def _is_live(cache: Snapshot, wanted: Obj) -> bool:
    """Return whether a Secret has the wanted content: its ``stringData`` is written as ``data``."""
    live = cache.get(ref_of(wanted))
    if live is None:
        return False
    same = all(field_of(live, key) == value for key, value in (wanted.get("stringData") or {}).items())
    return same and labels_of(live) == labels_of(wanted) and annotations_of(live) == annotations_of(wanted)
