"""The controllers of the pull model on the hub: they connect the plans with the cache and the watches.

Each event concerns one Application, work or report; nothing is polled. Only the pass over GitOpsClusters is over all of
them, as upstream's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from syncline.argo.clusters import is_cluster_secret, is_placeholder
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Delete, Done, Plan, Replace, Requeue, Retry, SetStatus
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.fleet.pull import names
from syncline.fleet.pull.clusters import plan_cluster
from syncline.fleet.pull.details import RIGHTS, plan_details, report_rights
from syncline.fleet.pull.gitops import plan_gitops
from syncline.fleet.pull.gitops_secrets import OURS, field_of
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.observe import (
    APPS,
    BY_PROJECT,
    BY_TARGET,
    CLUSTERS,
    CONFIG_MAPS,
    DECISIONS,
    DEPLOYMENTS,
    DETAILS,
    GITOPS_CLUSTERS,
    INDICES,
    PROJECTS,
    REPORTS,
    SETS,
    SETTINGS,
    WORKS,
    Carried,
    Detailed,
    Reported,
    hosting_set,
    observe_app,
    observe_details,
    observe_report,
    observe_work,
    unlisted,
    variant_of,
)
from syncline.fleet.pull.operations import pending_start, with_pending_operation
from syncline.fleet.pull.propagation import plan_app, plan_gone, plan_read_only
from syncline.fleet.pull.report import ReportsObserved, plan_reports
from syncline.fleet.pull.status import FindApp, feedback_of, plan_report_status, plan_work_status
from syncline.kube.kinds.managedclusters import PLACEMENT
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    finalizers,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    ref_of,
)

UNLISTED_S: Final = 1.0
"""Seconds until a key is looked at again at the start of the process, when not everything was listed yet."""
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
class PullSettings:
    """``variant``: whose rules apply; None: by namespace (``observe.variant_of``). ``argo_namespace``: where Argo CD's
    objects live on the hub."""

    variant: Variant | None = None
    argo_namespace: str = "argocd"


def pull_controllers(settings: PullSettings) -> tuple[Controller[Any], ...]:
    """Return the controllers of the pull model."""
    return (
        application_controller(settings),
        status_controller(settings),
        report_controller(),
        report_status_controller(settings),
        details_controller(),
        rights_controller(),
        secret_controller(settings),
        gitops_controller(),
    )


# -- Applications to works ---------------------------------------------------------------------------------------------


def _comes_or_goes(old: Obj | None, new: Obj | None) -> bool:
    return old is None or new is None


def _content(app: Obj) -> tuple[Any, ...]:
    """Return the parts of an Application that travel, or decide whether it does: not its status."""
    return (
        labels_of(app),
        annotations_of(app),
        finalizers(app),
        meta(app).get("ownerReferences"),
        meta(app).get("deletionTimestamp"),
        app.get("spec"),
        app.get("operation"),
    )


def application_controller(settings: PullSettings) -> Controller[Carried]:
    """Return the controller that carries Applications to their clusters as works."""

    def plan(seen: Carried, _now: datetime) -> Plan:
        if seen.unlisted:
            return Plan((), Requeue(UNLISTED_S, seen.unlisted), f"waiting for the first list of {seen.unlisted}")
        if seen.disabled:
            return plan_read_only(seen.works)
        if seen.seen is None:
            return plan_gone(seen.namespace, seen.name, seen.works)
        return _without_repeats(with_pending_operation(plan_app(seen.seen, seen.variant), seen.seen), seen.seen.work)

    def of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        named = names.hub_application(work)
        return (ObjectRef(*APPS, *named),) if named is not None else ()

    def of_cluster(cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return map(ref_of, cache.indexed(BY_TARGET, name_of(cluster)))

    def of_project(project: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return map(ref_of, cache.indexed(BY_PROJECT, name_of(project)))

    def of_namespace(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return (ref_of(one) for one in cache.objects(APPS, namespace_of(obj)) if names.is_carried(one))

    def of_gitops(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        where = str(dig(obj, "spec", "argoServer", "argoNamespace") or namespace_of(obj))
        return (ref_of(one) for one in cache.objects(APPS, where) if names.is_carried(one))

    def of_settings(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        if (namespace_of(obj), name_of(obj)) != SETTINGS:
            return ()
        return (ref_of(one) for one in cache.objects(APPS) if names.is_carried(one))

    written = differ(
        labels_of, annotations_of, lambda work: work.get("spec"), lambda work: meta(work).get("uid"), pending_start
    )
    return Controller(
        name="pulled-application",
        kind=APPS,
        predicate=differ(_content),
        watches=(
            Watch(WORKS, of_work, written),
            Watch(CLUSTERS, of_cluster, _comes_or_goes),
            Watch(PROJECTS, of_project, differ(lambda one: one.get("spec"))),
            Watch(DECISIONS, of_namespace, differ(lambda one: dig(one, "status", "decisions"))),
            Watch(GITOPS_CLUSTERS, of_gitops, differ(lambda one: one.get("spec"))),
            Watch(CONFIG_MAPS, of_settings, differ(lambda one: one.get("data"))),
        ),
        reads=(DEPLOYMENTS,),
        indices=INDICES,
        observe=lambda cache, ref: observe_app(cache, ref, settings.variant),
        plan=plan,
    )


def _without_repeats(plan: Plan, work: Obj | None) -> Plan:
    """Return the plan without a write that changes nothing: upstream writes each work at each pass."""
    steps = tuple(step for step in plan.steps if not _repeats(step, work))
    return replace(plan, steps=steps)


def _repeats(step: tuple[Any, ...], work: Obj | None) -> bool:
    if work is None or len(step) != 1 or not isinstance(step[0], Replace):
        return False
    wanted = step[0].obj
    same = wanted["metadata"] == work["metadata"] and wanted["spec"]["workload"] == work["spec"]["workload"]
    return same and _covers(work["spec"], wanted["spec"]) and work["spec"].keys() == wanted["spec"].keys()


def _covers(live: Any, wanted: Any) -> bool:
    """Return whether a live value is the wanted one, but for fields that the API adds by default."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(key in live and _covers(live[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(map(_covers, live, wanted))
    return bool(live == wanted)


