"""``python -m bench verbs [--peer KUBECONFIG --peer-process NAME|PID …]``: CPU per request for every verb.

The same load against a fresh cluster of ours and, where one is named, against any other: what its processes spend is
counted by name or id. Rates depend on what else the machine does; CPU times hardly do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.load import measure
from bench.processes import Blocking, Server, apiserver, cpu_s_of, free_port, resident_mib_of, running
from bench.table import Table
from syncline.kube.transport.kubeconfig import load_kubeconfig

__all__ = ["Peer", "figures", "peer_of"]

NAMESPACE = "bench-verbs"
LISTED = 500
WARM_UP = 200
"""Requests of each verb that are not counted: caches fill, and Go's collector finds its pace."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another cluster on this machine, and the processes that answer for it."""

    url: str
    kubeconfig: Path
    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        return sum(map(cpu_s_of, self.pids))

    def resident_mib(self) -> float:
        return sum(map(resident_mib_of, self.pids))


def peer_of(kubeconfig: Path, processes: list[str]) -> Peer:
    """``processes``: names as in ``/proc/PID/comm``, or ids."""
    pids: list[int] = []
    for each in processes:
        found = [int(each)] if each.isdigit() else _pids_named(each)
        if not found:
            raise SystemExit(
                f"--peer-process {each}: no such process; name what answers, such as kube-apiserver or etcd"
            )
        pids += found
    if not pids:
        raise SystemExit("--peer needs --peer-process, once for each process whose CPU counts")
    return Peer(load_kubeconfig(str(kubeconfig)).server, kubeconfig, tuple(pids))


def _pids_named(name: str) -> list[int]:
    found: list[int] = []
    for comm in sorted(Path("/proc").glob("[0-9]*/comm")):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if comm.read_text().strip() == name[:15]:
                found.append(int(comm.parent.name))
    return found


def configmap(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x" * 800}}


def figures(table: Table, folder: Path, peer: Peer | None, *, quick: bool) -> None:
    """A line per verb; both clusters get the same load, one after the other."""
    count = 500 if quick else 2000
    table.title("Server CPU per request")
    port = free_port()
    with running(apiserver(folder, port, "--data", str(folder / "data")), folder, port) as ours:
        mine = dict(_verbs(ours, count))
    theirs = dict(_verbs(peer, count)) if peer is not None else {}
    for name, cpu_ms in mine.items():
        other = theirs.get(name)
        table.row(name, f"{cpu_ms:.2f} ms", f"peer {other:.2f} ms, {cpu_ms / other:.2f} of it" if other else "")


def _verbs(server: Server, count: int) -> Iterator[tuple[str, float]]:
    """Name and milliseconds of CPU. The namespace is made, and taken away again."""
    link = Blocking(server)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    link.send("POST", "/api/v1/namespaces", body)
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    try:
        for number in range(LISTED):
            link.send("POST", path, configmap(f"listed-{number}"))
        one = f"{path}/listed-{{i}}"
        merge = {"content": "application/merge-patch+json", "body": {"data": {"n": "{i}"}}}
        apply = {"content": "application/apply-patch+yaml", "body": configmap("applied-{i}")}
        applied = f"{path}/applied-{{i}}?fieldManager=bench&force=true"

        def spent(method: str, address: str, requests: int, **task: Any) -> float:
            return measure(server, method, address, count=requests, **task).cpu_ms

        spent("GET", f"{path}/listed-1", WARM_UP)
        yield "GET one ConfigMap of 1 KB", spent("GET", f"{path}/listed-1", count)
        yield f"LIST {LISTED} ConfigMaps", spent("GET", path, max(count // 10, 50))
        spent("POST", path, WARM_UP, body=configmap("warm-{i}"))
        yield "create, durable", spent("POST", path, count, body=configmap("made-{i}"))
        yield "merge patch", spent("PATCH", one, LISTED, **merge)
        yield "server-side apply, new objects", spent("PATCH", applied, count, **apply)
        yield "server-side apply, nothing changes", spent("PATCH", applied, count, **apply)
        yield "delete", spent("DELETE", f"{path}/made-{{i}}", count)
    finally:
        Blocking(server).send("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
