"""The MulticlusterApplicationSetReport of each ApplicationSet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Create, Delete, Plan, Replace
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.status import feedback
from syncline.fleet.pull.observe import (
    APPS,
    DETAILS,
    REPORTS,
    SETS,
    WORKS,
    hosting_set,
    observe_report,
)
from syncline.fleet.pull.report import ReportsObserved, plan_reports
from syncline.fleet.pull.reporting.entries import Entries
from syncline.fleet.pull.reporting.parts import whole_name
from syncline.fleet.pull.reporting.setparts import LIMIT, changes_only, is_part, plan_parts, report_name, whole
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)

GATHER_S: Final = 1.0
"""Seconds from the first report of a cluster to the write, which has all that came: the object grows with the fleet,
so that a write for each cluster would cost more the more clusters there are."""


def report_controller() -> Controller[ReportsObserved]:
    """Return the controller of MulticlusterApplicationSetReports; a key is a report, which has the name of its set."""

    def of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        key = hosting_set(work)
        return (ObjectRef(*REPORTS, *key.split("/", 1)),) if key else ()

    def of_part(report: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*REPORTS, namespace_of(report), report_name(report)),) if is_part(report) else ()

    def of_set(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*REPORTS, namespace_of(obj), name_of(obj)),)

    def of_app(app: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        owner = names.owning_set(app)
        return (ObjectRef(*REPORTS, namespace_of(app), owner),) if owner and names.is_carried(app) else ()

    def of_details(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        work = cache.get(ObjectRef(*WORKS, namespace_of(obj), whole_name(name_of(obj))))
        return of_work(work, cache) if work is not None else ()

    return Controller(
        name="applicationset-report",
        kind=REPORTS,
        watches=(
            Watch(WORKS, of_work, differ(feedback, annotations_of, labels_of), gather_s=GATHER_S),
            Watch(REPORTS, of_part),
            Watch(SETS, of_set, comes_or_goes),
            Watch(DETAILS, of_details, differ(lambda one: one.get("report")), gather_s=GATHER_S),
            Watch(APPS, of_app, comes_or_goes, gather_s=GATHER_S),
        ),
        observe=partial(observe_report, kept=Entries()),
        at_rest=lambda _report: True,
        plan=lambda seen, _now: plan_in_parts(seen),
    )


def plan_in_parts(seen: ReportsObserved, limit: int = LIMIT) -> Plan:
    """Plan the report of one set. ``limit``: bytes of one part."""
    live = next(iter(seen.reports), None)
    if live is None and seen.parts and not seen.works:
        gone = tuple(Delete.of(one, "the report that it belongs to is gone") for one in seen.parts)
        return Plan((gone,), why="parts are left of a report that is gone")
    known = [whole(live, seen.parts)] if live is not None else []
    plan = plan_reports(replace(seen, reports=known))
    if known and not seen.sets:
        plan = _with_all_works(plan, seen.works)
    there = {name_of(one): one for one in (live, *seen.parts) if one is not None}
    return changes_only(plan_parts(_in_one_write(plan), live, seen.parts, limit=limit), there)


def _with_all_works(plan: Plan, works: Iterable[Obj]) -> Plan:
    """Return the plan that removes a set's report, with the works that the report does not name: it has one entry for
    each cluster, and none for an Application that is gone. Upstream finds those in later passes."""
    named = {action.target for step in plan.steps for action in step if isinstance(action, Delete)}
    why = "its ApplicationSet is gone"
    rest = tuple(Delete.of(one, why, propagation="Background") for one in works if ref_of(one) not in named)
    return replace(plan, steps=(rest, *plan.steps)) if rest else plan


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
