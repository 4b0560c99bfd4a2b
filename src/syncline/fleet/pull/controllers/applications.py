"""Applications of the hub to works."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from syncline.argo.conditions import Condition
from syncline.argo.content.entries import entries_of
from syncline.argo.content.names import wants_content
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Plan, Replace, Stalled, awaiting_lists
from syncline.fleet.pull import names
from syncline.fleet.pull.content.carrying import with_content
from syncline.fleet.pull.notices import CARRY_ERROR, noted
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
)
from syncline.fleet.pull.operations import pending_start, with_pending_operation
from syncline.fleet.pull.order.groups import BY_GROUP, ROLLOUTS
from syncline.fleet.pull.propagation import AppObserved, plan_app, plan_gone, plan_read_only
from syncline.kube.kinds.content import CONTENT
from syncline.kube.objects import (
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


def travelling(app: Obj) -> tuple[Any, ...]:
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


def application_controller(observe: Callable[[Snapshot, ObjectRef], Carried | None]) -> Controller[Carried]:
    """Return the controller that carries Applications to their clusters as works. ``observe``: reads one, with what an
    order permits."""

    def plan(seen: Carried, now: datetime) -> Plan:
        if seen.unlisted:
            return Plan(*awaiting_lists((seen.unlisted,)))
        if seen.disabled:
            return plan_read_only(seen.works)
        if seen.seen is None:
            return plan_gone(seen.namespace, seen.name, seen.works)
        made = with_pending_operation(plan_app(seen.seen, seen.variant), seen.seen)
        made = with_content(made, seen.seen, seen.content)
        return _with_notice(_without_repeats(made, seen.seen), seen.seen.app, now)

    def of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        named = names.hub_application(work)
        return (ObjectRef(*APPS, *named),) if named is not None else ()

    def of_content(content: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        named = (ref_of(one) for one in cache.indexed(BY_TARGET, namespace_of(content)) if wants_content(one))
        return [ref for ref in named if dig(content, "content", "hub", "name") == ref.name]

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
        predicate=differ(travelling),
        watches=(
            Watch(WORKS, of_work, written),
            Watch(CONTENT.group_kind, of_content, differ(entries_of)),
            Watch(CLUSTERS, of_cluster, comes_or_goes),
            Watch(PROJECTS, of_project, differ(lambda one: one.get("spec"))),
            Watch(DECISIONS, of_namespace, differ(lambda one: dig(one, "status", "decisions"))),
            Watch(GITOPS_CLUSTERS, of_gitops, differ(lambda one: one.get("spec"))),
            Watch(ROLLOUTS, _of_rollout, differ(lambda one: one.get("status"))),
            Watch(CONFIG_MAPS, of_settings, differ(lambda one: one.get("data"))),
        ),
        reads=(DEPLOYMENTS,),
        indices=INDICES,
        observe=observe,
        plan=plan,
    )


def _of_rollout(rollout: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Yield the Applications whose permit is not used yet; all of them when their order is over."""
    status, space = rollout.get("status") or {}, namespace_of(rollout)
    if status.get("phase") == "Unordered":
        yield from (ref_of(one) for one in cache.indexed(BY_GROUP, f"{space}/{name_of(rollout)}"))
    for one in status.get("clusters") or ():
        if one.get("permitted"):
            yield ObjectRef(*APPS, space, str(one.get("application")))


def _with_notice(plan: Plan, app: Obj, now: datetime) -> Plan:
    """Return the plan with a condition on the Application if it cannot be carried until a person changes it."""
    if is_terminating(app):
        return plan
    stalled = plan.outcome if isinstance(plan.outcome, Stalled) else None
    found = [Condition(CARRY_ERROR, f"{stalled.reason}: {stalled.fix}")] if stalled else []
    return replace(plan, status=(*plan.status, *noted(app, (CARRY_ERROR,), found, now)))


def _without_repeats(plan: Plan, seen: AppObserved) -> Plan:
    """Return the plan without writes that change nothing: upstream writes each work at each pass."""
    live = {name_of(one): one for one in (seen.work, *seen.parts) if one is not None}
    return replace(plan, steps=tuple(step for step in plan.steps if not _repeats(step, live)))


def _repeats(step: tuple[Any, ...], live: Mapping[str, Obj]) -> bool:
    if len(step) != 1 or not isinstance(step[0], Replace):
        return False
    wanted, work = step[0].obj, live[name_of(step[0].obj)]
    same = wanted["metadata"] == work["metadata"] and wanted["spec"]["workload"] == work["spec"]["workload"]
    return same and _covers(work["spec"], wanted["spec"]) and work["spec"].keys() == wanted["spec"].keys()


def _covers(live: Any, wanted: Any) -> bool:
    """Return whether a live value is the wanted one, but for fields that the API adds by default."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(key in live and _covers(live[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(map(_covers, live, wanted))
    return bool(live == wanted)
