"""Volumes of a pod: one source each, of thirty types.

``podspec.py`` calls it. Source: Kubernetes ``pkg/apis/core/validation`` (ValidateVolumes and below).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.metadata import annotation_causes, label_causes
from syncline.cluster.validation.engine.paths import descending_path_causes, local_path_causes, no_backsteps_causes
from syncline.cluster.validation.pods.environment import field_ref_causes, resource_ref_causes
from syncline.cluster.validation.storage.claims import claim_spec_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

Volumes = Mapping[str, Obj]
"""The valid volumes of a pod by name."""

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MODE = r.within(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")
_INITIATORS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}$"),
}


def volume_causes(spec: Obj, path: str, pod_name: str = "", *, of_pod: bool = True) -> tuple[list[FieldCause], Volumes]:
    """Return causes, and the volumes available to mounts. ``pod_name``: for names of ephemeral claims."""
    causes: list[FieldCause] = []
    good: dict[str, Obj] = {}
    made = {f"{pod_name}-{v.get('name')}" for v in r.list_of(spec, "volumes") if pod_name and v.get("ephemeral")}
    for where, volume in each(spec, "volumes", path):
        name = str(volume.get("name") or "")
        found = [*_source_causes(volume, where, pod_name, of_pod=of_pod), *r.need("name", r.label)(volume, where)]
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


def _source_causes(volume: Obj, where: str, pod_name: str, *, of_pod: bool) -> Iterator[FieldCause]:
    kinds = sorted((kind for kind in volume if kind in _SOURCES and isinstance(volume[kind], dict)), key=_RANKS.index)
    if not kinds:
        yield required(where, "must specify a volume type")
        return
    kind, name = kinds[0], volume.get("name")
    for one in kinds[1:]:
        shown = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}.get(one, one)
        yield forbidden(f"{where}.{shown}", "may not specify more than 1 volume type")
    yield from _SOURCES[kind](volume[kind], f"{where}.{NAMED.get(kind, kind)}")
    if kind == "image" and of_pod:
        yield from r.needs("reference")(volume[kind], f"{where}.image")
    portal = dig(volume, "iscsi", "targetPortal", default="")
    if dig(volume, "iscsi", "initiatorName") is not None and len(f"{name}:{portal}") > 64:
        why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is"
        yield invalid(f"{where}.name", name, f"{why} specified.")
    if kind == "ephemeral" and pod_name and name:
        for problem in names.dns_subdomain(f"{pod_name}-{name}"):
            yield invalid(f"{where}.name", name, f'PVC name "{pod_name}-{name}": {problem}')


# --- files from objects --------------------------------------------------------------------------------------------

_KEY_TO_PATH = r.every(r.needs("key", "path"), r.filled("path", local_path_causes), r.field("mode", _MODE))


def _keys_from(name: str) -> r.Table:
    return r.every(r.needs(name), r.field("defaultMode", _MODE), r.each("items", _KEY_TO_PATH))


def _downward_file(file: Obj, where: str) -> Iterator[FieldCause]:
    """Validate a downward API file; causes name the source, not the file, as in Kubernetes."""
    yield from r.needs("path")(file, where)
    yield from local_path_causes(file.get("path"), f"{where}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if isinstance(field, dict):
        yield from field_ref_causes(field, f"{where}.fieldRef", in_volume=True)
        if resource is not None:
            yield invalid(where, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif isinstance(resource, dict):
        yield from resource_ref_causes(resource, f"{where}.resourceFieldRef", in_volume=True)
    else:
        yield required(where, "one of fieldRef and resourceFieldRef is required")
    yield from r.field("mode", _MODE)(file, where)


def _projected(source: Obj, where: str) -> Iterator[FieldCause]:
    yield from r.field("defaultMode", _MODE)(source, where)
    seen: set[str] = set()
    for at, part in each(source, "sources", where):
        kinds = [kind for kind in _PROJECTIONS if isinstance(part.get(kind), dict)]
        for kind in kinds:
            yield from _PROJECTIONS[kind](part[kind], f"{at}.{kind}")
            if kind == "serviceAccountToken":
                yield from r.need("path", local_path_causes)(part[kind], where)
            yield from _path_conflicts(kind, part[kind], where, seen)
        if len(kinds) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")


def _path_conflicts(kind: str, part: Obj, where: str, seen: set[str]) -> Iterator[FieldCause]:
    """Refuse two files of a volume with the same path."""
    for item in [part] if kind == "serviceAccountToken" else r.list_of(part, "items"):
        path = item.get("path")
        if path and path in seen:
            shown = part.get("name", "") if kind in ("secret", "configMap") else path
            yield invalid(where, shown, "conflicting duplicate paths")
        seen.add(str(path))


token_lifetime = r.field(
    "expirationSeconds",
    r.at_least(600, "may not specify a duration less than 10 minutes"),
    r.at_most(1 << 32, "may not specify a duration larger than 2^32 seconds"),
)
_PROJECTED_KEYS = r.every(r.needs("name"), r.each("items", _KEY_TO_PATH))
_PROJECTIONS: dict[str, r.Rule] = {
    "secret": _PROJECTED_KEYS,
    "configMap": _PROJECTED_KEYS,
    "downwardAPI": r.inside("items", _downward_file),
    "serviceAccountToken": token_lifetime,
}


# --- directories, claims and drivers -------------------------------------------------------------------------------


def _ephemeral(template: Obj, at: str) -> Iterator[FieldCause]:
    meta = template.get("metadata") or {}
    yield from annotation_causes(meta.get("annotations"), f"{at}.metadata.annotations")
    yield from label_causes(meta.get("labels"), f"{at}.metadata.labels")
    for key in meta:
        if key not in ("labels", "annotations") and meta[key]:
            yield forbidden(f"{at}.metadata.{key}", "cannot be set")
    yield from claim_spec_causes(template.get("spec") or {}, f"{at}.spec")


def driver_name_causes(name: Any, where: str) -> Iterator[FieldCause]:
    """Validate a CSI driver's name: a subdomain in any case, at most 63 bytes."""
    if not name:
        yield required(where)
        return
    yield from r.most(63)(name, where)
    for problem in names.dns_subdomain(str(name).lower()):
        yield invalid(where, name, problem)


