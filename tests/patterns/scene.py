"""The scene ``cluster-group``: a Pattern of its values, unchanged, on a cluster with operators, in virtual time.

What a cure changes is a values file of its own, laid over the scene's, as a person would add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.recorded import ROOT, SCENES

from syncline.assembly.operators.folders import FolderCatalogs
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig
from syncline.kube.yaml.loading import dump
from syncline.patterns.operators.behaving import Behaviours, shipped
from syncline.rehearsal.installing.playing import Installation, Platform, Playing

SCENE = SCENES / "cluster-group"
PATTERNS = "/apis/gitops.hybrid-cloud-patterns.io/v1alpha1/namespaces/openshift-operators/patterns"
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


class Scene(Playing):
    """A cluster on which the scene is a Pattern; ``cure`` names the layer."""

    def __init__(self, where: Path, cure: str, *, storage_after: timedelta = timedelta(minutes=2)) -> None:
        catalogs = FolderCatalogs.read({"redhat-operators": ROOT / "examples/operators/redhat-operators"})
        known = shipped()
        ocs = known.of("ocs-operator")
        assert ocs is not None
        soon = tuple(replace(line, after=storage_after) for line in ocs.lines)
        files = {
            "values-global.yaml": "global: {pattern: shop}\n",
            "group.yaml": dump(GROUP),
            "cure.yaml": dump({"clusterGroup": CURES[cure]}),
            "storage/kustomization.yaml": "resources: [storagecluster.yaml]\n",
            "storage/storagecluster.yaml": dump(STORAGE_CLUSTER),
        }
        asked = Installation(
            SCENE,
            "shop",
            "hub",
            catalogs,
            known.with_(Behaviours({ocs.package: replace(ocs, lines=soon)})),
            spec={"extraValueFiles": ["group.yaml", "cure.yaml"]},
            files=files,
            objects=BASIC_USERS,
            platform=Platform(""),
            nodes=1,
        )
        super().__init__(asked, where)

    def get(self, path: str) -> Obj | None:
        try:
            found: Obj = self.world.send("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found

    def parent(self) -> Obj:
        return self.get("/apis/argoproj.io/v1alpha1/namespaces/vp-gitops/applications/shop-hub") or {}

    def chosen(self) -> str:
        """The class that the second operator chose when it started; empty: it has not."""
        found = self.get("/api/v1/namespaces/openshift-cnv/configmaps/boot-images-storage")
        return str(dig(found, "data", "storageClass") or "")
