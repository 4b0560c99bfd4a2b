"""A full disk: writes are refused in clear words, reads and watches go on, what was acknowledged stays, and writes go
on by themselves once there is space."""

from __future__ import annotations

import contextlib
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bench.processes import Running, _await_answer, apiserver, free_port
from tests.cluster.links import LONGEST_S, MERGE, Link, Watching
from tests.conftest import Figure

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
VALUE = "x" * 50_000
WRITERS = 4
TRIES = 200
"""Creations of one writer: 40 MB in all, more than any bound here."""
LOOK_EVERY_S = 0.1


@dataclass
class Volume:
    """A server whose data has a bound; ``fill`` makes it tight, ``free`` takes that back."""

    server: Running
    fill: Callable[[], None]
    free: Callable[[], None]
    kill: Callable[..., Running]
    """Kill the server and start it again on the same data; ``to_the_last_page``: with a file system that is full."""
    removals: bool
    """Whether moving the log to the file makes room for a removal; on a full file system nothing does."""


@contextlib.contextmanager
def _served(folder: Path, data: str, before: list[str]) -> Iterator[tuple[Running, subprocess.Popen[bytes]]]:
    port, begun = free_port(), time.perf_counter()
    (folder / "kubeconfig").unlink(missing_ok=True)
    command = [*before, *apiserver(folder, port, "--data", data)]
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        _await_answer(process, port, "/readyz", begun, folder)
        while not (folder / "kubeconfig").exists():
            assert process.poll() is None
        yield Running(process.pid, port, 0.0, folder / "kubeconfig"), process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def limited_file_size(folder: Path) -> Iterator[Volume]:
    """As a quota: no file of the process may grow beyond a size."""
    with contextlib.ExitStack() as stack:
        data = folder / "data"
        server, process = stack.enter_context(_served(folder, str(data), []))

        def fill() -> None:
            sizes = [file.stat().st_size for file in data.iterdir() if file.is_file()]
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (max(sizes) + 2**20, resource.RLIM_INFINITY))

        def free() -> None:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        def kill(to_the_last_page: bool = False) -> Running:
            assert not to_the_last_page, "a quota has no last page"
            process.kill()
            process.wait()
            return stack.enter_context(_served(folder, str(data), []))[0]

        yield Volume(server, fill, free, kill, removals=True)


