"""Data directories for tests: written, copied as a kill would leave them, looked at byte for byte."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncline.cluster.storage.disk import Disk, DiskError, Listener
from syncline.cluster.storage.encryption import Encryption
from syncline.cluster.storage.store import Key, Store

FORMAT_1 = """
CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, raw BLOB NOT NULL,
  UNIQUE (resource, namespace, name)
);
CREATE TABLE state (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), revision INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0);
"""
"""As the first release made it."""
APPLICATION_ID = 0x53594E43
LONGEST_S = 300.0
"""What the disk has not done by then, it never does."""

Contents = dict[tuple[str, str, str], tuple[int, bytes]]


class Writer:
    """A store that follows a disk. ``durable`` is what was acknowledged."""

    def __init__(self, path: Path, encryption: Encryption | None = None) -> None:
        self.disk = Disk(path, encryption)
        self.store = Store(durable=True)
        loaded = self.disk.load()
        self.store.restore(loaded.revision, loaded.objects)
        self.durable = loaded.revision
        self.failure: DiskError | None = None
        self.refused = 0
        """How often writes were taken back for want of space."""
        self.listeners: list[Callable[[int], None]] = []
        self._full_now = False
        self._told = threading.Condition()
        self.disk.follow(
            self.store, Listener(durable=self._durable, full=self._full, space=lambda _: None, failed=self._failed)
        )

    def put(self, name: str, value: str = "", resource: str = "/configmaps") -> int:
        obj = {"metadata": {"name": name, "namespace": "demo", "uid": f"u-{name}"}, "data": {"v": value}}
        return self.store.put(Key(resource, "demo", name), obj, expect=None).revision

    def delete(self, name: str) -> int:
        return self.store.delete(Key("/configmaps", "demo", name), expect=None).revision

    def settle(self) -> bool:
        """Wait until all is durable; False where it was taken back, or the disk failed."""
        with self._told:
            done = lambda: self.durable >= self.store.revision or self.failure is not None or self._full_now  # noqa: E731
            assert self._told.wait_for(done, LONGEST_S), f"{self.durable} of {self.store.revision} are durable"
            if not self._full_now:
                return self.failure is None
            self._full_now = False
            self.refused += 1
        self.store.take_back()
        return False

    def await_failure(self) -> None:
        with self._told:
            assert self._told.wait_for(lambda: self.failure is not None, LONGEST_S), "the disk does not fail"

    def await_space(self) -> None:
        with self.disk._changed:
            there = lambda: self.disk.refusal is None or self.failure is not None  # noqa: E731
            assert self.disk._changed.wait_for(there, LONGEST_S), self.disk.refusal

    def await_rest(self) -> None:
        """Until the disk's thread has nothing left to tidy."""
        with self.disk._changed:
            while not self.disk.at_rest:
                self.disk._changed.wait(0.1)

    def close(self) -> None:
        self.disk.close()

    def _durable(self, revision: int) -> None:
        with self._told:
            for listener in self.listeners:
                listener(revision)
            self.store.mark_durable(revision)
            self.durable = revision
            self._told.notify_all()

    def _full(self, _: Exception) -> None:
        with self._told:
            self._full_now = True
            self._told.notify_all()

    def _failed(self, error: DiskError) -> None:
        with self._told:
            self.failure = error
            self._told.notify_all()


@contextmanager
def writing(path: Path, encryption: Encryption | None = None) -> Iterator[Writer]:
    writer = Writer(path, encryption)
    try:
        yield writer
    finally:
        writer.close()


def contents(store: Store) -> Contents:
    return {tuple(s.key): (s.revision, s.raw) for resource in store.resources() for s in store.list(resource)}


def read(path: Path, encryption: Encryption | None = None) -> tuple[int, Contents]:
    """What a start finds."""
    disk = Disk(path, encryption)
    try:
        loaded = disk.load()
        return loaded.revision, {tuple(s.key): (s.revision, s.raw) for s in loaded.objects}
    finally:
        disk.close()


def killed(path: Path, copy: Path) -> Path:
    """The directory as a kill would leave it now; nothing is being written."""
    copy.mkdir(parents=True)
    for name in (path.name, f"{path.name}-wal", f"{path.name}.lock"):
        if (path.parent / name).exists():
            shutil.copyfile(path.parent / name, copy / name)
    return copy / path.name


def bytes_of(directory: Path) -> dict[str, bytes]:
    """Every file but SQLite's index of the log, which holds nothing of its own, and the holder of the lock."""
    return {
        str(file.relative_to(directory)): file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and not file.name.endswith((".lock", "-shm"))
    }


def make_format_1(path: Path, objects: dict[str, Any], revision: int) -> sqlite3.Connection:
    """A file as the first release wrote it; close the connection for one that was stopped properly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    pragmas = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;"
    connection.executescript(f"BEGIN; {pragmas} {FORMAT_1} COMMIT;")
    connection.executemany(
        "INSERT INTO objects VALUES ('/configmaps', 'demo', ?, ?, ?)",
        ((name, number, raw) for number, (name, raw) in enumerate(objects.items(), 1)),
    )
    connection.execute("UPDATE state SET revision = ?", (revision,))
    return connection
