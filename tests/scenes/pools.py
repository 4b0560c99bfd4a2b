"""What the pool-pause scene needs to be there before: definitions, a pool, and the rights of its Jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import load_all

GROUP = "machineconfiguration.openshift.io"
POOL = f"/apis/{GROUP}/v1/machineconfigpools/worker"
NAMESPACE = "openshift-gitops"
WATCHED = ("deployments", "machineconfigs", "jobs")


def _definition(plural: str, kind: str) -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    if kind == "MachineConfigPool":
        names["shortNames"] = ["mcp"]  # type: ignore[assignment]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def prerequisites(scene: Path, *, rights: bool = True) -> list[tuple[str, Obj]]:
    """(path, object) in the order in which they are made."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    pool = {"apiVersion": f"{GROUP}/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}, "spec": {}}
    found: list[tuple[str, Obj]] = [
        ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        (crds, _definition("machineconfigpools", "MachineConfigPool")),
        (crds, _definition("machineconfigs", "MachineConfig")),
        (POOL.rpartition("/")[0], pool),
    ]
    paths = {
        "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    }
    if rights:
        loaded = load_all((scene / "sync-job-cluster-rbac.yaml").read_bytes())
        found += [(paths[document.value["kind"]], document.value) for document in loaded.documents]
    return found


class Timeline:
    """The order in which pools were paused and things of the scene appeared and went, from the store's own events."""

    def __init__(self, store: Any) -> None:
        self.lines: list[str] = []
        self._paused: Any = None
        store.subscribe(self._note)

    def _note(self, event: Any) -> None:
        key = event.stored.key
        if key.resource.endswith("machineconfigpools"):
            paused = event.stored.obj.get("spec", {}).get("paused")
            if paused != self._paused:
                self._paused = paused
                self.lines.append(f"pool paused: {paused}")
        elif key.resource.split("/")[-1] in WATCHED and event.type in ("ADDED", "DELETED"):
            self.lines.append(f"{event.type.lower()} {key.resource.split('/')[-1]} {key.name}")

    def index(self, line: str) -> int:
        return self.lines.index(line)
