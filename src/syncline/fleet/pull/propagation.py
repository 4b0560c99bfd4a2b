"""What one pass does for an Application that a cluster pulls (reference ocm-pull-model §9.2, 9.6, 9.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from syncline.argo.application import REFRESH, RESOURCES_FINALIZER
from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Done, Patch, Plan, Replace, Retry, Stalled
from syncline.fleet.hub.works.admission import MAX_BYTES
from syncline.fleet.hub.works.splitting import TooLarge, split_work
from syncline.fleet.pull import names
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.order.permits import Permit, held_work
from syncline.fleet.pull.works import destination, part_metadata, work_of
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import (
    Obj,
    annotations_of,
    finalizers,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
)


@dataclass(frozen=True, slots=True)
class AppObserved:
    """An Application and what its pass looks at."""

    app: Obj
    work: Obj | None = None
    """The ManifestWork of its name in its cluster's namespace."""
    cluster: Obj | None = None
    """The ManagedCluster that it names."""
    decisions: Sequence[Obj] = ()
    """The PlacementDecisions of its own namespace (ACM variant)."""
    projects: Sequence[Obj] = ()
    """AppProjects of the name that it gives, in any namespace (ACM variant)."""
    argo_namespaces: Sequence[str] = ()
    """Namespaces of Deployments that are part of Argo CD, in the order of the API (ACM variant)."""
    parts: Sequence[Obj] = ()
    """Further ManifestWorks of it in its cluster's namespace: it was too large for one."""
    limit: int = MAX_BYTES
    """Encoded bytes of the manifests of a work."""
    permit: Permit | None = None
    """What the order over clusters permits; None: no order is in force, and it is written at once."""


def plan_app(seen: AppObserved, variant: Variant) -> Plan:
    """Plan one pass: the work is written whole each time; what asks for one sync or refresh goes with it once."""
    app = seen.app
    if is_terminating(app):
        return _plan_removal(seen, variant)
    wanted = wanted_work(seen, variant)
    if isinstance(wanted, Plan):
        return wanted
    whole, waits = True, ""
    if seen.permit is not None:
        held = held_work(wanted, seen.work, seen.permit, operation="operation" in app)
        if held.work is None:
            return Plan(why=held.why)
        wanted, whole, waits = held.work, held.whole, held.why
    try:
        works = split_work(wanted, seen.limit, shared=part_metadata(app))
    except TooLarge as error:
        return Plan(outcome=Stalled(str(error), LARGE_FIX), why=str(error))
    live = {name_of(one): one for one in (seen.work, *seen.parts) if one is not None}
    writes = [_write(one, live.pop(name_of(one), None)) for one in works]
    asked = _asked_once(app, variant) if whole else None
    surplus = tuple(Delete.of(one, "its manifests are in fewer works now") for one in live.values())
    steps: list[tuple[Action, ...]] = [*((one,) for one in writes), *([(asked,)] if asked else [])]
    return Plan((*steps, *([surplus] if surplus else [])), Done(), waits or writes[-1].reason)


def wanted_work(seen: AppObserved, variant: Variant) -> Obj | Plan:
    """Return the work of an Application as it is now, whatever an order permits; a plan: why there is none."""
    app, target = seen.app, annotations_of(seen.app).get(names.CLUSTER, "")
    if seen.cluster is None:
        return _failed(f'managedclusters.cluster.open-cluster-management.io "{target}" not found')
    if is_terminating(seen.cluster):
        # its works are being deleted: who writes them again at once does so for ever
        return Plan(why=f"cluster {target} leaves the hub: not carried")
    project = None
    if variant is Variant.ACM:
        if not is_bound(target, seen.decisions):
            why = f"no PlacementDecision in namespace {namespace_of(app)} selects cluster {target}: not carried"
            return Plan(why=why)
        named = str((app.get("spec") or {}).get("project") or "")
        if not named:
            return _failed(f"Application {namespace_of(app)}/{name_of(app)} does not have spec.project field")
        project = find_project(seen, named)
        if project is None:
            return _failed(f"failed to discover AppProject {named}: not found in any candidate namespace")
    return work_of(app, variant, project)


LARGE_FIX = (
    "keep long values in the repository (helm.valueFiles, a plugin's own files) instead of inline in the Application, "
    "or let the hub accept larger works (--manifest-limit)"
)


def _failed(error: str) -> Plan:
    return Plan(outcome=Retry(error), why=error)


def is_bound(cluster: str, decisions: Iterable[Obj]) -> bool:
    """Whether a Placement of the Application's namespace selects the cluster. The annotation is the tenant's to write;
    a decision proves that an administrator has bound a set with that cluster to the namespace."""
    listed = ((one.get("status") or {}).get("decisions") or () for one in decisions)
    return any(one.get("clusterName") == cluster for some in listed for one in some)


