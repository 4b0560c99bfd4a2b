"""Unpacks archives of charts and artifacts into memory, never onto the disk: :func:`unpack`.

``sources/remote/artifacts.py`` passes the bytes of a ``.tar`` or ``.tar.gz``. Archives are untrusted: the size is
counted while unpacking, names and links must stay inside, devices are refused.
"""

from __future__ import annotations

import bisect
import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, cast

from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join
from syncline.sources.tree import MAX_PATH, conflict

GZIP = b"\x1f\x8b"
MAX_ROUNDS = 40
"""Links in a row."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    files: int = 10_000
    bytes: int = 100_000_000
    """Everything that comes out of the decompressor, headers too; Helm's own bound for a chart is 100 MiB."""
    links: int = 1_000


class _Counted(io.RawIOBase):
    """A stream that raises before it returns more bytes than allowed."""

    def __init__(self, stream: IO[bytes], limit: int, label: str) -> None:
        self._stream = stream
        self._left = limit
        self._limit = limit
        self._label = label

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self._left:
            given = self._stream.read(self._left + 1)
            if len(given) > self._left:
                message = f"{self._label}: the archive unpacks to more than {self._limit} bytes"
                raise SourceError(Problem.TOO_LARGE, message, subject=self._label)
        else:
            given = self._stream.read(size)
        self._left -= len(given)
        return given


def unpack(
    content: bytes, label: str, limits: ArchiveLimits = ArchiveLimits(), *, executable: set[str] | None = None
) -> dict[str, bytes]:
    """Return the regular files by path; links inside the archive are resolved, dangling ones dropped. ``executable``
    takes the paths of files that may be run.

    Raises :class:`SourceError` for archives that are damaged, too large, or leave their folder.
    """
    plain: IO[bytes] = io.BytesIO(content)
    if content.startswith(GZIP):
        plain = cast(IO[bytes], gzip.GzipFile(fileobj=plain))
    counted = _Counted(plain, limits.bytes + limits.files * 2 * tarfile.BLOCKSIZE, label)
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=cast(IO[bytes], counted), mode="r|") as archive:
            for observed, member in enumerate(archive):
                if observed >= limits.files:
                    raise _too_large(label, f"more than {limits.files} entries")
                _take(archive, member, files, links, label, limits)
                if executable is not None and member.isreg() and member.mode & 0o100:
                    executable.add(_inside(member.name, label))
                if len(links) > limits.links:
                    raise _too_large(label, f"more than {limits.links} links")
    except RecursionError:  # a header for a long name may stand before another one
        raise SourceError(Problem.INVALID, f"{label}: headers are nested too deep", subject=label) from None
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError, OverflowError) as error:
        message = f"{label}: not a readable archive ({error})"
        raise SourceError(Problem.INVALID, message, subject=label) from None
    both = conflict([*files, *links])
    if both:
        raise SourceError(Problem.REFUSED, f"{label}: {both} is a file and a folder", subject=label)
    return _linked(files, links, label, limits)


def _take(
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    files: dict[str, bytes],
    links: dict[str, str],
    label: str,
    limits: ArchiveLimits,
) -> None:
    name = _inside(member.name, label)
    if member.isdir() or not name:
        return
    if member.isreg():
        if member.issparse() or not 0 <= member.size <= limits.bytes:
            raise _too_large(label, f"{name} of {member.size} bytes, which is sparse or larger than {limits.bytes}")
        stream = archive.extractfile(member)
        files[name] = stream.read() if stream is not None else b""
        links.pop(name, None)
    elif member.issym() or member.islnk():
        base = posixpath.dirname(name) if member.issym() else ""
        target = None if member.linkname.startswith("/") else join(base, member.linkname)
        if target is None:
            raise SourceError(
                Problem.REFUSED,
                f"{label}: contains out-of-bounds symlinks. file: {name}",
                subject=label,
                fix="link to a file of the same archive by a relative path",
            )
        links[name] = target
        files.pop(name, None)
    else:
        message = f"{label}: {name} is neither a file nor a folder nor a link"
        raise SourceError(Problem.REFUSED, message, subject=label)


def _inside(name: str, label: str) -> str:
    """Return ``name`` without ``.`` and empty parts; Windows names are refused."""
    odd = any(ord(letter) < 32 or letter == "\\" or "\ud800" <= letter <= "\udfff" for letter in name)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or odd or len(name) > MAX_PATH or (parts and parts[0][1:2] == ":"):
        message = f"{label}: the name {name[:100]!r} leads out of the archive"
        raise SourceError(Problem.REFUSED, message, subject=label)
    return "/".join(parts)


def _linked(files: dict[str, bytes], links: Mapping[str, str], label: str, limits: ArchiveLimits) -> dict[str, bytes]:
    """Resolve links, in chains as long as Linux follows; contents are shared, not copied."""
    found = dict(files)
    size = sum(map(len, files.values()))
    todo = dict(links)
    for _ in range(MAX_ROUNDS):
        names = sorted(found)
        ends = {name: _ends(name, target, found, names) for name, target in todo.items()}
        for name, inner in ends.items():
            for path, source in inner:
                size += len(found[source]) - len(found.get(path, b""))
                found[path] = found[source]
            if len(found) > limits.files or size > limits.bytes:
                raise _too_large(label, "more than it may, through its links")
            if inner:
                del todo[name]
        if not any(ends.values()):
            break
    return found


def _ends(name: str, target: str, found: Mapping[str, bytes], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the files that a link stands for, each with its target; ``names`` are those of ``found``, sorted."""
    if target in found:
        return [(name, target)]
    below = f"{target}/" if target else ""
    if name.startswith(below):
        return []
    inner = names[bisect.bisect_left(names, below) : bisect.bisect_left(names, f"{target}0")]
    return [(f"{name}/{one[len(below) :]}", one) for one in inner]


def _too_large(label: str, what: str) -> SourceError:
    return SourceError(Problem.TOO_LARGE, f"{label}: the archive holds {what}", subject=label)
