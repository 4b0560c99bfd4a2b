"""Turns rendered manifests into the targets of a comparison.

Called by the comparison with the manifests in order. Returns targets with the right scope, each once, with tracking
data, and warnings about them. Pure; inputs are never changed. Rules: Argo CD ``controller/state.go`` (reference
argocd-app §3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from syncline.apply.annotations import SYNC_OPTIONS
from syncline.argo.conditions import Condition
from syncline.argo.excluded import ResourceFilter
from syncline.argo.tracking import Tracking, TrackingError, is_definition
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, gvk_of, meta, name_of, namespace_of, ref_of


@dataclass(frozen=True, slots=True)
class Targets:
    objects: tuple[Obj, ...]
    conditions: tuple[Condition, ...]
    error: str = ""
    """Why an object cannot carry the Application's tracking data; then nothing is compared."""


def namespaced(kinds: KindTable, group_kind: GroupKind) -> bool:
    """Return whether a kind is namespaced; a kind unknown to the cluster counts as namespaced."""
    return kinds.namespaced(group_kind) is not False


def scoped(obj: Obj, kinds: KindTable, namespace: str) -> Obj:
    """Return ``obj`` in its own namespace or else the destination's; without one if its kind is cluster-scoped."""
    wanted = (namespace_of(obj) or namespace) if namespaced(kinds, gvk_of(obj).group_kind) else ""
    if wanted == namespace_of(obj) and ("namespace" in meta(obj)) == bool(wanted):
        return obj
    metadata = {key: value for key, value in meta(obj).items() if key != "namespace"}
    return obj | {"metadata": metadata | ({"namespace": wanted} if wanted else {})}


def prepare_targets(
    manifests: Iterable[Obj],
    app: str,
    namespace: str,
    kinds: KindTable,
    tracking: Tracking,
    excluded: ResourceFilter,
    cluster: str,
) -> Targets:
    """``app`` is the instance name, ``namespace`` the destination's, ``cluster`` its URL."""
    objects, conditions = _once_each([scoped(obj, kinds, namespace) for obj in manifests])
    kept: list[Obj] = []
    unmarked = ""
    for obj in objects:
        gvk = gvk_of(obj)
        if excluded.excludes(gvk.group, gvk.kind, cluster):
            text = f"Resource {gvk.group}/{gvk.kind} {name_of(obj)} is excluded in the settings"
            conditions.append(Condition("ExcludedResourceWarning", text))
        else:
            try:
                kept.append(obj if is_definition(obj) else tracking.stamp(obj, app, namespace))
            except TrackingError as error:
                unmarked = unmarked or f"failed to set app instance tracking info on manifest: {error}"
                kept.append(obj)
    return Targets(tuple(kept), tuple(conditions), unmarked)


def _once_each(objects: list[Obj]) -> tuple[list[Obj], list[Condition]]:
    """Keep the last of several objects with one key; generated names never collide."""
    by_key: dict[ObjectRef, list[Obj]] = {}
    for index, obj in enumerate(objects):
        ref = ref_of(obj)
        generated = meta(obj).get("generateName")
        if not ref.name and generated:
            ref = ObjectRef(ref.group, ref.kind, ref.namespace, f"{generated}{index}")
        by_key.setdefault(ref, []).append(obj)
    repeated = [
        Condition("RepeatedResourceWarning", f"Resource {ref} appeared {len(same)} times among application resources.")
        for ref, same in by_key.items()
        if len(same) > 1
    ]
    return [same[-1] for same in by_key.values()], repeated


def managed_metadata(app: Obj) -> Mapping[str, Mapping[str, str]] | None:
    found = dig(app, "spec", "syncPolicy", "managedNamespaceMetadata")
    return found if isinstance(found, dict) else None


def is_managed_namespace(obj: Obj | None, app: Obj) -> bool:
    """Return whether this is the destination Namespace of an application that sets its labels or annotations."""
    if obj is None or managed_metadata(app) is None:
        return False
    gvk = gvk_of(obj)
    destination = dig(app, "spec", "destination", "namespace", default="")
    return (gvk.group, gvk.kind) == ("", "Namespace") and name_of(obj) == destination


def managed_namespace(app: Obj) -> Obj:
    """Return the target for a destination Namespace without a manifest; it is applied server-side, so that other
    clients' labels stay."""
    wanted = managed_metadata(app) or {}
    annotations = dict(wanted.get("annotations") or {})
    listed = annotations.get(SYNC_OPTIONS, "")
    annotations[SYNC_OPTIONS] = f"{listed},ServerSideApply=true" if listed else "ServerSideApply=true"
    metadata: Obj = {"name": dig(app, "spec", "destination", "namespace", default=""), "annotations": annotations}
    if wanted.get("labels"):
        metadata["labels"] = dict(wanted["labels"])
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
