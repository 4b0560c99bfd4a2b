"""``python -m bench disturbed [--quick]``: what a stranger waits for beside tenants that use up all they can.

Printed are the latency of the API, the time until a stranger's Application is Synced and until a stranger's Pod runs,
alone and beside each disturbance; each disturbance has a server of its own. Then the same while the Applications of
many good remotes come up, alone and beside as many that hang. The goal is three times the undisturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import remotes
from bench.processes import Blocking, Running, free_port, running, syncline
from bench.table import Table

__all__ = ["figures"]

APPLICATIONS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
READ = "/api/v1/namespaces/default"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
HANGING = GOOD = 100
HOGS = 6
LARGE = 10_000
LOOK_EVERY_S, LONGEST_S = 0.02, 300.0
SETTLES_S = 4.0
ENDLESS = "std.foldl(function(a, b) a + b, std.range(0, 2000000000), 0)"
LOOPS = "{{ range $i := until 100000 }}{{ range $j := until 100000 }}{{ if eq $j -1 }}x{{ end }}{{ end }}{{ end }}"
WAIT_FOR = "{kind: ConfigMap, name: text, cel: 'lists.range(10000).all(x, object.data.text.matches(\"(x+x+)+y\"))'}"
JQ = ".data as $all | .data[] | select($all | to_entries | length < 0)"
RULES, FIELDS = 20, 1_000
"""Expressions of one Application, and what each has to look at: more than one comparison may take."""
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
        self.until(ACCOUNTS, lambda found: bool(found["items"]))  # a new cluster has none for a moment
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

    def engaged(self, name: str, said: str) -> None:
        """Wait until the status of an Application says that what it does ran out; a bench without that ends."""
        path = f"{APPLICATIONS}/{name}"
        if self.until(path, lambda app: said in json.dumps(app.get("status"))) >= LONGEST_S:
            raise SystemExit(f"{name}: nothing of {said!r} in {json.dumps(self.link.send('GET', path).get('status'))}")

    def stranger(self) -> tuple[float, float]:
        """Seconds until a new Application is Synced, and until a new Pod runs."""
        self._strangers += 1
        name = f"stranger-{self._strangers}"
        self.application(name, self.repository(name, {"a.yaml": CONFIG_MAP.format(name=name)}))
        synced = self.until(f"{APPLICATIONS}/{name}", lambda app: _at(app, "sync", "status") == "Synced")
        self.pod(name, "sleep", "600")
        return synced, self.until(f"{PODS}/{name}", lambda pod: _at(pod, "phase") in ("Running", "Failed"))

    def reads(self, seconds: float) -> list[float]:
        """Milliseconds of each read of the API, one after the other."""
        taken, end = list[float](), time.perf_counter() + seconds
        while time.perf_counter() < end:
            begun = time.perf_counter()
            self.link.send("GET", READ)
            taken.append((time.perf_counter() - begun) * 1e3)
        return taken

    def waited(self, seconds: float, strangers: int) -> Waited:
        taken = self.reads(seconds)
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
    scene.engaged("jsonnet-0", "it rests until")
    scene.engaged("helm-0", "it rests until")
    for one in sockets:
        one.close()


@contextlib.contextmanager
def _expressions(scene: Scene) -> Iterator[None]:
    """Conditions that are judged again and again, and rules of jq for an object that is there; all of them run out."""
    text = {"kind": "ConfigMap", "metadata": {"name": "text"}, "data": {"text": "x" * 300_000}}
    scene.link.send("POST", "/api/v1/namespaces/default/configmaps", text)
    waits = "\n---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: w{number}\n  annotations:\n"
        f'    syncline.dev/wait-for: "{WAIT_FOR.replace(chr(34), chr(92) + chr(34))}"\n'
        for number in range(HOGS)
    )
    data = "".join(f"  k{number}: v\n" for number in range(FIELDS))
    wide = {f"{number}/a.yaml": f"{CONFIG_MAP.format(name=f'wide-{number}')}data:\n{data}" for number in range(HOGS)}
    waiting, ruled = scene.repository("expressions", {"a.yaml": waits}), scene.repository("rules", wide)
    rules = [{"kind": "ConfigMap", "jqPathExpressions": [f"{JQ} | {number}" for number in range(RULES)]}]
    for number in range(HOGS):
        scene.application(f"waits-{number}", waiting)
        scene.application(f"ruled-{number}", ruled, str(number), ignoreDifferences=rules)
    for number in range(HOGS):
        scene.engaged(f"waits-{number}", "steps")
        scene.engaged(f"ruled-{number}", "take too long")
    yield


@contextlib.contextmanager
def _large_application(scene: Scene) -> Iterator[None]:
    """Its first sync takes longer than what is measured beside it."""
    maps = "---\n".join(CONFIG_MAP.format(name=f"m-{number}") for number in range(LARGE))
    scene.application("large", scene.repository("large", {"a.yaml": maps}))
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
    f"an Application of {LARGE:,} objects comes up": _large_application,
}


# -- good remotes beside those that hang ------------------------------------------------------------------------


@dataclass(frozen=True)
class CameUp:
    """Until half and all of the good ones are Synced; meanwhile what a stranger waits for."""

    half_s: float
    all_s: float
    waited: Waited


@contextlib.contextmanager
def _good_remotes(folder: Path) -> Iterator[list[str]]:
    """Addresses; their server is a process of its own, so that it takes no time of ours."""
    repositories = folder / "good"
    remotes.make_repositories(repositories, [CONFIG_MAP.format(name=f"good-{number}") for number in range(GOOD)])
    port = free_port() // GOOD * GOOD
    command = [sys.executable, "-m", "bench.remotes", str(repositories), str(port), str(GOOD)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("the good remotes cannot be served: ports taken; try again")
        yield [f"http://127.0.0.1:{port + number}/" for number in range(GOOD)]
    finally:
        process.terminate()
        process.wait()


def _come_up(scene: Scene, good: list[str], hanging: list[str]) -> CameUp:
    for number, url in enumerate(hanging):
        scene.application(f"hangs-{number}", url)
    begun = time.perf_counter()
    for number, url in enumerate(good):
        scene.application(f"good-{number}", url)
    synced = list[float]()

    def count() -> int:
        apps = scene.link.send("GET", APPLICATIONS)["items"]
        mine = [app for app in apps if app["metadata"]["name"].startswith("good-")]
        done = sum(_at(app, "sync", "status") == "Synced" for app in mine)
        synced.extend([time.perf_counter() - begun] * (done - len(synced)))
        return done

    taken, strangers = list[float](), list[tuple[float, float]]()
    while count() < len(good) and time.perf_counter() - begun < LONGEST_S:
        taken += scene.reads(0.3)
        if len(synced) > len(good) // 2 and not strangers:
            strangers.append(scene.stranger())
    strangers.append(scene.stranger())
    if len(synced) < len(good):
        raise SystemExit(f"only {len(synced)} of {len(good)} good remotes are Synced after {LONGEST_S:g} s")
    first, then = zip(*strangers, strict=True)
    waited = Waited(statistics.quantiles(taken, n=100)[98], max(first), max(then))
    return CameUp(synced[len(good) // 2], synced[-1], waited)


def _good_beside_hanging(table: Table) -> None:
    quiet: CameUp | None = None
    with tempfile.TemporaryDirectory(prefix="bench-") as home, _good_remotes(Path(home)) as good:
        for hangs in (0, HANGING):
            table.title(f"{GOOD} good remotes come up" + (f" beside {hangs} that hang" if hangs else ""))
            sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(hangs)]
            hanging = [f"http://127.0.0.1:{one.getsockname()[1]}/r.git" for one in sockets]
            with tempfile.TemporaryDirectory(prefix="bench-") as folder, _served(Path(folder)) as scene:
                found = _come_up(scene, good, hanging)
            for one in sockets:
                one.close()
            quiet = quiet or found
            _show(table, "until half of them are Synced", "s", found.half_s, quiet.half_s)
            _show(table, "until all of them are Synced", "s", found.all_s, quiet.all_s)
            _show_waited(table, found.waited, quiet.waited)


def _show(table: Table, what: str, unit: str, value: float, alone: float) -> None:
    table.row(what, f"{value:,.1f} {unit}", f"{value / alone:.1f} times" if value != alone else "")


def _show_waited(table: Table, found: Waited, quiet: Waited) -> None:
    _show(table, "a read, 99th percentile", "ms", found.read_ms, quiet.read_ms)
    _show(table, "until a stranger's Application is Synced", "ms", found.synced_s * 1e3, quiet.synced_s * 1e3)
    _show(table, "until a stranger's Pod runs", "ms", found.runs_s * 1e3, quiet.runs_s * 1e3)


def figures(table: Table, *, quick: bool) -> None:
    seconds, strangers = (3.0, 2) if quick else (8.0, 5)
    quiet: Waited | None = None
    for name, disturbance in DISTURBANCES.items():
        table.title(name)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder, _served(Path(folder)) as scene, disturbance(scene):
            threading.Event().wait(SETTLES_S)
            found = scene.waited(seconds, strangers)
        quiet = quiet or found
        _show_waited(table, found, quiet)
    _good_beside_hanging(table)


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
