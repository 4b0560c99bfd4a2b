"""Writes ``manifest.yaml``: the objects of an Application in the format of go-yaml v3 with an indent of two.

Keys are in natural order, list items are indented below their key, long lines are not folded. libyaml writes each
scalar. The output parses to the same values. Pure.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from functools import cmp_to_key, lru_cache
from typing import Any

import yaml

from syncline.kube.yaml.emit import natural_order, scalar_style
from syncline.kube.yaml.resolve import go_number, go_shortest
from syncline.sources.errors import Problem, SourceError

MAX_BYTES = 64 * 1024**2
SIMPLE_KEY = 128
"""Letters of a key that stands in the line of its value."""
_Emitter: Any = getattr(getattr(yaml, "cyaml", None), "CEmitter", yaml.Dumper)
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_natural = cmp_to_key(natural_order)


def manifest_text(objects: Iterable[Any]) -> bytes:
    """Return a text with ``---`` between documents. Raises :class:`SourceError` if it is too large."""
    parts: list[bytes] = []
    size = 0
    for obj in objects:
        parts.append(("".join(_lines(obj, 0)) or "{}\n").encode("utf-8", "replace"))
        size += len(parts[-1])
        if size > MAX_BYTES:
            raise SourceError(Problem.TOO_LARGE, f"hydrated manifests of one Application: more than {MAX_BYTES} bytes")
    return b"---\n".join(parts)


def _lines(value: Any, indent: int) -> Iterator[str]:
    """Yield the lines of a collection; the first line of a mapping is not indented further than the others."""
    pad = " " * indent
    if isinstance(value, dict):
        for key in sorted(sorted(value), key=_natural):
            shown = _emitted(key, '"') if "\n" in key or key == "<<" else _text(key)
            head = f"{pad}{shown}:" if len(key) <= SIMPLE_KEY else f"{pad}? {shown}\n{pad}:"
            yield from _entry(head, value[key], indent, listed=False)
    else:
        for item in value:
            yield from _entry(f"{pad}-", item, indent, listed=True)


def _entry(head: str, value: Any, indent: int, *, listed: bool) -> Iterator[str]:
    if not isinstance(value, dict | list) or not value:
        yield f"{head} {_scalar(value, indent + 2)}\n"
        return
    inner = _lines(value, indent + 2)
    if not listed:
        yield f"{head}\n"
        yield from inner
        return
    first = next(inner)
    yield f"{head} {first[indent + 2 :]}"
    yield from inner


def _scalar(value: Any, indent: int) -> str:
    if isinstance(value, str):
        return _text(value) if "\n" not in value else _block(value, indent)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    number = go_number(value)
    return str(number) if isinstance(number, int) else go_shortest(number)


@lru_cache(maxsize=8192)
def _text(value: str) -> str:
    """Return a scalar as one line."""
    style = scalar_style(value)
    if style is None and _PLAIN.fullmatch(value):
        return value
    return _emitted(value, style)


def _block(value: str, indent: int) -> str:
    """Return a literal block if YAML has one for this text, otherwise a quoted text."""
    found = _emitted(value, scalar_style(value))
    if not found.startswith("|"):
        return found
    header, _, rest = found.partition("\n")
    lines = rest.split("\n")
    pad = " " * max(indent - 2, 0)
    return "\n".join([header, *(f"{pad}{line}" if line else "" for line in lines)])


def _emitted(value: str, style: str | None) -> str:
    stream = io.StringIO()
    emitter = _Emitter(stream, width=1 << 30, allow_unicode=True)
    try:
        emitter.emit(yaml.StreamStartEvent())
        emitter.emit(yaml.DocumentStartEvent(explicit=False))
        # In a sequence and before another item, so that a block is indented and nothing closes the document.
        emitter.emit(yaml.SequenceStartEvent(None, None, True, flow_style=False))
        emitter.emit(yaml.ScalarEvent(None, None, (True, True), value, style=style))
        emitter.emit(yaml.ScalarEvent(None, None, (True, True), "x"))
        emitter.emit(yaml.SequenceEndEvent())
        emitter.emit(yaml.DocumentEndEvent(explicit=False))
        emitter.emit(yaml.StreamEndEvent())
    finally:
        emitter.dispose()
    return stream.getvalue().removeprefix("- ").removesuffix("...\n").removesuffix("\n- x\n")
