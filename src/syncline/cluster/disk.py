"""The cluster's objects on disk: SQLite in WAL mode, synchronous FULL, one writer thread with group commit.

Called by ``assembly``: :meth:`Disk.load` fills the store, :meth:`Disk.follow` subscribes to it; from then on every
event is written, and ``on_durable`` tells the newest revision that a crash can no longer undo. Current objects and the
last revision are kept, not the history: after a restart a watcher from before lists again (410), and revisions go on
where they were. What cannot be read is refused and left as it is.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from syncline.cluster.store import Event, EventType, Key, Store, Stored

__all__ = ["PENDING_LIMIT_EVENTS", "SCHEMA_VERSION", "Disk", "DiskError", "Loaded"]

SCHEMA_VERSION = 1
APPLICATION_ID = 0x53594E43
"""``SYNC``: tells our files from other SQLite databases."""

PENDING_LIMIT_EVENTS = 50_000
"""Events waiting for the writer. When reached, writers in this process wait: memory is not the place to queue."""

BUSY_TIMEOUT_S = 5.0
"""How long SQLite waits for a reader such as a backup tool."""

_TABLES = """
CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, raw BLOB NOT NULL,
  UNIQUE (resource, namespace, name)
);
CREATE TABLE state (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), revision INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0);
"""
_PUT = """
INSERT INTO objects (resource, namespace, name, revision, raw) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision, raw = excluded.raw
"""
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"


class DiskError(Exception):
    """The data cannot be used or written; the message names the file, what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Loaded:
    revision: int
    objects: tuple[Stored, ...]


class Disk:
    """One database file and its writer. Raises :class:`DiskError` when it is in use, newer, foreign or damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: DiskError | None = None
        self._pending: list[Event] = []
        self._changed = threading.Condition()
        self._closing = False
        self._writer: threading.Thread | None = None
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(path)
        try:
            self._connection = _opened(path)
        except BaseException:
            self._lock.close()
            raise

    def load(self) -> Loaded:
        """Everything that is on disk, in order of key."""
        try:
            (revision,) = self._connection.execute("SELECT revision FROM state").fetchone()
            rows = self._connection.execute(
                "SELECT resource, namespace, name, revision, raw FROM objects ORDER BY resource, namespace, name"
            )
            objects = tuple(Stored.load(Key(*row[:3]), row[3], row[4]) for row in rows)
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            raise _damaged(self.path, error) from error
        return Loaded(revision, objects)

    def follow(
        self,
        store: Store,
        *,
        on_durable: Callable[[int], None],
        on_failure: Callable[[DiskError], None],
    ) -> None:
        """Write every event of ``store`` from now on.

        Both callbacks run in the writer's thread: hand them over to the store's own (``call_soon_threadsafe``). After
        a failure nothing more becomes durable; stop the process, so that nobody works on with what would be lost.
        """
        assert self._writer is None, "one disk follows one store"
        self._writer = threading.Thread(
            target=self._write_all, args=(on_durable, on_failure), name="syncline-disk", daemon=True
        )
        self._writer.start()
        store.subscribe(self.append)

    def append(self, event: Event) -> None:
        """Queue one event; waits only when :data:`PENDING_LIMIT_EVENTS` are queued already."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._pending) < PENDING_LIMIT_EVENTS or self.failure is not None)
            if self.failure is not None:
                raise self.failure
            self._pending.append(event)
            self._changed.notify_all()

    def close(self) -> None:
        """Write what is queued, then let go of file and lock; idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._writer is not None:
            self._writer.join()
        self._connection.close()
        self._lock.close()

    def _write_all(self, on_durable: Callable[[int], None], on_failure: Callable[[DiskError], None]) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                batch, self._pending = self._pending, []
                self._changed.notify_all()
            if not batch:
                return
            try:
                self._commit(batch)
            except sqlite3.Error as error:
                failure = DiskError(f"{self.path}: cannot write ({error}); free space or repair the disk, then restart")
                with self._changed:
                    self.failure = failure
                    self._changed.notify_all()
                on_failure(failure)
                return
            on_durable(batch[-1].revision)

    def _commit(self, batch: list[Event]) -> None:
        """All events of a batch in one transaction; of several writes to one object only the last."""
        last = {event.stored.key: event for event in batch}
        puts = [e.stored for e in last.values() if e.type is not EventType.DELETED]
        deletes = [tuple(e.stored.key) for e in last.values() if e.type is EventType.DELETED]
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(_DELETE, deletes)
            connection.executemany(_PUT, [(*s.key, s.revision, s.raw) for s in puts])
            connection.execute("UPDATE state SET revision = ?", (batch[-1].revision,))
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _locked(path: Path) -> IO[str]:
    """Hold the lock file as long as we live: the kernel releases it also after SIGKILL."""
    lock = open(path.with_name(path.name + ".lock"), "a+")  # noqa: SIM115 - held open on purpose
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        owner = lock.read(20).strip() or "unknown"
        lock.close()
        raise DiskError(
            f"{path.parent}: this data is in use by process {owner}; stop that, or choose another data directory"
        ) from error
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def _opened(path: Path) -> sqlite3.Connection:
    fresh = not path.exists()
    if fresh:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _damaged(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Nothing is written before the file is known to be empty or ours."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION_ID:
        raise DiskError(f"{path}: this is not a cluster of Syncline; choose another data directory")
    if version > SCHEMA_VERSION:
        raise DiskError(
            f"{path}: written by a newer Syncline (format {version}, this one knows {SCHEMA_VERSION}); "
            "use that version, or another data directory"
        )
    if tables:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if not tables:
        pragmas = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
        connection.executescript(f"BEGIN; {pragmas} {_TABLES} COMMIT;")


def _damaged(path: Path, error: Exception) -> DiskError:
    why = " ".join(str(error).split())
    return DiskError(
        f"{path}: damaged ({why}) and left as it is; restore it from a backup, or choose another data directory"
    )
