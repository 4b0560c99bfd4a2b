"""Reads what the plans of the pull model need from the hub's cache; frozen, without a decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from syncline.control.cache import OfKind, Snapshot
from syncline.fleet.hub.works.admission import MAX_BYTES
from syncline.fleet.pull import names, settings
from syncline.fleet.pull.content.carrying import carried_app
from syncline.fleet.pull.details import collected_from
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.propagation import AppObserved
from syncline.fleet.pull.report import ReportsObserved
from syncline.fleet.pull.reporting.entries import Entries, Sources, is_of
from syncline.fleet.pull.reporting.parts import joined, part_name
from syncline.fleet.pull.reporting.setparts import MOST, is_part, report_name
from syncline.kube.kinds.applicationfleet import GITOPS_CLUSTER, REPORT
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.kinds.content import CONTENT
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER, PLACEMENT_DECISION
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.kinds.syncline import REPORT as DETAIL
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
)

APPS: Final = APPLICATION.group_kind
WORKS: Final = MANIFEST_WORK.group_kind
CLUSTERS: Final = MANAGED_CLUSTER.group_kind
DECISIONS: Final = PLACEMENT_DECISION.group_kind
PROJECTS: Final = APP_PROJECT.group_kind
SETS: Final = APPLICATION_SET.group_kind
REPORTS: Final = REPORT.group_kind
DETAILS: Final = DETAIL.group_kind
GITOPS_CLUSTERS: Final = GITOPS_CLUSTER.group_kind
CONFIG_MAPS: Final = GroupKind("", "ConfigMap")
SETTINGS: Final = ("open-cluster-management", settings.NAME)
"""Namespace and name of the ConfigMap that switches the ACM variant off."""
DEPLOYMENTS: Final = GroupKind("apps", "Deployment")

BY_TARGET: Final = "pull-target"
"""Index of Applications by the cluster that pulls them."""
BY_PROJECT: Final = "pull-project"
"""Index of carried Applications by the name of their project."""
BY_APP: Final = "pull-application"
"""Index of ManifestWorks by ``NAMESPACE/NAME`` of the hub's Application that they carry."""
BY_SET: Final = "pull-set"
"""Index of ManifestWorks by ``NAMESPACE/NAME`` of the ApplicationSet of their Application."""


def _target(app: Obj) -> Iterable[str]:
    return (annotations_of(app)[names.CLUSTER],) if names.is_carried(app) else ()


def _project(app: Obj) -> Iterable[str]:
    return (str(dig(app, "spec", "project") or ""),) if names.is_carried(app) else ()


def _carried(work: Obj) -> Iterable[str]:
    found = names.hub_application(work)
    return ("/".join(found),) if found is not None else ()


def hosting_set(work: Obj) -> str:
    """Return ``NAMESPACE/NAME`` of the ApplicationSet of a work's Application; empty: none."""
    found = annotations_of(work).get(names.HOSTING_SET, "")
    return found if names.SET in labels_of(work) and found.count("/") == 1 else ""


INDICES: Final = {
    BY_TARGET: OfKind(APPS, _target),
    BY_PROJECT: OfKind(APPS, _project),
    BY_APP: OfKind(WORKS, _carried),
    BY_SET: OfKind(WORKS, lambda work: (found,) if (found := hosting_set(work)) else ()),
}


def unlisted(cache: Snapshot, kinds: Iterable[GroupKind]) -> str:
    """Return the first of these kinds whose objects are not known: nothing follows from what is missing."""
    return next((str(kind) for kind in kinds if not cache.has_synced(kind)), "")


def is_acted_on(gitops_cluster: Obj) -> bool:
    """Return whether an object is of v1beta1, which requires ``argoServer``; v1alpha1 is of another project."""
    return isinstance(dig(gitops_cluster, "spec", "argoServer"), dict)


def variant_of(cache: Snapshot, namespace: str, chosen: Variant | None) -> Variant:
    """Return whose rules apply to Applications of a namespace: ``chosen``, else those of Advanced Cluster Management
    where a GitOpsCluster names the namespace (decision 43)."""
    if chosen is not None:
        return chosen
    named = (
        dig(one, "spec", "argoServer", "argoNamespace") or namespace_of(one)
        for one in cache.objects(GITOPS_CLUSTERS)
        if is_acted_on(one)
    )
    return Variant.ACM if namespace in named else Variant.BASIC


@dataclass(frozen=True)
class Carried:
    """An Application of the hub, or what is left of one. ``unlisted``: a kind that is not known yet."""

    namespace: str
    name: str
    variant: Variant
    seen: AppObserved | None = field(repr=False)
    """None: the Application is gone, or is not for a cluster to pull."""
    works: Sequence[Obj] = field(default=(), repr=False)
    """The works that carry it, in every namespace."""
    disabled: bool = False
    """The pull model is switched off: works stop to write."""
    unlisted: str = ""
    content: Obj | None = field(default=None, repr=False)
    """The ApplicationContent of its rendered manifests."""


