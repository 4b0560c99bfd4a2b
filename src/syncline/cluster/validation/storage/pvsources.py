"""What a PersistentVolume is kept on: one source of twenty types.

Called by the strategies of volumes and attachments. A spec and its path come in, causes and warnings leave. Source:
Kubernetes ``ValidatePersistentVolumeSpec`` and ``pkg/api/persistentvolume``.
"""

from __future__ import annotations

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import forbidden, invalid, required
from syncline.cluster.validation.engine.paths import no_backsteps_causes
from syncline.cluster.validation.pods.podwarnings import OLD_VOLUMES
from syncline.cluster.validation.storage.volumes import (
    Check,
    azure_disk_causes,
    driver_name_causes,
    fc_causes,
    flex_causes,
    flocker_causes,
    host_path_causes,
    iscsi_causes,
    needs,
    nfs_causes,
    partition,
    quobyte_causes,
)
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["PV_SOURCES", "source_causes", "source_warnings"]


def source_causes(spec: Obj, path: str) -> list[FieldCause]:
    """Exactly one source, and what is wrong with it."""
    kinds = [kind for kind in PV_SOURCES if isinstance(spec.get(kind), dict)]
    if not kinds:
        return [required(path, "must specify a volume type")]
    named = {"gcePersistentDisk": "persistentDisk"}
    causes = [forbidden(f"{path}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:]]
    return causes + PV_SOURCES[kinds[0]](spec[kinds[0]], f"{path}.{named.get(kinds[0], kinds[0])}")


def source_warnings(spec: Obj) -> list[str]:
    return [f"spec.{shown}: {why}" for kind, shown, why in OLD_VOLUMES if spec.get(kind) is not None]


def _local(source: Obj, where: str) -> list[FieldCause]:
    if not source.get("path"):
        return [required(f"{where}.path")]
    return no_backsteps_causes(source["path"], f"{where}.path")


def _azure_file(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("secretName", "shareName")(source, where)
    if source.get("secretNamespace") == "":
        causes.append(required(f"{where}.secretNamespace"))
    return causes


def _glusterfs(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("endpoints", "path")(source, where)
    space = source.get("endpointsNamespace")
    if space is not None:
        at = f"{where}.endpointsNamespace"
        if not space:
            causes.append(invalid(at, space, "if the endpointnamespace is set, it must be a valid namespace name"))
        causes += [invalid(at, space, problem) for problem in names.dns_label(space)] if space else []
    return causes


def _cinder(source: Obj, where: str) -> list[FieldCause]:
    causes = needs("volumeID")(source, where)
    reference = source.get("secretRef")
    return causes + (needs("name", "namespace")(reference, f"{where}.secretRef") if isinstance(reference, dict) else [])


def _csi(source: Obj, where: str) -> list[FieldCause]:
    causes = driver_name_causes(source.get("driver"), f"{where}.driver") + needs("volumeHandle")(source, where)
    references = ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand")
    for key in (f"{name}SecretRef" for name in references):
        reference, at = source.get(key), f"{where}.{key}"
        if isinstance(reference, dict):
            causes += needs("name", "namespace")(reference, at)
            name, space = str(reference.get("name") or ""), str(reference.get("namespace") or "")
            causes += [invalid(f"{at}.name", name, one) for one in names.dns_subdomain(name) if name]
            causes += [invalid(f"{at}.namespace", space, one) for one in names.dns_label(space) if space]
    return causes


PV_SOURCES: dict[str, Check] = {
    "hostPath": host_path_causes,
    "gcePersistentDisk": partition("pdName"),
    "awsElasticBlockStore": partition("volumeID"),
    "glusterfs": _glusterfs,
    "flocker": flocker_causes,
    "nfs": nfs_causes,
    "rbd": needs("monitors", "image"),
    "quobyte": quobyte_causes,
    "cephfs": needs("monitors"),
    "iscsi": iscsi_causes,
    "cinder": _cinder,
    "fc": fc_causes,
    "flexVolume": flex_causes,
    "azureFile": _azure_file,
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": azure_disk_causes,
    "scaleIO": needs("gateway", "system", "volumeName"),
    "local": _local,
    "storageos": needs("volumeName"),
    "csi": _csi,
}
"""In the order in which Kubernetes looks at them."""
