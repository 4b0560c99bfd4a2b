"""JSON values to YAML as ``kustomize build`` prints it: keys sorted, block style, long lines not folded.

Called with the finished resources. Which text is quoted and where lines are folded follows go-yaml v2, as for
``kubectl -o yaml``; other than there, ``<<`` stays bare and integers keep 64 bits without a sign.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cmp_to_key, lru_cache
from typing import Any

import yaml

from syncline.kube.yaml.emit import LINE_WIDTH, natural_order, scalar_style
from syncline.kube.yaml.resolve import go_shortest

_Emitter: Any = getattr(getattr(yaml, "cyaml", None), "CEmitter", yaml.Dumper)

_natural = cmp_to_key(natural_order)
_ESCAPED = re.compile("[\r\u0085]|[\u2028\u2029]\\Z")
_SEPARATORS = re.compile("[\u2028\u2029]")
"""Line and paragraph separators stay as they are, unlike in ``kubectl -o yaml``; other breaks are escaped."""
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1
_WRITTEN_OUT = 1e21
"""From here on Go's JSON encoder writes an exponent."""


def write_all(values: Iterable[Any]) -> str:
    """One text with a ``---`` line between documents."""
    return "---\n".join(write_one(value) for value in values)


def write_one(value: Any) -> str:
    stream = io.StringIO()
    emitter = _Emitter(stream, width=LINE_WIDTH, allow_unicode=True)
    try:
        emitter.emit(yaml.StreamStartEvent())
        emitter.emit(yaml.DocumentStartEvent(explicit=False))
        _emit(emitter.emit, value)
        emitter.emit(yaml.DocumentEndEvent(explicit=False))
        emitter.emit(yaml.StreamEndEvent())
    finally:
        emitter.dispose()
    return stream.getvalue().removesuffix("...\n")


def _emit(emit: Any, value: Any) -> None:
    if isinstance(value, str):
        emit(_event(value))
    elif isinstance(value, dict):
        emit(yaml.MappingStartEvent(None, None, True, flow_style=False))
        for key in sorted(sorted(value), key=_natural):
            emit(_event(key))
            _emit(emit, value[key])
        emit(yaml.MappingEndEvent())
    elif isinstance(value, list):
        emit(yaml.SequenceStartEvent(None, None, True, flow_style=False))
        for item in value:
            _emit(emit, item)
        emit(yaml.SequenceEndEvent())
    else:
        emit(yaml.ScalarEvent(None, None, (True, True), _atom(value)))


@lru_cache(maxsize=4096)
def _event(text: str) -> Any:
    style = None if text == "<<" else scalar_style(text)
    if style == '"' and _SEPARATORS.search(text) and not _ESCAPED.search(text):
        style = "|" if "\n" in text else None
    return yaml.ScalarEvent(None, None, (True, True), text, style=style)


def _atom(value: int | float | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < _WRITTEN_OUT:
        # Go's JSON encoder prints the shortest digits and fills up with zeros; what fits 64 bits is an integer again.
        whole = int(Decimal(repr(value)))
        if _INT64_MIN <= whole <= _UINT64_MAX:
            return str(whole)
    return go_shortest(value)


def json_text(value: Any) -> str:
    """Compact JSON with sorted keys, as Go's encoder writes it: ``<``, ``>`` and ``&`` are escaped."""
    made = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        made = made.replace(letter, f"\\u{ord(letter):04x}")
    return made
