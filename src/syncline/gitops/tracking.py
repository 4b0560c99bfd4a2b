"""How an object is tied to the application that manages it.

Used by observation (whose is this live object?), comparison (stamp the targets) and pruning (is it really ours?). Pure;
objects are never changed, stamped copies share everything but metadata. Rules: Argo CD ``util/argo/resource_tracking``
and ``controller/state.go`` (reference argocd-sync §6.1).
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

__all__ = [
    "INSTALLATION_ID",
    "INSTANCE_LABEL",
    "TRACKING_ID",
    "Instance",
    "Tracking",
    "TrackingError",
    "TrackingMethod",
    "instance_name",
    "parse_instance",
    "truncate_label",
]

TRACKING_ID = "argocd.argoproj.io/tracking-id"
INSTALLATION_ID = "argocd.argoproj.io/installation-id"
INSTANCE_LABEL = "app.kubernetes.io/instance"
CRD_KIND = "CustomResourceDefinition"
MAX_LABEL = 63
"""Longest label value in Kubernetes, in bytes."""
LABEL_END = re.compile(rb"[A-Za-z0-9]")


class TrackingError(ValueError):
    """A tracking value that cannot be read or written."""


class TrackingMethod(StrEnum):
    """``argocd-cm`` key ``application.resourceTrackingMethod``; anything else acts like annotation."""

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
    """What a tracking id says: application and the object that it was written for."""

    app: str
    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.app}:{self.group}/{self.kind}:{self.namespace}/{self.name}"


def parse_instance(text: str) -> Instance:
    """Inverse of ``str(Instance)``; names may hold colons. Raises TrackingError."""
    parts = text.split(":", 2)
    kind = parts[1].split("/") if len(parts) == 3 else []
    name = parts[2].split("/") if len(parts) == 3 else []
    if len(kind) != 2 or len(name) != 2:
        raise TrackingError(
            "wrong resource tracking format, should be <application-name>:<group>/<kind>:<namespace>/<name>"
        )
    return Instance(parts[0], kind[0], kind[1], name[0], name[1])


def truncate_label(value: str) -> str:
    """At most 63 bytes, ending in an ASCII letter or digit. Raises TrackingError when nothing is left."""
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
    """``name``, or ``namespace_name`` outside the control-plane namespace."""
    namespace = namespace_of(app)
    return name_of(app) if namespace in ("", control_namespace) else f"{namespace}_{name_of(app)}"


def _with_metadata(obj: Obj, annotations: dict[str, str] | None, labels: dict[str, str] | None) -> Obj:
    """A copy with these maps; an empty map is left out."""
    metadata = dict(meta(obj))
    for key, value in (("annotations", annotations), ("labels", labels)):
        if value is None:
            continue
        metadata.pop(key, None)
        if value:
            metadata[key] = value
    return obj | {"metadata": metadata}


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
        """``obj`` marked as ``app``'s. CustomResourceDefinitions carry no mark; the comparison stamps none of them
        under any method, so that they are never pruned."""
        gvk = gvk_of(obj)
        definition = gvk.kind == CRD_KIND and gvk.group == "apiextensions.k8s.io"
        if definition and self.method is not TrackingMethod.ANNOTATION_AND_LABEL:
            return obj
        annotations, labels = dict(annotations_of(obj)), dict(labels_of(obj))
        if self._annotates:
            namespace = namespace_of(obj) or destination_namespace
            annotations[TRACKING_ID] = str(Instance(app, gvk.group, gvk.kind, namespace, name_of(obj)))
        if self._annotates:
            annotations.pop(INSTALLATION_ID, None)
            if self.installation_id:
                annotations[INSTALLATION_ID] = self.installation_id
        if self._labels:
            labels[self.label_key] = app if self.method is TrackingMethod.LABEL else truncate_label(app)
        return _with_metadata(obj, annotations, labels if self._labels else None)

    def unstamp(self, obj: Obj) -> Obj:
        """``obj`` without its marks."""
        annotations, labels = dict(annotations_of(obj)), dict(labels_of(obj))
        if self._annotates:
            annotations.pop(TRACKING_ID, None)
            annotations.pop(INSTALLATION_ID, None)
        if self._labels:
            labels.pop(INSTANCE_LABEL, None)
        return _with_metadata(obj, annotations, labels)

    def instance(self, obj: Obj) -> Instance | None:
        """The tracking id of an object; None without one, with an unreadable one, of another installation, or
        where labels decide."""
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
        """The application that an object belongs to by its marks, empty if none (of this installation)."""
        if self.method is TrackingMethod.LABEL:
            return labels_of(obj).get(self.label_key, "")
        found = self._read(obj)
        return found.app if found is not None and self._is_installation(obj) else ""

    def is_self_referenced(self, app: str, live: Obj | None, target: Obj | None) -> bool:
        """False for a copy: a live object whose tracking id describes another object (behaviour 64)."""
        if live is None or self.method is TrackingMethod.LABEL:
            return True
        if target is not None:
            gvk = gvk_of(target)
            return (gvk.group, gvk.kind, name_of(target)) == (gvk_of(live).group, gvk_of(live).kind, name_of(live))
        found = self._read(live)
        return found is None or _describes(found, live)

    def normalize(self, target: Obj, live: Obj) -> tuple[Obj, Obj]:
        """Both with equal marks where only the method of tracking changed, so that this alone is no difference."""
        if self.method in (TrackingMethod.LABEL, TrackingMethod.UNSET) or not annotations_of(target).get(TRACKING_ID):
            return target, live
        label = labels_of(live).get(self.label_key)
        if label is None:
            return target, live
        labels = dict(labels_of(live))
        annotations = dict(annotations_of(live))
        wanted = labels_of(target).get(self.label_key)
        if wanted is None:
            labels.pop(self.label_key)
        else:
            labels[self.label_key] = wanted
        annotations.setdefault(TRACKING_ID, annotations_of(target)[TRACKING_ID])
        return target, _with_metadata(live, annotations, labels)


def _describes(found: Instance, live: Obj) -> bool:
    gvk, namespace = gvk_of(live), namespace_of(live)
    same_place = found.name == name_of(live) and (not namespace or found.namespace == namespace)
    return same_place and (found.group, found.kind) == (gvk.group, gvk.kind)
