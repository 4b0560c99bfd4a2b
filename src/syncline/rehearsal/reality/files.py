"""Records as files: :func:`writing` one while it grows, :func:`read_recording`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from syncline.rehearsal.given.packed import read_packed
from syncline.rehearsal.reality.recording import MAX_BYTES, Recording, recording_of
from syncline.rehearsal.scenario import ScenarioError

PRIVATE = 0o600
WRITTEN_BY = "`syncline record FILE`"
SLACK = 1024 * 1024
"""Bytes beyond the limit that the last line may have."""


@contextlib.contextmanager
def writing(file: Path) -> Iterator[Callable[[str], None]]:
    """Yield a function that appends a line to a new file, readable for its owner only. Each line is handed to the
    system at once, so that the file is a record whenever the process ends. Raises ScenarioError (usage)."""
    try:
        place = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    except OSError as error:
        said = f"{file}: cannot be written ({error.strerror}); name a file in a folder of yours"
        raise ScenarioError(said, usage=True) from error
    with open(place, "w", buffering=1, encoding="utf-8") as opened:

        def write(line: str) -> None:
            opened.write(line)

        yield write


def read_recording(file: Path) -> Recording:
    """Read a record, plain or packed by xz. Raises ScenarioError (usage)."""
    if not file.is_file():
        raise ScenarioError(f"{file}: there is no such file; {WRITTEN_BY} writes one", usage=True)
    return recording_of(_unpacked(file).splitlines(), file.name)


def is_recording(file: Path) -> bool:
    """Return whether a file begins as a record does; a snapshot is one object in one line."""
    with contextlib.suppress(ScenarioError):
        head = _unpacked(file).split(b"\n", 1)
        return b'"kind":"OperationRecord"' in head[0]
    return False


def _unpacked(file: Path) -> bytes:
    return read_packed(file, MAX_BYTES + SLACK, WRITTEN_BY, whole=False)
