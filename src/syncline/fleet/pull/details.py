"""What a cluster's ApplicationReport adds on the hub: failures with their messages, on Applications and in the report
of their ApplicationSet; pure.

Upstream's report of a set takes errors from a search index that cuts them at 512 characters (behaviour 86); here they
come with the agent's report, and the Application on the hub has them whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.pull.notices import OF_HUB
from syncline.fleet.pull.report import Collected
from syncline.fleet.pull.reporting.causes import causes_from, deepest
from syncline.fleet.pull.status import WHERE_TO_LOOK
from syncline.kube.kinds.applicationqueries import QUERIES
from syncline.kube.objects import Obj, copied, namespace_of

MAX_TEXT: Final = 512
"""Characters of a text in a MulticlusterApplicationSetReport, as upstream's collector cuts them."""
_NOT_LISTED: Final = frozenset({"ApplicationSet", "Application", "EndpointSlice", "Pod", "ReplicaSet", "Cluster"})
"""Kinds that upstream's collector leaves out of the resources of a set."""
_FAILED: Final = ("Failed", "Error")


def with_details(status: Obj, report: Mapping[str, Any]) -> Obj:
    """Return a status with the conditions, the operation and the resources that a cluster reports."""
    made: Obj = copied(status)
    operation = report.get("operation") or {}
    if operation.get("phase") and not _is_older(operation, made.get("operationState") or {}):
        state = {**(made.get("operationState") or {}), **_given(operation, "phase", "startedAt")}
        for key in ("message", "finishedAt"):
            state.pop(key, None)
        state |= _given(operation, "message", "finishedAt")
        state.setdefault("operation", {})
        rows = [_row(one) for one in report.get("failed") or () if one.get("reason") in (*_FAILED, "SyncFailed")]
        state["syncResult"] = {"revision": operation.get("revision", ""), **({"resources": rows} if rows else {})}
        made["operationState"] = state
    health = report.get("health") or {}
    if health.get("status"):
        kept = made.get("health") or {}
        made["health"] = {**{key: one for key, one in kept.items() if key != "message"}, **_given(health, "message")}
    before = made.get("conditions") or ()
    mine = [one for one in before if one.get("type") in OF_HUB]
    conditions = [_condition(one) for one in report.get("conditions") or () if one.get("type") not in OF_HUB]
    where_to_look = [one for one in before if one.get("type") == WHERE_TO_LOOK]
    _put_list(made, "conditions", [*mine, *(conditions or where_to_look)])
    _put_list(made, "resources", [_resource(one) for one in report.get("resources") or ()])
    return made


