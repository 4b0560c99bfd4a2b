"""Files of a repository or archive on the disk, for programs that read them there: below one folder and nowhere else.

Called with a folder that is empty and ours alone. Names come from strangers: each is created new, below the folder,
and links are made when every file is written, so that no file is written through one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join

__all__ = ["write_below"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_below(
    top: Path,
    files: Iterable[tuple[str, bytes]],
    *,
    executable: Iterable[str] = (),
    links: Mapping[str, str] | None = None,
) -> None:
    """``files`` by name, then ``links`` with what they hold. Raises :class:`SourceError` for names that no disk holds,
    that leave ``top``, or that are there already."""
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
    """What the disk refuses is one sentence about the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        message = f"{name[:200]!r} cannot be written: {(why or '').lower()}"
        raise SourceError(Problem.INVALID, message, fix="give the file a shorter name of its own") from None
