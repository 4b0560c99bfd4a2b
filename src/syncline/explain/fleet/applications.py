"""How an Application of a hub fares in its cluster, from what the hub holds: the Application, the work that carries it,
and what the cluster reports. Pure. :func:`application_state`.

Texts of a report come from the cluster, at full length: what shows them cuts and escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any, Final

from syncline.argo.clusters import IN_CLUSTER_NAME, IN_CLUSTER_SERVER
from syncline.argo.content.names import wants_content
from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.control.plan import Retry
from syncline.explain.fleet.clusters import cluster_cause, last_sign
from syncline.explain.fleet.rollouts import order_entry
from syncline.explain.fleet.works import SILENT, explain_parts
from syncline.explain.view import View, one_line
from syncline.fleet.hub.works.splitting import part_prefix
from syncline.fleet.pull import names
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.notices import content_waits, of_hub
from syncline.fleet.pull.observe import (
    CLUSTERS,
    DECISIONS,
    PROJECTS,
    REPORTS,
    WORKS,
    argo_namespaces,
    report_of,
    set_parts,
    variant_of,
)
from syncline.fleet.pull.order.explaining import ENDED, entries_of, entry_cause, phase_of
from syncline.fleet.pull.propagation import AppObserved, plan_app
from syncline.fleet.pull.reporting.causes import causes_from, deepest
from syncline.fleet.pull.reporting.setparts import whole
from syncline.fleet.pull.status import WHERE_TO_LOOK
from syncline.fleet.spoke.applications.report import content_of
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, name_of, namespace_of, ref_of

NEEDS_AGENT: Final = "its agent reports no messages: Syncline's agent does (ApplicationReport)"
_BAD: Final = ("Failed", "Error")
_OF_SYNC: Final = (*_BAD, "SyncFailed")
"""Reasons of resources that failed in an operation."""


class Standing(StrEnum):
    """How an Application stands, the most urgent first."""

    FAILING = "failing"
    SILENT = "silent"
    """Its cluster does not answer: its values are the last known."""
    MISSING = "missing"
    """It is not in its cluster: not made, not carried, or not applied there."""
    PROGRESSING = "progressing"
    DIFFERS = "differs"
    """Nothing failed, and it is not as its source wants it."""
    WELL = "well"


ORDER: Final = {one: number for number, one in enumerate(Standing)}
URGENT: Final = (Standing.FAILING, Standing.SILENT, Standing.MISSING)
"""What a person has to look at."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One resource that failed, or with an empty ``kind`` a condition or the operation. ``message`` is whole;
    ``because``: what the cluster knows of the cause."""

    reason: str
    message: str
    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    because: tuple[Cause, ...] = ()

    @property
    def subject(self) -> str:
        if not self.kind:
            return ""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def brief(self) -> str:
        """The first cause alone if it is known, for lines that are cut."""
        first = deepest(self.because)
        return self.line if first is None else one_line(f"{_short(first.subject)} {first.state}: {first.message}")

    @property
    def line(self) -> str:
        """The failure with its first cause, on one line."""
        said = " ".join(part for part in (self.subject, f"{self.reason}:") if part)
        first = deepest(self.because)
        if first is None:
            return one_line(f"{said} {self.message}").removesuffix(":")
        return one_line(f"{said} {_short(first.subject)} {first.state}: {first.message}")


@dataclass(frozen=True, slots=True)
class Ordered:
    """The place of an Application in the order over clusters. ``held``: what it waits for or does there; None once it
    is done."""

    wave: str
    state: str
    held: Cause | None = None


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """One Application in one cluster. ``app`` None: the cluster is selected, and there is no Application for it.

    ``detailed``: the cluster reports messages. ``waits``: what is under way, where the cluster says for what.
    ``problem``: why it is not in its cluster. ``away``: why the cluster does not answer; ``heard``: when it did last.
    ``omitted``: resources that did not fit into the report. ``carried``: how the work stands. ``ordered``: its place in
    the order over clusters.
    """

    cluster: str
    app: Obj | None
    pulled: bool = False
    work: Obj | None = None
    health: str = "Unknown"
    sync: str = "Unknown"
    operation: Mapping[str, str] = field(default_factory=dict)
    health_since: datetime | None = None
    failures: tuple[Failure, ...] = ()
    waits: tuple[Failure, ...] = ()
    detailed: bool = True
    problem: Cause | None = None
    away: Cause | None = None
    heard: datetime | None = None
    carried: Cause | None = None
    ordered: Ordered | None = None
    omitted: int = 0

    @property
    def standing(self) -> Standing:
        if self.away is not None:
            return Standing.SILENT
        if self.problem is not None:
            return Standing.MISSING
        if self.ordered is not None and self.ordered.state == "Failed":
            return Standing.FAILING
        if self.work is None and self.pulled:
            return Standing.PROGRESSING
        going = self.operation.get("phase") == "Running"
        if any(not going or one.reason != "Missing" for one in self.failures) or self.health == "Degraded":
            return Standing.FAILING
        if going or self.health == "Progressing" or "Unknown" in (self.health, self.sync):
            return Standing.PROGRESSING
        return Standing.WELL if (self.health, self.sync) == ("Healthy", "Synced") else Standing.DIFFERS

    @property
    def revision(self) -> str:
        return str(self.operation.get("revision") or dig(self.app or {}, "status", "sync", "revision") or "")

    @property
    def since(self) -> datetime | None:
        """Since when it stands so, as far as any object says."""
        if self.standing is Standing.SILENT:
            return self.heard or (self.away.since if self.away is not None else None)
        if self.standing is Standing.MISSING:
            return self.problem.since if self.problem is not None else None
        if self.work is None and self.ordered is not None and self.ordered.held is not None:
            return self.ordered.held.since
        started, ended = (time_or_none(self.operation.get(key)) for key in ("startedAt", "finishedAt"))
        if self.operation.get("phase") == "Running":
            return started
        if self.operation.get("phase") in _BAD:
            return ended or started
        return self.health_since or ended or started


def application_state(view: View, app: Obj, destinations: Mapping[str, str] | None = None) -> ApplicationState:
    """Return how an Application fares. ``destinations``: names of clusters by the address of their API."""
    if not names.is_carried(app):
        return _of_content(_pushed_to(app, destinations or {}), app, content_of(app), pulled=False)
    cluster, ordered = annotations_of(app)[names.CLUSTER], _ordered(view, app)
    away = cluster_cause(view, cluster)
    silent = away is not None and away.state in SILENT
    work = view.cluster.get(ObjectRef(*WORKS, cluster, names.work_name(app)))
    if work is None:
        waits = ordered is not None and ordered.held is not None
        problem = None if waits else _not_carried(view, app, cluster)
        gone = away if silent else None
        return ApplicationState(cluster, app, pulled=True, problem=problem, away=gone, ordered=ordered)
    carried = explain_parts(view, work, _parts(view, work))
    report = report_of(view.cluster, cluster, name_of(work))
    content: Obj = (report or {}).get("report") or _fed_back(view, app, cluster)
    if report is not None:
        content = {**content, "conditions": [*(content.get("conditions") or ()), *of_hub(app)]}
    made = _of_content(cluster, app, content, pulled=True)
    blocked = carried.blocked and not silent and carried.cause.state in ("NotApplied", "Waiting")
    return replace(
        made,
        work=work,
        ordered=ordered,
        detailed=report is not None,
        carried=carried.cause,
        away=away if silent else None,
        heard=last_sign(view, cluster) if silent else None,
        problem=carried.cause if blocked else None,
    )


def _parts(view: View, work: Obj) -> Iterable[Obj]:
    """Yield the further parts of a work that was too large for one."""
    for number in count(1):
        part = view.cluster.get(ObjectRef(*WORKS, namespace_of(work), f"{part_prefix(name_of(work))}{number}"))
        if part is None:
            return
        yield part


def _ordered(view: View, app: Obj) -> Ordered | None:
    found = order_entry(view, app)
    if found is None:
        return None
    rollout, entry = found
    held = entry_cause(rollout, entry) if entry in entries_of(rollout) and phase_of(rollout) not in ENDED else None
    return Ordered(str(entry.get("wave") or 0), str(entry.get("state") or ""), held)


def _pushed_to(app: Obj, destinations: Mapping[str, str]) -> str:
    wanted: Obj = dig(app, "spec", "destination") or {}
    server = str(wanted.get("server") or "").rstrip("/")
    if server == IN_CLUSTER_SERVER:
        return IN_CLUSTER_NAME
    return str(wanted.get("name") or "") or destinations.get(server, server) or "-"


def _of_content(cluster: str, app: Obj, content: Obj, *, pulled: bool) -> ApplicationState:
    health: Obj = content.get("health") or {}
    operation = {str(key): str(one) for key, one in (content.get("operation") or {}).items()}
    revision = dig(content, "sync", "revision")
    if revision:
        operation["revision"] = str(revision)
    return ApplicationState(
        cluster,
        app,
        pulled,
        health=str(health.get("status") or "Unknown"),
        sync=str(dig(content, "sync", "status") or "Unknown"),
        operation=operation,
        health_since=time_or_none(health.get("lastTransitionTime")),
        failures=tuple(failures_of(content)),
        waits=tuple(_row({**one, "reason": "Progressing"}) for one in content.get("waits") or ()),
        omitted=int(content.get("omitted") or 0),
    )


def _fed_back(view: View, app: Obj, cluster: str) -> Obj:
    """Return what the hub has without a report of the cluster: the values of feedback, and the errors that a collector
    put into the report of the set."""
    content = content_of(app)
    conditions = [one for one in content.get("conditions") or () if one.get("type") != WHERE_TO_LOOK]
    owner = names.owning_set(app)
    report = view.cluster.get(ObjectRef(*REPORTS, namespace_of(app), owner)) if owner else None
    known = whole(report, set_parts(view.cluster, namespace_of(app), owner)) if report is not None else {}
    for one in dig(known, "statuses", "clusterConditions") or ():
        if one.get("cluster") == cluster:
            conditions += [each for each in one.get("conditions") or () if each not in conditions]
    return {**content, "conditions": conditions}


def _not_carried(view: View, app: Obj, cluster: str) -> Cause:
    """Return why no work carries an Application, by the plan of the controller."""
    ref = str(ref_of(app))
    since = time_or_none(dig(app, "metadata", "creationTimestamp"))
    unread = view.cluster.unread(ObjectRef(*WORKS, cluster, names.work_name(app)))
    if unread:
        return Cause(ref, "unread", one_line(unread), since)
    said = content_waits(app) if wants_content(app) else ""
    if said:
        fix = "mend that; the hub looks again by itself"
        return Cause(ref, "NotCarried", one_line(f"it travels with its content: {said}"), since, next_action=fix)
    variant = variant_of(view.cluster, namespace_of(app), None)
    acm = variant is Variant.ACM
    seen = AppObserved(
        app,
        None,
        view.cluster.get(ObjectRef(*CLUSTERS, "", cluster)),
        view.cluster.objects(DECISIONS, namespace_of(app)) if acm else (),
        view.cluster.objects(PROJECTS) if acm else (),
        argo_namespaces(view.cluster) if acm else (),
    )
    plan = plan_app(seen, variant)
    if is_terminating(app):
        return Cause(ref, "Deleting", "its work is deleted; the Application goes next", since)
    if isinstance(plan.outcome, Retry) or not plan.actions:
        why = plan.why if seen.cluster is not None else f"the hub has no cluster {cluster}: {plan.why}"
        return Cause(ref, "NotCarried", one_line(why), since, next_action=_way_out(plan.why, app, cluster))
    text = f"its work for cluster {cluster} is not written yet"
    fix = "see that the hub's controllers run: syncline controller --roles hub,pull"
    return Cause(ref, "NotCarried", text, since, next_action=fix)


def _way_out(why: str, app: Obj, cluster: str) -> str:
    if "PlacementDecision" in why:
        return f"let a Placement in namespace {namespace_of(app)} select {cluster}: syncline placement explain"
    if "managedclusters" in why:
        return f"join cluster {cluster}, or correct annotation {names.CLUSTER}: syncline cluster list"
    return "create the project, or correct spec.project" if "AppProject" in why else "correct the Application"


# -- what failed -------------------------------------------------------------------------------------------------------


def failures_of(content: Mapping[str, Any]) -> Iterable[Failure]:
    """Yield what failed by a report: errors of the source first, then resources, then what no resource explains."""
    conditions = [one for one in content.get("conditions") or () if _is_bad(str(one.get("type")))]
    rows = [_row(one) for one in content.get("failed") or ()]
    broken = [one for one in conditions if str(one.get("type")).endswith("Error") and one.get("type") != "SyncError"]
    rest = [one for one in conditions if one not in broken]
    yield from (Failure(str(one.get("type")), str(one.get("message") or "")) for one in broken)
    yield from rows
    known = [one.message for one in rows] + [str(one.get("message") or "") for one in broken]
    operation: Mapping[str, Any] = content.get("operation") or {}
    explained = any(one.reason in _OF_SYNC for one in rows)
    said = [
        (str(one.get("type")), str(one.get("message") or ""))
        for one in rest
        if not (explained and one.get("type") == "SyncError")
    ]
    if operation.get("phase") in _BAD and not explained:
        said.insert(0, (f"sync {operation['phase']}", str(operation.get("message") or "")))
    for reason, message in said:
        if not any(one and (one in message or message in one) for one in known):
            known.append(message)
            yield Failure(reason, message)


def _is_bad(kind: str) -> bool:
    return "Error" in kind or "Warning" in kind


def _row(one: Mapping[str, Any]) -> Failure:
    group, kind, namespace, name = (str(one.get(key) or "") for key in ("group", "kind", "namespace", "name"))
    reason, message = str(one.get("reason") or "Failed"), str(one.get("message") or "")
    return Failure(reason, message, group, kind, namespace, name, causes_from(one.get("causes")))


def _short(subject: str) -> str:
    """Return ``Pod web-1`` for ``/Pod/shop/web-1``; plain names stay."""
    if subject.count("/") != 3 or " " in subject:
        return subject
    ref = ObjectRef.parse(subject)
    return f"{ref.kind} {ref.name}"
