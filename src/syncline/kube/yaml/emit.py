"""Writes JSON values as YAML like ``sigs.k8s.io/yaml`` (``kubectl -o yaml``): :func:`emit_all`.

Used through ``kube/yaml/loading.py``. Keys are in go-yaml's natural order, text that Go would parse as something else
is quoted, and multi-line text becomes a literal block. The output parses to the same value.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from syncline.base.natural import by_number
from syncline.kube.yaml.resolve import INT64_MAX, INT64_MIN, go_number, go_shortest, is_timestamp, resolve_plain

_Emitter: Any = getattr(getattr(yaml, "cyaml", None), "CEmitter", yaml.Dumper)

LINE_WIDTH = 80
"""Where go-yaml v2 folds long plain and quoted text."""

_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
"""YAML 1.1 libraries read these as numbers; Go quotes them for that reason."""

_UINT64_MAX = 2**64 - 1

_OTHER_BREAKS = re.compile("[\r\u0085\u2028\u2029]")
"""Line breaks that parsers fold or normalise; only escapes preserve them."""

_NEXT_LINES = re.compile(" *\u0085(?: *\u0085)* *")
"""Characters that Go's JSON leaves unescaped and YAML folds when it parses that JSON."""

_CLOSING_INDENT = re.compile("(?<=[\u2028\u2029]) +(?='(?:\n|:))")
"""libyaml indents a closing quote behind a line break; Go does not."""


def emit_all(values: Iterable[Any]) -> str:
    """Return one text with ``---`` lines between documents; raises TypeError for values that JSON does not have."""
    texts = [_emit(value) for value in values]
    return "---\n".join(texts)


def emit_typed(value: Any) -> str:
    """Return ``value`` as ``ghodss/yaml`` writes the JSON of a Go struct, which it first parses as YAML: unsigned
    64-bit integers and negative zero are preserved, U+0085 is folded, and other line breaks are written although
    parsers would change them. For digests of Go's output. Raises TypeError for values that JSON does not have."""
    return _CLOSING_INDENT.sub("", _emit(_folded(value), typed=True))


class _Indented(yaml.emitter.Emitter):
    """Indents lists in maps, as go-yaml v3."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def emit_unfolded(value: Any) -> str:
    """Return ``value`` as go-yaml v3 writes it with an indentation of two: no line is folded, lists are indented.
    Raises TypeError for values that JSON does not have."""
    stream = io.StringIO()
    emitter = _Indented(stream, width=1 << 30, allow_unicode=True)
    emitter.emit(yaml.StreamStartEvent())
    emitter.emit(yaml.DocumentStartEvent(explicit=False))
    _node(emitter, value, scalar_style, _atom)
    emitter.emit(yaml.DocumentEndEvent(explicit=False))
    emitter.emit(yaml.StreamEndEvent())
    return stream.getvalue().removesuffix("...\n")


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        return _NEXT_LINES.sub(lambda found: "\n" * (found[0].count("\u0085") - 1) or " ", value)
    if isinstance(value, dict):
        return {_folded(key): _folded(item) for key, item in value.items()}
    return [_folded(item) for item in value] if isinstance(value, list | tuple) else value


def _emit(value: Any, *, typed: bool = False) -> str:
    stream = io.StringIO()
    emitter = _Emitter(stream, width=LINE_WIDTH, allow_unicode=True)
    try:
        emitter.emit(yaml.StreamStartEvent())
        emitter.emit(yaml.DocumentStartEvent(explicit=False))
        _node(emitter, value, *((_go_style, _typed_atom) if typed else (scalar_style, _atom)))
        emitter.emit(yaml.DocumentEndEvent(explicit=False))
        emitter.emit(yaml.StreamEndEvent())
    finally:
        emitter.dispose()
    # libyaml closes a root scalar with the document end mark, which Kubernetes does not write.
    return stream.getvalue().removesuffix("...\n")


_Style = Callable[[str], str | None]


def _node(emitter: Any, value: Any, style: _Style, atom: Callable[[Any], str]) -> None:
    if isinstance(value, str):
        emitter.emit(yaml.ScalarEvent(None, None, (True, True), value, style=style(value)))
    elif isinstance(value, dict):
        emitter.emit(yaml.MappingStartEvent(None, None, True, flow_style=False))
        # Natural order has cycles (08, 12:30, 1e3); sorting twice keeps it independent of the order given.
        for key in sorted(sorted(value), key=_natural):
            # Go writes the key << bare and reads it back as a merge; we quote it where users read it.
            bare = key != "<<" or style is _go_style
            emitter.emit(yaml.ScalarEvent(None, None, (True, True), key, style=style(key) if bare else '"'))
            _node(emitter, value[key], style, atom)
        emitter.emit(yaml.MappingEndEvent())
    elif isinstance(value, list | tuple):
        emitter.emit(yaml.SequenceStartEvent(None, None, True, flow_style=False))
        for item in value:
            _node(emitter, item, style, atom)
        emitter.emit(yaml.SequenceEndEvent())
    else:
        emitter.emit(yaml.ScalarEvent(None, None, (True, True), atom(value)))


def scalar_style(text: str) -> str | None:
    """Return the style in which ``text`` parses to itself: quotes, a block, or None for plain text."""
    return '"' if _OTHER_BREAKS.search(text) else _go_style(text)


def _go_style(text: str) -> str | None:
    if "\n" in text:
        return "|"
    if not isinstance(resolve_plain(text), str) or is_timestamp(text) or _BASE_60.fullmatch(text):
        return '"'
    return None


def _atom(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return str(value)
    if isinstance(value, int | float):
        number = go_number(value)
        return str(number) if isinstance(number, int) else go_shortest(number)
    raise TypeError(f"{type(value).__name__} is not a JSON value; give a dict, list, str, number, bool or None")


def _typed_atom(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return _atom(value)
    if isinstance(value, int):
        return str(value) if INT64_MIN <= value <= _UINT64_MAX else go_shortest(float(value))
    if isinstance(value, float):
        return go_shortest(value)
    return _atom(value)


def natural_order(left: str, right: str) -> int:
    """Return a negative number if ``left`` comes first: digits by value, letters last (go-yaml v2 ``keyList``)."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() and b.isalpha():
            return -1 if a < b else 1
        if a.isalpha() or b.isalpha():
            return -1 if b.isalpha() else 1
        return by_number(left, right, index)
    return len(left) - len(right)


_natural = functools.cmp_to_key(natural_order)
