"""Writes files of a repository or archive to a private folder, for programs that read them there: :func:`write_below`.

Names are untrusted: each file is created new, below the folder, and links are created after all files, so that no file
is written through one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_below(
    top: Path,
    files: Iterable[tuple[str, bytes]],
    *,
    executable: Iterable[str] = (),
    links: Mapping[str, str] | None = None,
) -> None:
    """Write ``files`` by name, then ``links`` with their targets. Raises :class:`SourceError` for names that the disk
    refuses, that leave ``top``, or that exist already."""
    runs = frozenset(executable)
    for name, content in files:
        with _named(name):
            place = _place(top, name)
            with open(os.open(place, _NEW, 0o755 if name in runs else 0o644), "wb") as stream:
                stream.write(content)
    for name, target in (links or {}).items():
        with _named(name):
            _place(top, name).symlink_to(target)


def _place(top: Path, name: str) -> Path:
    if join("", name) != name or not name or "\0" in name:
        raise SourceError(Problem.REFUSED, f"{name[:200]!r}: a name that leaves its folder", subject=name)
    place = top / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Convert errors of the disk to one sentence about the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        message = f"{name[:200]!r} cannot be written: {(why or '').lower()}"
        raise SourceError(Problem.INVALID, message, fix="give the file a shorter name of its own") from None
