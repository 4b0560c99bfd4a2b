"""Kinds that hubs of Advanced Cluster Management serve and nothing here acts on: MultiClusterHub, and Hive's. Fields
are kept as they come; columns are upstream's where they show what is given."""

from __future__ import annotations

from typing import Final

from syncline.kube.kinds.structure import AGE, ANY, column, definition, kind_schema
from syncline.kube.objects import GVK, Obj

_HIVE: Final = "hive.openshift.io"
MULTI_CLUSTER_HUB: Final = GVK("operator.open-cluster-management.io", "v1", "MultiClusterHub")
CLUSTER_DEPLOYMENT: Final = GVK(_HIVE, "v1", "ClusterDeployment")
CLUSTER_POOL: Final = GVK(_HIVE, "v1", "ClusterPool")
CLUSTER_CLAIM: Final = GVK(_HIVE, "v1", "ClusterClaim")
MACHINE_POOL: Final = GVK(_HIVE, "v1", "MachinePool")
HIVE_KINDS: Final = (CLUSTER_DEPLOYMENT, CLUSTER_POOL, CLUSTER_CLAIM, MACHINE_POOL)

_SHOWN: Final[dict[GVK, tuple[str, tuple[str, ...], tuple[Obj, ...]]]] = {
    MULTI_CLUSTER_HUB: (
        "multiclusterhubs",
        ("mch",),
        (
            column("Status", ".status.phase"),
            AGE,
            column("CurrentVersion", ".status.currentVersion"),
            column("DesiredVersion", ".status.desiredVersion"),
        ),
    ),
    CLUSTER_DEPLOYMENT: (
        "clusterdeployments",
        ("cd",),
        (
            column("InfraID", ".spec.clusterMetadata.infraID"),
            column("BaseDomain", ".spec.baseDomain"),
            column("Installed", ".spec.installed", "boolean"),
            AGE,
        ),
    ),
    CLUSTER_POOL: (
        "clusterpools",
        ("cp",),
        (
            column("Size", ".spec.size", "integer"),
            column("BaseDomain", ".spec.baseDomain"),
            column("ImageSet", ".spec.imageSetRef.name"),
            AGE,
        ),
    ),
    CLUSTER_CLAIM: (
        "clusterclaims",
        (),
        (column("Pool", ".spec.clusterPoolName"), column("ClusterNamespace", ".spec.namespace"), AGE),
    ),
    MACHINE_POOL: (
        "machinepools",
        (),
        (
            column("PoolName", ".spec.name"),
            column("ClusterDeployment", ".spec.clusterDeploymentRef.name"),
            column("Replicas", ".spec.replicas", "integer"),
        ),
    ),
}


def idle_hub_crds() -> tuple[Obj, ...]:
    """Return the definitions."""
    made = []
    for gvk, (plural, short, columns) in _SHOWN.items():
        about = f"A {gvk.kind} of upstream. It is stored; no controller acts on it here."
        schema = kind_schema(ANY, ANY, about=about)
        made.append(definition(gvk, plural, schema, short=short, columns=columns, namespaced=True))
    return tuple(made)
