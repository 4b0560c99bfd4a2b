from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import syncline
import syncline.cluster.storage.disk as disk_module
from syncline.cluster.storage.disk import SCHEMA_VERSION, Disk, DiskError, Listener
from syncline.cluster.storage.store import Key, Store, WriteRefused

WRITER = Path(__file__).with_name("disk_writer.py")


def key(name: str) -> Key:
    return Key("/configmaps", "demo", name)


def put(store: Store, name: str, value: str = "") -> None:
    store.put(key(name), {"metadata": {"name": name, "labels": {"v": value}}}, expect=None)


def listener(
    durable: list[int], failures: list[DiskError] | None = None, told: threading.Event | None = None
) -> Listener:
    def failed(error: DiskError) -> None:
        if failures is not None:
            failures.append(error)
        if told is not None:
            told.set()

    return Listener(durable=durable.append, full=lambda _: None, space=lambda _: None, failed=failed)


def opened(path: Path) -> tuple[Disk, Store, list[int]]:
    disk, store, durable = Disk(path), Store(durable=True), list[int]()
    loaded = disk.load()
    store.restore(loaded.revision, loaded.objects)
    disk.follow(store, listener(durable))
    return disk, store, durable


def test_what_was_written_is_there_after_a_restart_and_revisions_go_on(tmp_path: Path) -> None:
    disk, store, durable = opened(tmp_path / "data" / "cluster.db")
    put(store, "a", "1")
    put(store, "b")
    put(store, "a", "2")
    store.delete(key("b"), expect=None)
    disk.close()
    assert durable[-1] == 4
    disk, again, _ = opened(tmp_path / "data" / "cluster.db")
    assert [(s.key.name, s.revision, s.labels) for s in again.list("/configmaps")] == [("a", 3, {"v": "2"})]
    assert (again.revision, again.compacted) == (4, 4)
    assert again.list("/configmaps")[0].raw == store.list("/configmaps")[0].raw
    disk.close()


def test_the_database_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "cluster.db")
    assert (tmp_path / "cluster.db").stat().st_mode & 0o777 == 0o600
    disk.close()


def test_a_second_process_on_the_same_data_is_refused_with_the_id_of_the_first(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "cluster.db")
    with pytest.raises(DiskError, match=f"in use by process {os.getpid()}; stop that, or choose another"):
        Disk(tmp_path / "cluster.db")
    disk.close()
    Disk(tmp_path / "cluster.db").close()


def test_data_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    Disk(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DiskError, match=f"newer Syncline \\(format {SCHEMA_VERSION + 1}"):
        Disk(path)
    assert path.read_bytes() == before


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DiskError, match="not a cluster of Syncline"):
        Disk(path)
    assert path.read_bytes() == before


def test_damaged_data_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    disk, store, _ = opened(path)
    for number in range(200):
        put(store, f"c{number}", "x" * 50)
    disk.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096:12288] = b"\xff" * 8192
    path.write_bytes(damaged)
    with pytest.raises(DiskError, match=r"damaged .* left as it is"):
        Disk(path)
    assert path.read_bytes() == bytes(damaged)
    path.write_text("hello, this is no database at all" * 100)
    with pytest.raises(DiskError, match="damaged"):
        Disk(path)


def test_a_failed_write_is_told_and_stops_acknowledging(tmp_path: Path) -> None:
    disk, store, durable = opened(tmp_path / "cluster.db")
    disk.close()
    disk = Disk(tmp_path / "cluster.db")
    disk._connection.execute("PRAGMA query_only = ON")
    told = threading.Event()
    failures: list[DiskError] = []
    store = Store(durable=True)
    disk.follow(store, listener(durable, failures, told))
    put(store, "a")
    assert told.wait(300)
    assert "cannot write" in str(failures[0]) and durable == [] and store.committed == 0
    with pytest.raises(WriteRefused):
        put(store, "b")
    disk.close()


def test_a_full_queue_makes_writers_wait_instead_of_filling_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module, "PENDING_LIMIT_EVENTS", 2)
    disk, store, durable = opened(tmp_path / "cluster.db")
    for number in range(50):
        put(store, f"c{number}")
        assert len(disk._pending) <= 2
    disk.close()
    assert durable[-1] == 50


@pytest.mark.parametrize("rounds", [2])
def test_a_killed_process_loses_no_write_that_it_acknowledged(tmp_path: Path, rounds: int) -> None:
    path = tmp_path / "cluster.db"
    environment = {**os.environ, "PYTHONPATH": str(Path(syncline.__file__).parents[1])}
    last = 0
    for _ in range(rounds):
        child = subprocess.Popen(
            [sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE, env=environment, text=True
        )
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(8)]
        child.send_signal(signal.SIGKILL)
        told += [int(line) for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        child.wait()
        child.stdout.close()
        assert told == sorted(told) and told[0] > last, "revisions never repeat"
        disk = Disk(path)
        loaded = disk.load()
        disk.close()
        last = loaded.revision
        assert last >= told[-1]
        _expect_every_write_up_to(last, {stored.key.name: stored.obj for stored in loaded.objects})


def _expect_every_write_up_to(last: int, objects: dict[str, dict[str, dict[str, str]]]) -> None:
    """The writer's rule, replayed: see ``disk_writer``."""
    expected = set[str]()
    for revision in range(1, last + 1):
        if (revision - 1) % 3 == 0 and f"c{revision - 1}" in expected:
            expected.remove(f"c{revision - 1}")
        else:
            expected.add(f"c{revision}")
    assert set(objects) == expected
    assert all(obj["data"]["at"] == name[1:] for name, obj in objects.items())
