"""The controller that reports Applications of the cluster to the hub, for works that carry one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Patch, Plan
from syncline.fleet.pull import names
from syncline.fleet.spoke.applications.report import report_of
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.manifestworks import APPLIED_WORK, MANIFEST_WORK
from syncline.kube.kinds.syncline import REPORT
from syncline.kube.objects import (
    Obj,
    ObjectRef,
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
GATHER_S: Final = 1.0
"""Seconds from a change of an Application to its report, so that one report covers a burst of changes."""


@dataclass(frozen=True)
class Reporting:
    """A work that carries an Application, the Application on the cluster, and its report on the hub."""

    work: Obj
    app: Obj
    report: Obj | None


def report_controller(link: Link) -> Controller[Reporting]:
    """Return the controller. Where the hub does not serve the kind, or does not let the agent read it, it does nothing:
    the feedback of works is what such a hub gets."""

    def observe(hub: Snapshot, ref: ObjectRef) -> Reporting | None:
        work, spoke = hub.get(ref), link.spoke()
        if work is None or is_terminating(work) or spoke is None or not hub.has_synced(REPORTS):
            return None
        where = application_in(work)
        app = spoke.get(ObjectRef(*APPS, *where)) if where is not None and spoke.has_synced(APPS) else None
        if app is None:
            return None
        return Reporting(work, app, hub.get(ObjectRef(*REPORTS, *(ref.namespace, ref.name))))

    def of_app(app: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        for owner in owner_references(app):
            if owner.get("kind") == APPLIED_WORK.kind:
                # Its name is the hash of the hub, and the name of the work.
                yield ObjectRef(*WORKS, link.cluster, str(owner.get("name")).partition("-")[2])

    def of_report(report: Obj, _hub: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*WORKS, namespace_of(report), name_of(report)),)

    def all_works(_cluster: str, hub: Snapshot) -> Iterable[ObjectRef]:
        return map(ref_of, hub.objects(WORKS))

    return Controller(
        name="application-report",
        kind=WORKS,
        predicate=differ(lambda work: work.get("spec"), is_terminating),
        watches=(
            Watch(APPS, of_app, differ(lambda app: app.get("status")), cluster=SPOKE),
            Watch(REPORTS, of_report, differ(lambda one: one.get("report"))),
        ),
        reaches=all_works,
        observe=observe,
        plan=plan_report,
        debounce_s=GATHER_S,
    )


def application_in(work: Obj) -> tuple[str, str] | None:
    """Return namespace and name, on the cluster, of the Application that a work carries for the hub; None: it carries
    none."""
    if names.hub_application(work) is None:
        return None
    for one in dig(work, "spec", "workload", "manifests") or ():
        if one.get("kind") == APPLICATION.kind and str(one.get("apiVersion")).startswith(f"{APPLICATION.group}/"):
            return namespace_of(one), name_of(one)
    return None


def plan_report(seen: Reporting, _now: datetime) -> Plan:
    """Plan the report of one Application: written if its content is another one."""
    wanted, live = report_of(seen.app, seen.work), seen.report
    if live is None:
        return Plan(((Create(wanted, "the hub has no report of it"),),), why="a new Application")
    if live.get("report") == wanted["report"]:
        return Plan(why="the hub has this report")
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
    patch = Patch(REPORT, namespace_of(live), name_of(live), body, "the Application changed")
    return Plan(((patch,),), why="the Application changed")
