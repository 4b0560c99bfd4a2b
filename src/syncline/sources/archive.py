"""Archives of charts and artifacts are unpacked into memory, never onto the disk.

``sources/artifacts.py`` hands over the bytes of a ``.tar`` or ``.tar.gz``. Nothing that an archive says is believed:
what it unpacks to is counted while it is read, names and links must stay inside, devices are refused.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, cast

from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join
from syncline.sources.tree import MAX_PATH

__all__ = ["ArchiveLimits", "unpack"]

GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    files: int = 10_000
    bytes: int = 100_000_000
    """Everything that comes out of the decompressor, headers too; Helm's own bound for a chart is 100 MiB."""
    links: int = 1_000


class _Counted(io.RawIOBase):
    """A stream that ends in an error when it gives more than it may, before the memory for it is taken."""

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


def unpack(content: bytes, label: str, limits: ArchiveLimits = ArchiveLimits()) -> dict[str, bytes]:
    """The regular files by path; links inside the archive stand for what they end at, dangling ones for nothing.

    Raises :class:`SourceError` for archives that are damaged, too large, or reach out of themselves.
    """
    plain: IO[bytes] = io.BytesIO(content)
    if content.startswith(GZIP):
        plain = cast(IO[bytes], gzip.GzipFile(fileobj=plain))
    counted = _Counted(plain, limits.bytes + limits.files * 2 * tarfile.BLOCKSIZE, label)
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=cast(IO[bytes], counted), mode="r|") as archive:
            for seen, member in enumerate(archive):
                if seen >= limits.files:
                    raise _too_large(label, f"more than {limits.files} entries")
                _take(archive, member, files, links, label)
                if len(links) > limits.links:
                    raise _too_large(label, f"more than {limits.links} links")
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError, OverflowError) as error:
        message = f"{label}: not a readable archive ({error})"
        raise SourceError(Problem.INVALID, message, subject=label) from None
    return _linked(files, links, label, limits)


def _take(
    archive: tarfile.TarFile, member: tarfile.TarInfo, files: dict[str, bytes], links: dict[str, str], label: str
) -> None:
    name = _inside(member.name, label)
    if member.isdir() or not name:
        return
    if member.isreg():
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
    """``name`` without ``.`` and empty parts; Windows names are refused, since some packer may have made them."""
    odd = any(ord(letter) < 32 or letter == "\\" for letter in name)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or odd or len(name) > MAX_PATH or (parts and parts[0][1:2] == ":"):
        message = f"{label}: the name {name[:100]!r} leads out of the archive"
        raise SourceError(Problem.REFUSED, message, subject=label)
    return "/".join(parts)


def _linked(files: dict[str, bytes], links: Mapping[str, str], label: str, limits: ArchiveLimits) -> dict[str, bytes]:
    """Links may end at links, so as many rounds as there are links; contents are shared, not copied."""
    found = dict(files)
    todo = dict(links)
    for _ in range(len(links)):
        done = []
        for name, target in todo.items():
            below = f"{target}/" if target else ""
            if target in found:
                found[name] = found[target]
            elif not name.startswith(below) and (inner := [one for one in found if one.startswith(below)]):
                found |= {f"{name}/{one[len(below) :]}": found[one] for one in inner}
            else:
                continue
            done.append(name)
            if len(found) > limits.files or sum(map(len, found.values())) > limits.bytes:
                raise _too_large(label, "more than it may, through its links")
        for name in done:
            del todo[name]
        if not done:
            break
    return found


def _too_large(label: str, what: str) -> SourceError:
    return SourceError(Problem.TOO_LARGE, f"{label}: the archive holds {what}", subject=label)
