"""Sources of a PersistentVolume: exactly one of twenty types.

The strategies of volumes and attachments call it. Source: Kubernetes ``ValidatePersistentVolumeSpec`` and
``pkg/api/persistentvolume``.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import forbidden, required
from syncline.cluster.validation.engine.paths import no_backsteps_causes
from syncline.cluster.validation.pods.podwarnings import OLD_VOLUMES
from syncline.cluster.validation.storage.volumes import NAMED, SHARED, driver_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj


def source_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    """Require exactly one source, and validate it."""
    kinds = [kind for kind in PV_SOURCES if isinstance(spec.get(kind), dict)]
    if not kinds:
        yield required(path, "must specify a volume type")
        return
    yield from (forbidden(f"{path}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:])
    yield from PV_SOURCES[kinds[0]](spec[kinds[0]], f"{path}.{NAMED.get(kinds[0], kinds[0])}")


def source_warnings(spec: Obj) -> list[str]:
    return [f"spec.{shown}: {why}" for kind, shown, why in OLD_VOLUMES if spec.get(kind) is not None]


_SPACE = "if the endpointnamespace is set, it must be a valid namespace name"
_PAIR = r.needs("name", "namespace")
_NAMED_PAIR = r.every(_PAIR, r.filled("name", r.subdomain), r.filled("namespace", r.label))
_OWN: dict[str, r.Rule] = {
    "glusterfs": r.every(
        SHARED["glusterfs"],
        r.field("endpointsNamespace", r.must(bool, _SPACE)),
        r.filled("endpointsNamespace", r.label),
    ),
    "cinder": r.every(r.needs("volumeID"), r.field("secretRef", _PAIR)),
    "azureFile": r.every(SHARED["azureFile"], r.demand(r.where(secretNamespace=""), "secretNamespace")),
    "local": r.need("path", no_backsteps_causes),
    "storageos": r.needs("volumeName"),
    "csi": r.every(
        r.always("driver", driver_name_causes),
        r.needs("volumeHandle"),
        *(
            r.field(f"{name}SecretRef", _NAMED_PAIR)
            for name in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand")
        ),
    ),
}
_ORDER = (
    "hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs iscsi cinder fc "
    "flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local storageos csi"
)
PV_SOURCES = {kind: (SHARED | _OWN)[kind] for kind in _ORDER.split()}
"""In Kubernetes' order."""