def observe_app(cache: Snapshot, ref: ObjectRef, chosen: Variant | None, limit: int = MAX_BYTES) -> Carried | None:
    """Read one Application; None if nothing carries it and nothing should. ``limit``: bytes of a work."""
    app = cache.get(ref)
    carried = app is not None and names.is_carried(app)
    works = cache.indexed(BY_APP, f"{ref.namespace}/{ref.name}")
    if not carried and (app is not None or not works):
        return None
    variant = variant_of(cache, ref.namespace, chosen)
    acm = variant is Variant.ACM
    needed = (APPS, WORKS, CLUSTERS, GITOPS_CLUSTERS, *((DECISIONS, PROJECTS, CONFIG_MAPS) if acm else ()))
    missing = unlisted(cache, needed)
    off = acm and settings.is_disabled(cache.get(ObjectRef(*CONFIG_MAPS, *SETTINGS)))
    if app is None or not carried:
        return Carried(ref.namespace, ref.name, variant, None, works, off, missing)
    target = annotations_of(app)[names.CLUSTER]
    content = cache.get(ObjectRef(*CONTENT.group_kind, target, names.work_name(app)))
    seen = AppObserved(
        carried_app(app),
        cache.get(ObjectRef(*WORKS, target, names.work_name(app))),
        cache.get(ObjectRef(*CLUSTERS, "", target)),
        cache.objects(DECISIONS, ref.namespace) if acm else (),
        cache.objects(PROJECTS) if acm else (),
        argo_namespaces(cache) if acm else (),
        [one for one in works if names.is_part(one, target, names.work_name(app))],
        limit,
    )
    return Carried(ref.namespace, ref.name, variant, seen, works, off, missing, content)


def argo_namespaces(cache: Snapshot) -> list[str]:
    """Return the namespaces of Deployments that are part of Argo CD, in the order of the API."""
    parts = (one for one in cache.objects(DEPLOYMENTS) if labels_of(one).get("app.kubernetes.io/part-of") == "argocd")
    return [namespace_of(one) for one in parts]


@dataclass(frozen=True)
class Reported:
    """A work and its Application; ``variant``: of the Application's namespace. ``report``: the ApplicationReport of the
    cluster; ``stepwise``: whether a rollout may wait to see the Application progress."""

    work: Obj = field(repr=False)
    variant: Variant
    app: Obj | None = field(repr=False)
    report: Obj | None = field(default=None, repr=False)
    stepwise: bool = True


def observe_work(cache: Snapshot, ref: ObjectRef, chosen: Variant | None) -> Reported | None:
    """Read one work that carries an Application; None for others."""
    work = cache.get(ref)
    named = names.hub_application(work) if work is not None else None
    if work is None or named is None:
        return None
    app = application_of(cache, work)
    report = cache.get(ObjectRef(*DETAILS, ref.namespace, ref.name))
    return Reported(work, variant_of(cache, named[0], chosen), app, report, _is_stepwise(cache, app))


def _is_stepwise(cache: Snapshot, app: Obj | None) -> bool:
    """Return whether a rollout may wait to see an Application progress: not where its set has none."""
    owner = names.owning_set(app) if app is not None else ""
    found = cache.get(ObjectRef(*SETS, namespace_of(app), owner)) if app is not None and owner else None
    return found is None or dig(found, "spec", "strategy", "type") not in (None, "", "AllAtOnce")


def application_of(cache: Snapshot, work: Obj) -> Obj | None:
    """Return the hub's Application that a work carries (:func:`~syncline.fleet.pull.reporting.entries.is_of`); None if
    it does not exist, or is carried by another work."""
    named = names.hub_application(work)
    app = cache.get(ObjectRef(*APPS, *named)) if named is not None else None
    return app if app is not None and is_of(work, app) else None


def observe_report(cache: Snapshot, ref: ObjectRef, kept: Entries | None = None) -> ReportsObserved | None:
    """Read what the report of one ApplicationSet is made of; None while something that it needs is not listed.
    ``kept``: what was read before."""
    if unlisted(cache, (SETS, WORKS, REPORTS)):
        return None
    key = ref.namespace, ref.name
    there = cache.get(ObjectRef(*SETS, *key)) is not None
    report = cache.get(ref)
    if report is not None and is_part(report):
        return None
    works, parts = cache.indexed(BY_SET, "/".join(key)), set_parts(cache, *key)
    whole = partial(report_of, cache)
    entries = (kept if kept is not None else Entries()).of(key, works, Sources(APPS, DETAILS, cache.get, whole))
    if there:
        entries = [one for one in entries if one.carried]
    else:
        # Works of clusters that are away stay for a while: they make no report again, and are deleted once.
        entries = [one for one in entries if report is not None and not is_terminating(one.work)]
    works = [one.work for one in entries]
    if report is None and not works and not parts:
        return None
    first = next((one.work for one in entries if one.details is not None), None)
    resources = whole(namespace_of(first), name_of(first)) if first is not None else None
    collected = {key: collected_from(resources, (one.failed for one in entries))}
    read = {key: [one.said for one in entries]} if entries else {}
    sets = frozenset({key} if there else ())
    return ReportsObserved(sets, works, [report] if report else [], collected, parts, read)


def set_parts(cache: Snapshot, namespace: str, name: str) -> list[Obj]:
    """Return the further parts of the report of a set, in order."""
    names_ = (part_name(name, number) for number in range(2, MOST + 1))
    found = (cache.get(ObjectRef(*REPORTS, namespace, one)) for one in names_)
    return [one for one in found if one is not None and is_part(one) and report_name(one) == name]


def report_of(cache: Snapshot, cluster: str, work: str) -> Obj | None:
    """Return the ApplicationReport of a work, whole; None if there is none."""
    first = cache.get(ObjectRef(*DETAILS, cluster, work))
    if first is None or "part" not in (first.get("report") or {}):
        return first

    def content(number: int) -> Obj | None:
        return (cache.get(ObjectRef(*DETAILS, cluster, part_name(work, number))) or {}).get("report")

    return {**first, "report": joined(first["report"], content)}