def _is_older(operation: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Return whether the feedback of the work names a later operation already: its report is on the way."""
    return str(operation.get("startedAt") or "") < str(known.get("startedAt") or "")


def _given(values: Mapping[str, Any], *keys: str) -> Obj:
    return {key: values[key] for key in keys if values.get(key)}


def _put_list(status: Obj, key: str, values: list[Obj]) -> None:
    if values:
        status[key] = values
    else:
        status.pop(key, None)


def _condition(one: Mapping[str, Any]) -> Obj:
    return {"type": str(one.get("type") or ""), "message": str(one.get("message") or ""), **_time(one)}


def _time(one: Mapping[str, Any]) -> Obj:
    return _given(one, "lastTransitionTime")


def _row(one: Mapping[str, Any]) -> Obj:
    """Return an entry of ``syncResult.resources``; its message is the one of the cluster."""
    made = {key: str(one.get(key) or "") for key in ("group", "version", "kind", "namespace", "name")}
    phase = {"hookPhase": one["reason"]} if one.get("reason") in _FAILED else {}
    return {**made, "status": "SyncFailed", "message": str(one.get("message") or ""), **phase}


def _resource(one: Mapping[str, Any]) -> Obj:
    made = _given(one, "group", "version", "kind", "namespace", "name", "status")
    return {**made, "health": {"status": one["health"]}} if one.get("health") else made


# -- the report of a set -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failed:
    """What went wrong with an Application: the identities of resources, and an entry with the errors (None: none)."""

    resources: tuple[Obj, ...] = ()
    entry: Obj | None = None


def failed_of(report: Obj) -> Failed:
    """Return what an ApplicationReport says went wrong."""
    content = report.get("report") or {}
    said = errors_of(content)
    entry = {"cluster": namespace_of(report), "conditions": said} if said else None
    return Failed(_identities(content.get("failed") or ()), entry)


def collected_from(first: Obj | None, failed: Iterable[Failed]) -> Collected:
    """Return what ApplicationReports add to the report of their set: the resources of the first cluster and all that
    failed in any, and the errors of each cluster. ``first``: the report of the first cluster; ``failed``: of all, by
    cluster."""
    content = (first.get("report") or {}) if first is not None else {}
    resources = {tuple(one.values()): one for one in _identities(content.get("resources") or ())}
    conditions: list[Obj] = []
    for each in failed:
        for one in each.resources:
            resources.setdefault(tuple(one.values()), one)
        if each.entry is not None:
            conditions.append(each.entry)
    ordered = sorted(resources.values(), key=lambda one: (one["name"], one["kind"]))
    return Collected(tuple(ordered), tuple(conditions))


def _identities(listed: Iterable[Mapping[str, Any]]) -> tuple[Obj, ...]:
    return tuple(_identity(one) for one in listed if one.get("kind") not in _NOT_LISTED)


def _identity(one: Mapping[str, Any]) -> Obj:
    group, version = str(one.get("group") or ""), str(one.get("version") or "")
    named = {key: str(one.get(key) or "") for key in ("kind", "name", "namespace")}
    return {"apiVersion": f"{group}/{version}" if group else version, **named}


def errors_of(report: Mapping[str, Any]) -> list[Obj]:
    """Return the errors of an Application as conditions: its own, that of a failed operation, and each resource that
    failed, unless another one has the text already."""
    found = [
        (str(one.get("type")), str(one.get("message") or ""))
        for one in report.get("conditions") or ()
        if "Error" in str(one.get("type")) or "Warning" in str(one.get("type"))
    ]
    operation = report.get("operation") or {}
    if operation.get("phase") in _FAILED:
        found.append(("OperationError", str(operation.get("message") or "")))
    for one in report.get("failed") or ():
        what = "/".join(part for part in (str(one.get("namespace") or ""), str(one.get("name") or "")) if part)
        message = str(one.get("message") or one.get("reason") or "")
        if (first := deepest(causes_from(one.get("causes")))) is not None:
            message = f"{message}; {first.subject} {first.state}: {first.message}"
        if not any(message in text for _, text in found):
            found.append(("ResourceError", f"{one.get('kind')} {what}: {message}"))
    return [{"type": kind, "message": _cut(text)} for kind, text in found if text]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


# -- rights ------------------------------------------------------------------------------------------------------------

_RBAC: Final = "rbac.authorization.k8s.io"
RIGHTS: Final = "syncline:reports"
"""Name of the Role and the RoleBinding in the namespace of each cluster."""
_GRANTED: Final = (
    ("applicationreports", "create", "delete", "get", "list", "patch", "watch"),
    (QUERIES, "get", "list", "watch"),
    (f"{QUERIES}/status", "patch"),
    ("contenttargets", "create", "get", "list", "patch", "watch"),
    ("applicationcontents", "get", "list", "watch"),
    ("contentchunks", "get"),
)
"""Resources of ``syncline.dev`` in the namespace of a cluster, each with what its agent may do with it."""
RULES: Final[list[Obj]] = [
    {"apiGroups": ["syncline.dev"], "resources": [resource], "verbs": list(verbs)} for resource, *verbs in _GRANTED
]


def report_rights(cluster: str) -> tuple[Obj, Obj]:
    """Return the one Role that an agent has beyond upstream's, and its binding (decision 42)."""
    metadata = {"name": RIGHTS, "namespace": cluster, "labels": {CLUSTER_NAME: cluster}}
    version = f"{_RBAC}/v1"
    group = {"kind": "Group", "apiGroup": _RBAC, "name": f"system:open-cluster-management:{cluster}"}
    return (
        {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": RULES},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": RIGHTS},
            "subjects": [group],
        },
    )
