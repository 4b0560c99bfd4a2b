"""Persist the cluster's objects: SQLite in WAL mode, synchronous FULL, one writer thread with group commit.

``assembly`` fills the store with :meth:`Disk.load` and attaches to it with :meth:`Disk.follow`; from then on every
event is written, and ``on_durable`` reports the newest revision that a crash cannot undo. Current objects and the last
revision are stored, not the history: after a restart, earlier watchers must list again (410), and revisions continue.
Unreadable files are refused and left unchanged (``datafile``).

A write that does not fit is rolled back in the file by SQLite and undone in memory by the store; its request fails,
later writes are refused before they change anything, reads and watches continue. The writer retries at growing
intervals until there is space. Any other failure, above all of an fsync, ends the writer: the content on disk is
unknown until the file is read again, so the process stops and acknowledges no pending write.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from syncline.cluster.storage.datafile import (
    BUSY_TIMEOUT_S,
    OUT_OF_SPACE,
    SCHEMA_VERSION,
    DiskError,
    Loaded,
    create_file,
    open_for_writing,
    read_file,
    row_checksum,
    state_row,
)
from syncline.cluster.storage.encryption import Encryption
from syncline.cluster.storage.store import Event, EventType, Store, WriteRefused

__all__ = ["SCHEMA_VERSION", "Disk", "DiskError", "Listener", "Loaded"]

PENDING_LIMIT_EVENTS = 50_000
"""Events queued for the writer. At the limit, writes of this process block, so that the queue stays bounded."""

CHECKPOINT_AFTER_BYTES = 4 * 2**20
"""Bytes written to the log before a checkpoint: bounds the log, and recovery after a kill."""

IDLE_S = 1.0
"""Seconds without a write after which a checkpoint runs in any case."""

GIVE_BACK_FROM_PAGES = 1024
"""Unused pages (4 MiB) that the file keeps for new objects, or a quarter of its pages if that is more."""
GIVE_BACK_STEP_PAGES = 256
"""Pages released per step, which bounds the delay of writers."""

LOOK_FOR_SPACE_S = 1.0
LOOK_FOR_SPACE_MAX_S = 16.0
"""First and longest interval between checks for free space."""
PROBE_BYTES = 2**20
"""Bytes that must be writable before writes resume; less would be used up by the next few objects."""

NUMBER_WIDTH = 20
"""Width of a line in the lock file."""

_PUT = """
INSERT INTO objects (resource, namespace, name, revision, raw, checksum) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (resource, namespace, name)
DO UPDATE SET revision = excluded.revision, raw = excluded.raw, checksum = excluded.checksum
"""
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_STATE = "UPDATE state SET revision = ?, objects = ?, checksum = ?"


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks of the disk. They run in the writer's thread: forward them to the store's thread."""

    durable: Callable[[int], None]
    """A crash can no longer undo any write up to this revision."""
    full: Callable[[WriteRefused], None]
    """Writes that are not durable will not be: undo them, then call :meth:`Disk.discard`."""
    space: Callable[[None], None]
    """There is free space again."""
    failed: Callable[[DiskError], None]
    """No further write becomes durable: stop the process."""


