"""The data file of a cluster: its formats, and how a file is checked, read and upgraded.

``disk`` calls it at start, and ``archive``. SQLite, WAL, one row per object with its checksum, since SQLite has none
for its pages. A file is first opened read-only and read to its end; only a valid file of ours in a known format is then
opened for writing. So a refused file, its log included, stays unchanged byte for byte.

===========  =======================================================================================================
format 1     ``objects`` without checksums, ``state`` with the revision alone; unused space is not released
format 2     a checksum for each row and for the state, the number of objects, released space, sealed values
===========  =======================================================================================================
"""

from __future__ import annotations

import os
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from syncline.cluster.storage.encryption import SEALED, Encryption, EncryptionError, describe_seal
from syncline.cluster.storage.store import Key, Stored

SCHEMA_VERSION = 2
APPLICATION_ID = 0x53594E43
"""``SYNC``: marks our files among SQLite databases."""

BUSY_TIMEOUT_S = 5.0
"""Seconds that SQLite waits for another process on the file, such as a backup."""

LOG_LIMIT_BYTES = 16 * 2**20
"""Size to which the log shrinks after a large transaction; usually it stays below 4 MiB."""

INCREMENTAL = 2
"""``auto_vacuum`` mode: free pages can be released in steps, without rewriting the file."""

MAGIC = b"SQLite format 3\0"
HOW_TO_GO_ON = "restore a backup with `syncline restore FILE --data DIR`, or choose another data directory"

_TABLES = """
CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, raw BLOB NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE (resource, namespace, name)
);
CREATE TABLE state (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1), revision INTEGER NOT NULL, objects INTEGER NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE TABLE probe (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), content BLOB NOT NULL);
"""
"""``probe`` is written to test for free space; otherwise it is empty."""

_KNOWN_TABLES = {1: {"objects", "state"}, 2: {"objects", "state", "probe"}}
_ROWS = {
    1: "SELECT resource, namespace, name, revision, raw, 0 FROM objects ORDER BY resource, namespace, name",
    2: "SELECT resource, namespace, name, revision, raw, checksum FROM objects ORDER BY resource, namespace, name",
}

OUT_OF_SPACE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
"""SQLite's error codes for a write that did not fit: the transaction is rolled back and the file unchanged. A quota or
a file size limit counts as a failed write. A failed fsync is not included: the content on disk is then unknown until
the next start."""


