"""Tracking data, which ties an object to the application that manages it.

Used by observation (the owner of a live object), comparison (marking targets) and pruning (is it ours?). Pure; objects
are never changed: marked copies share everything but metadata. Rules: Argo CD ``util/argo/resource_tracking`` and
``controller/state.go`` (reference argocd-sync §6.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from syncline.kube.objects import (
    Obj,
    annotations_of,
    gvk_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
)

TRACKING_ID = "argocd.argoproj.io/tracking-id"
INSTALLATION_ID = "argocd.argoproj.io/installation-id"
INSTANCE_LABEL = "app.kubernetes.io/instance"
MAX_LABEL = 63
"""Longest label value in Kubernetes, in bytes."""
LABEL_END = re.compile(rb"[A-Za-z0-9]")


class TrackingError(ValueError):
    """A tracking value cannot be parsed or written."""


class TrackingMethod(StrEnum):
    """``argocd-cm`` key ``application.resourceTrackingMethod``; any other value acts like annotation."""

    ANNOTATION = "annotation"
    LABEL = "label"
    ANNOTATION_AND_LABEL = "annotation+label"
    UNSET = ""
    UNKNOWN = "unknown"

    @classmethod
    def parse(cls, text: str) -> TrackingMethod:
        return cls(text) if text in {str(m) for m in cls} else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Instance:
    """A parsed tracking id: the application and the object that it was written for."""

    app: str
    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.app}:{self.group}/{self.kind}:{self.namespace}/{self.name}"


def parse_instance(text: str) -> Instance:
    """Parse a tracking id, the inverse of ``str(Instance)``; names may contain colons. Raises TrackingError."""
    parts = text.split(":", 2)
    kind = parts[1].split("/") if len(parts) == 3 else []
    name = parts[2].split("/") if len(parts) == 3 else []
    if len(kind) != 2 or len(name) != 2:
        raise TrackingError(
            "wrong resource tracking format, should be <application-name>:<group>/<kind>:<namespace>/<name>"
        )
    return Instance(parts[0], kind[0], kind[1], name[0], name[1])


def truncate_label(value: str) -> str:
    """Cut to at most 63 bytes, ending in an ASCII letter or digit. Raises TrackingError if nothing is left."""
    raw = value.encode()
    if len(raw) <= MAX_LABEL:
        return value
    raw = raw[:MAX_LABEL]
    while raw and not LABEL_END.fullmatch(raw[-1:]):
        raw = raw[:-1]
    if not raw:
        raise TrackingError("unable to truncate label to not end with a special character")
    return raw.decode("utf-8", "ignore")


def instance_name(app: Obj, control_namespace: str) -> str:
    """Return ``name``, or ``namespace_name`` outside the control namespace."""
    namespace = namespace_of(app)
    return name_of(app) if namespace in ("", control_namespace) else f"{namespace}_{name_of(app)}"


def _kept(obj: Obj, field: str) -> dict[str, str]:
    """Return a copy of the labels or annotations. Raises TrackingError if it is no map of strings, as a user's data
    would be lost."""
    found = meta(obj).get(field)
    if found is None:
        return {}
    gvk = gvk_of(obj)
    place = f"{gvk.group}/{gvk.version}, Kind={gvk.kind} {namespace_of(obj)}/{name_of(obj)}"
    lead = f"failed to get {field} from target object {place}: .metadata.{field} accessor error: "
    if not isinstance(found, dict):
        raise TrackingError(f"{lead}{_go(found)}, expected map[string]interface{{}}")
    for key, value in found.items():
        if not isinstance(value, str):
            raise TrackingError(
                f'{lead}contains non-string value in the map under key "{key}": {_go(value)}, expected string'
            )
    return dict(found)


_GO_TYPES = {"bool": "bool", "int": "int64", "float": "float64", "str": "string", "NoneType": "<nil>"}
_GO_TYPES |= {"list": "[]interface {}", "dict": "map[string]interface {}"}


def _go(value: object) -> str:
    """Return a value and its type as Go prints them, without the content of lists and maps."""
    plain = {True: "true", False: "false", None: "<nil>"}
    shown = plain[value] if value is None or isinstance(value, bool) else value
    kind = _GO_TYPES[type(value).__name__]
    return f"{kind if isinstance(value, (dict, list)) else shown} is of the type {kind}"


def _with(obj: Obj, field: str, found: dict[str, str]) -> Obj:
    """Return a copy with these labels or annotations; an empty map is omitted."""
    metadata = {key: value for key, value in meta(obj).items() if key != field}
    return obj | {"metadata": metadata | ({field: found} if found else {})}


def _without(obj: Obj, field: str, *keys: str) -> Obj:
    """Return the object without the keys; the same object if it has none of them."""
    found = _kept(obj, field)
    left = {key: value for key, value in found.items() if key not in keys}
    return obj if len(left) == len(found) else _with(obj, field, left)


@dataclass(frozen=True, slots=True)
class Tracking:
    """Settings of tracking, from ``argocd-cm``."""

    method: TrackingMethod = TrackingMethod.ANNOTATION
    label_key: str = INSTANCE_LABEL
    installation_id: str = ""

    @property
    def _annotates(self) -> bool:
        return self.method is not TrackingMethod.LABEL

    @property
    def _labels(self) -> bool:
        return self.method in (TrackingMethod.LABEL, TrackingMethod.ANNOTATION_AND_LABEL)

    def instance_of_app(self, app: Obj, control_namespace: str) -> str:
        return instance_name(app, control_namespace)

    def stamp(self, obj: Obj, app: str, destination_namespace: str) -> Obj:
        """Return ``obj`` with the tracking data of ``app``. Raises TrackingError."""
        if self._annotates:
            gvk = gvk_of(obj)
            annotations = _kept(obj, "annotations")
            annotations.pop(INSTALLATION_ID, None)
            if self.installation_id:
                annotations[INSTALLATION_ID] = self.installation_id
            namespace = namespace_of(obj) or destination_namespace
            annotations[TRACKING_ID] = str(Instance(app, gvk.group, gvk.kind, namespace, name_of(obj)))
            obj = _with(obj, "annotations", annotations)
        if self._labels:
            obj = self._label(obj, app if self.method is TrackingMethod.LABEL else truncate_label(app))
        return obj

    def _label(self, obj: Obj, value: str) -> Obj:
        try:
            made = _with(obj, "labels", _kept(obj, "labels") | {self.label_key: value})
        except TrackingError as error:
            raise TrackingError(f"failed to set app instance label: {error}") from error
        return _labelled_template(made, value) if self.label_key == LEGACY_LABEL else made

    def unstamp(self, obj: Obj) -> Obj:
        """Return ``obj`` without tracking data. Raises TrackingError."""
        if self._annotates:
            obj = _without(obj, "annotations", TRACKING_ID, INSTALLATION_ID)
        return _without(obj, "labels", INSTANCE_LABEL) if self._labels else obj

    def instance(self, obj: Obj) -> Instance | None:
        """Return the tracking id of an object; None if it has none, it is invalid or of another installation, or labels
        decide."""
        if self.method not in (TrackingMethod.ANNOTATION, TrackingMethod.ANNOTATION_AND_LABEL):
            return None
        return self._read(obj) if self._is_installation(obj) else None

    def _is_installation(self, obj: Obj) -> bool:
        return not self.installation_id or annotations_of(obj).get(INSTALLATION_ID) == self.installation_id

    def _read(self, obj: Obj) -> Instance | None:
        try:
            return parse_instance(annotations_of(obj).get(TRACKING_ID, ""))
        except TrackingError:
            return None

    def app_name(self, obj: Obj) -> str:
        """Return the application in an object's tracking data; empty if none (of this installation)."""
        if self.method is TrackingMethod.LABEL:
            return labels_of(obj).get(self.label_key, "")
        found = self._read(obj)
        return found.app if found is not None and self._is_installation(obj) else ""

    def is_copied(self, obj: Obj) -> bool:
        """Return whether the object's tracking id describes another one: who made it copied the annotations of that."""
        found = self.instance(obj)
        return found is not None and not _describes(found, obj)

    def is_self_referenced(self, app: str, live: Obj | None, target: Obj | None) -> bool:
        """Return False for a copy: a live object whose tracking id describes another object (behaviour 64)."""
        if live is None or self.method is TrackingMethod.LABEL:
            return True
        if target is not None:
            gvk = gvk_of(target)
            return _describes(Instance(app, gvk.group, gvk.kind, namespace_of(target), name_of(target)), live)
        found = self.instance(live)
        return found is None or _describes(found, live)

    def normalized(self, target: Obj, live: Obj) -> Obj:
        """Return the live object with tracking data like the target's if only the tracking method changed, so that this
        alone is no difference."""
        if self.method in (TrackingMethod.LABEL, TrackingMethod.UNSET):
            return live
        if not labels_of(live).get(self.label_key) or is_definition(live):
            return live
        if not annotations_of(live).get(TRACKING_ID):
            wanted = annotations_of(target).get(TRACKING_ID, "")
            live = _with(live, "annotations", annotations_of(live) | {TRACKING_ID: wanted})
        if not labels_of(target).get(self.label_key):
            live = _without(live, "labels", self.label_key)
        return live