# -- status ------------------------------------------------------------------------------------------------------------


def _feedback(work: Obj) -> list[dict[str, str]]:
    return [feedback_of(one) for one in dig(work, "status", "resourceStatus", "manifests") or ()]


def status_controller(settings: PullSettings) -> Controller[Reported]:
    """Return the controller that brings the status of works back onto Applications (basic variant)."""

    def plan(seen: Reported, now: datetime) -> Plan:
        if seen.variant is not Variant.BASIC:
            return Plan(why="the report of its ApplicationSet brings the status back")
        if seen.app is None:
            return Plan(why="its Application is gone, or is carried by another work")
        return _without_known(plan_work_status(seen.work, _found(seen.app), now), seen.app)

    def of_app(app: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if names.is_carried(app):
            yield ObjectRef(*WORKS, annotations_of(app)[names.CLUSTER], names.work_name(app))

    return Controller(
        name="pulled-status",
        kind=WORKS,
        predicate=differ(_feedback, annotations_of, labels_of),
        watches=(Watch(APPS, of_app, lambda old, new: old is None),),
        observe=lambda cache, ref: observe_work(cache, ref, settings.variant),
        plan=plan,
    )


def _found(app: Obj) -> FindApp:
    return lambda namespace, name: app if (namespace, name) == (namespace_of(app), name_of(app)) else None


def _without_known(plan: Plan, *apps: Obj) -> Plan:
    """Return the plan without the writes of Applications that have that status already.

    Upstream writes at each change of a work: an Application that stays Healthy would be Progressing for a moment.
    """
    known = {(namespace_of(one), name_of(one)): _reported(one.get("status") or {}) for one in apps}
    last = {(one.namespace, one.name): _reported(one.new) for one in plan.actions if isinstance(one, SetStatus)}
    same = {key for key, status in last.items() if known.get(key) == status}
    steps = tuple(
        step
        for step in plan.steps
        if not all(isinstance(one, SetStatus) and (one.namespace, one.name) in same for one in step)
    )
    return replace(plan, steps=steps)


def _reported(status: Obj) -> tuple[Any, ...]:
    """Return what a cluster says of an Application. The start of an operation counts only with its phase: without one
    it is the time of the pass."""
    operation = status.get("operationState") or {}
    phase = operation.get("phase") or ""
    return (
        dig(status, "health", "status"),
        dig(status, "sync", "status"),
        dig(status, "sync", "revision") or "",
        (phase, operation.get("startedAt") if phase else ""),
        status.get("conditions") or [],
    )


# -- reports -----------------------------------------------------------------------------------------------------------


def report_controller() -> Controller[ReportsObserved]:
    """Return the controller of MulticlusterApplicationSetReports; a key is a report, which has the name of its set."""

    def of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        key = hosting_set(work)
        return (ObjectRef(*REPORTS, *key.split("/", 1)),) if key else ()

    def of_set(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*REPORTS, namespace_of(obj), name_of(obj)),)

    def of_app(app: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        owner = names.owning_set(app)
        return (ObjectRef(*REPORTS, namespace_of(app), owner),) if owner and names.is_carried(app) else ()

    def of_details(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        work = cache.get(ObjectRef(*WORKS, namespace_of(obj), name_of(obj)))
        return of_work(work, cache) if work is not None else ()

    return Controller(
        name="applicationset-report",
        kind=REPORTS,
        watches=(
            Watch(WORKS, of_work, differ(_feedback, annotations_of, labels_of)),
            Watch(SETS, of_set, _comes_or_goes),
            Watch(DETAILS, of_details, differ(lambda one: one.get("report"))),
            Watch(APPS, of_app, _comes_or_goes),
        ),
        observe=observe_report,
        plan=lambda seen, _now: _in_one_write(plan_reports(seen)),
    )


def _in_one_write(plan: Plan) -> Plan:
    """Return the plan with a new report written once, with its content: upstream creates it empty and then fills it."""
    steps: list[tuple[Any, ...]] = []
    for step in plan.steps:
        last = steps[-1][0] if steps else None
        if isinstance(step[0], Replace) and isinstance(last, Create) and step[0].target == last.target:
            steps[-1] = (replace(last, obj=step[0].obj),)
        else:
            steps.append(step)
    return replace(plan, steps=tuple(steps))


@dataclass(frozen=True, slots=True)
class _ReportOfApps:
    report: Obj
    apps: dict[tuple[str, str], Obj]


def report_status_controller(settings: PullSettings) -> Controller[_ReportOfApps]:
    """Return the controller that brings the status of reports back onto Applications (ACM variant)."""

    def observe(cache: Snapshot, ref: ObjectRef) -> _ReportOfApps | None:
        report = cache.get(ref)
        if report is None or variant_of(cache, ref.namespace, settings.variant) is not Variant.ACM:
            return None
        apps = {}
        for one in dig(report, "statuses", "clusterConditions") or ():
            where = tuple(str(one.get("app") or "").split("/")[:2])
            app = cache.get(ObjectRef(*APPS, *where)) if len(where) == 2 else None
            if app is not None and names.owning_set(app) == ref.name and where[0] == ref.namespace:
                apps[where[0], where[1]] = app
        return _ReportOfApps(report, apps)

    def plan(seen: _ReportOfApps, now: datetime) -> Plan:
        made = plan_report_status(seen.report, lambda namespace, name: seen.apps.get((namespace, name)), now)
        return _without_known(made, *seen.apps.values())

    return Controller(
        name="pulled-report-status",
        kind=REPORTS,
        predicate=differ(lambda one: one.get("statuses")),
        observe=observe,
        plan=plan,
    )


def details_controller() -> Controller[Detailed]:
    """Return the controller that brings failures with their messages back onto Applications, in both variants."""

    def plan(seen: Detailed, _now: datetime) -> Plan:
        if seen.app is None:
            return Plan(why="its Application is gone, or is carried by another work")
        return plan_details(seen.app, seen.report)

    def of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*DETAILS, namespace_of(work), name_of(work)),)

    def of_app(app: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if names.is_carried(app):
            yield ObjectRef(*DETAILS, annotations_of(app)[names.CLUSTER], names.work_name(app))

    return Controller(
        name="pulled-details",
        kind=DETAILS,
        predicate=differ(lambda one: one.get("report")),
        watches=(
            Watch(WORKS, of_work, differ(annotations_of)),
            Watch(APPS, of_app, differ(lambda one: dig(one, "status", "operationState", "phase"))),
        ),
        observe=observe_details,
        plan=plan,
    )


@dataclass(frozen=True, slots=True)
class _RightsOf:
    missing: tuple[Obj, ...]
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
        missing = tuple(one for one in report_rights(ref.name) if cache.get(ref_of(one)) is None)
        return _RightsOf(missing, unlisted(cache, (ROLES, ROLE_BINDINGS)))

    def plan(seen: _RightsOf, _now: datetime) -> Plan:
        if seen.unlisted:
            return Plan((), Requeue(UNLISTED_S, seen.unlisted), f"waiting for the first list of {seen.unlisted}")
        why = "agents report on Applications"
        return Plan(tuple((Create(one, why),) for one in seen.missing), why=why)

    def of_namespace(namespace: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", name_of(namespace)),)

    def of_rights(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", namespace_of(obj)),) if name_of(obj) == RIGHTS else ()

    return Controller(
        name="pull-rights",
        kind=CLUSTERS,
        predicate=differ(lambda one: dig(one, "spec", "hubAcceptsClient"), is_terminating),
        watches=(
            Watch(NAMESPACES, of_namespace, _comes_or_goes),
            Watch(ROLES, of_rights, _comes_or_goes),
            Watch(ROLE_BINDINGS, of_rights, _comes_or_goes),
        ),
        observe=observe,
        plan=plan,
    )


# -- clusters of Argo CD -----------------------------------------------------------------------------------------------


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
            return Plan((), Requeue(UNLISTED_S, seen.unlisted), f"waiting for the first list of {seen.unlisted}")
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
            Watch(SECRETS, of_secret, _comes_or_goes),
            Watch(GITOPS_CLUSTERS, of_gitops, differ(lambda one: one.get("spec"))),
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
            return Plan((), Requeue(UNLISTED_S, seen.unlisted), f"waiting for the first list of {seen.unlisted}")
        cache = seen.cache
        objs = cache.objects(GITOPS_CLUSTERS)
        made = plan_gitops(objs, partial(_get, cache), partial(_listed, cache), now)
        actions = tuple(one for one in made.actions if not (isinstance(one, Replace) and _is_live(cache, one.obj)))
        outcome = Retry(made.error) if made.error else Done()
        why = made.error or f"{len(objs)} GitOpsClusters"
        return Plan(tuple((one,) for one in actions), outcome, why, made.status)

    def every(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (EVERY_GITOPS,)

    def of_secret(secret: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (EVERY_GITOPS,) if is_cluster_secret(secret) else ()

    return Controller(
        name="gitops-cluster",
        kind=GITOPS_CLUSTERS,
        predicate=lambda _old, _new: False,
        watches=(
            Watch(GITOPS_CLUSTERS, every, differ(lambda one: one.get("spec"), annotations_of)),
            Watch(PLACEMENTS, every, _comes_or_goes),
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