class DiskError(Exception):
    """The data cannot be used or written; the message names the file, the problem and the remedy."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Content of a file. ``stale`` are objects whose row must be sealed again, or stored unsealed."""

    revision: int
    objects: tuple[Stored, ...]
    version: int = SCHEMA_VERSION
    stale: tuple[Stored, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Properties of a file, without its content. ``secrets`` counts unencrypted ones."""

    version: int
    revision: int
    objects: int
    sealed: bool
    secrets: int


def row_checksum(key: Key, revision: int, value: bytes) -> int:
    """Return the CRC-32 of a row; key and revision are included, so that rows cannot be swapped."""
    return zlib.crc32(value, zlib.crc32(f"{key.resource}\0{key.namespace}\0{key.name}\0{revision}".encode()))


def state_row(revision: int, objects: int) -> tuple[int, int, int]:
    """Return revision, number of objects and checksum."""
    return revision, objects, zlib.crc32(f"{revision}\0{objects}".encode())


# -- reading ----------------------------------------------------------------------------------------------------------


def read_file(path: Path, encryption: Encryption | None = None, acknowledged: int = 0) -> Loaded:
    """Check and read a whole file without changing it. Raises :class:`DiskError`.

    ``acknowledged`` is a revision that was on disk: if the file does not reach it, data was lost.
    """
    with _checked(path) as (connection, version):
        if not version:
            return Loaded(0, (), 0)
        revision, count = _state(connection, version)
        if revision < acknowledged:
            raise _gone_back(path, revision, acknowledged)
        objects: list[Stored] = []
        stale: list[Stored] = []
        for key, row_revision, value in _rows(connection, version):
            stored = Stored.load(key, row_revision, _opened(path, key, value, encryption))
            objects.append(stored)
            if not (encryption.is_current(key, value) if encryption else not value.startswith(SEALED)):
                stale.append(stored)
        _expect_count(count, len(objects))
        return Loaded(revision, tuple(objects), version, tuple(stale))


def check_file(path: Path) -> Found:
    """Check a whole file without decrypting or changing it. Raises :class:`DiskError`."""
    with _checked(path) as (connection, version):
        if not version:
            return Found(0, 0, 0, sealed=False, secrets=0)
        revision, count = _state(connection, version)
        objects = secrets = sealed = 0
        for key, _, value in _rows(connection, version):
            objects += 1
            if value.startswith(SEALED):
                sealed += 1
            elif key.resource == "/secrets":
                secrets += 1
        _expect_count(count, objects)
        return Found(version, revision, objects, sealed=sealed > 0, secrets=secrets)


def copy_file(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of a file that may be in use; the server continues to write meanwhile.

    ``target`` must not exist. Raises :class:`DiskError`.
    """
    _refuse_what_is_no_file(source)
    with _errors_named(target):
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with _errors_named(source), closing(_connected(source, "ro")) as live:
        live.execute("BEGIN")
        _known_version(live, source)
        with _errors_named(target), closing(_connected(target, "rw")) as copy:
            live.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")


def advance_file(path: Path, by: int) -> int:
    """Increase the file's revision by ``by`` and return the new one. Raises :class:`DiskError`."""
    found = check_file(path)
    revision = found.revision + by
    with _errors_named(path), closing(_connected(path, "rw")) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        if found.version == 1:
            connection.execute("UPDATE state SET revision = ?", (revision,))
        else:
            row = state_row(revision, found.objects)
            connection.execute("UPDATE state SET revision = ?, objects = ?, checksum = ?", row)
    return revision


@contextmanager
def _checked(path: Path) -> Iterator[tuple[sqlite3.Connection, int]]:
    """Open the file for reading and yield it with its format, once its origin and structure are verified."""
    _refuse_what_is_no_file(path)
    with _errors_named(path), _traceless(path), closing(_connected(path, "ro")) as connection:
        connection.execute("BEGIN")
        version = _known_version(connection, path)
        if version:
            _check_structure(connection, version)
        yield connection, version


def _rows(connection: sqlite3.Connection, version: int) -> Iterator[tuple[Key, int, bytes]]:
    for *place, revision, value, checksum in connection.execute(_ROWS[version]):
        key = Key(*place)
        if version > 1 and row_checksum(key, revision, value) != checksum:
            raise ValueError(f"{key.resource.lstrip('/')} {key.namespace}/{key.name} differs from its checksum")
        yield key, revision, value


def _expect_count(written: int | None, found: int) -> None:
    if written is not None and written != found:
        raise ValueError(f"{written} objects were written, {found} are there")


def _refuse_what_is_no_file(path: Path) -> None:
    try:
        found = path.stat()
    except OSError as error:
        raise DiskError(f"{path}: cannot be read ({error.strerror}); {HOW_TO_GO_ON}") from error
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise DiskError(f"{path}: is {what}, where the data file belongs; move it away, or choose another directory")
    if not os.access(path, os.R_OK | os.W_OK):
        raise DiskError(
            f"{path}: belongs to user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):04o}, and this process "
            f"(user {os.geteuid()}) may not read and write it; run as its owner, or `chmod 600` it"
        )
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
    if not head:
        raise DiskError(f"{path}: is empty, which Syncline never leaves behind, and left as it is; {HOW_TO_GO_ON}")
    if head != MAGIC:
        raise DiskError(f"{path}: damaged (no database begins like that) and left as it is; {HOW_TO_GO_ON}")


def _known_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the format; 0 for an empty database, left by an interrupted first start."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not application and not version:
        return 0
    if application != APPLICATION_ID:
        raise DiskError(f"{path}: this is not a cluster of Syncline; choose another data directory")
    if version > SCHEMA_VERSION:
        raise DiskError(
            f"{path}: written by a newer Syncline (format {version}, this one knows {SCHEMA_VERSION}) and left as "
            "it is; use that version, or another data directory"
        )
    if version not in _ROWS:
        raise ValueError(f"format {version} was never written")
    found: int = version
    return found


def _gone_back(path: Path, revision: int, acknowledged: int) -> DiskError:
    return DiskError(
        f"{path}: ends with revision {revision}, but {acknowledged} was acknowledged; its log {path.name}-wal is "
        f"damaged or missing, or an older copy was put here. All is left as it is: put the log back, or "
        f"{HOW_TO_GO_ON}; to go on with the older state, remove {path}.lock"
    )


def _check_structure(connection: sqlite3.Connection, version: int) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = sorted(_KNOWN_TABLES[version] - tables)
    if missing:
        raise ValueError(f"the table {missing[0]} is missing")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise ValueError(verdict)


def _state(connection: sqlite3.Connection, version: int) -> tuple[int, int | None]:
    columns = "revision, objects, checksum" if version > 1 else "revision"
    row = connection.execute(f"SELECT {columns} FROM state").fetchone()
    if row is None:
        raise ValueError("the row of the last revision is missing")
    if version == 1:
        return int(row[0]), None
    if tuple(row) != state_row(row[0], row[1]):
        raise ValueError("the last revision differs from its checksum")
    return row[0], row[1]


def _opened(path: Path, key: Key, value: bytes, encryption: Encryption | None) -> bytes:
    if encryption is not None:
        try:
            return encryption.open(key, value)
        except EncryptionError as error:
            raise DiskError(f"{path}: {error}; the data is left as it is") from error
    if value.startswith(SEALED):
        raise DiskError(
            f"{path}: {key.resource.lstrip('/')} {key.namespace}/{key.name} is encrypted with {describe_seal(value)}; "
            "start with --encrypt-secrets FILE, whose file holds that key"
        )
    return value


# -- writing ----------------------------------------------------------------------------------------------------------


def create_file(path: Path) -> None:
    """Create an empty cluster atomically, through a temporary file. Raises :class:`DiskError`."""
    log = path.with_name(path.name + "-wal")
    if log.exists():
        raise DiskError(
            f"{log}: the file {path.name}, to which this log belongs, is missing; put it back, or move both"
        )
    fresh = path.with_name(path.name + ".new")
    with _errors_named(path):
        for left in (fresh, fresh.with_name(fresh.name + "-journal")):
            left.unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(_connected(fresh, "rw")) as connection:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA synchronous = FULL")
            _make_tables(connection, ())
        os.replace(fresh, path)
        _sync_directory(path.parent)


def open_for_writing(path: Path, loaded: Loaded, encryption: Encryption | None = None) -> sqlite3.Connection:
    """Return the connection of the only writer, to a file that :func:`read_file` has verified.

    WAL, so that a backup can read during writes; synchronous FULL, so that a commit returns once the log is on disk.
    Rewrites an older format, and values that are not sealed as ``encryption`` requires.
    """
    with _errors_named(path):
        connection = _connected(path, "rw")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # Old values must not remain in unused space.
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # The writer does it, and handles its errors.
            connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT_BYTES}")
            if loaded.version < SCHEMA_VERSION:
                _upgrade(connection, loaded, encryption)
            elif loaded.stale:
                _reseal(connection, loaded.stale, encryption)
            _tidy(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _make_tables(connection: sqlite3.Connection, drop: Iterable[str]) -> None:
    with _transaction(connection):
        _define(connection, drop)
        connection.execute("INSERT INTO state VALUES (1, ?, ?, ?)", state_row(0, 0))


def _define(connection: sqlite3.Connection, drop: Iterable[str]) -> None:
    for table in drop:
        connection.execute(f"DROP TABLE {table}")
    for statement in _TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _upgrade(connection: sqlite3.Connection, loaded: Loaded, encryption: Encryption | None) -> None:
    """Upgrade the format in one transaction, so that a crash leaves the readable older format."""
    with _transaction(connection):
        _define(connection, ("objects", "state") if loaded.version else ())
        connection.executemany(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", (_row(one, encryption) for one in loaded.objects)
        )
        connection.execute("INSERT INTO state VALUES (1, ?, ?, ?)", state_row(loaded.revision, len(loaded.objects)))


def _reseal(connection: sqlite3.Connection, stale: Iterable[Stored], encryption: Encryption | None) -> None:
    rows = ((row[4], row[5], *row[:3]) for row in (_row(one, encryption) for one in stale))
    with _transaction(connection):
        connection.executemany(
            "UPDATE objects SET raw = ?, checksum = ? WHERE resource = ? AND namespace = ? AND name = ?", rows
        )


def _tidy(connection: sqlite3.Connection) -> None:
    """Enable the release of free space, and empty the log of the previous run. A full disk does not prevent the start:
    existing data can be read."""
    try:
        if connection.execute("SELECT count(*) FROM probe").fetchone() != (0,):
            connection.execute("DELETE FROM probe")
        if connection.execute("PRAGMA auto_vacuum").fetchone() != (INCREMENTAL,):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        if error.sqlite_errorcode not in OUT_OF_SPACE:
            raise


def _row(stored: Stored, encryption: Encryption | None) -> tuple[str, str, str, int, bytes, int]:
    value = encryption.seal(stored.key, stored.raw) if encryption else stored.raw
    return (*stored.key, stored.revision, value, row_checksum(stored.key, stored.revision, value))


# -- SQLite -----------------------------------------------------------------------------------------------------------


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Convert errors of SQLite, the system or a check to a DiskError that names the file and the remedy."""
    try:
        yield
    except DiskError:
        raise
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:
        raise _explained(path, error) from error


def _explained(path: Path, error: Exception) -> DiskError:
    why = " ".join(str(error).split())
    code = getattr(error, "sqlite_errorcode", 0)
    if code in OUT_OF_SPACE:
        return DiskError(f"{path}: cannot write ({why}); free space there, then start again")
    if code & 0xFF == sqlite3.SQLITE_BUSY:
        return DiskError(f"{path}: another program holds the file ({why}); end that, then start again")
    if isinstance(error, OSError) or code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return DiskError(f"{path}: cannot be opened ({why}); give the directory to this user, mode 0700")
    if code & 0xFF == sqlite3.SQLITE_IOERR:
        return DiskError(f"{path}: the disk failed ({why}, {getattr(error, 'sqlite_errorname', '')}); {HOW_TO_GO_ON}")
    return DiskError(f"{path}: damaged ({why}) and left as it is; {HOW_TO_GO_ON}")


@contextmanager
def _traceless(path: Path) -> Iterator[None]:
    """Delete the empty log and index that reading creates, if the file is refused."""
    beside = [path.with_name(path.name + end) for end in ("-wal", "-shm")]
    made = [each for each in beside if not each.exists()]
    try:
        yield
    except BaseException:
        for each in made:
            each.unlink(missing_ok=True)
        raise


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
