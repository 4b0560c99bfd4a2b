"""``python -m bench appsets [--quick] [--argocd FOLDER]``: what ApplicationSets cost.

A set of many Applications over the directories of one repository, a commit at a time announced by webhook, then polls
that find nothing; many sets over one repository, and how often they look at it; both beside Argo CD's own controller
where ``--argocd`` names its programs (``bench/argocd.py``). Each side has an API server of ours to itself, and nothing
but ApplicationSets is worked on: CPU is that of the controller with all that it starts (Argo CD: with its repo-server
and Redis), writes are those that the API server has answered. Last, rows of a matrix of lists and merged clusters, in
this process.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.argocd import argocd, serves
from bench.githost import GitHost, git_host
from bench.processes import (
    Blocking,
    Running,
    apiserver,
    cpu_s_with_ended,
    free_port,
    running,
    running_plain,
)
from bench.table import Table
from syncline.appset.generators.generate import generate
from syncline.appset.questions import Facts
from syncline.kube.kinds.applicationset import application_set_crd
from syncline.kube.kinds.argoproj import app_project_crd, application_crd

GROUP = "/apis/argoproj.io/v1alpha1/namespaces/argocd"
SETS, APPS = f"{GROUP}/applicationsets", f"{GROUP}/applications"
LIMIT_S = 600.0
QUIET_S, QUIET_PART = 1.0, 0.05
POLL_S, POLLS, AN_HOUR = 5, 6, 20
"""A poll of the bench, how many are measured, and how many an hour has as upstream's sets poll (3 minutes)."""
COMMITS = 5
LISTED = 50
ELSEWHERE = "https://git.example.com/fleet.git"
"""The source of the Applications: another repository, so that a push concerns the set alone."""
ENV_EXISTS = {"key": "env", "operator": "Exists"}
Obj = dict[str, Any]


def figures(table: Table, *, quick: bool, programs: Path | None) -> None:
    count, sets = (100, 10) if quick else (1_000, 100)
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        sides = {"syncline": ours} | ({} if programs is None else {"argocd": _theirs(programs)})
        for name, controller in sides.items():
            folder = Path(place) / name
            with _side(folder, controller) as side:
                table.title(f"{name}: one set of {count:,} Applications over directories, one commit at a time")
                _directories(table, side, count)
                table.title(f"{name}: {sets} sets over one repository, a poll each {POLL_S} s")
                _many_sets(table, side, sets)
    rows = 200 if quick else 5_000
    table.title(f"{rows:,} rows: a matrix of a list and merged clusters, in this process")
    for go in (True, False):
        _rows(table, rows, go=go)


# -- what is measured -----------------------------------------------------------------------------------------------


