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
from dataclasses import dataclass
from pathlib import Path

from bench.table import Table
from syncline.assembly.reading import GitSourceReader
from syncline.assembly.virtual import VirtualWorld
from syncline.gitops.application.observe import AppSettings
from syncline.kube.objects import Obj, dig

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


@dataclass(slots=True)
class Monorepo:
    """``count`` Applications of :data:`OBJECTS` ConfigMaps, each in its own folder of one repository."""

    count: int
    place: Path
    world: VirtualWorld

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
        world = VirtualWorld(reader, nodes=0, settings=AppSettings(poll_s=POLL_S))
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
    """The curve: what a period costs in which nothing happened, and one in which one Application's file changed."""
    table.title(f"Applications of {OBJECTS} objects each in one repository; CPU of one process")
    for count in CURVE[:2] if quick else CURVE:
        with tempfile.TemporaryDirectory(prefix="bench-") as place:
            _point(table, count, Path(place))


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