@contextlib.contextmanager
def small_file_system(folder: Path) -> Iterator[Volume]:
    """A tmpfs of 12 MiB in a namespace of the server; what fills it is somebody else's file."""
    mount = folder / "mount"
    mount.mkdir()
    holder = subprocess.Popen(
        ["unshare", "-Urm", "sh", "-c", f"mount -t tmpfs -o size=12m none {mount} && echo ready && exec sleep 600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("this machine mounts no tmpfs in a user namespace")
        inside = ["nsenter", "-t", str(holder.pid), "-U", "-m", "--preserve-credentials"]
        filler = Path(f"/proc/{holder.pid}/root{mount}/filler")
        with contextlib.ExitStack() as stack:
            server, process = stack.enter_context(_served(folder, str(mount / "data"), inside))

            def fill() -> None:
                with filler.open("wb") as file:
                    free = shutil.disk_usage(filler.parent).free
                    file.write(bytes(free - 3 * 2**20))

            def kill(to_the_last_page: bool = False) -> Running:
                process.kill()
                process.wait()
                if to_the_last_page:
                    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
                        while file.write(bytes(4096)):
                            pass
                return stack.enter_context(_served(folder, str(mount / "data"), inside))[0]

            yield Volume(server, fill, filler.unlink, kill, removals=False)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def _configmap(name: str) -> dict[str, Any]:
    labels = {"of": "this-test"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"v": VALUE}}


@dataclass
class Filler:
    """Creates until it is refused. ``kept`` are name and revision of what was acknowledged."""

    link: Link
    name: str
    kept: dict[str, str]
    refused: str = ""
    answer: Any = None

    def run(self) -> None:
        for number in range(TRIES):
            name = f"{self.name}-{number}"
            status, answer = self.link.send("POST", CONFIGMAPS, _configmap(name))
            if status != 201:
                self.refused, self.answer = name, answer
                return
            self.kept[name] = answer["metadata"]["resourceVersion"]


def _filled(server: Running, prefix: str = "c") -> list[Filler]:
    """Writers that took all the room there was; each was refused in the end."""
    fillers = [Filler(Link(server), f"{prefix}{number}", {}) for number in range(WRITERS)]
    threads = [threading.Thread(target=filler.run) for filler in fillers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST_S)
    for filler in fillers:
        assert filler.answer is not None, (
            f"{filler.name} was not refused in {LONGEST_S} s after {len(filler.kept)} writes"
        )
        assert (filler.answer["code"], filler.answer["reason"]) == (500, "InternalError"), filler.answer
        assert "database space exceeded" in filler.answer["message"] and "cluster.db" in filler.answer["message"]
    return fillers


def _listed(link: Link) -> dict[str, str]:
    _, answer = link.send("GET", f"{CONFIGMAPS}?labelSelector=of%3Dthis-test")
    assert all(item["data"]["v"] == VALUE for item in answer["items"])
    return {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in answer["items"]}


def _accepted(link: Link, method: str, path: str, body: Any) -> float:
    """Seconds until a request went through that is refused for want of space."""
    begun = time.perf_counter()
    while True:
        status, answer = link.send(method, path, body)
        if status < 300:
            return time.perf_counter() - begun
        assert status == 500 and "database space exceeded" in answer["message"], answer
        assert time.perf_counter() - begun < LONGEST_S, f"refused for {LONGEST_S} s: {answer}"
        time.sleep(LOOK_EVERY_S)


def _names(events: list[Any]) -> list[str]:
    return [event["object"]["metadata"].get("name", "") for event in events]


def _ports(endpoints: Any) -> list[int]:
    return [port["port"] for subset in endpoints.get("subsets", []) for port in subset["ports"]]


@pytest.mark.parametrize("bounded", [limited_file_size, small_file_system])
def test_a_full_disk_refuses_writes_and_nothing_else(
    tmp_path: Path, figure: Figure, bounded: Callable[[Path], contextlib.AbstractContextManager[Volume]]
) -> None:
    with bounded(tmp_path) as volume:
        link = Link(volume.server)
        watch = Watching(volume.server, f"{CONFIGMAPS}?watch=true&labelSelector=of%3Dthis-test")
        volume.fill()
        fillers = _filled(volume.server)
        kept = {name: revision for filler in fillers for name, revision in filler.kept.items()}

        # Reads and watches go on, and show what was acknowledged and nothing else.
        assert [link.send("GET", f"{CONFIGMAPS}/{filler.refused}")[0] for filler in fillers] == [404] * WRITERS
        assert _listed(link) == kept and len(kept) > WRITERS
        assert sorted(_names(watch.until(lambda events: len(events) >= len(kept)))) == sorted(kept)
        assert "\nsyncline_disk_refuses_writes 1\n" in link.text("/metrics")
        assert link.text("/readyz") == "ok", "it serves on"
        one = min(kept)  # of whichever writer: some may have come too late for any
        assert link.send("PATCH", f"{CONFIGMAPS}/{one}", {"data": {"v": "2"}}, MERGE)[0] == 500
        removed = []
        if volume.removals:
            _accepted(link, "DELETE", f"{CONFIGMAPS}/{one}", None)
            assert kept.pop(one) and _listed(link) == kept
            removed = [one, one]

        # Once there is space, writes go on without anybody's help, the controllers' as well.
        volume.free()
        waited_s = _accepted(link, "POST", CONFIGMAPS, _configmap("c-last"))
        kept["c-last"] = _listed(link)["c-last"]
        assert _listed(link) == kept
        assert "\nsyncline_disk_refuses_writes 0\n" in link.text("/metrics")
        assert len(set(kept.values())) == len(kept), "revisions never repeat"
        told = watch.until(lambda events: "c-last" in _names(events))
        assert sorted(_names(told)) == sorted([*kept, *removed]) and not watch.over
        assert {e["object"]["metadata"]["resourceVersion"] for e in told} >= set(kept.values())
        tokens = "/api/v1/namespaces/later/serviceaccounts"
        link.send("POST", "/api/v1/namespaces", {"metadata": {"name": "later"}})
        Watching(volume.server, f"{tokens}?watch=true").until(lambda events: "default" in _names(events))

        assert _listed(Link(volume.kill())) == kept
        figure(
            f"disk full ({bounded.__name__})",
            f"{len(kept)} writes kept, 0 lost, {WRITERS + 1} refused, {waited_s:.1f} s from space to the next write",
        )


def test_a_server_starts_on_a_full_file_system_and_shows_what_is_there(tmp_path: Path) -> None:
    with small_file_system(tmp_path) as volume:
        volume.fill()
        kept = {name: revision for filler in _filled(volume.server) for name, revision in filler.kept.items()}
        again = volume.kill(to_the_last_page=True)
        link = Link(again)
        assert _listed(link) == kept
        for filler in _filled(again, "d"):  # some room may have been left, too little for what was refused last
            kept |= filler.kept
        assert _listed(link) == kept
        volume.free()
        _accepted(link, "POST", CONFIGMAPS, _configmap("c-last"))
        assert set(_listed(link)) == {*kept, "c-last"}
        endpoints = Watching(again, "/api/v1/namespaces/default/endpoints?watch=true")
        endpoints.until(lambda events: any(again.port in _ports(event["object"]) for event in events))
