"""``python -m bench applications [--quick]``: many Applications in one repository, and what one commit costs them.

In virtual time, so that the figures are CPU of one process and nothing else: real Git repositories, the embedded API,
the GitOps controllers; no sockets, no waiting. The curve shows whether the cost of a commit grows with what it changes
or with what exists.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.table import Table
from syncline.apply.diff import DiffSettings
from syncline.apply.diff.compare import compare_objects
from syncline.assembly.embedded.core import build_core
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.storage.store import Store
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import create
from syncline.kube.objects import Obj, ResourceInfo, dig, name_of
from syncline.rehearsal.world import World

__all__ = ["figures"]

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
OBJECTS = 10
IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
POLL_S = 180.0
CURVE = (100, 300, 1000, 3000)
MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {app}-{number}
data:
  version: "{version}"
  text: {text}
"""


HOOK_S = 10
PODS_OF_A_NODE = 50
"""So that a thousand Jobs have room at one time: a simulated node takes 110 pods."""
HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  name: {app}
  annotations: {{argocd.argoproj.io/hook: PreSync}}
spec:
  template:
    metadata:
      annotations: {{syncline.dev/run-seconds: "{seconds}"}}
    spec:
      restartPolicy: Never
      containers: [{{name: work, image: "work:1", command: [work]}}]
