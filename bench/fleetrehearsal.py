"""A commit with a node change, rehearsed on a fleet: ``python -m bench rehearsal``.

Started for one size in a process of its own, so that its peak memory is its own. The clusters are of ten kinds that
differ in values, node counts and budgets; in the last one a budget lets no pod go, so its nodes cannot be drained.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.table import Table
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump
from syncline.rehearsal.fleet.answer import FleetAnswer
from syncline.rehearsal.fleet.given import FleetWorld, parse_fleet
from syncline.rehearsal.fleet.rehearsing import FleetAsked, rehearse_fleet
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.rehearsing import Settings

KINDS = 10
NAMESPACE = "openshift-gitops"
APPS = "apps.open-cluster-management.io"
URL = "https://git.example.com/fleet.git"
HOURS = 24
SIZES = ((50, 20, 10), (500, 20, 10), (500, 5, 10), (500, 20, 50), (500, 20, 100))


@dataclass(frozen=True)
class Size:
    clusters: int
    nodes: int
    apps: int

    def __str__(self) -> str:
        return f"{self.clusters} clusters × {self.nodes} nodes × {self.apps} Applications"


def world(size: Size) -> FleetWorld:
    """Return a fleet of ten kinds of clusters. Their workers differ by up to four from each other, around ``nodes``."""
    entries = []
    for kind in range(KINDS):
        workers = {"name": "worker", "count": max(size.nodes - 3 + kind % 5 - 2, 1), "roles": ["worker"]}
        masters = {"name": "master", "count": 3, "roles": ["master"], "taints": [f"{ROLE}/master:NoSchedule"]}
        labels = {"tier": f"t{kind}", "syncline.dev/cluster-wave": str(min(kind, 3))}
        count = size.clusters // KINDS
        entries.append(
            {
                "name": f"site{kind}",
                "count": count,
                "labels": labels,
                "machineConfig": True,
                "nodes": [masters, workers],
            }
        )
    return parse_fleet(dump({"clusters": entries}), Path("fleet.yaml"), Files({}))


ROLE = "node-role.kubernetes.io"


def repository(size: Size, *, changed: bool) -> Files:
    """Return a set for each Application, with a folder for each kind of cluster; the first one configures nodes."""
    content = {"hub/importer.yaml": dump(_importer())}
    for number in range(size.apps):
        app = f"app-{number:03}"
        content[f"hub/{app}.yaml"] = dump(_set(app))
        for kind in range(KINDS):
            folder = f"apps/{app}/t{kind}"
            content[f"{folder}/web.yaml"] = "---\n".join(dump(one) for one in _workload(app, kind, changed=changed))
            if number == 0:
                content[f"{folder}/nodes.yaml"] = dump(_machine_config("two" if changed else "one"))
    return Files({path: text.encode() for path, text in content.items()})


def _importer() -> Obj:
    placement = {"kind": "Placement", "apiVersion": "cluster.open-cluster-management.io/v1beta1", "name": "all"}
    spec = {"argoServer": {"cluster": "notused", "argoNamespace": NAMESPACE}, "placementRef": placement}
    metadata = {"name": "importer", "namespace": NAMESPACE}
    return {"apiVersion": f"{APPS}/v1beta1", "kind": "GitOpsCluster", "metadata": metadata, "spec": spec}


def _set(app: str) -> Obj:
    metadata = {
        "name": f"{{{{name}}}}-{app}",
        "labels": {f"{APPS}/pull-to-ocm-managed-cluster": "true"},
        "annotations": {f"{APPS}/ocm-managed-cluster": "{{name}}", "argocd.argoproj.io/skip-reconcile": "true"},
    }
    spec = {
        "project": "default",
        "source": {"repoURL": URL, "path": f"apps/{app}/{{{{metadata.labels.tier}}}}", "targetRevision": "main"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": app},
        "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]},
    }
    chosen = {"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": app, "namespace": NAMESPACE},
        "spec": {"generators": [{"clusters": chosen}], "template": {"metadata": metadata, "spec": spec}},
    }


def _workload(app: str, kind: int, *, changed: bool) -> list[Obj]:
    labels = {"app": app}
    container = {"name": "web", "image": "example.com/web:1", "env": [{"name": "TIER", "value": f"t{kind}"}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    settings = {"tier": f"t{kind}", "version": "2" if changed else "1"}
    budget = {"minAvailable": 2 if kind == KINDS - 1 else 1, "selector": {"matchLabels": labels}}
    ports = {"selector": labels, "ports": [{"port": 80}]}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app}, "data": settings},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app}, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app}, "spec": ports},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": budget},
    ]


def _machine_config(text: str) -> Obj:
    file = {"path": "/etc/site", "mode": 420, "contents": {"source": f"data:,{text}"}}
    config = {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}
    labels = {"machineconfiguration.openshift.io/role": "worker"}
    metadata = {"name": "99-site", "labels": labels}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": metadata,
        "spec": {"config": config},
    }


def rehearsed(size: Size, processes: int = 0) -> FleetAnswer:
    """Rehearse a commit that touches all Applications, and the files of all workers."""
    before, after = repository(size, changed=False), repository(size, changed=True)
    asked = FleetAsked("fleet", after, world(size), before)
    settings = Settings(cures=False, ranged=False, report=lambda text: print(text, file=sys.stderr, flush=True))
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        return rehearse_fleet(asked, Path(place), settings, processes)


def figures(table: Table, *, quick: bool) -> None:
    """Rehearse each size in a process of its own."""
    table.title(f"A commit rehearsed on a fleet, up to {HOURS} virtual hours")
    for clusters, nodes, apps in ((20, 5, 2),) if quick else SIZES:
        size = Size(clusters, nodes, apps)
        command = [sys.executable, "-m", "bench.fleetrehearsal", *map(str, (clusters, nodes, apps))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        table.row(str(size), *done.stdout.strip().split("\t"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("clusters", "nodes", "apps"):
        parser.add_argument(name, type=int)
    parser.add_argument("--processes", type=int, default=0)
    given = parser.parse_args()
    begun = time.perf_counter()
    found = rehearsed(Size(given.clusters, given.nodes, given.apps), given.processes)
    took = time.perf_counter() - begun
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(one.ru_utime + one.ru_stime for one in (own, below))
    peak = (own.ru_maxrss + 2 * below.ru_maxrss) / 1024
    counts = f"{len(found.classes)} classes, {len(found.sample)} compared, {found.outcome}"
    print(f"{took:.1f} s\t{cpu:.1f} s of CPU, at most {peak:.0f} MiB, {counts}: {found.headline[:100]}")


if __name__ == "__main__":
    main()
