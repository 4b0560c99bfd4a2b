"""Define the fields that a field selector may name, and the values they select.

List, watch and deletecollection call it. Fields and messages are those of Kubernetes' field label conversions per kind;
every other kind has only name and namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from syncline.kube.errors import BadRequest
from syncline.kube.objects import GVK, Obj, dig
from syncline.kube.selectors import FieldSelector

_NAME, _NAMESPACE = "metadata.name", "metadata.namespace"


@dataclass(frozen=True, slots=True)
class FieldLabels:
    """``paths`` maps a label to the field it reads; ``refusal`` is a format string with the label."""

    paths: Mapping[str, tuple[str, ...]]
    refusal: str
    computed: Mapping[str, Callable[[Obj], str]] = field(default_factory=dict)

    def check(self, selector: FieldSelector) -> None:
        """Raise BadRequest for a field that this kind does not support."""
        for label in selector.fields():
            if label not in self.paths and label not in self.computed:
                raise BadRequest(self.refusal.format(label))

    def matches(self, selector: FieldSelector, obj: Obj) -> bool:
        return selector.matches(lambda label: self.value(obj, label))

    def value(self, obj: Obj, label: str) -> str:
        compute = self.computed.get(label)
        if compute is not None:
            return compute(obj)
        found = dig(obj, *self.paths[label], default="")
        if isinstance(found, bool):
            return "true" if found else "false"
        return str(found)


def _paths(*labels: str) -> dict[str, tuple[str, ...]]:
    return {label: tuple(label.split(".")) for label in labels}


_PLAIN = '"{}" is not a known field selector: only "metadata.name", "metadata.namespace"'
_UNSUPPORTED = "field label not supported: {}"
_NOT_FOR_JOB = 'field label "{}" not supported for Job'


def _flag(*path: str) -> Callable[[Obj], str]:
    return lambda obj: "true" if dig(obj, *path) else "false"


def _count(*path: str) -> Callable[[Obj], str]:
    return lambda obj: str(dig(obj, *path, default=0))


_OBJECT_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_INVOLVED = _paths(*(f"involvedObject.{part}" for part in _OBJECT_FIELDS))
_REGARDING = {f"regarding.{part}": ("involvedObject", part) for part in _OBJECT_FIELDS}


def _event_source(obj: Obj) -> str:
    return str(dig(obj, "source", "component") or obj.get("reportingComponent") or "")


_EVENT_PATHS = _paths(_NAME, _NAMESPACE, "reason", "type")
_BY_KIND: dict[tuple[str, str], FieldLabels] = {
    ("", "Pod"): FieldLabels(
        _paths(
            _NAME,
            _NAMESPACE,
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        )
        | {"status.podIPs": ("status", "podIP")},
        _UNSUPPORTED,
        {"spec.hostNetwork": _flag("spec", "hostNetwork")},
    ),
    ("", "Node"): FieldLabels(_paths(_NAME), _UNSUPPORTED, {"spec.unschedulable": _flag("spec", "unschedulable")}),
    ("", "ReplicationController"): FieldLabels(
        _paths(_NAME, _NAMESPACE), _UNSUPPORTED, {"status.replicas": _count("status", "replicas")}
    ),
    ("", "Event"): FieldLabels(
        {**_EVENT_PATHS, **_INVOLVED, "reportingComponent": ("reportingComponent",)},
        _UNSUPPORTED,
        {"source": _event_source},
    ),
    ("events.k8s.io", "Event"): FieldLabels(
        {**_EVENT_PATHS, **_REGARDING, "reportingController": ("reportingComponent",)}, _UNSUPPORTED
    ),
    ("", "Namespace"): FieldLabels(_paths(_NAME, "status.phase"), _UNSUPPORTED),
    ("", "Secret"): FieldLabels(_paths(_NAME, _NAMESPACE, "type"), _UNSUPPORTED),
    ("", "Service"): FieldLabels(_paths(_NAME, _NAMESPACE, "spec.clusterIP", "spec.type"), _UNSUPPORTED),
    ("batch", "Job"): FieldLabels(
        _paths(_NAME, _NAMESPACE), _NOT_FOR_JOB, {"status.successful": _count("status", "succeeded")}
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): FieldLabels(_paths(_NAME, "spec.signerName"), _UNSUPPORTED),
}
_ANY = FieldLabels(_paths(_NAME, _NAMESPACE), _PLAIN)


def field_labels_for(gvk: GVK, *, custom: bool = False, selectable: tuple[str, ...] = ()) -> FieldLabels:
    """Return the labels of a kind; ``selectable`` are ``selectableFields`` of a custom resource version
    (``.spec.color``)."""
    if custom:
        return FieldLabels(_paths(_NAME, _NAMESPACE, *(path.lstrip(".") for path in selectable)), _UNSUPPORTED)
    return _BY_KIND.get((gvk.group, gvk.kind), _ANY)
