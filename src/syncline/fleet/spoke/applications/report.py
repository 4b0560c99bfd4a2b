"""The ApplicationReport of an Application that a work brought to a cluster; pure. :func:`reports_of`.

Feedback of works carries five values. A report carries what people need when something failed: the message of the
operation, each resource that failed with its message, conditions, and the resources with their health. Nothing of the
manifests is in it, so no value of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from syncline.argo.application import RELEASE
from syncline.fleet.pull.reporting.parts import has_room_for_parts, in_parts, part_name
from syncline.fleet.spoke.applications.looking import Seen
from syncline.kube.kinds.syncline import MAX_MESSAGE, MAX_PARTS, MAX_REPORTED, MAX_WAITS, REPORT
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of, namespace_of

_IDENTITY: Final = ("group", "version", "kind", "namespace", "name")
_BAD_PHASES: Final = ("Failed", "Error")
_BAD_HEALTH: Final = ("Degraded", "Missing")


def reports_of(app: Obj, work: Obj, seen: Mapping[ObjectRef, Seen] | None = None) -> list[Obj]:
    """Return the report of an Application on the cluster as its parts, mostly one. ``work``: the ManifestWork on the
    hub that brought it, which owns the report; ``seen``: what the agent found at resources that are not well."""
    content = content_of(app)
    content["failed"] = _with_causes(content, seen or {})
    most = MAX_PARTS if has_room_for_parts(name_of(work)) else 1
    found = in_parts({key: value for key, value in content.items() if value}, parts=most)
    return [_report(work, number, one) for number, one in enumerate(found, 1)]


def _report(work: Obj, number: int, content: Obj) -> Obj:
    owner = {"apiVersion": work["apiVersion"], "kind": work["kind"], "name": name_of(work)}
    metadata = {
        "name": part_name(name_of(work), number),
        "namespace": namespace_of(work),
        "ownerReferences": [{**owner, "uid": work["metadata"]["uid"]}],
    }
    return {"apiVersion": REPORT.api_version, "kind": REPORT.kind, "metadata": metadata, "report": content}


def _with_causes(content: Obj, seen: Mapping[ObjectRef, Seen]) -> list[Obj]:
    """Return what failed, with causes, and what is under way and can't get on."""
    failed = [dict(one) for one in content.get("failed") or ()]
    known = {_key(one): one for one in failed}
    healths = {_key(one): one for one in content.get("resources") or ()}
    for ref, one in seen.items():
        entry = known.get(tuple(ref))
        if entry is None and one.blocked and (row := healths.get(tuple(ref))) is not None:
            entry = {key: row[key] for key in _IDENTITY if key in row} | {"reason": str(row.get("health") or "")}
            failed.append(entry)
        if entry is not None and one.causes:
            entry["causes"] = list(one.causes)
    return failed


def content_of(app: Obj) -> Obj:
    """Return what the status of any Application says, in the fields of a report, without the bounds of an object and
    without empty fields."""
    status: Obj = app.get("status") or {}
    operation: Obj = status.get("operationState") or {}
    content: Obj = {
        "application": {"namespace": namespace_of(app), "name": name_of(app)},
        "release": str(annotations_of(app).get(RELEASE) or "")[:64],
        "stale": _is_stale(app),
        "health": _texts(status.get("health"), ("status", "message", "lastTransitionTime")),
        "sync": _texts(status.get("sync"), ("status", "revision")),
        "operation": _operation(operation),
        "conditions": [
            _texts(one, ("type", "message", "lastTransitionTime")) for one in _dicts(status.get("conditions"))
        ][:100],
        "waits": _waits(status),
        "failed": _failed(status, operation),
        "resources": [_resource(one) for one in _dicts(status.get("resources"))],
    }
    return {key: value for key, value in content.items() if value}


def _is_stale(app: Obj) -> bool:
    """Return whether the controllers of the cluster have compared another source or destination than the spec has."""
    spec, compared = app.get("spec"), dig(app, "status", "sync", "comparedTo")
    if not isinstance(spec, dict) or not isinstance(compared, dict):
        return not isinstance(compared, dict)
    asked, seen = (dig(one, "destination") or {} for one in (spec, compared))
    if any(asked[key] != value for key, value in seen.items() if value and asked.get(key)):
        return True  # a destination by name may have got its server there
    keys = ("sources",) if spec.get("sources") else ("source",)
    return any(key in compared and compared[key] != spec.get(key) for key in keys) or not any(
        key in compared for key in keys
    )


def _dicts(value: Any) -> list[Obj]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: Any, keys: Iterable[str]) -> Obj:
    """Return the fields that are text, cut at the bound of the kind."""
    found = ((key, value.get(key)) for key in keys) if isinstance(value, dict) else ()
    return {key: text[:MAX_MESSAGE] for key, text in found if isinstance(text, str) and text}


def _operation(operation: Obj) -> Obj:
    made = _texts(operation, ("phase", "message", "startedAt", "finishedAt"))
    revision = dig(operation, "syncResult", "revision")
    return {**made, "revision": revision[:MAX_MESSAGE]} if isinstance(revision, str) and revision else made


def _resource(one: Obj) -> Obj:
    health = _texts(one.get("health"), ("status",)).get("status")
    made = _texts(one, (*_IDENTITY, "status"))
    return {**made, "health": health} if health else made


def _waits(status: Obj) -> list[Obj]:
    """Return the resources that are under way and say for what they wait."""
    going = [one for one in _dicts(status.get("resources")) if dig(one, "health", "status") == "Progressing"]
    said = [{**_texts(one, _IDENTITY), **_texts(one.get("health"), ("message",))} for one in going[:MAX_REPORTED]]
    return [one for one in said if "message" in one][:MAX_WAITS]


def _failed(status: Obj, operation: Obj) -> list[Obj]:
    """Return what failed in the last operation, then what is not well, each resource once."""
    found: dict[tuple[str, ...], Obj] = {}
    for one in _dicts(dig(operation, "syncResult", "resources")):
        if one.get("status") == "SyncFailed" or one.get("hookPhase") in _BAD_PHASES:
            reason = one.get("hookPhase") if one.get("hookPhase") in _BAD_PHASES else one.get("status")
            found[_key(one)] = {**_texts(one, (*_IDENTITY, "message")), "reason": str(reason)}
    for one in _dicts(status.get("resources")):
        health = _texts(one.get("health"), ("status", "message"))
        if health.get("status") in _BAD_HEALTH and _key(one) not in found:
            said = {"message": health["message"]} if "message" in health else {}
            found[_key(one)] = {**_texts(one, _IDENTITY), **said, "reason": health["status"]}
    return list(found.values())


def _key(one: Obj) -> tuple[str, ...]:
    return tuple(str(one.get(key) or "") for key in ("group", "kind", "namespace", "name"))
