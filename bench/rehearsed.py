"""``python -m bench rehearsed [--quick]``: what one cluster of a rehearsed fleet costs, in virtual time.

20 nodes with pools, 100 Applications of a Deployment, a Service, a budget and a ConfigMap each, in one repository: they
are installed, and a commit arrives that touches all of them, and then one that changes the machines, too. CPU of the
process and of the git processes that it starts.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from bench.table import Table
from syncline.base.interpreter import seldom_collecting
from syncline.control.loop import Observer
from syncline.control.plan import Plan
from syncline.control.workqueue import Key
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import GivenWorld, parse_world
from syncline.rehearsal.playing import Asked, Play

__all__ = ["figures"]

WORLD = """\
machineConfig: true
nodes:
- {{name: master, count: 3, roles: [master], taints: ["node-role.kubernetes.io/master:NoSchedule"]}}
- {{name: worker, count: {workers}, roles: [worker]}}
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: https://bench.example/repository.git, path: {path}, targetRevision: main}}
  destination: {{server: https://kubernetes.default.svc, namespace: {space}}}
  syncPolicy: {{automated: {{prune: true, selfHeal: true}}, syncOptions: [CreateNamespace=true]}}
---
"""
MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: main
        image: "registry.example/{name}:{version}"
        ports: [{{containerPort: 8080}}]
        envFrom: [{{configMapRef: {{name: {name}}}}}]
        resources: {{requests: {{cpu: 50m, memory: 64Mi}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {name}}}
spec: {{maxUnavailable: 1, selector: {{matchLabels: {{app: {name}}}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}}}
data: {{version: "{version}"}}
"""
MACHINES = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {{name: 50-bench, labels: {{machineconfiguration.openshift.io/role: worker}}}}
spec:
  config:
    ignition: {{version: 3.4.0}}
    storage: {{files: [{{path: /etc/bench, mode: 420, contents: {{source: "data:,{version}"}}}}]}}
"""


def repository(applications: int, version: int, machines: int = 1) -> Files:
    content = {"machines/config.yaml": MACHINES.format(version=machines)}
    roots = APPLICATION.format(name="machines", path="machines", space="default")
    for number in range(applications):
        name = f"app-{number:03}"
        roots += APPLICATION.format(name=name, path=f"apps/{name}", space=name)
        content[f"apps/{name}/all.yaml"] = MANIFESTS.format(name=name, version=version)
    content["applications.yaml"] = roots
    return Files({path: text.encode() for path, text in content.items()})


@dataclass
class Passes(Observer):
    """Passes by controller, and those of them that wrote nothing."""

    all: Counter[str] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)

    def planned(self, key: Key, plan: Plan, began: datetime, ended: datetime) -> None:
        self.all[key.controller] += 1
        self.idle[key.controller] += not any(plan.steps) and not plan.status


@contextmanager
def spending() -> Iterator[list[float]]:
    """Yield a list that gets the seconds of CPU of this process and its children."""
    begun, spent = _cpu_s(), list[float]()
    yield spent
    spent.append(_cpu_s() - begun)


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@seldom_collecting()
def figures(table: Table, *, quick: bool) -> None:
    workers, applications = (7, 20) if quick else (17, 100)
    table.title(f"A rehearsed cluster: {workers + 3} nodes, {applications} Applications; CPU of one process")
    world = parse_world(WORLD.format(workers=workers), Path("world.yaml"), Files({}))
    asked = Asked("bench", repository(applications, 1), world)
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        run = Play(asked, Path(place))
        with spending() as spent:
            run.prepare()
        _row(table, run, "the machines come up", spent[0], 0)
        for what, version, machines in (("install", 1, 1), ("a commit to all", 2, 1), ("and to the machines", 3, 2)):
            seen, revision = _observed(run), run.world.core.store.revision
            with spending() as spent:
                run.commit(repository(applications, version, machines))
                ending, _ = run.run(timedelta(hours=24))
            _row(table, run, what, spent[0], revision)
            table.row("  passes, ended", f"{seen.all.total():,}", f"{ending}; {seen.idle.total():,} wrote nothing")
        with spending() as spent:
            run.world.driver.advance(3600)
        table.row("an hour at rest", f"{spent[0]:.2f} s")
    _given(table, world, applications)
    table.row("resident at most", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    if os.environ.get("BENCH_PASSES"):
        for name, count in seen.all.most_common(25):
            table.row(f"  {name}", f"{count:,}", f"{seen.idle[name]:,} wrote nothing")


def _given(table: Table, world: GivenWorld, applications: int) -> None:
    """As a cluster of a fleet is played: at rest with what was there before, and one commit."""
    before, after = repository(applications, 1), repository(applications, 3, 2)
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        run = Play(Asked("bench", after, world, before), Path(place))
        with spending() as spent:
            run.prepare()
        _row(table, run, "at rest with what was there before", spent[0], 0)
        revision = run.world.core.store.revision
        with spending() as spent:
            run.commit(after)
            run.run(timedelta(hours=24))
        _row(table, run, "a commit to all and to the machines", spent[0], revision)


def _row(table: Table, run: Play, what: str, spent_s: float, since: int) -> None:
    table.row(what, f"{spent_s:.2f} s", f"{run.world.core.store.revision - since:,} writes")


def _observed(run: Play) -> Passes:
    seen = Passes()
    for actor in run.world.driver.actors:
        loop = getattr(actor, "loop", None)
        if loop is not None:
            loop.observers = [seen]
    return seen