class Disk:
    """A database file and its writer. Raises :class:`DiskError` if the file is in use, newer, foreign or damaged."""

    def __init__(self, path: Path, encryption: Encryption | None = None) -> None:
        self.path = path
        self.refusal: WriteRefused | None = None
        """Why writes are refused now."""
        self._encryption = encryption
        self._pending: list[Event] = []
        self._changed = threading.Condition()
        self._closing = False
        self._settled = True
        self._wait_s: float | None = None
        self._admits_removal = False
        self._writer: threading.Thread | None = None
        self._unmoved_bytes = 0
        self._lock = _locked(path)
        try:
            if not path.exists():
                create_file(path)
            self._loaded: Loaded | None = read_file(path, encryption, self._lock.noted)
            self._objects = len(self._loaded.objects)
            self.sealed = len(self._loaded.stale)
            """Number of rows sealed with another key, or unsealed, because the keys changed."""
            self.upgraded_from = self._loaded.version
            self._connection = open_for_writing(path, self._loaded, encryption)
        except BaseException:
            self._lock.close()
            raise

    def load(self) -> Loaded:
        """Return all stored objects, ordered by key; callable once."""
        loaded, self._loaded = self._loaded, None
        assert loaded is not None, "a disk is loaded once"
        return loaded

    def follow(self, store: Store, listener: Listener) -> None:
        """Write every later event of ``store``."""
        assert self._writer is None, "one disk follows one store"
        self._loaded = None
        self._writer = threading.Thread(target=self._write_all, args=(listener,), name="syncline-disk", daemon=True)
        self._writer.start()
        store.attach(self)

    # -- the store's side: one thread ---------------------------------------------------------------------------------

    def admit(self, *, removal: bool) -> None:
        """Admit a write before it changes anything. Raises WriteRefused; blocks only if :data:`PENDING_LIMIT_EVENTS`
        are queued.

        While the disk is full, one removal is admitted after each check for space, since it may free some.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._pending) < PENDING_LIMIT_EVENTS or self.refusal is not None)
            if self.refusal is None:
                return
            if removal and self._admits_removal:
                self._admits_removal = False
                return
            raise self.refusal

    def append(self, event: Event) -> None:
        """Queue an admitted event."""
        with self._changed:
            self._pending.append(event)
            self._changed.notify_all()

    def discard(self) -> None:
        """Drop the queued events, which the store has undone."""
        with self._changed:
            self._pending.clear()
            self._settled = True
            self._changed.notify_all()

    def close(self) -> None:
        """Write the queued events, then release file and lock; idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._writer is not None:
            self._writer.join()
        self._connection.close()
        self._lock.close()

    @property
    def at_rest(self) -> bool:
        """Return True if no event is queued, and the log is moved to the file and truncated."""
        return not self._pending and not self._unmoved_bytes

    def size_bytes(self) -> int:
        """Size of the file and its log."""
        paths = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())

    # -- the writer's thread ------------------------------------------------------------------------------------------

    def _write_all(self, listener: Listener) -> None:
        while (batch := self._next_batch()) is not None:
            written = not batch
            try:
                if batch:
                    self._commit(batch)
                    written = True
                    listener.durable(batch[-1].revision)
                if self._wait_s is not None:
                    self._probe()
                    self._go_on(listener)
                else:
                    self._tidy(idle=not batch)
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) not in OUT_OF_SPACE:  # this module's own errors have no code
                    self._fail(f"{error}, {getattr(error, 'sqlite_errorname', type(error).__name__)}", listener)
                    return
                self._hold(listener, lost=not written)
            except Exception as error:  # our bug: without a writer, all would wait forever
                self._fail(f"{type(error).__name__}: {error}", listener)
                return

    def _next_batch(self) -> list[Event] | None:
        """Return the queued events, an empty list if it is time to tidy or to check for space, or None at the end."""
        with self._changed:
            wait_s = IDLE_S if self._wait_s is None and not self.at_rest else self._wait_s
            self._changed.wait_for(lambda: self._closing or (self._settled and bool(self._pending)), wait_s)
            self._changed.wait_for(lambda: self._closing or self._settled)
            if self._closing and not (self._settled and self._pending):
                return None
            batch, self._pending = self._pending, []
            self._changed.notify_all()
        return batch

    def _commit(self, batch: list[Event]) -> None:
        """Write a batch in one transaction; of several writes to one object only the last."""
        last = {event.stored.key: event for event in batch}
        puts = [self._row(e) for e in last.values() if e.type is not EventType.DELETED]
        deletes = [tuple(e.stored.key) for e in last.values() if e.type is EventType.DELETED]
        grown = sum(_GROWTH[event.type] for event in batch)
        revision = batch[-1].revision
        with self._transaction() as connection:
            connection.executemany(_DELETE, deletes)
            connection.executemany(_PUT, puts)
            connection.execute(_STATE, state_row(revision, self._objects + grown))
        self._objects += grown
        self._unmoved_bytes += sum(len(row[4]) for row in puts) + 4096 * (len(last) + 2)
        self._lock.note(revision)

    def _row(self, event: Event) -> tuple[str, str, str, int, bytes, int]:
        stored = event.stored
        value = self._encryption.seal(stored.key, stored.raw) if self._encryption else stored.raw
        return (*stored.key, stored.revision, value, row_checksum(stored.key, stored.revision, value))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _tidy(self, *, idle: bool) -> None:
        """Checkpoint the log, and release pages that the file no longer needs.

        Without space the log grows: no data is lost, and the next commit detects it.
        """
        if self._unmoved_bytes < CHECKPOINT_AFTER_BYTES and not idle:
            return
        with _without_space_later():
            cut = self._give_back()
            moved = self._move_log("TRUNCATE" if idle else "PASSIVE")
            # Under load the log keeps its size for new pages: only an idle writer truncates it.
            self._unmoved_bytes = 0 if idle and cut and moved else 1

    def _move_log(self, how: str) -> bool:
        """Checkpoint; return False if a reader, such as a backup, still needs the log: it is retried later."""
        connection = self._connection
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            (busy, _, _) = connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
            return not busy
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")

    def _give_back(self) -> bool:
        """Release free pages; return False if writes came in between, which leaves the rest for later."""
        connection = self._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        while free > max(GIVE_BACK_FROM_PAGES, pages // 4):
            if self._pending:
                return False
            connection.execute(f"PRAGMA incremental_vacuum({GIVE_BACK_STEP_PAGES})").fetchall()
            self._move_log("PASSIVE")
            (left,) = connection.execute("PRAGMA freelist_count").fetchone()
            if left >= free:
                break  # An old file that could not be rewritten reuses its free space.
            pages, free = pages - (free - left), left
        return True

    # -- when it does not continue
    # ---------------------------------------------------------------------------------------

    def _hold(self, listener: Listener, *, lost: bool) -> None:
        """Handle a full disk: refuse writes, have what was ``lost`` undone, and retry at growing intervals."""
        refusal = WriteRefused(
            f"database space exceeded: nothing was written, since there is no space left for {self.path}; reads go "
            "on, and writes do when space was made there"
        )
        with self._changed:
            first = self.refusal is None
            self.refusal = refusal
            self._settled = not lost
            self._admits_removal = not lost and not first
            self._wait_s = LOOK_FOR_SPACE_S if first else min((self._wait_s or 0) * 2, LOOK_FOR_SPACE_MAX_S)
            self._changed.notify_all()
        if lost:
            listener.full(refusal)

    def _go_on(self, listener: Listener) -> None:
        with self._changed:
            self.refusal = self._wait_s = None
            self._admits_removal = False
        listener.space(None)

    def _probe(self) -> None:
        """Raise sqlite3.Error unless :data:`PROBE_BYTES` can be written."""
        self._move_log("TRUNCATE")
        self._connection.execute("INSERT OR REPLACE INTO probe VALUES (1, zeroblob(?))", (PROBE_BYTES,))
        self._connection.execute("DELETE FROM probe")
        self._unmoved_bytes = CHECKPOINT_AFTER_BYTES

    def _fail(self, why: str, listener: Listener) -> None:
        failure = DiskError(f"{self.path}: cannot write ({why}); look after the disk, then start again")
        with self._changed:
            self.refusal = WriteRefused(f"the write is not on disk: {failure}")
            self._admits_removal = False
            self._changed.notify_all()
        listener.failed(failure)


class _Lock:
    """Held for the life of the process: the kernel releases it even after SIGKILL. The file names its holder and the
    newest acknowledged revision, so that a lost log or an older copy is detected."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = self._lines()[0] or "unknown"
            self.close()
            raise DiskError(
                f"{path.parent}: this data is in use by process {owner}; stop that, or choose another data directory"
            ) from error
        self.noted = int(self._lines()[1] or 0)
        os.pwrite(self._file, f"{os.getpid():<{NUMBER_WIDTH}}\n".encode(), 0)
        self.note(self.noted)

    def note(self, revision: int) -> None:
        """Record the revision. Not synced: it survives a kill, and is never newer than the data after a power cut."""
        with contextlib.suppress(OSError):  # The data is on disk; an older number detects less, but never wrongly.
            os.pwrite(self._file, f"{revision:>{NUMBER_WIDTH}}\n".encode(), NUMBER_WIDTH + 1)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lines(self) -> list[str]:
        found = os.pread(self._file, 100, 0).decode(errors="replace").split("\n")
        numbers = [line.strip() if line.strip().isdecimal() else "" for line in found]
        return [*numbers, "", ""]


def _locked(path: Path) -> _Lock:
    try:
        return _Lock(path)
    except OSError as error:
        raise DiskError(
            f"{path.parent}: cannot keep data here ({error.strerror}: {error.filename}); give the directory to this "
            "user, mode 0700, or choose another"
        ) from error


@contextlib.contextmanager
def _without_space_later() -> Iterator[None]:
    """Ignore a checkpoint that fails for lack of space; committed data stays durable in the log."""
    try:
        yield
    except sqlite3.Error as error:
        if error.sqlite_errorcode not in OUT_OF_SPACE:
            raise


_GROWTH = {EventType.ADDED: 1, EventType.MODIFIED: 0, EventType.DELETED: -1}
