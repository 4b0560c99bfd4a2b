"""Refuses charts whose values schemas name local files, in the render worker before Helm: :func:`check_chart`.

A schema may name others by ``file://``, also in a packed dependency or one nested in that. Every schema that Helm will
read is checked; those that cannot be parsed are refused, too.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterator

from syncline.sources.archive import unpack
from syncline.sources.errors import Problem, SourceError

SCHEMA = "values.schema.json"
MAX_PACKED = 8
"""Packed charts in packed charts."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema", "$id")
_HARMLESS = ("#", "http://", "https://", "urn:")


def check_chart(folder: str) -> None:
    """Check a chart's folder. Raises :class:`SourceError` for schemas that name files, and for broken archives."""
    todo = [(name, content, 0) for name, content in _read(folder)]
    while todo:
        name, content, depth = todo.pop()
        if posixpath.basename(name) == SCHEMA:
            _check_schema(content, name)
            continue
        if depth >= MAX_PACKED:
            raise SourceError(Problem.TOO_LARGE, f"{name}: charts are packed more than {MAX_PACKED} deep", subject=name)
        found = unpack(content, name)
        todo += [(f"{name}/{inner}", found[inner], depth + 1) for inner in found if _matters(inner)]


def _matters(name: str) -> bool:
    packed = name.endswith(".tgz") and posixpath.basename(posixpath.dirname(name)) == "charts"
    return packed or posixpath.basename(name) == SCHEMA


def _read(top: str) -> Iterator[tuple[str, bytes]]:
    for folder, _, files in os.walk(top):
        for file in files:
            name = os.path.relpath(os.path.join(folder, file), top)
            if _matters(name):
                with open(os.path.join(folder, file), "rb") as stream:
                    yield name, stream.read()


def _check_schema(content: bytes, name: str) -> None:
    """Parse at least as leniently as Go, which accepts any bytes in texts and numbers of any length."""
    try:
        todo = [json.loads(content.decode("utf-8", "replace"), parse_int=str, parse_float=str)]
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, ValueError) else "it is nested too deep"
        raise SourceError(Problem.INVALID, f"{name}: the schema is unreadable: {why}", subject=name) from None
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo += value
        if not isinstance(value, dict):
            continue
        todo += value.values()
        for key in _REFERENCES:
            given = value.get(key)
            if isinstance(given, str) and not given.lower().startswith(_HARMLESS):
                raise SourceError(
                    Problem.REFUSED,
                    f"{name}: {key} {given[:200]!r} names a file outside the repository",
                    subject=name,
                    fix="put the definition into the schema itself, or set skipSchemaValidation",
                )
