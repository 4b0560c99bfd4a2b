"""Schemas as expressions see them: which fields there are, of which types, how large they may become; and values.

Called by ``rules.py`` and ``rulecheck.py``. In comes a plain ``openAPIV3Schema``; out comes a :class:`Decl`. Parts of a
schema that say nothing of their type are not there for expressions. Source: apiserver ``pkg/cel/common`` (schemas.go,
values.go) and ``pkg/cel/escaping.go``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.kube.cel.checker import Declared
from syncline.kube.cel.conversions import to_timestamp
from syncline.kube.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Type
from syncline.kube.cel.values import Duration, EvaluationError, MapList, SetList
from syncline.kube.formats import parse_duration_ns

__all__ = ["MAX_REQUEST_BYTES", "Decl", "declare", "escape", "to_cel"]

MAX_REQUEST_BYTES = 3 * 1024 * 1024
MAX_TIME_CHARS = 32
DATE_CHARS = 12
MIN_SIZES = {"duration": 3, "date": DATE_CHARS, "date-time": 21}

Raw = Mapping[str, Any]

_KEYWORDS = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def escape(name: str) -> str | None:
    """A field's name as rules write it: ``a-b`` is ``a__dash__b``; None where it cannot be written."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    text = name.replace("__", "__underscores__")
    return text.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")


@dataclass(eq=False, slots=True)
class Decl:
    """``most``: entries or bytes at most; ``least``: bytes of the smallest such value in JSON."""

    type: Type
    most: int = 0
    least: int = 1
    fields: dict[str, Decl] = field(default_factory=dict)
    inside: Decl | None = None

    def size_of(self, path: tuple[str, ...]) -> int | None:
        """The most that a path below ``self`` may hold; None where nothing is known."""
        here: Decl | None = self
        for step in path[1:]:
            if here is None:
                return None
            if step in ("@items", "@values"):
                here = here.inside
            elif step == "@keys":
                here = _KEY if here.type[0] == "map" else None
            else:
                here = here.fields.get(step)
        return None if here is None else here.most


_KEY = Decl(STRING, 0, 2)
"""Kubernetes gives the names of a map no size of their own, so looking through them costs next to nothing."""
_IMPLICIT: dict[str, Raw] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
}


def declare(raw: Any, *, resource: bool = False) -> Decl | None:
    """``resource``: this is a whole object, of which the name, the kind and the version can always be read."""
    if not isinstance(raw, Mapping):
        return None
    if raw.get("x-kubernetes-int-or-string"):
        return Decl(DYN, _longest(raw, MAX_REQUEST_BYTES - 2), 1)
    match raw.get("type"):
        case "array":
            return _list(raw)
        case "object":
            return _object(raw, resource)
        case "string":
            return _text(raw)
        case "boolean":
            return Decl(BOOL, 0, 4)
        case "number":
            return Decl(DOUBLE)
        case "integer":
            return Decl(INT)
    return None


def _longest(raw: Raw, otherwise: int) -> int:
    longest = raw.get("maxLength")
    return otherwise if longest is None else max(int(longest), 0) * 4


def _text(raw: Raw) -> Decl:
    form = raw.get("format") or ""
    if form == "byte":
        longest = raw.get("maxLength")
        return Decl(BYTES, MAX_REQUEST_BYTES - 2 if longest is None else max(int(longest), 0), 2)
    if form in MIN_SIZES:
        most = DATE_CHARS if form == "date" else MAX_TIME_CHARS
        return Decl(DURATION if form == "duration" else TIMESTAMP, most, MIN_SIZES[form])
    words = [len(word.encode()) for word in raw.get("enum") or () if isinstance(word, str)]
    return Decl(STRING, _longest(raw, max(words, default=0) if raw.get("enum") else MAX_REQUEST_BYTES - 2), 2)


def _list(raw: Raw) -> Decl | None:
    items = raw.get("items")
    inside = declare(items, resource=bool((items or {}).get("x-kubernetes-embedded-resource")))
    if inside is None:
        return None
    most = raw.get("maxItems")
    size = (MAX_REQUEST_BYTES - 2) // (inside.least + 1) if most is None else max(int(most), 0)
    return Decl(("list", inside.type), size, 2, inside=inside)


def _object(raw: Raw, resource: bool) -> Decl | None:
    additional = raw.get("additionalProperties")
    if isinstance(additional, Mapping):
        inside = declare(additional, resource=bool(additional.get("x-kubernetes-embedded-resource")))
        if inside is None:
            return None
        most = raw.get("maxProperties")
        size = (MAX_REQUEST_BYTES - 2) // (inside.least + 6) if most is None else max(int(most), 0)
        return Decl(("map", STRING, inside.type), size, 2, inside=inside)
    properties = {**(raw.get("properties") or {}), **(_IMPLICIT if resource else {})}
    required = frozenset(raw.get("required") or ())
    fields: dict[str, Decl] = {}
    least = 2
    for name, below in properties.items():
        decl = declare(below, resource=bool((below or {}).get("x-kubernetes-embedded-resource")))
        if decl is None:
            continue
        written = escape(name)
        if written is not None:
            fields[written] = decl
        if name in required and below.get("default") is None:
            least += len(name) + decl.least + 4
    kind = Declared("object", {name: decl.type for name, decl in fields.items()})
    return Decl(("object", kind), 0, least, fields)


# --- values --------------------------------------------------------------------------------------------------------


def to_cel(value: Any, raw: Any) -> Any:
    """A JSON value with the types that its schema gives it: times, durations, floats; field names made identifiers."""
    if not isinstance(raw, Mapping):
        return value
    if isinstance(value, dict):
        return _fields_to_cel(value, raw)
    if isinstance(value, list):
        items = [to_cel(item, raw.get("items")) for item in value]
        match raw.get("x-kubernetes-list-type"):
            case "set":
                return SetList(items)
            case "map":
                keys = (escape(key) or key for key in raw.get("x-kubernetes-list-map-keys") or ())
                return MapList(items, tuple(keys))
        return items
    if isinstance(value, str):
        return _typed_text(value, raw.get("format") or "") if raw.get("type") == "string" else value
    if raw.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if raw.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _fields_to_cel(value: dict[str, Any], raw: Raw) -> dict[str, Any]:
    properties, additional = raw.get("properties") or {}, raw.get("additionalProperties")
    if additional and not properties:
        return {name: to_cel(item, additional) for name, item in value.items()}
    result = {}
    for name, item in value.items():
        below = properties.get(name)
        if item is None and isinstance(below, Mapping):
            continue  # For expressions a null is as good as absent, allowed or not.
        result[escape(name) or name] = to_cel(item, below)
    return result


def _typed_text(value: str, form: str) -> Any:
    if form == "date-time":
        try:
            return to_timestamp(value.upper().replace(" ", "T"))
        except EvaluationError:
            return value
    if form == "date":
        try:
            return to_timestamp(f"{value}T00:00:00Z")
        except EvaluationError:
            return value
    if form == "duration":
        ns = parse_duration_ns(value)
        return value if ns is None else Duration(ns)
    if form == "byte":
        try:
            return base64.b64decode(value, validate=True)
        except (ValueError, binascii.Error):
            return value
    return value
