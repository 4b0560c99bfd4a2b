"""Plans an import: the step for each object of the export and of the cluster; pure. Rules: Argo CD ``admin import``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from syncline.argo.parameters import enables_namespace
from syncline.kube.objects import Obj, ObjectRef, annotations_of, labels_of, meta, name_of, namespace_of

CONFIG_MAPS = ("argocd-cm", "argocd-rbac-cm", "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm")
KINDS = ("ConfigMap", "Secret", "AppProject", "Application", "ApplicationSet")
ANYWHERE = ("Application", "ApplicationSet")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TRACKING = ("argocd.argoproj.io/tracking-id", "app.kubernetes.io/instance")
PASSING = ("reconciledAt", "observedAt")
"""Fields of a status that an import ignores."""


class Change(StrEnum):
    CREATE = "created"
    UPDATE = "updated"
    KEEP = "unchanged"
    SKIP = "skipped"
    PRUNE = "pruned"
    LEAVE = "needs pruning"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    control_namespace: str = "argocd"
    namespaces: tuple[str, ...] = ()
    """Further namespaces of Applications: names, globs, ``/expressions/``."""
    prune: bool = False
    stop_operation: bool = False
    ignore_tracking: bool = False
    skip_label: str = ""
    """``KEY=VALUE``: objects with this label are neither written nor deleted."""


@dataclass(frozen=True, slots=True)
class Step:
    change: Change
    obj: Obj
    """The object to write, or the live one."""


def belongs(obj: Obj) -> bool:
    """Return whether a ConfigMap or Secret belongs to Argo CD's settings."""
    if obj.get("kind") == "ConfigMap":
        return name_of(obj) in CONFIG_MAPS
    notes = annotations_of(obj)
    return (
        name_of(obj) == "argocd-secret"
        or "argocd.argoproj.io/secret-type" in labels_of(obj)
        or notes.get("managed-by") == "argocd.argoproj.io"
    )


def exported(obj: Obj, control_namespace: str) -> Obj:
    """Return ``obj`` as exported: without the server's fields."""
    known = meta(obj)
    kept = {key: known[key] for key in ("name", "labels", "annotations", "finalizers") if known.get(key)}
    if namespace_of(obj) != control_namespace:
        kept["namespace"] = namespace_of(obj)
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept} | {
        key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")
    }


def plan_import(wanted: Iterable[Obj], live: Iterable[Obj], options: ImportOptions) -> list[Step]:
    """Return the steps in order: objects of the export, then live objects that it lacks."""
    there = {_ref(one): one for one in live}
    steps: list[Step] = []
    for obj in wanted:
        placed = obj if namespace_of(obj) else obj | {"metadata": {**meta(obj), "namespace": options.control_namespace}}
        if placed["kind"] in ANYWHERE and not enables_namespace(
            namespace_of(placed), options.control_namespace, options.namespaces
        ):
            continue
        found = there.pop(_ref(placed), None)
        steps.append(_step(placed, found, options))
    for obj in there.values():
        change = Change.SKIP if _skipped(obj, options) else Change.PRUNE if options.prune else Change.LEAVE
        # Settings are changed, never deleted.
        steps.append(Step(Change.LEAVE if change is Change.PRUNE and obj["kind"] == "ConfigMap" else change, obj))
    return steps


def _ref(obj: Obj) -> ObjectRef:
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return ObjectRef(group, str(obj["kind"]), namespace_of(obj), name_of(obj))


def _skipped(obj: Obj, options: ImportOptions) -> bool:
    key, equals, value = options.skip_label.partition("=")
    return bool(equals) and labels_of(obj).get(key) == value


def _step(obj: Obj, live: Obj | None, options: ImportOptions) -> Step:
    if _skipped(obj, options):
        return Step(Change.SKIP, obj)
    if live is None:
        return Step(Change.CREATE, obj)
    if options.ignore_tracking:
        obj = _tracked_as(obj, live)
    stops = options.stop_operation and bool(live.get("operation"))
    if _said(obj) == _said(live) and not stops:
        return Step(Change.KEEP, live)
    return Step(Change.UPDATE, _updated(obj, live, stops))


def _tracked_as(obj: Obj, live: Obj) -> Obj:
    """Return ``obj`` with the live object's tracking data, if both have some."""
    metadata: dict[str, Any] = dict(meta(obj))
    for field, key in zip(("annotations", "labels"), TRACKING, strict=True):
        now, before = metadata.get(field) or {}, meta(live).get(field) or {}
        if key in now and key in before:
            metadata[field] = {**now, key: before[key]}
    return obj | {"metadata": metadata}


def _said(obj: Obj) -> Mapping[str, Any]:
    """Return the fields that an import compares."""
    notes = {key: value for key, value in annotations_of(obj).items() if key != LAST_APPLIED}
    said: dict[str, Any] = {
        "annotations": notes,
        "labels": dict(labels_of(obj)),
        "finalizers": list(meta(obj).get("finalizers") or []),
        "data": obj.get("data") or {},
        "spec": obj.get("spec") or {},
    }
    if obj["kind"] == "Application":
        said["status"] = {key: value for key, value in (obj.get("status") or {}).items() if key not in PASSING}
    return said


def _updated(obj: Obj, live: Obj, stops: bool) -> Obj:
    """Return the live object with spec, data, labels, annotations and finalizers of the export."""
    metadata: dict[str, Any] = dict(meta(live))
    for field in ("labels", "annotations", "finalizers"):
        metadata.pop(field, None)
        if meta(obj).get(field):
            metadata[field] = meta(obj)[field]
    fields = {key: obj[key] for key in ("data", "spec", "status") if key in obj}
    made = live | {"metadata": metadata} | fields
    return {key: value for key, value in made.items() if key != "operation"} if stops else made
