"""The status that a cluster reports, back onto the hub's Application (reference ocm-pull-model §9.5, 9.8).

An Application that becomes Healthy is written twice: Progressing first, since the rollout of an ApplicationSet waits to
see that step. Values stay when a cluster no longer reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from syncline.base.clock import format_time
from syncline.control.plan import Plan, Retry, SetStatus
from syncline.fleet.pull import names
from syncline.fleet.pull.works import FEEDBACK
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, copied, is_terminating, name_of, namespace_of, resource_version, uid_of

WHERE_TO_LOOK = "AdditionalStatusReport"
"""Type of the condition that names the report of the set (ACM variant)."""
_STEP = "a rollout waits to see it progress"
FindApp = Callable[[str, str], Obj | None]
"""The hub's Application of a namespace and a name."""


def feedback_of(manifest: Obj) -> dict[str, str]:
    """Return the known values that an agent reported of one manifest; others are left out."""
    values = (manifest.get("statusFeedback") or {}).get("values") or ()
    found = {str(one.get("name")): (one.get("fieldValue") or {}).get("string") for one in values}
    return {key: value for key, value in found.items() if key in FEEDBACK and isinstance(value, str)}


def plan_work_status(work: Obj, find: FindApp, now: datetime, *, step: bool = True) -> Plan:
    """Plan what a ManifestWork says of its Application (basic variant). ``step``: whether one that becomes Healthy is
    Progressing first."""
    named = names.hub_application(work)
    manifests = ((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or [{}]
    values = feedback_of(manifests[0])
    if is_terminating(work) or named is None:
        return Plan(why="the work is being deleted" if named else "the work carries no Application of the hub")
    if not (values.get("healthStatus") and values.get("syncStatus")):
        return Plan(why="the cluster has not reported health and sync yet")
    app = find(*named)
    if app is None:
        error = f'applications.argoproj.io "{named[1]}" not found'
        return Plan(outcome=Retry(error), why=error)
    status = copied(app.get("status") or {})
    _put(status, "health", {"status": values["healthStatus"]})
    _put(status, "sync", {"status": values["syncStatus"], "revision": values.get("syncRevision", "")})
    started = values.get("operationStateStartedAt") or format_time(now)
    phase = values.get("operationStatePhase", "")
    _put(status, "operationState", {"phase": phase, "startedAt": started, "operation": {}})
    healthy = step and values["healthStatus"] == "Healthy"
    writes = _writes(app, status, f"cluster {namespace_of(work)} reports it", healthy=healthy, always=True)
    return Plan(tuple((one,) for one in writes), why="the cluster's status of the Application")


def _put(status: Obj, part: str, values: Mapping[str, object]) -> None:
    before = status.get(part)
    status[part] = {**(before if isinstance(before, dict) else {}), **values}


def _writes(app: Obj, status: Obj, reason: str, *, healthy: bool, always: bool) -> list[SetStatus]:
    """Return the writes in order; the first is of the version observed. Without ``always`` a status equal to the one
    before the first write isn't written, as upstream."""
    old = app.get("status") or {}
    step = {**old, "health": {**(old.get("health") or {}), "status": "Progressing"}}
    writes = [_set(app, old, step, _STEP, resource_version(app))] if healthy else []
    if always or status != old:
        writes.append(_set(app, step if healthy else old, status, reason, "" if healthy else resource_version(app)))
    return writes


def _set(app: Obj, old: Obj, new: Obj, reason: str, version: str) -> SetStatus:
    where = APPLICATION, namespace_of(app), name_of(app)
    return SetStatus(*where, old, new, reason, resource_version=version, uid=uid_of(app), subresource="")


def plan_report_status(report: Obj, find: FindApp, now: datetime) -> Plan:
    """Plan what a MulticlusterApplicationSetReport says of the Applications of its set, as upstream's controller: one
    that is Healthy already is written as Progressing, and stays so until its next change (ACM variant)."""
    if is_terminating(report):
        return Plan(why="the report is being deleted")
    steps = []
    for one in (report.get("statuses") or {}).get("clusterConditions") or ():
        where = str(one.get("app") or "").split("/")
        app = find(where[0], where[1]) if len(where) > 1 else None
        if app is not None:
            steps += [(write,) for write in _writes_of_entry(app, one, now)]
    return Plan(tuple(steps), why="the report's status of each Application")


def plan_entry_status(app: Obj, entry: Obj, now: datetime, *, step: bool) -> Plan:
    """Plan what one entry of a MulticlusterApplicationSetReport says of its Application; ``step`` as above."""
    writes = _writes_of_entry(app, entry, now, step=step)
    if not writes or writes[-1].reason == _STEP:
        return Plan(why="the Application has this status")
    return Plan(tuple((one,) for one in writes), why="the cluster's status of the Application")


def _writes_of_entry(app: Obj, entry: Obj, now: datetime, *, step: bool = True) -> list[SetStatus]:
    status = copied(app.get("status") or {})
    if health := entry.get("healthStatus"):
        _put(status, "health", {"status": health})
    if sync := entry.get("syncStatus"):
        _put(status, "sync", {"status": sync})
    if phase := entry.get("operationStatePhase"):
        started = entry.get("operationStateStartedAt") or format_time(now)
        _put(status, "operationState", {"phase": phase, "startedAt": started, "operation": {}})
    if revision := entry.get("syncRevision"):
        _put(status, "sync", {"revision": revision})
    owner = names.owning_set(app)
    if owner and not status.get("conditions"):
        status["conditions"] = [_where_to_look(app, owner, str(entry.get("cluster") or ""))]
    reason = f"cluster {entry.get('cluster')} reports it"
    return _writes(app, status, reason, healthy=step and health == "Healthy", always=False)


def _where_to_look(app: Obj, owner: str, cluster: str) -> Obj:
    message = (
        f"kubectl get multiclusterapplicationsetreports -n {namespace_of(app)} {owner}\n"
        f"Additional details available in ManagedCluster {cluster}\n"
        f"kubectl get applications -n {namespace_of(app)} {name_of(app)}"
    )
    return {"type": WHERE_TO_LOOK, "message": message}
