"""``python -m bench disturbed [--quick]``: what a stranger waits for beside tenants that use up all they can.

Printed are the latency of the API, the time until a stranger's Application is Synced and until a stranger's Pod runs,
alone and beside each disturbance; each disturbance has a server of its own. The goal is three times the undisturbed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.processes import Blocking, Running, free_port, running, syncline
from bench.table import Table

__all__ = ["figures"]

APPLICATIONS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
PODS = "/api/v1/namespaces/default/pods"
READ = "/api/v1/namespaces/default"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
HANGING = 100
HOGS = 6
LOOK_EVERY_S, LONGEST_S = 0.02, 300.0
SETTLES_S = 4.0
ENDLESS = "std.foldl(function(a, b) a + b, std.range(0, 2000000000), 0)"
LOOPS = "{{ range $i := until 100000 }}{{ range $j := until 100000 }}{{ if eq $j -1 }}x{{ end }}{{ end }}{{ end }}"
WAIT_FOR = "{kind: ConfigMap, name: text, cel: 'lists.range(10000).all(x, object.data.text.matches(\"(x+x+)+y\"))'}"
JQ = "[range(1000000000)] | map(select(. < 0))"
BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass\n"


@dataclass(frozen=True)
class Waited:
    """Milliseconds of reads, seconds of the others, the median of some."""

    read_ms: float
    synced_s: float
    runs_s: float


class Scene:
    """One server, and what tenants do to it."""

    def __init__(self, server: Running, folder: Path) -> None:
        self.server = server
        self.link = Blocking(server)
        self.folder = folder
        self._strangers = 0

    def application(self, name: str, url: str, path: str = ".", **more: Any) -> None:
        source = {"repoURL": url, "path": path, "targetRevision": "HEAD"}
        destination = {"server": "https://kubernetes.default.svc", "namespace": "default"}
        spec = {"project": "default", "source": source, "destination": destination, **more}
        spec["syncPolicy"] = {"automated": {}}
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name}}
        self.link.send("POST", APPLICATIONS, kind | {"spec": spec})

    def pod(self, name: str, *command: str) -> None:
        container = {"name": "main", "image": "busybox", "command": list(command)}
        spec = {"restartPolicy": "Never", "containers": [container]}
        kind = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
        self.link.send("POST", PODS, kind | {"spec": spec})

    def repository(self, name: str, files: dict[str, str]) -> str:
        place = self.folder / name
        place.mkdir()
        for file, text in files.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(text)
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
        for command in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "--allow-empty", "-m", "Objects")):
            subprocess.run(["git", "-C", str(place), *command], check=True)
        return str(place)

    def until(self, path: str, reached: Callable[[Any], bool]) -> float:
        begun = time.perf_counter()
        while not reached(self.link.send("GET", path)):
            if time.perf_counter() - begun > LONGEST_S:
                return LONGEST_S
            time.sleep(LOOK_EVERY_S)
        return time.perf_counter() - begun

    def stranger(self) -> tuple[float, float]:
        """Seconds until a new Application is Synced, and until a new Pod runs."""
        self._strangers += 1
        name = f"stranger-{self._strangers}"
        self.application(name, self.repository(name, {"a.yaml": CONFIG_MAP.format(name=name)}))
        synced = self.until(f"{APPLICATIONS}/{name}", lambda app: _at(app, "sync", "status") == "Synced")
        self.pod(name, "sleep", "600")
        return synced, self.until(f"{PODS}/{name}", lambda pod: _at(pod, "phase") in ("Running", "Failed"))

    def waited(self, seconds: float, strangers: int) -> Waited:
        taken, end = list[float](), time.perf_counter() + seconds
        while time.perf_counter() < end:
            begun = time.perf_counter()
            self.link.send("GET", READ)
            taken.append((time.perf_counter() - begun) * 1e3)
        times = [self.stranger() for _ in range(strangers)]
        synced, runs = (statistics.median(each) for each in zip(*times, strict=True))
        return Waited(statistics.quantiles(taken, n=100)[98], synced, runs)


def _at(obj: Any, *path: str) -> Any:
    found = obj.get("status")
    for name in path:
        found = (found or {}).get(name)
    return found


# -- disturbances -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _nothing(_scene: Scene) -> Iterator[None]:
    yield


@contextlib.contextmanager
def _remotes_and_budgets(scene: Scene) -> Iterator[None]:
    """Git remotes that accept and say nothing, each on a port of its own; Jsonnet and Helm that compute for ever."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(HANGING)]
    for number, one in enumerate(sockets):
        scene.application(f"hangs-{number}", f"http://127.0.0.1:{one.getsockname()[1]}/r.git")
    jsonnet = {f"{number}/a.jsonnet": f"{ENDLESS} + {number}" for number in range(HOGS)}
    charts = {f"{number}/Chart.yaml": f"apiVersion: v2\nname: c{number}\nversion: 1.0.0\n" for number in range(HOGS)}
    charts |= {f"{number}/templates/a.yaml": LOOPS for number in range(HOGS)}
    for name, files in (("jsonnet", jsonnet), ("helm", charts)):
        url = scene.repository(name, files)
        for number in range(HOGS):
            scene.application(f"{name}-{number}", url, str(number))
    yield
    for one in sockets:
        one.close()