def _directories(table: Table, side: Side, count: int) -> None:
    work = side.folder / "work"
    for number in range(count):
        _write(work / f"apps/app-{number:04}/values.yaml", "replicas: 1\n")
    side.host.publish("fleet", work)
    url = f"{side.host.url}/fleet.git"

    def reached(number: int) -> Callable[[], bool]:
        return lambda: len(side.link.send("GET", f"{APPS}?limit=10000")["items"]) == number

    create = _set("fleet", url, requeue=100_000)
    table.row("all created", *side.spend(lambda: side.link.send("POST", SETS, create), reached(count)).shown())

    commits = [side.spend(partial(_add, side, work, number), reached(count + 1 + number)) for number in range(COMMITS)]
    middle = sorted(commits, key=lambda each: each.cpu_s)[COMMITS // 2]
    table.row(f"a commit adds one directory, median of {COMMITS}", *middle.shown())

    def changed() -> None:
        _write(work / "apps/app-0007/values.yaml", "replicas: 2\n")
        side.push("fleet", work)

    table.row("a commit changes a file of one", *side.spend(changed, side.settled("fleet")).shown())
    name = f"{APPS}/app-0007"
    moved = {"metadata": {"labels": {"moved": "by-hand"}}}
    put_back = lambda: "labels" not in side.link.send("GET", name)["metadata"]  # noqa: E731
    act = lambda: side.link.send("PATCH", name, moved, "application/merge-patch+json")  # noqa: E731
    table.row("one Application changed by hand, put back", *side.spend(act, put_back).shown())
    before = side.cpu_s()
    time.sleep(POLL_S * POLLS)
    idle = (side.cpu_s() - before) / POLLS
    table.row("at rest", f"{idle / POLL_S * 1000:.0f} ms CPU a second")
    poll = {"spec": {"generators": [{"git": _git_generator(url, POLL_S)}]}}
    side.link.send("PATCH", f"{SETS}/fleet", poll, "application/merge-patch+json")
    side.rest(POLL_S)
    looks, before = side.host.looks(), side.cpu_s()
    time.sleep(POLL_S * POLLS)
    spent, looks = (side.cpu_s() - before) / POLLS - idle, side.host.looks() - looks
    table.row("a poll that finds nothing", f"{spent * 1000:.0f} ms CPU", f"{looks} looks in {POLLS} polls")
    table.row("  an hour of polls, each 3 minutes", f"{spent * AN_HOUR + idle / POLL_S * 3600:.2f} s CPU")
    side.link.send("DELETE", f"{SETS}/fleet?propagationPolicy=Orphan")
    side.rest(1)


def _add(side: Side, work: Path, number: int) -> None:
    _write(work / f"apps/new-{number}/values.yaml", "replicas: 1\n")
    side.push("fleet", work)


def _many_sets(table: Table, side: Side, count: int) -> None:
    work = side.folder / "many"
    for number in range(count):
        _write(work / f"team-{number}/one/values.yaml", "replicas: 1\n")
    side.host.publish("many", work)
    url = f"{side.host.url}/many.git"

    def create() -> None:
        for number in range(count):
            side.link.send("POST", SETS, _set(f"team-{number}", url, requeue=POLL_S, path=f"team-{number}/*"))

    side.spend(create, lambda: all(_reported(each) for each in side.link.send("GET", SETS)["items"]))
    looks, before = side.host.looks(), side.cpu_s()
    time.sleep(POLL_S * POLLS)
    spent, looks = (side.cpu_s() - before) / POLLS, side.host.looks() - looks
    table.row("a poll of all that finds nothing", f"{spent * 1000:.0f} ms CPU", "with what it takes at rest")
    table.row("looks at the repository in a poll", f"{looks / POLLS:.1f}", f"{looks} in {POLLS} polls")


def _rows(table: Table, rows: int, *, go: bool) -> None:
    clusters = rows // LISTED
    facts = Facts(clusters=tuple(_cluster(number) for number in range(clusters)), projects=frozenset({"default"}))
    appset = _matrix(clusters, go=go)
    begun = time.process_time()
    found = generate(appset, facts)
    spent = time.process_time() - begun
    if found.failures or len(found.made) != rows:
        raise SystemExit(f"{len(found.made)} of {rows} rows: {found.failures[:1]}")
    what = "Go templates" if go else "plain templates"
    table.row(f"{what}: generated", f"{spent:.2f} s CPU", f"{spent / rows * 1000:.2f} ms a row")
    begun = time.process_time()
    generate(appset, facts)
    table.row("  once more, nothing changed", f"{time.process_time() - begun:.2f} s CPU")


def _cluster(number: int) -> Obj:
    def text(value: str) -> str:
        return base64.b64encode(value.encode()).decode()

    labels = {
        "argocd.argoproj.io/secret-type": "cluster",
        "env": ("dev", "prod")[number % 2],
        "region": f"r{number % 7}",
    }
    data = {
        "name": text(f"cluster-{number}"),
        "server": text(f"https://10.0.{number // 250}.{number % 250}"),
        "config": "e30=",
    }
    metadata = {"name": f"cluster-{number}", "namespace": "argocd", "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def _matrix(clusters: int, *, go: bool) -> Obj:
    """A list of components × (all clusters, overridden for every third and for those of production)."""
    dot = "." if go else ""
    components = [{"component": f"part-{number}", "chart": f"charts/{number % 5}"} for number in range(LISTED)]
    own = "replicas" if go else "values.replicas"
    overrides = [{"name": f"cluster-{number}", own: "9"} for number in range(0, clusters, 3)]
    merge = {
        "mergeKeys": ["name"],
        "generators": [
            {"clusters": {"selector": {"matchExpressions": [ENV_EXISTS]}, "values": {"replicas": "1", "tier": "low"}}},
            {"clusters": {"selector": {"matchLabels": {"env": "prod"}}, "values": {"tier": "high"}}},
            {"list": {"elements": overrides}},
        ],
    }
    name = "{{.component}}-{{.nameNormalized}}" if go else "{{component}}-{{nameNormalized}}"
    replicas = '{{ dig "replicas" .values.replicas . }}' if go else "{{values.replicas}}"
    region = '{{ index .metadata.labels "region" | upper }}' if go else "{{metadata.labels.region}}"
    template = {
        "metadata": {"name": name, "labels": {"region": region, "component": f"{{{{{dot}component}}}}"}},
        "spec": {
            "project": "default",
            "source": {
                "repoURL": "https://git.example.com/fleet.git",
                "targetRevision": "main",
                "path": f"{{{{{dot}chart}}}}",
                "helm": {
                    "parameters": [
                        {"name": "replicas", "value": replicas},
                        {"name": "tier", "value": f"{{{{{dot}values.tier}}}}"},
                    ]
                },
            },
            "destination": {"server": f"{{{{{dot}server}}}}", "namespace": f"{{{{{dot}component}}}}"},
        },
    }
    spec: Obj = {"generators": [{"matrix": {"generators": [{"list": {"elements": components}}, {"merge": merge}]}}]}
    if go:
        spec |= {"goTemplate": True, "goTemplateOptions": ["missingkey=error"]}
    metadata = {"name": "matrix", "namespace": "argocd"}
    typed = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
    return {**typed, "metadata": metadata, "spec": {**spec, "template": template}}


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _git_generator(url: str, requeue: int, path: str = "apps/*") -> Obj:
    return {"repoURL": url, "revision": "main", "directories": [{"path": path}], "requeueAfterSeconds": requeue}


def _set(name: str, url: str, *, requeue: int, path: str = "apps/*") -> Obj:
    prefix = "" if name == "fleet" else f"{name}-"
    template = {
        "metadata": {"name": prefix + "{{.path.basename}}", "finalizers": []},
        "spec": {
            "project": "default",
            "source": {"repoURL": ELSEWHERE, "targetRevision": "main", "path": "{{.path.path}}"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "{{.path.basename}}"},
        },
    }
    spec = {
        "goTemplate": True,
        "goTemplateOptions": ["missingkey=error"],
        "generators": [{"git": _git_generator(url, requeue, path)}],
        "syncPolicy": {"preserveResourcesOnDeletion": True},
        "template": template,
    }
    metadata = {"name": name, "namespace": "argocd"}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata, "spec": spec}


def _reported(found: Obj) -> bool:
    conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions", [])}
    return conditions.get("ResourcesUpToDate") == "True"


# -- one side -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spent:
    wall_s: float
    cpu_s: float
    api_s: float
    requests: int
    writes: int

    def shown(self) -> tuple[str, str]:
        beside = f"{self.writes:,} writes, {self.requests:,} requests, API {self.api_s:.2f} s CPU"
        return f"{self.wall_s:.1f} s, {self.cpu_s:.2f} s CPU", beside


@dataclass(frozen=True, slots=True)
class Side:
    folder: Path
    server: Running
    host: GitHost
    link: Blocking
    cpu_s: Callable[[], float]
    webhook: str

    def spend(self, act: Callable[[], object], reached: Callable[[], bool]) -> Spent:
        begun, cpu, api, asked = time.perf_counter(), self.cpu_s(), self.server.cpu_s(), self._answered()
        act()
        while not reached():
            if time.perf_counter() - begun > LIMIT_S:
                raise SystemExit(f"not reached in {LIMIT_S:g} s")
            time.sleep(0.2)
        wall = time.perf_counter() - begun
        self.rest(QUIET_S)
        requests, writes = (now - before for now, before in zip(self._answered(), asked))
        return Spent(wall, self.cpu_s() - cpu, self.server.cpu_s() - api, requests, writes)

    def rest(self, at_least: float) -> None:
        """Until the controller takes next to nothing: what follows a change belongs to its figure."""
        time.sleep(at_least)
        for _ in range(int(LIMIT_S / QUIET_S)):
            before = self.cpu_s()
            time.sleep(QUIET_S)
            if self.cpu_s() - before < QUIET_PART * QUIET_S:
                return

    def settled(self, name: str) -> Callable[[], bool]:
        """Reached when nothing asks for a refresh of the set any more."""
        asked = "argocd.argoproj.io/application-set-refresh"
        begun = time.perf_counter()

        def reached() -> bool:
            annotations = self.link.send("GET", f"{SETS}/{name}")["metadata"].get("annotations") or {}
            return time.perf_counter() - begun > 2 * QUIET_S and asked not in annotations

        return reached

    def push(self, name: str, work: Path) -> None:
        """Commit, push, and tell it as GitHub does."""
        sha = self.host.publish(name, work)
        url = f"{self.host.url}/{name}.git"
        where = {"html_url": url.removesuffix(".git"), "clone_url": url, "default_branch": "main"}
        body = {"ref": "refs/heads/main", "after": sha, "repository": where, "commits": []}
        headers = {"Content-Type": "application/json", "X-GitHub-Event": "push"}
        with urllib.request.urlopen(urllib.request.Request(self.webhook, json.dumps(body).encode(), headers)) as answer:
            answer.read()

    def _answered(self) -> tuple[int, int]:
        """Requests until now without watches and those of the bench that read, and the writes of them."""
        lines = [
            line for line in self.link.text("/metrics").splitlines() if line.startswith("apiserver_request_total{")
        ]
        counts = [(line, int(float(line.rpartition(" ")[2]))) for line in lines if 'verb="WATCH"' not in line]
        writes = sum(count for line, count in counts if any(f'verb="{verb}"' in line for verb in WRITES))
        return sum(count for _, count in counts), writes


WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")
Controlled = tuple[Callable[[], float], str]
Controller = Callable[[Path, Running], contextlib.AbstractContextManager[Controlled]]


def _theirs(programs: Path) -> Controller:
    @contextlib.contextmanager
    def started(folder: Path, server: Running) -> Iterator[Controlled]:
        with argocd(programs, folder, server.kubeconfig, looks_every_s=POLL_S - 1) as peer:
            yield peer.cpu_s, peer.webhook

    return started


@contextlib.contextmanager
def ours(folder: Path, server: Running, *more: str) -> Iterator[Controlled]:
    """Ours, working on ApplicationSets alone."""
    folder.mkdir(parents=True, exist_ok=True)
    metrics, webhook = free_port(), free_port()
    options = ("--kubeconfig", str(server.kubeconfig), "--cache", str(folder / "cache"), "--no-leader-elect", *more)
    endpoints = ("--metrics-listen", f"127.0.0.1:{metrics}", "--webhook-listen", f"127.0.0.1:{webhook}")
    command = [sys.executable, "-m", "bench.setsonly", "controller", *options, *endpoints]
    with running_plain(command, folder / "output", lambda: serves(f"http://127.0.0.1:{metrics}/readyz")) as pid:
        yield (lambda: cpu_s_with_ended(pid)), f"http://127.0.0.1:{webhook}/api/webhook"


@contextlib.contextmanager
def _side(folder: Path, controller: Controller) -> Iterator[Side]:
    folder.mkdir()
    port = free_port()
    with git_host(folder / "git") as host, running(apiserver(folder, port), folder, port) as server:
        link = Blocking(server)
        link.send(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
        )
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for definition in (application_crd(), app_project_crd(), application_set_crd()):
            link.send("POST", definitions, definition)
        project = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
        metadata = {"name": "default", "namespace": "argocd"}
        typed = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
        _once_served(link, f"{GROUP}/appprojects", {**typed, "metadata": metadata, "spec": project})
        part = {"labels": {"app.kubernetes.io/part-of": "argocd"}}
        for kind, name, data in (
            ("ConfigMap", "argocd-cm", {}),
            ("Secret", "argocd-secret", {"server.secretkey": "a key"}),
        ):
            obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **part}}
            more = {"stringData": data} if kind == "Secret" else {"data": data}
            link.send("POST", f"/api/v1/namespaces/argocd/{kind.lower()}s", obj | more)
        with controller(folder / "controller", server) as (cpu_s, webhook):
            yield Side(folder, server, host, link, cpu_s, webhook)


def _once_served(link: Blocking, path: str, obj: Obj) -> None:
    """A kind is served a moment after its definition is there."""
    for _ in range(50):
        with contextlib.suppress(SystemExit):
            link.send("POST", path, obj)
            return
        time.sleep(0.1)
    raise SystemExit(f"{path}: not served")
