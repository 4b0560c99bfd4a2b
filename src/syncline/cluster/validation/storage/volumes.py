"""Volumes of a pod: one source each, of thirty types.

Called by ``podspec.py``. Volumes and their path come in, causes leave. Source: Kubernetes
``pkg/apis/core/validation`` (ValidateVolumes and below).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, too_long, unsupported
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.metadata import annotation_causes, label_causes
from syncline.cluster.validation.engine.paths import descending_path_causes, local_path_causes, no_backsteps_causes
from syncline.cluster.validation.pods.environment import field_ref_causes, resource_ref_causes
from syncline.cluster.validation.storage.claims import claim_spec_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = [
    "Check",
    "Volumes",
    "azure_disk_causes",
    "driver_name_causes",
    "fc_causes",
    "flex_causes",
    "flocker_causes",
    "host_path_causes",
    "iscsi_causes",
    "needs",
    "nfs_causes",
    "partition",
    "quobyte_causes",
    "volume_causes",
]

Volumes = Mapping[str, Obj]
"""The valid volumes of a pod by name."""
Check = Callable[[Obj, str], list[FieldCause]]

MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"
HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
SHORTEST_TOKEN_S, LONGEST_TOKEN_S = 600, 1 << 32
MOST_DRIVER_NAME_BYTES = 63
_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$")
_EUI = re.compile(r"eui.[A-Za-z0-9]{16}$")
_NAA = re.compile(r"naa.[A-Za-z0-9]{32}$")


def volume_causes(spec: Obj, path: str, pod_name: str = "", *, of_pod: bool = True) -> tuple[list[FieldCause], Volumes]:
    """Causes, and the volumes that mounts may use. ``pod_name`` names the claims of ephemeral volumes."""
    causes: list[FieldCause] = []
    good: dict[str, Obj] = {}
    made = {f"{pod_name}-{v.get('name')}" for _, v in each(spec, "volumes", path) if pod_name and v.get("ephemeral")}
    for where, volume in each(spec, "volumes", path):
        name = str(volume.get("name") or "")
        found = _source_causes(volume, where, pod_name, of_pod=of_pod)
        if not name:
            found.append(required(f"{where}.name"))
        else:
            found += [invalid(f"{where}.name", name, problem) for problem in names.dns_label(name)]
        if name in good:
            found.append(duplicate(f"{where}.name", name))
        if not found:
            good[name] = volume
        causes += found
        claim = dig(volume, "persistentVolumeClaim", "claimName")
        if claim and claim in made:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            causes.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim, why))
    return causes, good


def _source_causes(volume: Obj, where: str, pod_name: str, *, of_pod: bool) -> list[FieldCause]:
    kinds = [kind for kind in _SOURCES if isinstance(volume.get(kind), dict)]
    if not kinds:
        return [required(where, "must specify a volume type")]
    kind, more = kinds[0], kinds[1:]
    causes = [
        forbidden(f"{where}.{_NAMED_WHEN_TOO_MANY.get(one, one)}", "may not specify more than 1 volume type")
        for one in more
    ]
    causes += _SOURCES[kind](volume[kind], f"{where}.{_NAMED.get(kind, kind)}")
    if kind == "image" and of_pod and not volume[kind].get("reference"):
        causes.append(required(f"{where}.image.reference"))
    portal = dig(volume, "iscsi", "targetPortal", default="")
    if dig(volume, "iscsi", "initiatorName") is not None and len(f"{volume.get('name')}:{portal}") > 64:
        why = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
            "specified."
        )
        causes.append(invalid(f"{where}.name", volume.get("name"), why))
    if kind == "ephemeral" and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        causes += [
            invalid(f"{where}.name", volume["name"], f'PVC name "{claim}": {problem}')
            for problem in names.dns_subdomain(claim)
        ]
    return causes


# --- checks that several types share -------------------------------------------------------------------------------


def needs(*keys: str) -> Check:
    """Texts and lists that must be there."""
    return lambda source, where: [required(f"{where}.{key}") for key in keys if not source.get(key)]


def _mode_causes(source: Obj, where: str, key: str = "defaultMode") -> list[FieldCause]:
    mode = source.get(key)
    bad = isinstance(mode, int) and not 0 <= mode <= 0o777
    return [invalid(f"{where}.{key}", mode, MODE_TEXT)] if bad else []


def partition(key: str) -> Check:
    def check(source: Obj, where: str) -> list[FieldCause]:
        causes = needs(key)(source, where)
        number = source.get("partition") or 0
        if not 0 <= number <= 255:
            causes.append(invalid(f"{where}.partition", number, "must be between 1 and 255, inclusive"))
        return causes

    return check


# --- files from objects --------------------------------------------------------------------------------------------


def _keys_from(name: str) -> Check:
    def check(source: Obj, where: str) -> list[FieldCause]:
        causes = needs(name)(source, where) + _mode_causes(source, where)
        for at, item in each(source, "items", where):
            causes += _key_to_path_causes(item, at)
        return causes

    return check


def _key_to_path_causes(item: Obj, at: str) -> list[FieldCause]:
    causes = needs("key", "path")(item, at)
    return causes + local_path_causes(item.get("path"), f"{at}.path") + _mode_causes(item, at, "mode")


def _downward(source: Obj, where: str) -> list[FieldCause]:
    causes = _mode_causes(source, where)
    for _, file in each(source, "items", where):
        causes += _downward_file_causes(file, where)
    return causes


def _downward_file_causes(file: Obj, where: str) -> list[FieldCause]:
    """Kubernetes names the source, not the file."""
    causes = needs("path")(file, where) + local_path_causes(file.get("path"), f"{where}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if isinstance(field, dict):
        causes += field_ref_causes(field, f"{where}.fieldRef", in_volume=True)
        if resource is not None:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            causes.append(invalid(where, "resource", why))
    elif isinstance(resource, dict):
        causes += resource_ref_causes(resource, f"{where}.resourceFieldRef", in_volume=True)
    else:
        causes.append(required(where, "one of fieldRef and resourceFieldRef is required"))
    return causes + _mode_causes(file, where, "mode")


def _projected(source: Obj, where: str) -> list[FieldCause]:
    causes = _mode_causes(source, where)
    seen: set[str] = set()
    for at, part in each(source, "sources", where):
        kinds = [kind for kind in _PROJECTIONS if isinstance(part.get(kind), dict)]
        for kind in kinds:
            causes += _PROJECTIONS[kind](part[kind], f"{at}.{kind}", where)
            causes += _path_conflicts(kind, part[kind], where, seen)
        if len(kinds) > 1:
            causes.append(forbidden(at, "may not specify more than 1 volume type per source"))
    return causes


def _path_conflicts(kind: str, part: Obj, where: str, seen: set[str]) -> list[FieldCause]:
    """Two files of one volume at one place."""
    causes: list[FieldCause] = []
    paths = [item.get("path") for _, item in each(part, "items", "")]
    if kind == "serviceAccountToken":
        paths = [part.get("path")]
    for path in paths:
        if path and path in seen:
            shown = part.get("name", "") if kind in ("secret", "configMap") else path
            causes.append(invalid(where, shown, "conflicting duplicate paths"))
        seen.add(str(path))
    return causes


def _projected_keys(part: Obj, at: str, where: str) -> list[FieldCause]:
    causes = needs("name")(part, at)
    for place, item in each(part, "items", at):
        causes += _key_to_path_causes(item, place)
    return causes


def _projected_downward(part: Obj, at: str, where: str) -> list[FieldCause]:
    return [cause for _, file in each(part, "items", at) for cause in _downward_file_causes(file, at)]


def _projected_token(part: Obj, at: str, where: str) -> list[FieldCause]:
    """The path is named on the volume, the lifetime on the source."""
    causes: list[FieldCause] = []
    seconds = part.get("expirationSeconds")
    if isinstance(seconds, int) and seconds < SHORTEST_TOKEN_S:
        causes.append(invalid(f"{at}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if isinstance(seconds, int) and seconds > LONGEST_TOKEN_S:
        why = "may not specify a duration larger than 2^32 seconds"
        causes.append(invalid(f"{at}.expirationSeconds", seconds, why))
    if not part.get("path"):
        return [*causes, required(f"{where}.path")]
    return causes + local_path_causes(part["path"], f"{where}.path")


_PROJECTIONS: dict[str, Callable[[Obj, str, str], list[FieldCause]]] = {
    "secret": _projected_keys,
    "configMap": _projected_keys,
    "downwardAPI": _projected_downward,
    "serviceAccountToken": _projected_token,
}


# --- directories and claims ----------------------------------------------------------------------------------------


def _empty_dir(source: Obj, where: str) -> list[FieldCause]:
    negative = str(source.get("sizeLimit", "")).startswith("-")
    why = "SizeLimit field must be a valid resource quantity"
    return [forbidden(f"{where}.sizeLimit", why)] if negative else []


def host_path_causes(source: Obj, where: str) -> list[FieldCause]:
    if not source.get("path"):
        return [required(f"{where}.path")]
    causes = no_backsteps_causes(source["path"], f"{where}.path")
    kind = source.get("type")
    if kind is not None and kind not in HOST_PATH_TYPES:
        causes.append(unsupported(f"{where}.type", kind, HOST_PATH_TYPES))
    return causes


def _git_repo(source: Obj, where: str) -> list[FieldCause]:
    return needs("repository")(source, where) + descending_path_causes(source.get("directory"), f"{where}.directory")


def _ephemeral(source: Obj, where: str) -> list[FieldCause]:
    template, at = source.get("volumeClaimTemplate"), f"{where}.volumeClaimTemplate"
    if not isinstance(template, dict):
        return [required(at)]
    meta = template.get("metadata") or {}
    causes = annotation_causes(meta.get("annotations"), f"{at}.metadata.annotations")
    causes += label_causes(meta.get("labels"), f"{at}.metadata.labels")
    causes += [
        forbidden(f"{at}.metadata.{key}", "cannot be set")
        for key in meta
        if key not in ("labels", "annotations") and meta[key]
    ]
    return causes + claim_spec_causes(template.get("spec") or {}, f"{at}.spec")


def nfs_causes(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("server", "path")(source, where)
    if not str(source.get("path") or "").startswith("/"):
        causes.append(invalid(f"{where}.path", source.get("path") or "", "must be an absolute path"))
    return causes


# --- drivers -------------------------------------------------------------------------------------------------------


def driver_name_causes(name: Any, where: str) -> list[FieldCause]:
    """The name of a CSI driver: a subdomain in any case, at most 63 bytes."""
    if not name:
        return [required(where)]
    causes = [too_long(where, MOST_DRIVER_NAME_BYTES)] if len(str(name)) > MOST_DRIVER_NAME_BYTES else []
    return causes + [invalid(where, name, problem) for problem in names.dns_subdomain(str(name).lower())]


def _csi(source: Obj, where: str) -> list[FieldCause]:
    causes = driver_name_causes(source.get("driver"), f"{where}.driver")
    reference = source.get("nodePublishSecretRef")
    if isinstance(reference, dict):
        name = reference.get("name")
        if not name:
            causes.append(required(f"{where}.nodePublishSecretRef.name"))
        else:
            causes += [invalid(f"{where}.name", name, problem) for problem in names.dns_subdomain(name)]
    return causes


def flex_causes(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("driver")(source, where)
    for key in sorted(source.get("options") or {}):
        domain = "." + key.split("/", 1)[0].lower() if "/" in key else "." + key.lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            causes.append(invalid(f"{where}.options[{key}]", key, why))
    return causes


def _initiator_causes(name: str, where: str) -> list[FieldCause]:
    if not name.startswith(("iqn", "eui", "naa")):
        return [invalid(where, name, "must be valid format starting with iqn, eui, or naa")]
    pattern = {"iqn": _IQN, "eui": _EUI, "naa": _NAA}[name[:3]]
    return [] if pattern.match(name) else [invalid(where, name, "must be valid format")]


def iscsi_causes(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("targetPortal", "iqn")(source, where)
    if source.get("iqn"):
        causes += _initiator_causes(str(source["iqn"]), f"{where}.iqn")
    causes += _lun_causes(source, where)
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and source.get("secretRef") is None:
        causes.append(required(f"{where}.secretRef"))
    if source.get("initiatorName") is not None:
        causes += _initiator_causes(str(source["initiatorName"]), f"{where}.initiatorname")
    return causes


def _lun_causes(source: Obj, where: str) -> list[FieldCause]:
    lun = source.get("lun") or 0
    return [] if 0 <= lun <= 255 else [invalid(f"{where}.lun", lun, "must be between 0 and 255, inclusive")]


def fc_causes(source: Obj, where: str) -> list[FieldCause]:
    targets, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    causes: list[FieldCause] = []
    if not targets and not ids:
        causes.append(required(f"{where}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if targets and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        causes.append(invalid(f"{where}.targetWWNs", targets, why))
    if targets and source.get("lun") is None:
        causes.append(required(f"{where}.lun", "lun is required if targetWWNs is specified"))
    return causes + (_lun_causes(source, where) if targets else [])


def quobyte_causes(source: Obj, where: str) -> list[FieldCause]:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    registry = str(source.get("registry") or "")
    causes: list[FieldCause] = []
    if not registry:
        causes.append(required(f"{where}.registry", pairs))
    elif len(source.get("tenant") or "") >= 65:
        causes.append(required(f"{where}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        causes += [invalid(f"{where}.registry", registry, pairs) for pair in registry.split(",") if ":" not in pair]
    return causes + needs("volume")(source, where)


def flocker_causes(source: Obj, where: str) -> list[FieldCause]:
    name, uid = source.get("datasetName"), source.get("datasetUUID")
    causes: list[FieldCause] = []
    if not name and not uid:
        causes.append(required(where, "one of datasetName and datasetUUID is required"))
    if name and uid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        causes.append(invalid(where, "resource", why))
    if "/" in str(name or ""):
        causes.append(invalid(f"{where}.datasetName", name, "must not contain '/'"))
    return causes


def azure_disk_causes(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("diskName", "diskURI")(source, where)
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), str(source.get("diskURI") or "")
    if caching is not None and caching not in ("None", "ReadOnly", "ReadWrite"):
        causes.append(unsupported(f"{where}.cachingMode", caching, ("None", "ReadOnly", "ReadWrite")))
    if kind is not None and kind not in ("Dedicated", "Managed", "Shared"):
        causes.append(unsupported(f"{where}.kind", kind, ("Dedicated", "Managed", "Shared")))
    managed = (
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
    )
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        causes.append(unsupported(f"{where}.diskURI", uri, managed[:1]))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        causes.append(unsupported(f"{where}.diskURI", uri, managed[1:]))
    return causes


def _cinder(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("volumeID")(source, where)
    reference = source.get("secretRef")
    if isinstance(reference, dict) and not reference.get("name"):
        causes.append(required(f"{where}.secretRef.name"))
    return causes


def _storage_os(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("volumeName")(source, where)
    for key in ("volumeName", "volumeNamespace"):
        if source.get(key):
            causes += [invalid(f"{where}.{key}", source[key], problem) for problem in names.dns_label(source[key])]
    reference = source.get("secretRef")
    if isinstance(reference, dict) and not reference.get("name"):
        causes.append(required(f"{where}.secretRef.name"))
    return causes


def _image(source: Obj, where: str) -> list[FieldCause]:
    policy = source.get("pullPolicy") or ""
    if not policy:
        return [required(f"{where}.pullPolicy")]
    known = policy in PULL_POLICIES
    return [] if known else [unsupported(f"{where}.pullPolicy", policy, PULL_POLICIES)]


_SOURCES: dict[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path_causes,
    "gitRepo": _git_repo,
    "gcePersistentDisk": partition("pdName"),
    "awsElasticBlockStore": partition("volumeID"),
    "secret": _keys_from("secretName"),
    "nfs": nfs_causes,
    "iscsi": iscsi_causes,
    "glusterfs": needs("endpoints", "path"),
    "flocker": flocker_causes,
    "persistentVolumeClaim": needs("claimName"),
    "rbd": needs("monitors", "image"),
    "cinder": _cinder,
    "cephfs": needs("monitors"),
    "quobyte": quobyte_causes,
    "downwardAPI": _downward,
    "fc": fc_causes,
    "flexVolume": flex_causes,
    "configMap": _keys_from("name"),
    "azureFile": needs("secretName", "shareName"),
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": azure_disk_causes,
    "storageos": _storage_os,
    "projected": _projected,
    "scaleIO": needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""In the order in which Kubernetes looks at them: the second one found is the one too many."""
_NAMED = {"gcePersistentDisk": "persistentDisk"}
"""Fields that Kubernetes calls otherwise in refusals."""
_NAMED_WHEN_TOO_MANY = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""The same, where there is one source too many."""