def find_project(seen: AppObserved, named: str) -> Obj | None:
    """Return the AppProject: from Argo CD's namespace, the Application's own, or a usual one."""
    found = {namespace_of(one): one for one in seen.projects if name_of(one) == named}
    places = [*seen.argo_namespaces[:1], namespace_of(seen.app), names.GITOPS_NAMESPACE, "argocd"]
    return next((found[place] for place in places if place in found), None)


def _write(work: Obj, live: Obj | None) -> Create | Replace:
    where = f"cluster {namespace_of(work)}"
    if live is None:
        return Create(work, f"carry the Application to {where}")
    metadata = {**live["metadata"], **{key: work["metadata"][key] for key in ("labels", "annotations")}}
    return Replace(
        {**live, "metadata": metadata, "spec": work["spec"]}, f"carry the Application as it is now to {where}"
    )


def _asked_once(app: Obj, variant: Variant) -> Patch | None:
    """Take away what must happen once. As upstream, this write also leaves the destination that the cluster has."""
    body: Obj = {"operation": None} if "operation" in app else {}
    if variant is Variant.ACM and REFRESH in annotations_of(app):
        body["metadata"] = {"annotations": {REFRESH: None}}
    if not body:
        return None
    if (target := destination(app, variant)) is not None:
        body["spec"] = {"destination": target}
    return _patch(app, body, "the operation and the refresh are the cluster's now")


def _patch(app: Obj, body: Obj, reason: str) -> Patch:
    metadata = {**body.get("metadata", {}), "resourceVersion": resource_version(app)}
    return Patch(APPLICATION, namespace_of(app), name_of(app), {**body, "metadata": metadata}, reason)


def _plan_removal(seen: AppObserved, variant: Variant) -> Plan:
    """Delete the work, then release the Application. Only the plain finalizer is ours: its variants stay."""
    app = seen.app
    left = [one for one in finalizers(app) if one != RESOURCES_FINALIZER]
    release = _patch(app, {"metadata": {"finalizers": left}}, "its work is deleted")
    works = tuple(one for one in (seen.work, *seen.parts) if one is not None)
    if works:
        gone = tuple(Delete.of(one, "its Application is deleted") for one in works)
        return Plan((gone, (release,)), why=release.reason)
    # upstream's basic variant then deletes a work without a name, fails, and comes back
    outcome = Retry("resource name may not be empty") if variant is Variant.BASIC else Done()
    return Plan(((release,),), outcome, "its work is gone")


def plan_gone(namespace: str, name: str, works: Iterable[Obj]) -> Plan:
    """Plan for an Application that is gone: its works go, too (basic variant)."""
    return _deletions(works, lambda found: found == (namespace, name), "its Application is gone")


def plan_cleanup(works: Iterable[Obj], apps: Iterable[Obj]) -> Plan:
    """Plan the periodic removal of works whose Application is gone (basic variant).

    ``apps`` must be a complete list: what could not be read is not gone.
    """
    there = {(namespace_of(one), name_of(one)) for one in apps}
    return _deletions(works, lambda found: found not in there, "no Application of the hub is carried by it")


def _deletions(works: Iterable[Obj], goes: Callable[[tuple[str, str]], bool], reason: str) -> Plan:
    found = ((one, names.hub_application(one)) for one in works if _labelled(one, names.PULL))
    actions = tuple(Delete.of(one, reason) for one, app in found if app is not None and goes(app))
    return Plan((actions,) if actions else (), why=reason if actions else "no work is without its Application")


def plan_read_only(works: Iterable[Obj]) -> Plan:
    """Plan the end of the pull model: clusters keep their Applications, works no longer write them (ACM variant)."""
    reason = "the pull model is disabled: the cluster keeps the Application as it is"
    actions = tuple(
        Replace({**one, "spec": {**one["spec"], "manifestConfigs": configs}}, reason)
        for one in works
        if names.HUB_NAME in annotations_of(one) and (_labelled(one, names.SET) or _labelled(one, names.PULL))
        if (configs := _read_only(one)) != ((one.get("spec") or {}).get("manifestConfigs") or [])
    )
    return Plan((actions,) if actions else (), why=reason if actions else "each work is read-only already")


def _labelled(work: Obj, label: str) -> bool:
    return (work.get("metadata", {}).get("labels") or {}).get(label) == "true"


def _read_only(work: Obj) -> list[Obj]:
    return [
        {**one, "updateStrategy": {"type": "ReadOnly"}} if _is_of_applications(one) else one
        for one in (work.get("spec") or {}).get("manifestConfigs") or []
    ]


def _is_of_applications(config: Obj) -> bool:
    which = config.get("resourceIdentifier") or {}
    current = (config.get("updateStrategy") or {}).get("type")
    return (which.get("group"), which.get("resource")) == (APPLICATION.group, "applications") and current != "ReadOnly"
