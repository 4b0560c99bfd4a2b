"""Protect claims and volumes in use, and set default classes (plug-ins StorageObjectInUseProtection,
DefaultStorageClass, DefaultIngressClass)."""

from __future__ import annotations

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.storage.store import Key, Store
from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.kube.text.quantity import Quantity, parse_quantity

_PROTECTION = {
    "/persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "/persistentvolumes": "kubernetes.io/pv-protection",
    "storage.k8s.io/volumeattributesclasses": "kubernetes.io/vac-protection",
}
_DEFAULT_STORAGE = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"


def admit(store: Store, attempt: Attempt, obj: Obj) -> None:
    finalizer = _PROTECTION.get(attempt.resource.storage)
    if finalizer is not None:
        metadata = obj["metadata"]
        held = metadata.get("finalizers") or []
        if finalizer not in held:
            metadata["finalizers"] = [*held, finalizer]
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if attempt.concerns("/persistentvolumeclaims") and spec.get("storageClassName") is None:
        _set_default(store, "storage.k8s.io/storageclasses", _DEFAULT_STORAGE, spec, "storageClassName")
    elif attempt.concerns("networking.k8s.io/ingresses") and not _names_class(obj, spec):
        _set_default(store, "networking.k8s.io/ingressclasses", _DEFAULT_INGRESS, spec, "ingressClassName")


def check_growth(store: Store, attempt: Attempt, new: Obj, old: Obj) -> None:
    """Allow a claim to grow if its class does (plug-in PersistentVolumeClaimResize)."""
    wanted, had = (_size(obj) for obj in (new, old))
    if wanted is None or had is None or wanted <= had:
        return
    if (old.get("status") or {}).get("phase") != "Bound":
        raise forbid(attempt, "Only bound persistent volume claims can be expanded")
    name = (new.get("spec") or {}).get("storageClassName") or ""
    stored = store.get(Key("storage.k8s.io/storageclasses", "", name)) if name else None
    if stored is None or not stored.obj.get("allowVolumeExpansion"):
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize"
        )
        raise forbid(attempt, why)


def _size(claim: Obj) -> Quantity | None:
    amount = ((((claim.get("spec") or {}).get("resources")) or {}).get("requests") or {}).get("storage")
    return parse_quantity(amount) if amount is not None else None


def _names_class(ingress: Obj, spec: Obj) -> bool:
    return spec.get("ingressClassName") is not None or "kubernetes.io/ingress.class" in annotations_of(ingress)


def _set_default(store: Store, resource: str, annotation: str, spec: Obj, field: str) -> None:
    """Set the newest class that is annotated as default."""
    classes = [s.obj for s in store.list(resource) if annotations_of(s.obj).get(annotation) == "true"]
    if classes:
        newest = max(classes, key=lambda c: (c["metadata"].get("creationTimestamp", ""), name_of(c)))
        spec[field] = name_of(newest)