def _flex_options(source: Obj, where: str) -> Iterator[FieldCause]:
    for key in sorted(source.get("options") or {}):
        if f".{key.split('/', 1)[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(f"{where}.options[{key}]", key, why)


def _initiator_causes(name: str, where: str) -> Iterator[FieldCause]:
    if name[:3] not in _INITIATORS:
        yield invalid(where, name, "must be valid format starting with iqn, eui, or naa")
    elif not _INITIATORS[name[:3]].match(name):
        yield invalid(where, name, "must be valid format")


def _quobyte_registry(source: Obj, where: str) -> Iterator[FieldCause]:
    pairs, registry = "must be a host:port pair or multiple pairs separated by commas", source.get("registry") or ""
    if not registry:
        yield required(f"{where}.registry", pairs)
    elif len(source.get("tenant") or "") >= 65:
        yield required(f"{where}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        yield from (invalid(f"{where}.registry", registry, pairs) for pair in registry.split(",") if ":" not in pair)


_AZURE_URIS = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
)


def _azure_uri(source: Obj, where: str) -> Iterator[FieldCause]:
    kind, uri = source.get("kind"), str(source.get("diskURI") or "")
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield unsupported(f"{where}.diskURI", uri, _AZURE_URIS[:1])
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        yield unsupported(f"{where}.diskURI", uri, _AZURE_URIS[1:])


def _publish_secret(source: Obj, where: str) -> Iterator[FieldCause]:
    reference = source.get("nodePublishSecretRef")
    if reference is not None:
        yield from r.needs("name")(reference, f"{where}.nodePublishSecretRef")
        yield from r.filled("name", r.subdomain)(reference, where)


def _disk(key: str) -> r.Table:
    return r.every(r.needs(key), r.number("partition", r.within(0, 255, "must be between 1 and 255, inclusive")))