@contextlib.contextmanager
def _expressions(scene: Scene) -> Iterator[None]:
    text = {"kind": "ConfigMap", "metadata": {"name": "text"}, "data": {"text": "x" * 300_000}}
    scene.link.send("POST", "/api/v1/namespaces/default/configmaps", text)
    waits = "\n---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: w{number}\n  annotations:\n"
        f'    syncline.dev/wait-for: "{WAIT_FOR.replace(chr(34), chr(92) + chr(34))}"\n'
        for number in range(HOGS)
    )
    url = scene.repository("expressions", {"a.yaml": waits})
    ignored = [{"kind": "ConfigMap", "jqPathExpressions": [JQ]}]
    for number in range(HOGS):
        scene.application(f"expressions-{number}", url, ignoreDifferences=ignored)
    yield


@contextlib.contextmanager
def _fork_bomb(scene: Scene) -> Iterator[None]:
    scene.pod("bomb", "python3", "-c", BOMB)
    scene.until(f"{PODS}/bomb", lambda pod: _at(pod, "phase") in ("Running", "Failed", "Succeeded"))
    yield


DISTURBANCES: dict[str, Callable[[Scene], contextlib.AbstractContextManager[None]]] = {
    "undisturbed": _nothing,
    f"{HANGING} remotes hang, {2 * HOGS} renders compute": _remotes_and_budgets,
    "hostile expressions": _expressions,
    "a fork bomb": _fork_bomb,
}


def figures(table: Table, *, quick: bool) -> None:
    seconds, strangers = (3.0, 2) if quick else (8.0, 5)
    quiet: Waited | None = None
    for name, disturbance in DISTURBANCES.items():
        table.title(name)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder, _served(Path(folder)) as scene, disturbance(scene):
            threading.Event().wait(SETTLES_S)
            found = scene.waited(seconds, strangers)
        quiet = quiet or found
        for what, value, unit, alone in (
            ("a read, 99th percentile", found.read_ms, "ms", quiet.read_ms),
            ("until a stranger's Application is Synced", found.synced_s * 1e3, "ms", quiet.synced_s * 1e3),
            ("until a stranger's Pod runs", found.runs_s * 1e3, "ms", quiet.runs_s * 1e3),
        ):
            table.row(what, f"{value:,.1f} {unit}", f"{value / alone:.1f} times" if found is not quiet else "")


@contextlib.contextmanager
def _served(place: Path) -> Iterator[Scene]:
    port = free_port()
    os.environ["SYNCLINE_HOME"] = str(place / "home")
    command = syncline(
        *("up", "--memory", "--nodes", "1", "--poll", "3600", "--listen", f"127.0.0.1:{port}"),
        *("--run-commands", "--kubeconfig-out", str(place / "kubeconfig")),
    )
    with running(command, place, port) as server:
        yield Scene(server, place)
