"""Validate ObjectMeta: names, labels, annotations, owners, finalizers, and their updates.

Every strategy of this package calls it, and the registry for custom resources. Objects are only read. Source:
Kubernetes apimachinery ``pkg/api/validation/objectmeta.go`` and ``registry/rest``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import forbidden, go_text, invalid, required
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

ANNOTATIONS_BYTES = 256 * 1024
"""Total size limit of an object's annotation keys and values."""

STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"

NameCheck = Callable[[str], list[str]]
"""Returns the problems of a name; called with the prefix rule for generateName."""

_UNFINISHED: dict[NameCheck, NameCheck] = {
    names.dns_label: names.prefixed_dns_label,
    names.dns_label_1035: names.prefixed_dns_label_1035,
    names.dns_subdomain: names.prefixed_dns_subdomain,
}


def metadata_causes(
    obj: Obj, name_check: NameCheck, *, namespaced: bool, path: str = "metadata", custom: bool = False
) -> list[FieldCause]:
    """Validate an object's metadata (ValidateObjectMeta). ``custom``: a custom resource, whose finalizers need no
    domain (they get a warning instead)."""
    meta = obj.get("metadata") or {}
    causes: list[FieldCause] = []
    if meta.get("generateName"):
        check = _UNFINISHED.get(name_check, name_check)
        causes += [
            invalid(f"{path}.generateName", meta["generateName"], problem) for problem in check(meta["generateName"])
        ]
    if not meta.get("name"):
        causes.append(required(f"{path}.name", "name or generateName is required"))
    else:
        causes += [invalid(f"{path}.name", meta["name"], problem) for problem in name_check(meta["name"])]
    if namespaced:
        causes += _namespace_causes(meta, path)
    elif meta.get("namespace"):
        causes.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    if (meta.get("generation") or 0) < 0:
        causes.append(invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0"))
    causes += label_causes(meta.get("labels"), f"{path}.labels")
    causes += annotation_causes(meta.get("annotations"), f"{path}.annotations")
    causes += _owner_causes(meta.get("ownerReferences"), f"{path}.ownerReferences")
    return causes + _finalizer_causes(meta.get("finalizers"), f"{path}.finalizers", custom=custom)


def _namespace_causes(meta: Mapping[str, Any], path: str) -> list[FieldCause]:
    namespace = meta.get("namespace")
    if not namespace:
        return [required(f"{path}.namespace")]
    return [invalid(f"{path}.namespace", namespace, problem) for problem in names.dns_label(namespace)]


def label_causes(labels: Any, path: str) -> list[FieldCause]:
    """Validate keys and values of labels, ordered by key."""
    if not isinstance(labels, dict):
        return []
    if not any(names.qualified_name(key) or names.label_value(str(value)) for key, value in labels.items()):
        return []
    causes: list[FieldCause] = []
    for key, value in sorted(labels.items()):
        causes += [invalid(path, key, problem) for problem in names.qualified_name(key)]
        causes += [invalid(path, value, problem) for problem in names.label_value(str(value))]
    return causes


def annotation_causes(annotations: Any, path: str) -> list[FieldCause]:
    """Validate annotation keys (in any case) and the total size."""
    if not isinstance(annotations, dict):
        return []
    causes = [
        invalid(path, key, problem) for key in sorted(annotations) for problem in names.qualified_name(key.lower())
    ]
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_BYTES:
        causes.append(
            FieldCause("FieldValueTooLong", f"Too long: may not be more than {ANNOTATIONS_BYTES} bytes", path)
        )
    return causes


def _owner_causes(owners: Any, path: str) -> list[FieldCause]:
    """Validate owners; as in Kubernetes, field paths have no index."""
    causes: list[FieldCause] = []
    controllers: list[Obj] = []
    for owner in owners if isinstance(owners, list) else ():
        if not owner.get("apiVersion") or str(owner["apiVersion"]).count("/") > 1:
            causes.append(invalid(f"{path}.apiVersion", owner.get("apiVersion", ""), "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                causes.append(invalid(f"{path}.{field}", "", "must not be empty"))
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            causes.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller") is True:
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = controllers[0], controllers[1]
        why = (
            f'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first.get('kind')}/{first.get('name')} and {second.get('kind')}/{second.get('name')}"
        )
        causes.append(invalid(path, owners, why))
    return causes


def _finalizer_causes(finalizers: Any, path: str, *, custom: bool) -> list[FieldCause]:
    causes: list[FieldCause] = []
    listed = finalizers if isinstance(finalizers, list) else []
    for index, name in enumerate(listed):
        causes += [invalid(path, name, problem) for problem in names.qualified_name(name)]
        if not custom and "/" not in name and name not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid(f"{path}[{index}]", name, why))
    if ORPHAN in listed and FOREGROUND in listed:
        why = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        causes.append(invalid(path, listed, why))
    return causes


def finalizer_warnings(new: Obj, old: Obj | None) -> list[str]:
    """Return the API's warnings about new finalizers of custom resources without a domain."""
    known = set((old or {}).get("metadata", {}).get("finalizers") or ())
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{_with_path(name)} to avoid '
        "accidental conflicts with other finalizer writers"
        for name in (new.get("metadata") or {}).get("finalizers") or ()
        if "/" not in name and name not in known and name not in STANDARD_FINALIZERS
    ]


def _with_path(name: str) -> str:
    return " including a path (/)" if "." in name else ""


_KEPT = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def metadata_update_causes(new: Obj, old: Obj, path: str = "metadata") -> list[FieldCause]:
    """Validate an update of metadata (ValidateObjectMetaUpdate); labels and annotations are checked again."""
    fresh, before = new.get("metadata") or {}, old.get("metadata") or {}
    if _is_as_stored(fresh, before):
        return []
    causes = _new_finalizer_causes(fresh, before, path)
    for key in _KEPT:
        if fresh.get(key) != before.get(key):
            causes.append(invalid(f"{path}.{key}", fresh.get(key), "field is immutable"))
    if (fresh.get("generation") or 0) < (before.get("generation") or 0):
        causes.append(invalid(f"{path}.generation", fresh.get("generation") or 0, "must not be decremented"))
    if not fresh.get("resourceVersion", before.get("resourceVersion")):
        causes.append(invalid(f"{path}.resourceVersion", "", "must be specified for an update"))
    causes += label_causes(fresh.get("labels"), f"{path}.labels")
    causes += annotation_causes(fresh.get("annotations"), f"{path}.annotations")
    return causes + _owner_causes(fresh.get("ownerReferences"), f"{path}.ownerReferences")


def _is_as_stored(fresh: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether nothing that these checks read has changed since they passed."""
    return bool(fresh.get("resourceVersion")) and all(fresh.get(key) == before.get(key) for key in _CHECKED)


_CHECKED = (*_KEPT, "generateName", "generation", "labels", "annotations", "ownerReferences", "finalizers")


def _new_finalizer_causes(fresh: Mapping[str, Any], before: Mapping[str, Any], path: str) -> list[FieldCause]:
    """Refuse new finalizers of a terminating object."""
    if not fresh.get("deletionTimestamp"):
        return []
    added = sorted(set(fresh.get("finalizers") or ()) - set(before.get("finalizers") or ()))
    if not added:
        return []
    shown = "[]string{" + ", ".join(go_text(name) for name in added) + "}"
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
    return [forbidden(f"{path}.finalizers", why)]


def common_update_causes(new: Obj, old: Obj, *, namespaced: bool, custom: bool = False) -> list[FieldCause]:
    """Run the registry's checks of every update before the kind's own, so that some causes appear twice
    (``rest.BeforeUpdate``)."""
    if _is_as_stored(new.get("metadata") or {}, old.get("metadata") or {}):
        return []
    return [
        *metadata_causes(new, names.path_segment, namespaced=namespaced, custom=custom),
        *metadata_update_causes(new, old),
    ]
