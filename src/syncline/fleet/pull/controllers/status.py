"""What clusters report, back onto the Applications of the hub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Plan, SetStatus, set_status
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.details import with_details
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.observe import APPS, DETAILS, SETS, WORKS, Reported, hosting_set, observe_work
from syncline.fleet.pull.report import entry_of
from syncline.fleet.pull.status import feedback_of, plan_entry_status, plan_work_status
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, labels_of, name_of, namespace_of


def feedback(work: Obj) -> list[dict[str, str]]:
    """Return what the agent reports of each manifest of a work."""
    return [feedback_of(one) for one in dig(work, "status", "resourceStatus", "manifests") or ()]


def status_controller(settings: PullSettings) -> Controller[Reported]:
    """Return the controller that brings back onto an Application what its cluster says of it: feedback of its work, and
    failures with their messages, in one write.

    Under the rules of ACM it is the entry of the work in the report of its ApplicationSet; it is made from the work, so
    that a change costs the same in a large fleet.
    """

    def of_app(app: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if names.is_carried(app):
            yield ObjectRef(*WORKS, annotations_of(app)[names.CLUSTER], names.work_name(app))

    def of_report(report: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        yield ObjectRef(*WORKS, namespace_of(report), name_of(report))

    return Controller(
        name="pulled-status",
        kind=WORKS,
        predicate=differ(feedback, annotations_of, labels_of),
        watches=(
            Watch(APPS, of_app, differ(lambda one: dig(one, "status", "operationState", "phase"))),
            Watch(DETAILS, of_report, differ(lambda one: one.get("report"))),
        ),
        reads=(SETS,),
        observe=lambda cache, ref: observe_work(cache, ref, settings.variant),
        plan=_plan,
    )


def _plan(seen: Reported, now: datetime) -> Plan:
    if seen.app is None:
        return Plan(why="its Application is gone, or is carried by another work")
    if is_terminating(seen.app):
        return Plan(why="the Application is being deleted")
    plan = _of_feedback(seen, seen.app, now)
    old: Obj = seen.app.get("status") or {}
    last = plan.actions[-1] if plan.actions else None
    if isinstance(last, SetStatus) and _said(last.new) != _said(old):
        final = last.new
    else:
        plan, final = replace(plan, steps=()), old
    if seen.report is not None:
        final = with_details(final, seen.report.get("report") or {})
    if final == old:
        return Plan(why="the Application has this status", outcome=plan.outcome)
    if plan.actions and isinstance(last, SetStatus):
        return replace(plan, steps=(*plan.steps[:-1], (replace(last, new=final),)))
    why = f"cluster {namespace_of(seen.work)} reports it"
    return Plan(why=why, status=set_status(seen.app, final, why, subresource=""))


def _of_feedback(seen: Reported, app: Obj, now: datetime) -> Plan:
    """Plan by the rules of the variant."""
    if seen.variant is Variant.ACM:
        owner = names.owning_set(app)
        if not owner or hosting_set(seen.work) != f"{namespace_of(app)}/{owner}" or is_terminating(seen.work):
            return Plan(why="no report of an ApplicationSet has its work")
        entry = entry_of((namespace_of(app), owner), seen.work)
        return plan_entry_status(app, entry, now, step=seen.stepwise)
    if not names.returns_status(seen.work):
        return Plan(why="the work has not the label of those whose status returns")
    return plan_work_status(seen.work, lambda *_: app, now, step=seen.stepwise)


def _said(status: Obj) -> tuple[Any, ...]:
    """Return what a cluster says of an Application in feedback. The start of an operation counts only with its phase:
    without one it is the time of the pass."""
    operation = status.get("operationState") or {}
    phase = operation.get("phase") or ""
    return (
        dig(status, "health", "status"),
        dig(status, "sync", "status"),
        dig(status, "sync", "revision") or "",
        (phase, operation.get("startedAt") if phase else ""),
        status.get("conditions") or [],
    )
