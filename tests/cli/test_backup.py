"""``syncline backup`` beside a server under load, ``syncline restore`` elsewhere, and Secrets that are encrypted."""

from __future__ import annotations

import base64
import contextlib
import gzip
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bench.processes import Running, free_port
from tests.cluster.datafiles import bytes_of
from tests.cluster.killable import Nursery
from tests.cluster.links import LONGEST_S, MERGE, Link
from tests.cluster.test_encryption import CANARY, configuration, key_text, provider
from tests.cluster.test_killed_server import World
from tests.conftest import Figure

from syncline.assembly.inspection.archive import BUMP
from syncline.cli.main import main

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"


@dataclass
class Servers:
    """One after the other on one port, with the kubeconfig that the first one wrote."""

    folder: Path
    world: World

    def _arguments(self, data: Path, options: tuple[str, ...]) -> list[str]:
        config = self.folder / "kubeconfig"
        out = [] if config.exists() else ["--kubeconfig-out", str(config)]
        where = ["--listen", f"127.0.0.1:{self.world.port}", "--data", str(data), "--controllers", "none"]
        return ["apiserver", *where, *out, *options]

    @contextlib.contextmanager
    def started(self, data: Path, *options: str) -> Iterator[Running]:
        pid = self.world.nursery.start(*self._arguments(data, options))
        assert self.world.ready(pid), (self.folder / "output").read_text()
        try:
            yield self.world.server
        finally:
            os.kill(pid, signal.SIGTERM)
            assert self.world.nursery.ended() == 0

    def refused(self, data: Path, *options: str) -> str:
        """What a server says that does not start; nothing of its data has changed."""
        before, output = bytes_of(data), self.folder / "output"
        output.write_text("")
        pid = self.world.nursery.start(*self._arguments(data, options))
        if self.world.ready(pid):
            os.kill(pid, signal.SIGKILL)
        assert self.world.nursery.ended() == 1, output.read_text()
        assert bytes_of(data) == before
        return output.read_text()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    nursery = Nursery.begun(tmp_path)
    yield Servers(tmp_path, World(tmp_path, nursery, free_port(), []))
    nursery.close()


class Writers:
    """Each acknowledged write is numbered; ``done`` is how many of each writer were."""

    def __init__(self, server: Running, count: int) -> None:
        self.done = [0] * count
        self.newest = 0
        self._stop = False
        self._acknowledged = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._run, args=(server, number)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, server: Running, number: int) -> None:
        link = Link(server)
        while not self._stop:
            body: dict[str, Any] = {"metadata": {"name": f"w{number}-{self.done[number]}"}}
            status, answer = link.send("POST", CONFIGMAPS, body)
            assert status == 201, answer
            self.newest = max(self.newest, int(answer["metadata"]["resourceVersion"]))
            self.done[number] += 1
            self._acknowledged.release()

    def await_some(self, count: int) -> None:
        for _ in range(count):
            assert self._acknowledged.acquire(timeout=LONGEST_S)

    def stop(self) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join(LONGEST_S)


def _counts(link: Link, writers: int) -> list[int]:
    """How many of each writer's objects are there; without a gap."""
    _, listed = link.send("GET", CONFIGMAPS)
    numbers: list[list[int]] = [[] for _ in range(writers)]
    for item in listed["items"]:
        if item["metadata"]["name"].startswith("w"):
            writer, _, number = item["metadata"]["name"][1:].partition("-")
            numbers[int(writer)].append(int(number))
    assert all(sorted(each) == list(range(len(each))) for each in numbers), "one moment, without a gap"
    return [len(each) for each in numbers]


