"""``python -m bench separate [--quick]``: ``syncline controller`` beside an API server that is a process of its own.

Everything goes over HTTPS with a client certificate, as against any cluster. CPU is that of the controller's process
with the git processes it has ended; the API server's stands beside it. What is waited for is seen by a watch, so that
looking costs neither side much.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.processes import (
    Blocking,
    Running,
    apiserver,
    client_context,
    cpu_s_with_ended,
    free_port,
    running,
    syncline,
)
from bench.table import Table

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
MERGE = "application/merge-patch+json"
REFRESH = "argocd.argoproj.io/refresh"
OBJECTS = 5
LARGE = 1_000
LIMIT_S = 600.0
QUIET_S, QUIET_PART = 1.0, 0.05
"""The controller rests when it took less than this part of so many seconds: what follows a change that was waited for
belongs to its figure too."""
IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  version: "{version}"
  text: {text}
"""


def figures(table: Table, *, quick: bool) -> None:
    count = 100 if quick else 1_000
    with tempfile.TemporaryDirectory(prefix="bench-") as place, _cluster(Path(place), count) as bench:
        table.title(f"{count:,} Applications of {OBJECTS} ConfigMaps in one repository, `controller` over HTTPS")
        _many(table, bench, count)
        table.title(f"One Application of {LARGE:,} ConfigMaps, `controller` over HTTPS")
        _large(table, bench)


# -- what is measured ---------------------------------------------------------------------------------------------


def _many(table: Table, bench: Bench, count: int) -> None:
    def create() -> None:
        for number in range(count):
            name = f"app-{number:04}"
            bench.link.send("POST", APPS, bench.application(name, f"apps/{name}", automated=True))

    names = {f"app-{number:04}" for number in range(count)}
    spent = bench.spend(create, lambda apps: sum(_calm(apps.get(name)) for name in names) == count)
    first = [bench.watch.since(name, _calm, spent.begun) for name in names]
    table.row("first sync: all Synced and Healthy", *spent.shown(count))
    table.row("  the first one, a tenth, half of them", ", ".join(f"{_part(first, p):.1f} s" for p in (0, 0.1, 0.5)))

    def refresh() -> None:
        for name in sorted(names):
            bench.link.send("PATCH", f"{APPS}/{name}", {"metadata": {"annotations": {REFRESH: "normal"}}}, MERGE)

    spent = bench.spend(refresh, lambda apps: all(not _asked(apps[name]) for name in names))
    table.row("refresh of all that finds nothing", *spent.shown(count))
    for what, files, touched in (("one", ["apps/app-0007/0.yaml"], "app-0007"), ("none", ["README"], "")):
        sha = bench.commit(files)
        told, over = partial(bench.announce, sha, files), partial(_synced_to, sha, touched)
        table.row(f"a commit that touches {what}, announced by webhook", *bench.spend(told, over).shown(1))


def _synced_to(sha: str, name: str, apps: dict[str, Any]) -> bool:
    return not name or (_calm(apps[name]) and _revision(apps[name]) == sha)


def _large(table: Table, bench: Bench) -> None:
    def sync() -> None:
        bench.link.send("PATCH", f"{APPS}/large", {"operation": {"sync": {"revision": "HEAD"}}}, MERGE)

    bench.link.send("POST", APPS, bench.application("large", "large", automated=False))
    bench.spend(lambda: None, lambda apps: dig(apps.get("large"), "status", "sync", "status") == "OutOfSync")
    for what, files in (("first sync", []), ("a sync with one changed", ["large/0007.yaml"]), ("none changed", [])):
        wanted = bench.commit(files) if files else bench.head()
        before = dig(bench.watch.apps["large"], "status", "operationState", "finishedAt")
        time.sleep(1.0)  # its end is recorded in whole seconds
        table.row(what, *bench.spend(sync, partial(_ended, wanted, before)).shown(LARGE))


def _ended(wanted: str, before: Any, apps: dict[str, Any]) -> bool:
    over = dig(apps["large"], "status", "operationState", "finishedAt") not in (None, before)
    return over and _calm(apps["large"]) and _revision(apps["large"]) == wanted


def dig(value: Any, *path: str) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _calm(app: Any) -> bool:
    synced = dig(app, "status", "sync", "status") == "Synced" and dig(app, "status", "health", "status") == "Healthy"
    return bool(
        synced and dig(app, "status", "operationState", "phase") == "Succeeded" and not (app or {}).get("operation")
    )


def _revision(app: Any) -> str:
    return str(dig(app, "status", "operationState", "syncResult", "revision"))


def _asked(app: Any) -> bool:
    return REFRESH in (dig(app, "metadata", "annotations") or {})


def _part(times: list[float], part: float) -> float:
    return sorted(times)[int(part * (len(times) - 1))]


# -- processes ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spent:
    begun: float
    wall_s: float
    controller_s: float
    api_s: float
    requests: int

    def shown(self, count: int) -> tuple[str, str]:
        each = f", {self.controller_s / count * 1000:.1f} ms each" if count > 1 else ""
        beside = f"API {self.api_s:.2f} s CPU, {self.requests:,} requests"
        return f"{self.wall_s:.2f} s, {self.controller_s:.2f} s CPU{each}", beside


