"""``python -m bench [SUBJECT] [--quick]``: every figure of docs/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import (
    applications,
    appsets,
    argoserver,
    bombs,
    butane,
    captures,
    disturbed,
    exploring,
    fleet,
    fleetrehearsal,
    hostile,
    ignition,
    joining,
    large,
    machineconfig,
    monorepo,
    overlapping,
    patterns,
    placements,
    pool,
    pull,
    pullagents,
    pullscene,
    rehearsed,
    separate,
    syncing,
    threeagents,
    verbs,
    virtual,
    watching,
    waves,
)
from bench.limits import answer_with, bare_server, sqlite_rows_per_s
from bench.load import CONNECTIONS, Rate, fanout_ms, measure
from bench.processes import Blocking, Running, apiserver, free_port, running
from bench.table import Table

NAMESPACE = "/api/v1/namespaces/bench"
CONFIGMAPS = f"{NAMESPACE}/configmaps"
TEXT = "x" * 800
"""A config map of about a kilobyte: small enough that the path, not the bytes, is measured."""
LISTED = 500
WATCHERS = 50
ALONE: dict[str, Any] = {
    "virtual": virtual,
    "rehearsed": rehearsed,
    "agents": threeagents,
    "scene": pullscene,
    "pullagents": pullagents,
    "applications": applications,
    "argoserver": argoserver,
    "bombs": bombs,
    "butane": butane,
    "captures": captures,
    "disturbed": disturbed,
    "exploring": exploring,
    "fleet": fleet,
    "hostile": hostile,
    "ignition": ignition,
    "joining": joining,
    "large": large,
    "machineconfig": machineconfig,
    "overlapping": overlapping,
    "placements": placements,
    "pool": pool,
    "rehearsal": fleetrehearsal,
    "separate": separate,
    "waves": waves,
}
"""Those that need no server, or start their own: long ones in virtual time, translators, hostile pods."""
BUSY = 0.5
"""Load average at the start from which rates say more about the machine's other work than about ours."""


