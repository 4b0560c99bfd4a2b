"""Applications of the hub to works."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Plan, Replace, awaiting_lists
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.observe import (
    APPS,
    BY_PROJECT,
    BY_TARGET,
    CLUSTERS,
    CONFIG_MAPS,
    DECISIONS,
    DEPLOYMENTS,
    GITOPS_CLUSTERS,
    INDICES,
    PROJECTS,
    SETTINGS,
    WORKS,
    Carried,
    observe_app,
)
from syncline.fleet.pull.operations import pending_start, with_pending_operation
from syncline.fleet.pull.propagation import plan_app, plan_gone, plan_read_only
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    finalizers,
    labels_of,
    meta,
    name_of,
    namespace_of,
    ref_of,
)


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
            return Plan(*awaiting_lists((seen.unlisted,)))
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
            Watch(CLUSTERS, of_cluster, comes_or_goes),
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
