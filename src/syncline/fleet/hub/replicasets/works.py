"""The child works of a ManifestWorkReplicaSet: labels, content, comparison with the template, writes; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from syncline.base.action import Action
from syncline.control.plan import Create, Patch
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
    resource_version,
    uid_of,
)
from syncline.kube.patching.patches import create_merge_patch

SET_LABEL: Final = "work.open-cluster-management.io/manifestworkreplicaset"
"""``NAMESPACE.NAME`` of the set; its works are found by it."""
PLACEMENT_LABEL: Final = "work.open-cluster-management.io/placementname"
_CREATED: Final = "creationTimestamp"
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX, _MAX_NAME = 5, 63
"""Letters, length of the suffix, and longest name of Kubernetes' own generated names."""


def set_key(obj: Obj) -> str:
    """Return what the label of a set's works says."""
    return f"{namespace_of(obj)}.{name_of(obj)}"


def works_of_set(obj: Obj, works: Iterable[Obj]) -> tuple[Obj, ...]:
    """Return the works of a set among others."""
    return tuple(one for one in works if labels_of(one).get(SET_LABEL) == set_key(obj))


def work_of(obj: Obj, cluster: str, placement: str) -> Obj:
    """Return the work of a cluster: the template, with the labels of the set. Its name is generated, from the name of
    the set without a separator, as upstream's is."""
    return {
        "apiVersion": f"{MANIFEST_WORK.group}/{MANIFEST_WORK.version}",
        "kind": MANIFEST_WORK.kind,
        "metadata": {
            "generateName": name_of(obj),
            "namespace": cluster,
            "labels": {**labels_of(obj), SET_LABEL: set_key(obj), PLACEMENT_LABEL: placement},
        },
        "spec": dig(obj, "spec", "manifestWorkTemplate") or {},
    }


def named(wanted: Obj, uid: str) -> Obj:
    """Return a new work with its name: that of the set and five characters, as a server would generate it, but always
    the same for a set (``uid``), cluster and placement. So what is created twice (a cache that is behind, two replicas)
    exists once."""
    metadata = wanted["metadata"]
    said = "\0".join((uid, metadata["namespace"], metadata["labels"][PLACEMENT_LABEL]))
    digest = int.from_bytes(hashlib.sha256(said.encode()).digest()[:8])
    suffix = ""
    for _ in range(_SUFFIX):
        digest, at = divmod(digest, len(_ALPHABET))
        suffix += _ALPHABET[at]
    name = metadata["generateName"][: _MAX_NAME - _SUFFIX] + suffix
    return {**wanted, "metadata": {**metadata, "name": name}}


def template_differs(obj: Obj, work: Obj, placement: str) -> bool:
    """Return whether the spec of a work is not that of the template; labels do not count."""
    wanted, live = work_of(obj, namespace_of(work), placement)["spec"], work.get("spec") or {}
    return bool(wanted != live) and _comparable(wanted) != _comparable(live)


def write_work(wanted: Obj, live: Obj | None, why: str) -> Action | None:
    """Return how a work is created or changed; None if it is as wanted."""
    if live is None:
        return Create(wanted, why)
    before, after = _written(live), _written(wanted)
    if _comparable(before["spec"]) == _comparable(after["spec"]) and before["metadata"] == after["metadata"]:
        return None
    guards = {"uid": uid_of(live), "resourceVersion": resource_version(live)}
    body = create_merge_patch(before, after)
    if any(guards.values()):
        body["metadata"] = {**(body.get("metadata") or {}), **{key: one for key, one in guards.items() if one}}
    return Patch(MANIFEST_WORK, namespace_of(live), name_of(live), body, why)


def _written(work: Obj) -> Obj:
    metadata = {
        "labels": labels_of(work),
        "annotations": annotations_of(work),
        "ownerReferences": owner_references(work),
    }
    return {"metadata": metadata, "spec": work.get("spec") or {}}


def _comparable(spec: Obj) -> Obj:
    """Return a spec without what a server adds or leaves out: times of creation in manifests, fields without content
    outside of them."""
    manifests = [_untimed(one) for one in dig(spec, "workload", "manifests") or ()]
    return {**_filled({key: one for key, one in spec.items() if key != "workload"}), "workload": manifests}


def _untimed(manifest: Obj) -> Obj:
    made: Obj = _without_time(_without_time(manifest, "metadata"), "spec", "template", "metadata")
    return made


def _without_time(value: Any, *path: str) -> Any:
    """Return the value without the time of creation in the metadata at a path; it is not copied where there is none."""
    if not isinstance(value, dict):
        return value
    if not path:
        return {key: one for key, one in value.items() if key != _CREATED} if _CREATED in value else value
    inner = value.get(path[0])
    made = _without_time(inner, *path[1:])
    return value if made is inner else {**value, path[0]: made}


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: _filled(one) for key, one in value.items()}
    return {key: one for key, one in made.items() if one is not None and one != {} and one != []}