def configmap(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": TEXT}}


def start_up(table: Table, folder: Path, runs: int) -> None:
    table.title("Start")
    ours = [_ready_s(folder, bare=False) for _ in range(runs)]
    bare = [_ready_s(folder, bare=True) for _ in range(runs)]
    ready, limit = statistics.median(ours), statistics.median(bare)
    beside = f"{ready / limit:.1f} × a bare aiohttp server with TLS ({limit:.2f} s)"
    table.row("time to ready, process start to /readyz", f"{ready:.2f} s", beside)


def _ready_s(folder: Path, *, bare: bool) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        port = free_port()
        command = bare_server(Path(place), port) if bare else apiserver(Path(place), port)
        with running(command, Path(place), port) as server:
            return server.ready_s


def reads(table: Table, server: Running, bare: Running, seconds: float) -> None:
    table.title(f"Reads, {CONNECTIONS} TLS connections from a second process")
    link = Blocking(server)
    for number in range(LISTED):
        link.send("POST", CONFIGMAPS, configmap(f"listed-{number}"))
    one = f"{CONFIGMAPS}/listed-1"
    _read(table, "GET one ConfigMap of 1 KB", (server, bare), one, seconds)
    _read(table, f"LIST {LISTED} ConfigMaps", (server, bare), CONFIGMAPS, seconds)


def _read(table: Table, name: str, servers: tuple[Running, Running], path: str, seconds: float) -> None:
    server, bare = servers
    body = Blocking(server).send("GET", path)
    answer_with(bare, _encoded(body))
    Blocking(bare).send("GET", "/reload")
    ours, limit = measure(server, "GET", path, seconds=seconds), measure(bare, "GET", "/x", seconds=seconds)
    table.rate(name, ours.per_s, limit.per_s, "by a bare handler with the same bytes")
    table.row("  server CPU per request", f"{ours.cpu_ms:.2f} ms", f"bare handler {limit.cpu_ms:.2f} ms")
    table.row("  latency, median and 99th", f"{ours.median_ms:.1f} ms", f"{ours.p99_ms:.1f} ms")


def _encoded(body: Any) -> bytes:
    import json

    return json.dumps(body, separators=(",", ":")).encode()


def writes(table: Table, server: Running, folder: Path, seconds: float, objects: int) -> None:
    table.title(f"Writes, durable: each answered after its fsync; {CONNECTIONS} connections")
    fresh = server.resident_mib()
    stored = _encoded(Blocking(server).send("GET", f"{CONFIGMAPS}/listed-1"))
    limit = sqlite_rows_per_s(folder, stored, batch=CONNECTIONS, seconds=min(seconds, 2))
    what = f"SQLite, {CONNECTIONS} rows a commit"
    single = sqlite_rows_per_s(folder, stored, batch=1, seconds=min(seconds, 2))
    table.row("SQLite alone, a row a commit", f"{single:,.0f}/s", "what the disk takes of single writers")
    created = measure(server, "POST", CONFIGMAPS, body=configmap("made-{i}"), count=objects)
    _write(table, f"create, {objects:,} ConfigMaps", created, limit, what)
    filled = server.resident_mib()
    many = f"{CONFIGMAPS}/listed-{{i}}"
    merge = {"content": "application/merge-patch+json", "seconds": seconds, "count": LISTED}
    _write(table, "merge patch", measure(server, "PATCH", many, body={"data": {"n": "{i}"}}, **merge), limit, what)
    apply = {"content": "application/apply-patch+yaml", "seconds": seconds, "count": objects}
    path = f"{CONFIGMAPS}/applied-{{i}}?fieldManager=bench&force=true"
    _write(
        table,
        "server-side apply, new objects",
        measure(server, "PATCH", path, body=configmap("applied-{i}"), **apply),
        limit,
        what,
    )
    again = measure(server, "PATCH", path, body=configmap("applied-{i}"), **apply)
    _write(table, "server-side apply, nothing changes", again, limit, what)
    table.title("Memory")
    table.row("resident, with the bootstrap and 500 objects", f"{fresh:.0f} MiB")
    per_object = (filled - fresh) * 1024 / objects
    table.row(f"resident, with {objects:,} more", f"{filled:.0f} MiB", f"{per_object:.1f} KiB an object of 1 KB")


def _write(table: Table, name: str, found: Rate, limit: float, what: str) -> None:
    table.rate(name, found.per_s, limit, what)
    table.row("  server CPU per request", f"{found.cpu_ms:.2f} ms", f"99th latency {found.p99_ms:.1f} ms")


def fanout(table: Table, server: Running, changes: int) -> None:
    median, last = fanout_ms(server, CONFIGMAPS, "listed-2", watchers=WATCHERS, changes=changes)
    table.title("Watch")
    table.row(f"change to event, {WATCHERS} watchers, median", f"{median:.1f} ms", f"last watcher {last:.1f} ms")


def cluster_figures(table: Table, folder: Path, *, quick: bool) -> None:
    seconds, objects = (1.0, 1_000) if quick else (4.0, 10_000)
    ours, bare = folder / "ours", folder / "bare"
    ours.mkdir()
    bare.mkdir()
    port, other = free_port(), free_port()
    command = apiserver(ours, port, "--data", str(ours / "data"))
    with running(command, ours, port) as server, running(bare_server(bare, other), bare, other) as limit:
        table.row("resident after start", f"{server.resident_mib():.0f} MiB")
        metadata = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
        Blocking(server).send("POST", "/api/v1/namespaces", metadata)
        reads(table, server, limit, seconds)
        fanout(table, server, 20 if quick else 100)
        writes(table, server, folder, seconds, objects)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=("all", "verbs", "watches", "appsets", "pull", "patterns", *ALONE),
        default="all",
        help="all but the others, or one of them",
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="patterns: checkouts of patterns")
    charts = "patterns: folder of the charts clustergroup and acm, for Helm beside ours"
    drawn = "patterns: compare so many drawn values for each chart with Helm"
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help=drawn)
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="patterns: of the drawn values")
    parser.add_argument("--charts", type=Path, metavar="FOLDER", help=charts)
    parser.add_argument("--quick", action="store_true", help="shorter, for a first look")
    parser.add_argument("--peer", type=Path, metavar="KUBECONFIG", help="verbs: the same load on another cluster here")
    named = "verbs: name or id of a process of the peer whose CPU counts; may be repeated"
    parser.add_argument("--peer-process", action="append", default=[], metavar="NAME|PID", help=named)
    peer_programs = "appsets: folder of Argo CD's programs, measured beside ours (bench/argocd.py)"
    parser.add_argument("--argocd", type=Path, metavar="FOLDER", help=peer_programs)
    parser.add_argument("--soak", type=float, default=0.0, metavar="MINUTES", help="watches: change for so long")
    parser.add_argument("--clusters", type=int, default=0, metavar="N", help="pull: one fleet of so many clusters")
    parser.add_argument("--applications", type=int, default=0, metavar="M", help="pull: Applications of each cluster")
    chosen = parser.parse_intermixed_args()
    quick = chosen.quick
    begun = time.perf_counter()
    table = Table()
    load = os.getloadavg()[0]
    table.title(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, load {load:.1f}")
    if load > BUSY:
        table.title("others work on this machine: trust CPU times and ratios, not rates")
    if chosen.what in ALONE:
        ALONE[chosen.what].figures(table, quick=quick)
        return
    if chosen.what == "patterns":
        patterns.figures(
            table, quick=quick, folders=chosen.folders, charts=chosen.charts, drawn=chosen.drawn, seed=chosen.seed
        )
        return
    if chosen.what == "appsets":
        appsets.figures(table, quick=quick, programs=chosen.argocd)
        return
    if chosen.what == "pull":
        pull.figures(table, quick=quick, clusters=chosen.clusters, applications=chosen.applications)
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        folder = Path(place)
        if chosen.what == "verbs":
            peer = verbs.peer_of(chosen.peer, chosen.peer_process) if chosen.peer else None
            verbs.figures(table, folder, peer, quick=quick)
            return
        if chosen.what == "watches":
            watching.figures(table, folder, quick=quick, soak_minutes=chosen.soak)
            return
        start_up(table, folder, 1 if quick else 3)
        cluster_figures(table, folder, quick=quick)
        syncing.figures(table, folder, objects=50 if quick else 1000)
        monorepo.figures(table, folder, applications=30 if quick else 300)
    table.title(f"measured in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
