"""Backups: all of a data directory in one file, taken while it serves; a restore checks every byte.

Called by ``syncline backup`` and ``syncline restore``. A backup is a gzipped tar: ``manifest.json`` first, with size
and SHA-256 of each file, then the data file at one moment, keys and machines. It excludes the caches of repositories,
which are fetched again, and the keys of ``--encrypt-secrets``, without which sealed Secrets stay sealed.

After a restore revisions continue far above the backup's (as with ``etcdutl snapshot restore --bump-revision
--mark-compacted``): clients that saw later ones get 410 and list again, and no revision is used twice.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from syncline import __version__
from syncline.assembly.settings import DATABASE, KEYS, MACHINES
from syncline.cluster.storage.datafile import SCHEMA_VERSION, DiskError, advance_file, check_file, copy_file

FORMAT = 1
MANIFEST = "manifest.json"
KIND = "syncline backup"
BUMP = 1_000_000_000
"""Increase of revisions: above the number of writes since the backup, as etcd's manual advises."""

MANIFEST_LIMIT_BYTES = 64 * 2**20
FILES_LIMIT = 500_000
"""Limit of entries of all machines together."""
CHUNK_BYTES = 2**20
COMPRESSION = 1


class ArchiveError(Exception):
    """A backup cannot be taken or restored; the message names the file and the fix."""