"""
DEPLOYMENTS = ResourceInfo("apps", "v1", "Deployment", "deployments", namespaced=True)


@dataclass(slots=True)
class Monorepo:
    """``count`` Applications of :data:`OBJECTS` ConfigMaps, each in its own folder of one repository."""

    count: int
    place: Path
    world: World

    @classmethod
    def begin(cls, count: int, place: Path) -> Monorepo:
        repository = place / "repository"
        for index in range(count):
            folder = repository / "apps" / f"app-{index:04}"
            folder.mkdir(parents=True)
            for number in range(OBJECTS):
                (folder / f"{number}.yaml").write_text(_manifest(index, number, 1))
        _git(repository, "init", "-q", "-b", "main")
        _git(repository, "add", ".")
        _git(repository, *IDENTITY, "commit", "-q", "-m", "All applications")
        reader = GitSourceReader(place / "mirrors", allow_local=True)
        world = World(reader, nodes=0, settings=AppSettings(poll_s=POLL_S))
        world.driver.settle()
        return cls(count, place, world)

    def converge(self) -> None:
        for index in range(self.count):
            self.world.send("POST", APPS, _application(self.place / "repository", index))
        self.world.driver.until(self._all_synced, limit_s=3600)

    def _all_synced(self) -> bool:
        if self.world.core.store.revision < self.count * OBJECTS:
            return False
        apps = self.world.send("GET", APPS)["items"]
        return all(_calm(app) for app in apps)

    def commit(self) -> str:
        """Another version of one object of one Application."""
        repository = self.place / "repository"
        (repository / "apps" / "app-0000" / "0.yaml").write_text(_manifest(0, 0, 2))
        _git(repository, *IDENTITY, "commit", "-q", "-a", "-m", "One object")
        return _git(repository, "rev-parse", "HEAD")

    def look(self) -> None:
        """One whole period in which every Application looks at the repository once."""
        self.world.driver.advance(POLL_S * 1.5)

    def changed(self) -> bool:
        found = self.world.send("GET", "/api/v1/namespaces/default/configmaps/app-0000-0")
        return bool(found["data"]["version"] == "2")


@dataclass(slots=True)
class Hooks:
    """``count`` Applications with a PreSync Job and a ConfigMap each; all syncs are asked for at one moment."""

    count: int
    world: World

    @classmethod
    def begin(cls, count: int, place: Path, *, nodes: int) -> Hooks:
        repository = place / "repository"
        for index in range(count):
            folder = repository / "apps" / f"app-{index:04}"
            folder.mkdir(parents=True)
            (folder / "job.yaml").write_text(HOOK.format(app=f"app-{index:04}", seconds=HOOK_S))
            (folder / "map.yaml").write_text(_manifest(index, 0, 1))
        _git(repository, "init", "-q", "-b", "main")
        _git(repository, "add", ".")
        _git(repository, *IDENTITY, "commit", "-q", "-m", "All applications")
        reader = GitSourceReader(place / "mirrors", allow_local=True)
        world = World(reader, nodes=nodes, settings=AppSettings(poll_s=3600))
        world.driver.settle()
        for index in range(count):
            made = _application(repository, index)
            made["spec"]["syncPolicy"] = {}
            world.send("POST", APPS, made)
        world.driver.settle()
        return cls(count, world)

    def simulate(self) -> float:
        body = {"operation": {"sync": {}}}
        for index in range(self.count):
            self.world.send("PATCH", f"{APPS}/app-{index:04}", body, "application/merge-patch+json")
        began = self.world.clock.now()
        self.world.driver.until(self._all_done, limit_s=7200)
        return (self.world.clock.now() - began).total_seconds()

    def _all_done(self) -> bool:
        maps = self.world.send("GET", "/api/v1/namespaces/default/configmaps")["items"]
        if len(maps) <= self.count:  # one is the cluster's own
            return False
        phases = [dig(app, "status", "operationState", "phase") for app in self.world.send("GET", APPS)["items"]]
        return all(phase == "Succeeded" for phase in phases)


def _manifest(index: int, number: int, version: int) -> str:
    return MANIFEST.format(app=f"app-{index:04}", number=number, version=version, text="x" * 400)


def _git(where: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(where), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _application(repository: Path, index: int) -> Obj:
    name = f"app-{index:04}"
    spec = {
        "project": "default",
        "source": {"repoURL": str(repository), "path": f"apps/{name}", "targetRevision": "main"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
    }
    metadata = {"name": name, "namespace": "argocd"}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def _calm(app: Obj) -> bool:
    synced = dig(app, "status", "sync", "status") == "Synced" and dig(app, "status", "health", "status") == "Healthy"
    return synced and dig(app, "status", "operationState", "phase") == "Succeeded" and not app.get("operation")


def figures(table: Table, *, quick: bool) -> None:
    """The curve: what a period costs in which nothing happened, and one in which one Application's file changed. Then
    hooks side by side, and comparisons by themselves."""
    table.title(f"Applications of {OBJECTS} objects each in one repository; CPU of one process")
    for count in CURVE[:2] if quick else CURVE:
        with tempfile.TemporaryDirectory(prefix="bench-") as place:
            _point(table, count, Path(place))
    _hooks_side_by_side(table, 100 if quick else 1000)
    _comparisons(table, 200 if quick else 2000)


def _hooks_side_by_side(table: Table, count: int) -> None:
    """Virtual seconds until all are synced, beside those of one alone: the critical path."""
    table.title(f"{count:,} Applications with a PreSync Job of {HOOK_S} s each, in virtual time, nothing tuned")
    spans = []
    for many in (1, count):
        with tempfile.TemporaryDirectory(prefix="bench-") as place:
            hooks = Hooks.begin(many, Path(place), nodes=1 + count // PODS_OF_A_NODE)
            begun = _cpu()
            spans.append(hooks.simulate())
            spent = _cpu() - begun
    alone, together = spans
    table.row("one alone", f"{alone:.1f} s", "virtual")
    table.row(f"all {count:,}", f"{together:.1f} s", f"{together / alone:.2f} × one alone, {spent:.1f} s CPU")


def _comparisons(table: Table, count: int) -> None:
    """Targets against live objects with defaults, status and managed fields; no answer is remembered."""
    settings, pairs = DiffSettings(), _pairs(count)
    begun = time.process_time()
    for target, live in pairs:
        if compare_objects(target, live, settings).modified:
            raise SystemExit(f"{name_of(target)} is not expected to differ")
    spent = time.process_time() - begun
    table.title("Comparison")
    table.row("Deployments of 3 KB with their live objects", f"{count / spent:,.0f}/s", "nothing remembered")


def _pairs(count: int) -> list[tuple[Obj, Obj]]:
    """Deployments as somebody wrote them, and as a cluster holds them."""
    core = build_core(store=Store(), clock=VirtualClock(), entropy=Entropy(1))
    core.bootstrap(port=6443)
    send, pairs = core.transport().send, []
    for number in range(count):
        env = [{"name": f"SETTING_{index}", "value": "x" * 20} for index in range(20)]
        container = {"name": "main", "image": f"shop:{number}", "env": env, "ports": [{"containerPort": 8080}]}
        pod = {"metadata": {"labels": {"app": f"a{number}"}}, "spec": {"containers": [container]}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": f"a{number}"}}, "template": pod}
        metadata = {"name": f"a{number}", "namespace": "default"}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        pairs.append((target, send(create(DEPLOYMENTS, target, field_manager="argocd-controller")).or_raise()))
    return pairs


def _point(table: Table, count: int, place: Path) -> None:
    mono = Monorepo.begin(count, place)
    gc.collect()
    before = _resident_mib()
    begun = _cpu()
    mono.converge()
    spent = _cpu() - begun
    rate = f"{count * OBJECTS / spent:,.0f} objects/s"
    table.row(f"{count:,} applications, from nothing to Synced", f"{spent:.1f} s", rate)
    grown = (_resident_mib() - before) * 1024 / count
    table.row("  resident", f"{_resident_mib():.0f} MiB", f"{grown:.0f} KiB an application with its objects")
    quiet, _ = _period(mono)
    mono.commit()
    busy, writes = _period(mono)
    assert mono.changed(), "the commit has not arrived"
    table.row("  a period without a commit", f"{quiet * 1000:.0f} ms", f"{quiet / count * 1e3:.2f} ms an application")
    more = busy - quiet
    table.row(
        "  a period with a commit for one of them", f"{busy * 1000:.0f} ms", f"{more * 1e3:+.0f} ms, {writes} writes"
    )


def _period(mono: Monorepo) -> tuple[float, int]:
    revision, begun = mono.world.core.store.revision, _cpu()
    mono.look()
    return _cpu() - begun, mono.world.core.store.revision - revision


def _cpu() -> float:
    """Of this process and of the git processes that it waited for, in seconds."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
