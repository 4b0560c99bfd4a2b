"""The controller that reports Applications of the cluster to the hub, for works that carry one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from syncline.argo.application import RELEASE
from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Delete, Done, Patch, Plan, Requeue, Result
from syncline.fleet.pull import names
from syncline.fleet.pull.reporting.parts import part_name, whole_name
from syncline.fleet.spoke.applications.looking import LOOK_S, LookedInto, LookInto, is_due, targets_of
from syncline.fleet.spoke.applications.report import reports_of
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.fleet.spoke.work.deletion import applied_work, hub_hash
from syncline.fleet.spoke.work.manifests.applying import owned_elsewhere
from syncline.fleet.spoke.work.ownership import earlier_work, is_left, reference_to
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.manifestworks import APPLIED_WORK, MANIFEST_WORK
from syncline.kube.kinds.syncline import MAX_PARTS, REPORT
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
    resource_version,
)

WORKS: Final = MANIFEST_WORK.group_kind
APPS: Final = APPLICATION.group_kind
REPORTS: Final = REPORT.group_kind
NOT_OURS: Final = "OwnedByAnotherWorkError"
"""Condition in a report, ours: another work brought the Application first."""
GATHER_S: Final = 1.0
"""Seconds from a change of an Application to its report, so that one report covers a burst of changes."""


@dataclass(frozen=True)
class Reporting:
    """A work that carries an Application, and the Application on the cluster."""

    work: Obj
    app: Obj
    reports: tuple[Obj, ...] = ()
    """The parts of its report that the hub has."""
    looked: LookedInto | None = None
    """The last look at what is not well."""
    owner: str = ""
    """Why the Application is another work's; empty: it is that of this work."""


def report_controller(link: Link) -> Controller[Reporting]:
    """Return the controller. Where the hub does not serve the kind, or does not let the agent read it, it does nothing:
    the feedback of works is what such a hub gets."""
    memory: dict[ObjectRef, LookedInto] = {}  # of works there are; all of it may be lost

    def observe(hub: Snapshot, ref: ObjectRef) -> Reporting | None:
        work, spoke = hub.get(ref), link.spoke()
        if work is None or is_terminating(work) or spoke is None or not hub.has_synced(REPORTS):
            return None
        where = application_in(work)
        app = spoke.get(ObjectRef(*APPS, *where)) if where is not None and spoke.has_synced(APPS) else None
        if app is None:
            memory.pop(ref, None)
            return None
        parts = (ObjectRef(*REPORTS, ref.namespace, part_name(ref.name, n)) for n in range(1, MAX_PARTS + 1))
        reports = tuple(found for part in parts if (found := hub.get(part)) is not None)
        mine = reference_to(applied_work(hub_hash(link.hub_url), link.agent, ref.name))
        other = earlier_work(owner_references(app), mine)
        held = other and not is_left(spoke.get(ObjectRef(*APPLIED_WORK.group_kind, "", other)))
        return Reporting(work, app, reports, memory.get(ref), owned_elsewhere(app, other, mine) if held else "")

    def settle(
        seen: Reporting, _plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Reporting, Plan] | None:
        look = next((one for one in results if isinstance(one.action, LookInto)), None)
        if look is None:
            return None
        assert isinstance(look.action, LookInto)
        found = look.value if look.ok else LookedInto(now, look.action.targets)
        found = found.after(seen.looked)
        memory[ref_of(seen.work)] = found
        after = replace(seen, looked=found)
        return after, plan_written(after, now)

    def of_app(app: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        for owner in owner_references(app):
            if owner.get("kind") == APPLIED_WORK.kind:
                # Its name is the hash of the hub, and the name of the work.
                yield ObjectRef(*WORKS, link.cluster, str(owner.get("name")).partition("-")[2])

    def of_report(report: Obj, _hub: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*WORKS, namespace_of(report), whole_name(name_of(report))),)

    def all_works(_cluster: str, hub: Snapshot) -> Iterable[ObjectRef]:
        return map(ref_of, hub.objects(WORKS))

    return Controller(
        name="application-report",
        kind=WORKS,
        predicate=differ(lambda work: work.get("spec"), is_terminating),
        watches=(
            Watch(APPS, of_app, differ(lambda app: app.get("status"), _release, owner_references), cluster=SPOKE),
            Watch(REPORTS, of_report, differ(lambda one: one.get("report"))),
        ),
        reaches=all_works,
        observe=observe,
        plan=plan_report,
        settle=settle,
        debounce_s=GATHER_S,
    )