@dataclass(frozen=True, slots=True)
class Backup:
    """Contents of a backup. ``secrets``: number of unencrypted ones; ``sealed``: whether values are encrypted."""

    revision: int
    objects: int
    files: int
    size_bytes: int
    secrets: int
    sealed: bool
    taken: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of the data directory. A link has ``target`` instead of content."""

    name: str
    size: int = 0
    sha256: str = ""
    target: str | None = None
    directory: bool = False


# -- taking -----------------------------------------------------------------------------------------------------------


def take_backup(directory: Path, out: IO[bytes], scratch: Path, now: datetime) -> Backup:
    """Write a backup of ``directory`` to ``out``; a server may be running.

    ``scratch``: a directory with space for one copy. Raises :class:`ArchiveError`.
    """
    data = directory / DATABASE
    if not data.exists():
        raise ArchiveError(
            f"{directory}: no cluster keeps its data here (no {DATABASE}); name the directory with --data"
        )
    draft = scratch / f".{DATABASE}.{os.getpid()}.backup"
    try:
        draft.mkdir(mode=0o700)
        copy_file(data, draft / DATABASE)
        found = check_file(draft / DATABASE)
        names = [DATABASE, *_copied(directory, draft)]
        entries = [_entry(name, draft / name) for name in names]
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            "syncline": __version__,
            "taken": now.isoformat(timespec="seconds"),
            "schema": found.version,
            "revision": found.revision,
            "objects": found.objects,
            "secretsInTheClear": found.secrets,
            "sealed": found.sealed,
            "files": {entry.name: _described(entry) for entry in entries},
        }
        _write(out, manifest, entries, draft, now)
    except DiskError as error:
        raise ArchiveError(str(error)) from error
    except OSError as error:
        raise ArchiveError(
            f"{error.filename or scratch}: cannot back up ({error.strerror}); nothing was kept"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return _backup_of(manifest)


def _copied(directory: Path, draft: Path) -> list[str]:
    """Copy keys and machines, which a server may replace; links stay links. Return their names, parents first."""
    names: list[str] = []
    for top in (KEYS, MACHINES):
        for place, directories, files in os.walk(directory / top):
            inside = Path(place).relative_to(directory)
            (draft / inside).mkdir(mode=0o700, exist_ok=True)
            names.append(inside.as_posix())
            names += [
                f"{inside}/{name}" for name in directories if _copy_link(Path(place, name), draft / inside / name)
            ]
            names += [f"{inside}/{name}" for name in sorted(files) if _copy(Path(place, name), draft / inside / name)]
    if len(names) > FILES_LIMIT:
        raise ArchiveError(
            f"{directory / MACHINES}: more than {FILES_LIMIT} files; remove machines that are not needed"
        )
    return names


def _copy_link(source: Path, target: Path) -> bool:
    if not source.is_symlink():
        return False
    target.symlink_to(os.readlink(source))
    return True


def _copy(source: Path, target: Path) -> bool:
    """Copy a file or link; return False if it is neither, a draft, or was deleted meanwhile."""
    if source.name.endswith((".new", ".draft")) or _copy_link(source, target):
        return not source.name.endswith((".new", ".draft"))
    try:
        if not stat.S_ISREG(source.lstat().st_mode):
            return False
        shutil.copyfile(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _entry(name: str, path: Path) -> _Entry:
    if path.is_symlink():
        return _Entry(name, target=os.readlink(path))
    if path.is_dir():
        return _Entry(name, directory=True)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return _Entry(name, size, digest.hexdigest())


def _described(entry: _Entry) -> dict[str, Any]:
    if entry.target is not None:
        return {"link": entry.target}
    return {"directory": True} if entry.directory else {"size": entry.size, "sha256": entry.sha256}


def _write(out: IO[bytes], manifest: dict[str, Any], entries: list[_Entry], draft: Path, now: datetime) -> None:
    at = int(now.timestamp())
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=COMPRESSION, mtime=at) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        text = json.dumps(manifest, indent=1).encode()
        tar.addfile(_member(_Entry(MANIFEST, len(text)), at), io.BytesIO(text))
        for entry in entries:
            if entry.target is not None or entry.directory:
                tar.addfile(_member(entry, at))
                continue
            with (draft / entry.name).open("rb") as file:
                tar.addfile(_member(entry, at), file)


def _member(entry: _Entry, at: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(entry.name)
    member.mtime, member.mode, member.size = at, 0o700 if entry.directory else 0o600, entry.size
    if entry.target is not None:
        member.type, member.linkname = tarfile.SYMTYPE, entry.target
    elif entry.directory:
        member.type = tarfile.DIRTYPE
    return member


# -- putting back -----------------------------------------------------------------------------------------------------


def restore(source: IO[bytes], name: str, directory: Path, bump: int = BUMP) -> Backup:
    """Restore a backup into ``directory``, which must be empty or missing; completely or not at all.

    ``name``: the backup's name in messages. Raises :class:`ArchiveError`. The returned revision is the one from which
    the cluster continues.
    """
    directory = directory.absolute()
    _refuse_occupied(directory)
    draft = directory.with_name(f".{directory.name}.{os.getpid()}.restoring")
    try:
        draft.mkdir(mode=0o700, parents=True)
        with _damage_reported(name):
            manifest = _unpack(source, name, draft)
            backup = _backup_of(manifest)
        found = check_file(draft / DATABASE)
        if (found.revision, found.objects) != (backup.revision, backup.objects):
            raise ArchiveError(f"{name}: damaged (the data file is not the one that its manifest names)")
        revision = advance_file(draft / DATABASE, bump)
        _sync_all(draft)
        os.rename(draft, directory)
        _sync(directory.parent)
    except DiskError as error:
        raise ArchiveError(f"{name}: {error}") from error
    except OSError as error:
        raise ArchiveError(
            f"{error.filename or directory}: cannot restore ({error.strerror}); nothing was kept"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Backup(
        revision, backup.objects, backup.files, backup.size_bytes, backup.secrets, backup.sealed, backup.taken
    )


def _refuse_occupied(directory: Path) -> None:
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise ArchiveError(f"{directory}: is no directory; name one that is empty or does not exist")
    if not directory.exists():
        return
    there = sorted(path.name for path in directory.iterdir())
    if there:
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        raise ArchiveError(
            f"{directory}: is not empty ({', '.join(there[:3])}{more}), and nothing is overwritten; stop what runs "
            "there and move it away, or name another directory"
        )


@contextmanager
def _damage_reported(name: str) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, KeyError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ArchiveError(f"{name}: damaged or no backup of Syncline ({why}); nothing was restored") from error


def _unpack(source: IO[bytes], name: str, draft: Path) -> dict[str, Any]:
    """Unpack exactly the entries in the manifest, with size and checksum verified."""
    with gzip.GzipFile(fileobj=source, mode="rb") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        manifest = _manifest(tar, name)
        wanted: dict[str, dict[str, Any]] = dict(manifest["files"])
        if len(wanted) > FILES_LIMIT:
            raise ValueError(f"more than {FILES_LIMIT} files")
        links: dict[Path, str] = {}
        while (member := tar.next()) is not None:
            entry = wanted.pop(member.name, None)
            if entry is None:
                raise ValueError(f"{member.name!r} is not in its manifest, or there twice")
            path = draft / _checked_name(member.name)
            if "link" in entry:
                links[path] = str(entry["link"])
            elif entry.get("directory"):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                _unpack_file(tar, member, entry, path)
        if wanted:
            raise ValueError(f"{min(wanted)!r} is missing")
        while packed.read(CHUNK_BYTES):
            pass  # to the end, where gzip's own checksum is
    for path, target in links.items():  # last, so that nothing is ever written through a link
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.symlink_to(target)
    return manifest


def _manifest(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg() or first.size > MANIFEST_LIMIT_BYTES:
        raise ValueError(f"it does not begin with {MANIFEST}")
    file = tar.extractfile(first)
    assert file is not None, "a regular member has content"
    found: dict[str, Any] = json.loads(file.read())
    if found["kind"] != KIND:
        raise ValueError(f"its manifest is of {found['kind']!r}")
    if found["format"] > FORMAT or found["schema"] > SCHEMA_VERSION:
        raise ArchiveError(
            f"{name}: written by a newer Syncline ({found['syncline']}, format {found['format']}/{found['schema']}; "
            f"this one knows {FORMAT}/{SCHEMA_VERSION}); restore it with that version"
        )
    return found


def _checked_name(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or path.parts[0] not in (DATABASE, KEYS, MACHINES):
        raise ValueError(f"{name!r} is no place of a data directory")
    return path


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, entry: dict[str, Any], path: Path) -> None:
    file = tar.extractfile(member) if member.isreg() else None
    if file is None or member.size != entry["size"]:
        raise ValueError(f"{member.name!r} is not as its manifest says")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            out.write(chunk)
    if digest.hexdigest() != entry["sha256"]:
        raise ValueError(f"{member.name!r} differs from its checksum")


def _backup_of(manifest: dict[str, Any]) -> Backup:
    files = manifest["files"]
    size = sum(int(entry.get("size", 0)) for entry in files.values())
    revision, objects, secrets = (int(manifest[key]) for key in ("revision", "objects", "secretsInTheClear"))
    return Backup(revision, objects, len(files), size, secrets, bool(manifest["sealed"]), str(manifest["taken"]))


def _sync_all(directory: Path) -> None:
    for place, _, files in os.walk(directory):
        for name in files:
            path = Path(place, name)
            if not path.is_symlink():
                _sync(path)
        _sync(Path(place))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
