"""The scene ``cluster-group``: a Pattern of its values, unchanged, on a cluster with operators, in virtual time.

What a cure changes is a values file of its own, laid over the scene's, as a person would add one.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.recorded import ROOT, SCENES

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.operators.folders import FolderCatalogs
from syncline.assembly.operators.role import folder_role
from syncline.assembly.patterns.checkouts import Checkouts
from syncline.assembly.running import source_reader
from syncline.base.journal import Entry
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig
from syncline.kube.yaml.loading import dump
from syncline.patterns.installing.reading import Found, Wanted
from syncline.patterns.operators.behaving import Behaviours, shipped
from syncline.rehearsal.world import World

SCENE = SCENES / "cluster-group"
REPO, CHART = "https://git.example.com/org/shop", "https://git.example.com/charts/clustergroup"
PATTERNS = "/apis/gitops.hybrid-cloud-patterns.io/v1alpha1/namespaces/openshift-operators/patterns"
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
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


@dataclass(frozen=True)
class Mapped:
    """The reader of repositories, for which public addresses are local copies."""

    inner: Any
    copies: Mapping[str, str]

    def read(self, sources: Any, *rest: Any, **more: Any) -> Any:
        return self.inner.read(self._local(sources), *rest, **more)

    def poll(self, sources: Any, *rest: Any, **more: Any) -> Any:
        return self.inner.poll(self._local(sources), *rest, **more)

    def _local(self, sources: Any) -> Any:
        return tuple({**one, "repoURL": self.copies.get(one["repoURL"], one["repoURL"])} for one in sources)

    def checkout(self, wanted: Wanted, now: datetime) -> Found:
        local = Wanted(self.copies.get(wanted.url, wanted.url), wanted.revision, wanted.names)
        return Checkouts(self.inner.sources).checkout(local, now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Scene:
    """A cluster on which the scene is a Pattern; ``cure`` names the layer."""

    def __init__(self, where: Path, cure: str) -> None:
        self.where = where
        layer = {"clusterGroup": CURES[cure]}
        pattern = self._repository(
            "shop",
            {
                "values-global.yaml": "global: {pattern: shop}\n",
                "group.yaml": dump(GROUP),
                "cure.yaml": dump(layer),
                "storage/kustomization.yaml": "resources: [storagecluster.yaml]\n",
                "storage/storagecluster.yaml": dump(STORAGE_CLUSTER),
            },
            SCENE,
        )
        chart = self._repository("chart", {"Chart.yaml": "apiVersion: v2\nname: clustergroup\nversion: 0.9.55\n"})
        settings = GitOpsSettings(where / "mirrors", allow_local_repos=True)
        self.reader = Mapped(source_reader(settings), {REPO: pattern, CHART: chart})
        self.world = World(self.reader, nodes=1)
        self.driver = self.world.driver
        self._let_everyone_see_classes()
        self._start_operators()
        self.world.start_patterns(self.reader)
        self.driver.advance(5)

    def _repository(self, name: str, files: Mapping[str, str], scene: Path | None = None) -> str:
        folder = self.where / name
        folder.mkdir()
        if scene is not None:
            shutil.copytree(scene, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        for command in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "as given")):
            subprocess.run(["git", "-C", str(folder), *IDENTITY, *command], check=True, timeout=30)
        return str(folder)

    def _let_everyone_see_classes(self) -> None:
        """As OpenShift's ``basic-user``: the Jobs of the scene run as an account without rights of its own."""
        rbac = "rbac.authorization.k8s.io"
        rules = [{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["get", "list"]}]
        role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "basic-user"}, "rules": rules}
        binding = {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "basic-users"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "basic-user"},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "system:authenticated"}],
        }
        self.world.send("POST", f"/apis/{rbac}/v1/clusterroles", role)
        self.world.send("POST", f"/apis/{rbac}/v1/clusterrolebindings", binding)

    def _start_operators(self) -> None:
        catalogs = FolderCatalogs.read({"redhat-operators": ROOT / "examples/operators/redhat-operators"})
        known = shipped()
        ocs = known.of("ocs-operator")
        assert ocs is not None
        soon = tuple(replace(line, after=timedelta(minutes=2)) for line in ocs.lines)  # in place of five, to run faster
        role = folder_role(catalogs, known.with_(Behaviours({ocs.package: replace(ocs, lines=soon)})))
        self.world.start_role(role)

    def install(self) -> None:
        spec = {
            "clusterGroupName": "hub",
            "gitSpec": {"targetRepo": REPO, "targetRevision": "main"},
            "multiSourceConfig": {"clusterGroupGitRepoUrl": CHART, "clusterGroupChartGitRevision": "main"},
            "extraValueFiles": ["group.yaml", "cure.yaml"],
        }
        body = {"apiVersion": "gitops.hybrid-cloud-patterns.io/v1alpha1", "kind": "Pattern"}
        self.world.send("POST", PATTERNS, body | {"metadata": {"name": "shop"}, "spec": spec})

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

    def entries(self, *words: str) -> list[Entry]:
        return [one for one in self.world.journal if any(word in one.what for word in words)]