def _release(app: Obj) -> str:
    """The release that an Application carries: one that changes nothing else changes no status either."""
    return annotations_of(app).get(RELEASE, "")


def application_in(work: Obj) -> tuple[str, str] | None:
    """Return namespace and name, on the cluster, of the Application that a work carries for the hub; None: it carries
    none."""
    if names.hub_application(work) is None:
        return None
    for one in dig(work, "spec", "workload", "manifests") or ():
        if one.get("kind") == APPLICATION.kind and str(one.get("apiVersion")).startswith(f"{APPLICATION.group}/"):
            return namespace_of(one), name_of(one)
    return None


def plan_report(seen: Reporting, now: datetime) -> Plan:
    """Plan the report of one Application: first a look at what is not well, if one is due."""
    if seen.owner:
        return _written(seen, ())
    targets, _ = targets_of(seen.app, now)
    if is_due(seen.looked, targets, now):
        why = f"{len(targets)} of its resources are not well"
        return Plan(((LookInto(targets, why, cluster=SPOKE),),), why=why)
    return plan_written(seen, now)


def plan_written(seen: Reporting, now: datetime) -> Plan:
    """Plan the report with what the last look found: written if its content is another one."""
    targets, left = targets_of(seen.app, now)
    outcome: Done | Requeue = Done()
    if targets or left:
        again_s = seen.looked.again_s if seen.looked is not None else LOOK_S
        outcome = Requeue(again_s if targets else left, "looks again at what is not well", background=True)
    return replace(_written(seen, targets), outcome=outcome)


def _written(seen: Reporting, targets: tuple[ObjectRef, ...]) -> Plan:
    """Return the writes: further parts before the first, whose totals then are those of all; what is too much last."""
    known = seen.looked.seen if seen.looked is not None and targets else {}
    looked = {ref: known[ref] for ref in targets if ref in known}
    wanted = reports_of(seen.app, seen.work, looked) if not seen.owner else [report_of_another(seen)]
    there = {name_of(one): one for one in seen.reports}
    steps: list[tuple[Action, ...]] = [
        (made,) for one in reversed(wanted) if (made := _write(one, there.pop(name_of(one), None))) is not None
    ]
    if there:
        steps.append(tuple(Delete.of(one, "the report has fewer parts") for one in there.values()))
    return Plan(tuple(steps), why="the Application changed" if steps else "the hub has this report")


def report_of_another(seen: Reporting) -> Obj:
    """Return the report of an Application that another work has: nothing of its state is this work's."""
    status = {"conditions": [{"type": NOT_OURS, "message": seen.owner}]}
    metadata = {"namespace": namespace_of(seen.app), "name": name_of(seen.app)}
    made = reports_of({"metadata": metadata, "status": status}, seen.work)[0]
    return {**made, "report": {key: value for key, value in made["report"].items() if key != "stale"}}


def _write(wanted: Obj, live: Obj | None) -> Action | None:
    if live is None:
        return Create(wanted, "the hub has no report of it")
    if live.get("report") == wanted["report"]:
        return None
    before: dict[str, Any] = live.get("report") or {}
    gone = {key: None for key in before if key not in wanted["report"]}
    nested = {
        key: {**{inner: None for inner in before[key] if inner not in value}, **value}
        for key, value in wanted["report"].items()
        if isinstance(value, dict) and isinstance(before.get(key), dict)
    }
    body = {
        "metadata": {"resourceVersion": resource_version(live)},
        "report": {**gone, **wanted["report"], **nested},
    }
    return Patch(REPORT, namespace_of(live), name_of(live), body, "the Application changed")