_LUN = r.number("lun", r.within(0, 255))
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
SHARED: dict[str, r.Rule] = {
    "hostPath": r.when(
        r.given("path"),
        r.field("path", no_backsteps_causes),
        r.field("type", r.choice(*_HOST_PATH_TYPES)),
        otherwise=r.needs("path"),
    ),
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "nfs": r.every(
        r.needs("server", "path"), r.text("path", r.must(lambda path: path[:1] == "/", "must be an absolute path"))
    ),
    "iscsi": r.every(
        r.needs("targetPortal", "iqn"),
        r.filled("iqn", _initiator_causes),
        _LUN,
        r.demand(
            lambda one: (one.get("chapAuthDiscovery") or one.get("chapAuthSession")) and one.get("secretRef") is None,
            "secretRef",
        ),
        r.field("initiatorName", _initiator_causes, shown="initiatorname"),
    ),
    "glusterfs": r.needs("endpoints", "path"),
    "flocker": r.every(
        r.demand(
            lambda one: not one.get("datasetName") and not one.get("datasetUUID"),
            "",
            "one of datasetName and datasetUUID is required",
        ),
        r.refuse(
            r.given("datasetName", "datasetUUID"),
            "",
            "datasetName and datasetUUID can not be specified simultaneously",
            "resource",
        ),
        r.filled("datasetName", r.must(lambda name: "/" not in name, "must not contain '/'")),
    ),
    "rbd": r.needs("monitors", "image"),
    "cinder": r.every(r.needs("volumeID"), r.field("secretRef", r.needs("name"))),
    "cephfs": r.needs("monitors"),
    "quobyte": r.every(_quobyte_registry, r.needs("volume")),
    "fc": r.every(
        r.demand(
            lambda one: not one.get("targetWWNs") and not one.get("wwids"),
            "targetWWNs",
            "must specify either targetWWNs or wwids, but not both",
        ),
        r.refuse(
            r.given("targetWWNs", "wwids"), "targetWWNs", "targetWWNs and wwids can not be specified simultaneously"
        ),
        r.when(
            r.given("targetWWNs"),
            r.demand(r.lacks("lun"), "lun", "lun is required if targetWWNs is specified"),
            _LUN,
        ),
    ),
    "flexVolume": r.every(r.needs("driver"), _flex_options),
    "azureFile": r.needs("secretName", "shareName"),
    "vsphereVolume": r.needs("volumePath"),
    "photonPersistentDisk": r.needs("pdID"),
    "portworxVolume": r.needs("volumeID"),
    "azureDisk": r.every(
        r.needs("diskName", "diskURI"),
        r.field("cachingMode", r.choice("None", "ReadOnly", "ReadWrite")),
        r.field("kind", r.choice("Dedicated", "Managed", "Shared")),
        _azure_uri,
    ),
    "scaleIO": r.needs("gateway", "system", "volumeName"),
}
"""Sources that both pods and PersistentVolumes support."""
_OWN: dict[str, r.Rule] = {
    "emptyDir": r.forbid(
        lambda one: str(one.get("sizeLimit", ""))[:1] == "-",
        "sizeLimit",
        "SizeLimit field must be a valid resource quantity",
    ),
    "gitRepo": r.every(r.needs("repository"), r.filled("directory", descending_path_causes)),
    "secret": _keys_from("secretName"),
    "persistentVolumeClaim": r.needs("claimName"),
    "downwardAPI": r.every(r.field("defaultMode", _MODE), r.inside("items", _downward_file)),
    "configMap": _keys_from("name"),
    "storageos": r.every(
        r.need("volumeName", r.label), r.filled("volumeNamespace", r.label), r.field("secretRef", r.needs("name"))
    ),
    "projected": _projected,
    "csi": r.every(r.always("driver", driver_name_causes), _publish_secret),
    "ephemeral": r.every(
        r.demand(r.lacks("volumeClaimTemplate"), "volumeClaimTemplate"), r.field("volumeClaimTemplate", _ephemeral)
    ),
    "image": r.need("pullPolicy", r.choice(*PULL_POLICIES)),
}
_ORDER = (
    "emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs flocker "
    "persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap azureFile vsphereVolume "
    "photonPersistentDisk portworxVolume azureDisk storageos projected scaleIO csi ephemeral image"
)
_SOURCES = {kind: (SHARED | _OWN)[kind] for kind in _ORDER.split()}
"""In Kubernetes' order, which decides which of two sources is refused."""
_RANKS = list(_SOURCES)
NAMED = {"gcePersistentDisk": "persistentDisk"}
"""Fields with another name in errors."""
