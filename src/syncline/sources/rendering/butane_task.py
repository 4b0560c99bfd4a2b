"""Translates Butane documents in a render worker: :func:`render`.

Input are documents and the recorded responses of ``sources/rendering/butane.py`` to their file requests; output are
MachineConfigs and reports as plain data. Nothing is read from the disk.
"""

from __future__ import annotations

import os
import posixpath
from typing import Any

from syncline.ignition.butane.files import Kind, Node
from syncline.ignition.butane.reading import DecodeError, decode, read_document
from syncline.ignition.butane.schema import HEADER
from syncline.ignition.butane.transpile import Options, Transpiled, transpile
from syncline.ignition.report import path_text


class _Recorded:
    """Repeats recorded responses; everything else is a missing file."""

    def __init__(self, directory: str, answers: dict[str, Any], contents: dict[str, bytes]) -> None:
        self._directory = directory
        self._answers = answers
        self._contents = contents

    @property
    def directory(self) -> str:
        return self._directory

    def absolute(self, path: str) -> str:
        return posixpath.normpath(f"/repository/{path}")

    def _answer(self, question: str, path: str) -> Any:
        found = self._answers.get(f"{question} {path}", {"errno": 2})
        if isinstance(found, dict):
            raise OSError(found["errno"], os.strerror(found["errno"]))
        return found

    def read(self, path: str) -> bytes:
        return self._contents[self._answer("read", path)]

    def stat(self, path: str) -> Node:
        kind, executable = self._answer("stat", path)
        return Node(Kind(kind), executable)

    def lstat(self, path: str) -> Node:
        kind, executable = self._answer("lstat", path)
        return Node(Kind(kind), executable)

    def names(self, path: str) -> list[str]:
        found: list[str] = self._answer("names", path)
        return found

    def target(self, path: str) -> str:
        found: str = self._answer("target", path)
        return found


def render(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each document ``name``, ``value`` (None if refused), ``error``, ``line`` and the ``entries`` of its
    report."""
    return [_rendered(document, payload["contents"]) for document in payload["documents"]]


def _rendered(document: dict[str, Any], contents: dict[str, bytes]) -> dict[str, Any]:
    files = _Recorded(document["directory"], document["answers"], contents)
    # Objects do not pass through text, so nothing that only damages text is to be reported.
    done = transpile(document["text"], Options(files=files, hints=True, safe_yaml=True))
    entries = [
        [entry.severity.value, _utf8(path_text(entry.path)), entry.line, entry.column, _utf8(entry.message)]
        for entry in (*done.report.entries, *done.hints.entries)
    ]
    line = 0 if done.value is not None or entries else _line(document["text"])
    return {"name": document["name"], "value": done.value, "error": _error(done), "line": line, "entries": entries}


def _error(done: Transpiled) -> str:
    return _utf8(" ".join((done.error or "").split()))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _line(text: bytes) -> int:
    """Return the line of a syntax error."""
    try:
        decode(read_document(text), HEADER)
    except DecodeError as problem:
        return problem.line
    return 0
