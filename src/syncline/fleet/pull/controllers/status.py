"""What clusters report, back onto the Applications of the hub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Plan, SetStatus
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.details import plan_details
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.observe import (
    APPS,
    DETAILS,
    REPORTS,
    WORKS,
    Detailed,
    Reported,
    observe_details,
    observe_work,
    variant_of,
)
from syncline.fleet.pull.status import FindApp, feedback_of, plan_report_status, plan_work_status
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
)


def feedback(work: Obj) -> list[dict[str, str]]:
    """Return what the agent reports of each manifest of a work."""
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
        predicate=differ(feedback, annotations_of, labels_of),
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
        made = plan_report_status(
            seen.report, lambda namespace, name: seen.apps.get((namespace, name)), now, repeat=False
        )
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
