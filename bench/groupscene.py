"""The scene ``cluster-group``: two operators, of which the second must find the storage of the first, and three cures.

What a cure changes is a values file of its own, laid over the scene's, as a person would add one. Tests and
``tools/pattern_scene.py`` install it as a Pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from syncline.assembly.operators.folders import FolderCatalogs
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump
from syncline.patterns.operators.behaving import Behaviours, shipped
from syncline.rehearsal.installing.playing import Installation, Platform

NAME, GROUP_NAME = "shop", "hub"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "operators"
WAVE = "argocd.argoproj.io/sync-wave"
CLASS = "ocs-storagecluster-ceph-rbd"
STORAGE_CLUSTER: Obj = {
    "apiVersion": "ocs.openshift.io/v1",
    "kind": "StorageCluster",
    "metadata": {"name": "ocs-storagecluster", "namespace": "openshift-storage"},
    "spec": {},
}
STORAGE: Obj = {"name": "storage", "namespace": "openshift-storage", "path": "storage", "kustomize": True}
GROUP: Obj = {
    "global": {"singleArgoCD": True, "secretStore": {"backend": "none"}},
    "clusterGroup": {"applications": {"storage": STORAGE}},
}
"""What a pattern has beside the scene: an application that asks the operator for storage."""
RBAC = "rbac.authorization.k8s.io"
BASIC_USERS: tuple[Obj, ...] = (
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "basic-user"},
        "rules": [{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["get", "list"]}],
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "basic-users"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "basic-user"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}],
    },
)
"""As OpenShift's ``basic-user``: the Jobs of the scene run as an account without rights of its own."""
CURES: Mapping[str, Obj] = {
    "none": {
        "subscriptions": {
            "openshift-virtualization": {"annotations": {WAVE: "5"}},
            "openshift-data-foundation": {"sequenceJob": {"disabled": True}},
        },
        "extraObjects": {"wait-for-virt-storageclass": {"disabled": True}},
    },
    "jobs": {},
    "wait": {
        "subscriptions": {"openshift-data-foundation": {"annotations": {"syncline.dev/sequence-job": "wait"}}},
        "extraObjects": {"wait-for-virt-storageclass": {"disabled": True}},
    },
    "gate": {
        "subscriptions": {
            "openshift-virtualization": {
                "annotations": {"syncline.dev/wait-for": f"{{gate: storageclass-present, name: {CLASS}}}"}
            },
            "openshift-data-foundation": {"sequenceJob": {"disabled": True}},
        },
        "extraObjects": {"wait-for-virt-storageclass": {"disabled": True}},
    },
}
"""Layers over the scene's values by cure; ``jobs`` is the scene as it is."""


def files_of(cure: str) -> dict[str, str]:
    """Return by path what a pattern has beside the values of the scene."""
    return {
        "values-global.yaml": f"global: {{pattern: {NAME}}}\n",
        "group.yaml": dump(GROUP),
        "cure.yaml": dump({"clusterGroup": CURES[cure]}),
        "storage/kustomization.yaml": "resources: [storagecluster.yaml]\n",
        "storage/storagecluster.yaml": dump(STORAGE_CLUSTER),
    }


def installation(scene: Path, cure: str, *, storage_after: timedelta) -> Installation:
    """Return what is rehearsed. ``storage_after``: how long the first operator takes for its storage classes."""
    catalogs = FolderCatalogs.read({"redhat-operators": EXAMPLES / "redhat-operators"})
    known = shipped()
    ocs = known.of("ocs-operator")
    assert ocs is not None, "it comes along"
    soon = tuple(replace(line, after=storage_after) for line in ocs.lines)
    return Installation(
        scene,
        NAME,
        GROUP_NAME,
        catalogs,
        known.with_(Behaviours({ocs.package: replace(ocs, lines=soon)})),
        spec={"extraValueFiles": ["group.yaml", "cure.yaml"]},
        files=files_of(cure),
        objects=BASIC_USERS,
        platform=Platform(""),
        nodes=1,
    )
