"""Volumes and claims, access rules, leases, certificates and the remaining kinds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.cluster.columns.column import UNKNOWN, age, human_duration
from syncline.kube.objects import Obj, dig, name_of

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(found: Any) -> str:
    """Return the short access modes in Kubernetes' fixed order."""
    given = set(found or ())
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _class(obj: Obj) -> str:
    """Return the storage class; the older annotation takes precedence."""
    given = dig(obj, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    return str(given or dig(obj, "spec", "storageClassName", default="") or "")


def _volume(obj: Obj, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    claim = spec.get("claimRef")
    terminating = dig(obj, "metadata", "deletionTimestamp")
    return [
        name_of(obj),
        dig(spec, "capacity", "storage", default=""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if terminating else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(obj: Obj, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    terminating = dig(obj, "metadata", "deletionTimestamp")
    return [
        name_of(obj),
        "Terminating" if terminating else status.get("phase", ""),
        spec.get("volumeName", ""),
        dig(status, "capacity", "storage", default="") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _storage_class(obj: Obj, now: datetime) -> list[Any]:
    annotations = dig(obj, "metadata", "annotations", default={})
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        f"{name_of(obj)} (default)" if default else name_of(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "<unset>"),
        bool(obj.get("allowVolumeExpansion", False)),
        age(obj, now),
    ]


# --- access --------------------------------------------------------------------------------------------------------


def _created(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), dig(obj, "metadata", "creationTimestamp", default="")]


def _binding(obj: Obj, now: datetime) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or []

    def of(kind: str) -> str:
        return ", ".join(str(s.get("name")) for s in subjects if s.get("kind") == kind)

    accounts = ", ".join(
        f"{s.get('namespace', '')}/{s.get('name')}" for s in subjects if s.get("kind") == "ServiceAccount"
    )
    return [name_of(obj), f"{role.get('kind')}/{role.get('name')}", age(obj, now), of("User"), of("Group"), accounts]


def _request(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj, now),
        spec.get("signerName") or "<none>",
        spec.get("username", ""),
        "<none>" if seconds is None else human_duration(int(seconds)),
        _request_state(obj),
    ]


def _request_state(obj: Obj) -> str:
    types = [c.get("type") for c in dig(obj, "status", "conditions", default=[])]
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        state += ",Failed"
    if dig(obj, "status", "certificate"):
        state += ",Issued"
    return state


# --- the rest ------------------------------------------------------------------------------------------------------


def _lease(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), dig(obj, "spec", "holderIdentity", default=""), age(obj, now)]


def _priority_class(obj: Obj, now: datetime) -> list[Any]:
    policy = obj.get("preemptionPolicy", "")
    return [name_of(obj), obj.get("value", 0), bool(obj.get("globalDefault", False)), age(obj, now), policy]


def _runtime_class(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age(obj, now)]


def _quota(obj: Obj, now: datetime) -> list[Any]:
    hard, used = dig(obj, "status", "hard", default={}), dig(obj, "status", "used", default={})

    def shown(limits: bool) -> str:
        names = [name for name in sorted(hard) if name.startswith("limits.") is limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return [name_of(obj), shown(False), shown(True), age(obj, now)]


def _webhooks(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def _csi_node(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(dig(obj, "spec", "drivers", default=[])), age(obj, now)]


def _csi_driver(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    requests = [str(r.get("audience", "")) for r in spec.get("tokenRequests") or ()]
    return [
        name_of(obj),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount", False)),
        bool(spec.get("storageCapacity", False)),
        ",".join(requests) or "<unset>",
        bool(spec.get("requiresRepublish", False)),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        age(obj, now),
    ]


def _attachment(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name_of(obj),
        spec.get("attacher", ""),
        dig(spec, "source", "persistentVolumeName", default=""),
        spec.get("nodeName", ""),
        bool(dig(obj, "status", "attached", default=False)),
        age(obj, now),
    ]


def _component(obj: Obj, now: datetime) -> list[Any]:
    condition: Obj = next((c for c in obj.get("conditions") or () if c.get("type") == "Healthy"), {})
    status = "Healthy" if condition.get("status") == "True" else "Unhealthy" if condition else UNKNOWN
    return [name_of(obj), status, condition.get("message", ""), condition.get("error", "")]


_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

TABLES = {
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("storage.k8s.io", "CSINode"): _csi_node,
    ("storage.k8s.io", "VolumeAttributesClass"): lambda obj, now: [
        name_of(obj),
        obj.get("driverName", ""),
        age(obj, now),
    ],
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("storage.k8s.io", "VolumeAttachment"): _attachment,
    (_RBAC, "Role"): _created,
    (_RBAC, "ClusterRole"): _created,
    (_RBAC, "RoleBinding"): _binding,
    (_RBAC, "ClusterRoleBinding"): _binding,
    ("", "LimitRange"): _created,
    ("", "ResourceQuota"): _quota,
    ("certificates.k8s.io", "CertificateSigningRequest"): _request,
    ("coordination.k8s.io", "Lease"): _lease,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("node.k8s.io", "RuntimeClass"): _runtime_class,
    (_ADMISSION, "MutatingWebhookConfiguration"): _webhooks,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _webhooks,
    ("", "ComponentStatus"): _component,
}
