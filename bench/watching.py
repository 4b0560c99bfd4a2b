"""``python -m bench watches [--quick] [--soak MINUTES]``: many watchers, many objects, and hours of change.

The server, its watchers and those who write are three processes. Latency is from the moment before a change is sent to
its event at a watcher: the write itself is in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.load import measure
from bench.processes import Blocking, Running, apiserver, free_port, running
from bench.table import Table

__all__ = ["figures"]

NAMESPACE = "/api/v1/namespaces/bench"
MAPS = f"{NAMESPACE}/configmaps"
CHANGED = 2_000
"""Objects that change in turn."""
IDLE, READING = 500, 50
SAMPLE_S = 15.0


@dataclass(slots=True)
class Watching:
    """A process full of watchers. ``found`` is there once it ended."""

    opened_s: float
    found: dict[str, Any] = field(default_factory=dict)


@contextmanager
def watchers(server: Running, count: int, path: str) -> Iterator[Watching]:
    """``count`` watches until the block ends."""
    command = [sys.executable, "-m", "bench.watchers"]
    task = {"url": server.url, "kubeconfig": str(server.kubeconfig), "path": path, "watchers": count}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        made = Watching(json.loads(process.stdout.readline())["opened_s"])
        yield made
        process.stdin.close()
        made.found = json.loads(process.stdout.readline())


def figures(table: Table, folder: Path, *, quick: bool, soak_minutes: float = 0.0) -> None:
    """With ``soak_minutes`` only that."""
    place = folder / "watches"
    place.mkdir()
    port = free_port()
    command = apiserver(place, port, "--data", str(place / "data"), "--controllers", "none")
    with running(command, place, port) as server:
        Blocking(server).send(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
        )
        _create(server, 200 if quick else CHANGED, "changed")
        if soak_minutes:
            _soak(table, server, place / "data", soak_minutes)
            return
        _idle(table, server, 100 if quick else IDLE)
        _churn(table, server, 3 if quick else 15, 200 if quick else CHANGED)
    for objects in (2_000,) if quick else (10_000, 100_000):
        _large(table, folder, objects)


def _map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x" * 400}}


def _create(server: Running, count: int, prefix: str) -> None:
    measure(server, "POST", MAPS, body=_map(prefix + "-{i}"), count=count)


def _bytes_of(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def _idle(table: Table, server: Running, count: int) -> None:
    table.title(f"{count} watches over TLS, a connection each")
    before, cpu = server.resident_mib(), server.cpu_s()
    revision = Blocking(server).send("GET", f"{MAPS}?limit=1")["metadata"]["resourceVersion"]
    with watchers(server, count, f"{MAPS}?watch=true&resourceVersion={revision}") as idle:
        after = server.resident_mib()
        opened = server.cpu_s() - cpu
        table.row("to open them all", f"{idle.opened_s:.2f} s", f"{1000 * opened / count:.2f} ms of server CPU each")
        table.row("resident", f"{after:.0f} MiB", f"{(after - before) * 1024 / count:.0f} KiB a watch")
        cpu = server.cpu_s()
        time.sleep(2)
        table.row("  server CPU while nothing happens", f"{50 * (server.cpu_s() - cpu):.1f} %")
        changes = _changes(server, "changed-{i}", 100, per_s=20)
        table.row(
            "  server CPU of a change that all hear", f"{changes * 1000:.1f} ms", f"{changes / count * 1e6:.0f} µs each"
        )
    found = idle.found
    table.row(
        "change to event", f"{found['median_ms']:.1f} ms", f"99th {found['p99_ms']:.1f} ms, {found['lost']} cut off"
    )


def _changes(server: Running, name: str, count: int, *, per_s: float) -> float:
    """Changes one after the other at a pace; CPU seconds of the server for each."""
    link, cpu = Blocking(server), server.cpu_s()
    begun = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, begun + number / per_s - time.perf_counter()))
        body = {"data": {"stamp": f"{time.time():.6f}"}}
        link.send("PATCH", f"{MAPS}/{name.replace('{i}', str(number))}", body, "application/merge-patch+json")
    return (server.cpu_s() - cpu) / count


def _churn(table: Table, server: Running, seconds: float, objects: int) -> None:
    table.title(f"{objects:,} objects change as fast as 16 writers can, {READING} watchers of all of them")
    revision = Blocking(server).send("GET", f"{MAPS}?limit=1")["metadata"]["resourceVersion"]
    before, cpu, begun = server.resident_mib(), server.cpu_s(), time.perf_counter()
    with watchers(server, READING, f"{MAPS}?watch=true&resourceVersion={revision}") as reading:
        found = measure(
            server,
            "PATCH",
            f"{MAPS}/changed-{{i}}",
            body={"data": {"stamp": "{now}"}},
            content="application/merge-patch+json",
            seconds=seconds,
            modulo=objects,
        )
        busy = (server.cpu_s() - cpu) / (time.perf_counter() - begun)
        time.sleep(1)
    events = reading.found["events"]
    table.row("changes", f"{found.per_s:,.0f}/s", f"answered in {found.median_ms:.1f} ms, 99th {found.p99_ms:.1f} ms")
    table.row("events taken", f"{events / found.seconds:,.0f}/s", f"{events / max(found.count, 1):.1f} of each change")
    told = f"99th {reading.found['p99_ms']:.1f} ms, {reading.found['lost']} cut off"
    table.row("change to event", f"{reading.found['median_ms']:.1f} ms", told)
    table.row("  server CPU, resident", f"{100 * busy:.0f} %", f"{before:.0f} → {server.resident_mib():.0f} MiB")


def _large(table: Table, folder: Path, objects: int) -> None:
    table.title(f"{objects:,} objects")
    place = folder / f"large-{objects}"
    place.mkdir()
    port = free_port()
    command = apiserver(place, port, "--data", str(place / "data"), "--controllers", "none")
    with running(command, place, port) as server:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
        Blocking(server).send("POST", "/api/v1/namespaces", body)
        empty = server.resident_mib()
        _create(server, objects, "many")
        full = server.resident_mib()
        table.row("resident", f"{full:.0f} MiB", f"{(full - empty) * 1024 / objects:.1f} KiB an object of 0.7 KB")
        table.row("data on disk", f"{_bytes_of(place / 'data') / 2**20:.0f} MiB")
        one = measure(server, "GET", f"{MAPS}/many-{{i}}", count=2_000)
        table.row("GET one", f"{one.median_ms:.1f} ms", f"99th {one.p99_ms:.1f} ms, {one.cpu_ms:.2f} ms of server CPU")
        page = measure(server, "GET", f"{MAPS}?limit=500", count=200)
        table.row(
            "LIST a page of 500",
            f"{page.median_ms:.1f} ms",
            f"99th {page.p99_ms:.1f} ms, {page.cpu_ms:.2f} ms of server CPU",
        )
        write = measure(server, "POST", MAPS, body=_map("more-{i}"), count=1_000)
        table.row(
            "create", f"{write.median_ms:.1f} ms", f"99th {write.p99_ms:.1f} ms, {write.cpu_ms:.2f} ms of server CPU"
        )
    with running(command, place, port) as again:
        table.row("ready again with its data", f"{again.ready_s:.2f} s", f"{again.resident_mib():.0f} MiB")


def _soak(table: Table, server: Running, data: Path, minutes: float) -> None:
    """Writers at half of what is possible, watchers that come and go; memory and file as time goes by."""
    table.title(f"{minutes:g} minutes of change, {READING} watchers that are opened anew every {SAMPLE_S:.0f} s")
    samples: list[tuple[float, float, float]] = []
    stop, begun = threading.Event(), time.perf_counter()
    counts = [0]

    def write() -> None:
        while not stop.is_set():
            found = measure(
                server, "PATCH", f"{MAPS}/changed-{{i}}", body={"data": {"stamp": "{now}"}},
                content="application/merge-patch+json", seconds=SAMPLE_S, modulo=CHANGED, per_s=500,
            )  # fmt: skip
            counts[0] += found.count

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while time.perf_counter() - begun < 60 * minutes:
            with watchers(server, READING, f"{MAPS}?watch=true"):
                time.sleep(SAMPLE_S)
            passed = time.perf_counter() - begun
            samples.append((passed, server.resident_mib(), _bytes_of(data) / 2**20))
            print(
                f"    {passed:6.0f} s  {samples[-1][1]:7.1f} MiB resident  {samples[-1][2]:7.1f} MiB on disk",
                flush=True,
            )
    finally:
        stop.set()
        writer.join()
    settled = samples[len(samples) // 3 :]
    table.row("changes", f"{counts[0]:,}", f"{counts[0] / (time.perf_counter() - begun):,.0f}/s")
    for name, at in (("resident", 1), ("on disk", 2)):
        first, last = settled[0][at], settled[-1][at]
        highest = max(each[at] for each in settled)
        table.row(name, f"{last:.0f} MiB", f"after a third of the time {first:.0f}, highest {highest:.0f}")