def test_a_backup_beside_a_busy_server_comes_back_as_of_its_moment(
    tmp_path: Path, servers: Servers, figure: Figure, capsys: pytest.CaptureFixture[str]
) -> None:
    data, file = tmp_path / "data", tmp_path / "cluster.backup"
    with servers.started(data) as server:
        writers = Writers(server, 4)
        writers.await_some(100)
        before = list(writers.done)
        assert main(["backup", str(file), "--data", str(data)]) == 0
        after = list(writers.done)
        assert main(["restore", str(file), "--data", str(data)]) == 1, "never into a running server's data"
        writers.stop()
    told = capsys.readouterr().err
    assert "private keys" in told and "is not empty" in told
    assert file.stat().st_mode & 0o777 == 0o600
    assert main(["backup", str(file), "--data", str(data)]) == 2, "not over another backup"
    assert main(["restore", str(file), "--data", str(tmp_path / "new")]) == 0
    with servers.started(tmp_path / "new") as server:
        link = Link(server)  # with the kubeconfig of before: the keys came back as well
        found = _counts(link, 4)
        assert all(low <= here <= high + 1 for low, here, high in zip(before, found, after, strict=True))
        (gone,) = link.lines(f"{CONFIGMAPS}?watch=true&resourceVersion={writers.newest}&timeoutSeconds=1")
        assert gone["object"]["code"] == 410, "who saw later revisions lists again"
        _, answer = link.send("POST", CONFIGMAPS, {"metadata": {"name": "next"}})
        assert int(answer["metadata"]["resourceVersion"]) > BUMP > writers.newest
    figure(
        "backup beside 4 writers",
        f"{sum(found)} objects of {sum(writers.done)} written later on, none torn, none missing",
    )


def test_secrets_stay_encrypted_through_restarts_rotation_and_backup(
    tmp_path: Path, servers: Servers, capsys: pytest.CaptureFixture[str]
) -> None:
    data, keys, file = tmp_path / "data", tmp_path / "keys", tmp_path / "cluster.backup"
    body = {"metadata": {"name": "s"}, "stringData": {"password": CANARY}}
    with servers.started(data) as server:
        assert Link(server).send("POST", SECRETS, body)[0] == 201
    canary = base64.b64encode(CANARY.encode())
    assert any(canary in content for content in bytes_of(data).values()), "in the clear it can be found"
    contents: list[bytes] = []
    rotated = configuration(provider("aescbc", 3), provider("aesgcm", 2).replace("key2", "b"))
    for number, text in enumerate((key_text(1, "a"), key_text(2, "b") + key_text(1, "a"), rotated)):
        keys.write_text(text)
        with servers.started(data, "--encrypt-secrets", str(keys)) as server:
            link = Link(server)
            _, answer = link.send("GET", f"{SECRETS}/s")
            assert answer["data"]["password"] == canary.decode()
            assert link.send("PATCH", f"{SECRETS}/s", {"metadata": {"labels": {"n": str(number)}}}, MERGE)[0] == 200
            assert main(["backup", str(file), "--data", str(data), "--force"]) == 0
            contents += [*bytes_of(data).values(), gzip.decompress(file.read_bytes())]
    assert not any(canary in content or CANARY.encode() in content for content in contents)
    assert "encrypted values, whose keys it does not contain" in capsys.readouterr().err
    assert "is encrypted with key key3 (aescbc); start with --encrypt-secrets FILE" in servers.refused(data)
    keys.write_text(key_text(1, "a"))
    said = servers.refused(data, "--encrypt-secrets", str(keys))
    assert "which is not among aesgcm a; add that key to the file" in said
    said = servers.refused(data, "--encrypt-secrets", str(tmp_path / "none"))
    assert "cannot read the keys (No such file or directory); make a key with: head" in said


def test_a_damaged_key_of_the_cluster_is_told_and_left_alone(tmp_path: Path, servers: Servers) -> None:
    data = tmp_path / "data"
    with servers.started(data):
        pass
    whole = {path.name: path.read_bytes() for path in (data / "keys").iterdir()}
    damages = {
        "ca.key": (b"", "ca.crt or ca.key is not readable as PEM"),
        "server.crt": (b"junk", "server.crt or server.key is not readable"),
        "admin.crt": (whole["server.crt"], "admin.crt is not of admin.key"),
        "service-accounts.key": (whole["ca.key"][:60], "a key or certificate cannot be used"),
    }
    for name, (content, said) in damages.items():
        (data / "keys" / name).write_bytes(content)
        assert said in servers.refused(data)
        (data / "keys" / name).write_bytes(whole[name])
    (data / "keys" / "ca.key").unlink()
    assert "ca.key is missing, ca.crt is there" in servers.refused(data)


def test_what_cannot_be_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apiserver", "--encrypt-secrets", "keys"]) == 2
    assert main(["up", "--memory", "--encrypt-secrets", "keys"]) == 2
    assert "for data that is kept" in capsys.readouterr().err
    assert main(["backup", str(tmp_path / "f"), "--data", str(tmp_path)]) == 1
    assert main(["restore", str(tmp_path / "f"), "--data", str(tmp_path / "d")]) == 1
    assert main(["restore", str(tmp_path / "f"), "--bump-revision", "0"]) == 2
    assert not list(tmp_path.iterdir())