class Watching(threading.Thread):
    """What the Applications are, by a watch; when each first fulfilled a condition."""

    def __init__(self, server: Running) -> None:
        super().__init__(daemon=True)
        context = client_context(server.kubeconfig)
        self._link = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=context)
        self.apps: dict[str, Any] = {}
        self.changed = threading.Condition()
        self._calm: dict[str, float] = {}

    def run(self) -> None:
        self._link.request("GET", f"{APPS}?watch=true")
        answer = self._link.getresponse()
        while line := answer.readline():
            event = json.loads(line)
            app = event["object"]
            with self.changed:
                self.apps[app["metadata"]["name"]] = app
                if _calm(app):
                    self._calm.setdefault(app["metadata"]["name"], time.perf_counter())
                self.changed.notify_all()

    def since(self, name: str, _what: Any, begun: float) -> float:
        return self._calm[name] - begun

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> None:
        until = time.perf_counter() + LIMIT_S
        with self.changed:
            while not reached(self.apps):
                if not self.changed.wait(until - time.perf_counter()):
                    raise SystemExit(f"not reached in {LIMIT_S:g} s")


@dataclass(slots=True)
class Bench:
    server: Running
    controller: int
    webhook: int
    repository: Path
    link: Blocking
    watch: Watching = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watching(self.server)
        self.watch.start()

    def spend(self, act: Callable[[], None], reached: Callable[[dict[str, Any]], bool]) -> Spent:
        begun, cpu, api, asked = (
            time.perf_counter(),
            cpu_s_with_ended(self.controller),
            self.server.cpu_s(),
            self._requests(),
        )
        act()
        self.watch.until(reached)
        wall = time.perf_counter() - begun
        self._rest()
        requests = self._requests() - asked
        return Spent(begun, wall, cpu_s_with_ended(self.controller) - cpu, self.server.cpu_s() - api, requests)

    def _rest(self) -> None:
        for _ in range(int(LIMIT_S / QUIET_S)):
            before = cpu_s_with_ended(self.controller)
            time.sleep(QUIET_S)
            if cpu_s_with_ended(self.controller) - before < QUIET_PART * QUIET_S:
                return

    def _requests(self) -> int:
        """Answered until now, without watches."""
        text = self.link.text("/metrics")
        lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
        return sum(int(float(line.rpartition(" ")[2])) for line in lines if 'verb="WATCH"' not in line)

    def application(self, name: str, path: str, *, automated: bool) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "project": "default",
            "source": {"repoURL": f"file://{self.repository}", "path": path, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        }
        if automated:
            spec["syncPolicy"] = {"automated": {"prune": True, "selfHeal": True}}
        metadata = {"name": name, "namespace": "argocd"}
        return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}

    def head(self) -> str:
        return _git(self.repository, "rev-parse", "HEAD")

    def commit(self, files: list[str]) -> str:
        for name in files:
            place = self.repository / name
            place.write_text(place.read_text().replace('version: "1"', 'version: "2"') + "# touched\n")
        _git(self.repository, *IDENTITY, "commit", "-q", "-a", "-m", "Touched")
        return self.head()

    def announce(self, sha: str, files: list[str]) -> None:
        """As GitHub tells of a push."""
        page = f"http://localhost{self.repository}"
        where = {"html_url": page, "default_branch": "main"}
        commit = {"id": sha, "added": [], "removed": [], "modified": files}
        before = _git(self.repository, "rev-parse", f"{sha}~1")
        body = {"ref": "refs/heads/main", "before": before, "after": sha, "repository": where, "commits": [commit]}
        url = f"http://127.0.0.1:{self.webhook}/api/webhook"
        headers = {"Content-Type": "application/json", "X-GitHub-Event": "push"}
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            answer.read()


@contextlib.contextmanager
def _cluster(folder: Path, count: int) -> Iterator[Bench]:
    for name in ("api", "controller"):
        (folder / name).mkdir()
    repository = _repository(folder / "repository", count)
    port, metrics, webhook = free_port(), free_port(), free_port()
    with running(apiserver(folder / "api", port), folder / "api", port) as server, contextlib.ExitStack() as closing:
        options = ("--kubeconfig", str(server.kubeconfig), "--allow-local-repos", "--poll", "36000")
        endpoints = ("--webhook-listen", f"127.0.0.1:{webhook}", "--metrics-listen", f"127.0.0.1:{metrics}")
        command = syncline("controller", *options, *endpoints, "--cache", str(folder / "cache"))
        controller = closing.enter_context(_controller(command, folder / "controller" / "output"))
        _until_ready(metrics, folder / "controller" / "output")
        yield Bench(server, controller, webhook, repository, Blocking(server))


@contextlib.contextmanager
def _controller(command: list[str], log: Path) -> Iterator[int]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_ready(port: int, log: Path) -> None:
    until = time.perf_counter() + 60
    while time.perf_counter() < until:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"the controller is not ready:\n{log.read_text()[-2000:]}")


def _repository(place: Path, count: int) -> Path:
    for number in range(count):
        folder = place / "apps" / f"app-{number:04}"
        folder.mkdir(parents=True)
        for index in range(OBJECTS):
            name = f"app-{number:04}-{index}"
            (folder / f"{index}.yaml").write_text(MANIFEST.format(name=name, version=1, text="x" * 400))
    (place / "large").mkdir()
    for number in range(LARGE):
        content = MANIFEST.format(name=f"large-{number:04}", version=1, text="x" * 400)
        (place / "large" / f"{number:04}.yaml").write_text(content)
    (place / "README").write_text("Read by nothing.\n")
    _git(place, "init", "-q", "-b", "main")
    _git(place, "add", ".")
    _git(place, *IDENTITY, "commit", "-q", "-m", "All applications")
    return place


def _git(where: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(where), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