def is_definition(obj: Obj) -> bool:
    """Return whether this is a CRD: those never carry tracking data, so they are never pruned."""
    gvk = gvk_of(obj)
    return (gvk.group, gvk.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition")


def _describes(found: Instance, live: Obj) -> bool:
    gvk, namespace = gvk_of(live), namespace_of(live)
    same_place = found.name == name_of(live) and (not namespace or found.namespace == namespace)
    return same_place and (found.group, found.kind) == (gvk.group, gvk.kind)


LEGACY_LABEL = "applications.argoproj.io/app-name"
"""An old label key; pods carry it as well."""
_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
_UNSELECTED = ("apps/v1beta1", "extensions/v1beta1")
"""API versions in which the selector of a workload defaults to all labels of its pods."""


def _labelled_template(obj: Obj, value: str) -> Obj:
    """Add the label to the pod template, and write out the selector that Kubernetes would derive from it."""
    gvk = gvk_of(obj)
    workload = gvk.group in ("apps", "extensions") and gvk.kind in _WORKLOADS
    if not workload and (gvk.group, gvk.kind) != ("batch", "Job"):
        return obj
    spec = dict(obj.get("spec") or {})
    template = dict(spec.get("template") or {})
    metadata = dict(template.get("metadata") or {})
    labels = dict(metadata.get("labels") or {})
    spec["template"] = template | {"metadata": metadata | {"labels": labels | {LEGACY_LABEL: value}}}
    if workload and obj.get("apiVersion") in _UNSELECTED and not spec.get("selector"):
        own = {key: text for key, text in labels.items() if key != LEGACY_LABEL}
        spec["selector"] = {"matchLabels": own}
    return obj | {"spec": spec}
