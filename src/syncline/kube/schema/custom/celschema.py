"""Schemas as expressions see them: which fields there are, of which types, how large they may become; and values.

Called by ``rules.py`` and ``rulecheck.py``. Takes a plain ``openAPIV3Schema``; out comes a :class:`Decl`. Parts of a
schema that say nothing of their type are not there for expressions. Source: apiserver ``pkg/cel/common`` (schemas.go,
values.go) and ``pkg/cel/escaping.go``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from syncline.kube.cel.checker import Declared
from syncline.kube.cel.conversions import to_timestamp
from syncline.kube.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Type
from syncline.kube.cel.values import Duration, EvaluationError, MapList, SetList
from syncline.kube.text.formats import parse_duration_ns

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


_Convert: TypeAlias = Callable[[Any], Any]


def converter(raw: Any) -> _Convert:
    """Gives JSON values the types that their schema says: times, durations, floats; makes field names identifiers."""
    return _converter(raw) if isinstance(raw, Mapping) else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _converter(raw: Raw) -> _Convert:
    properties, additional = raw.get("properties") or {}, raw.get("additionalProperties")
    fields = {name: _Field(name, below) for name, below in properties.items()}
    others = converter(additional) if additional and not properties else None
    items, made = _Field("", raw.get("items")).convert, _made_list(raw)
    kind, form = raw.get("type"), raw.get("format") or ""

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            return _object_to_cel(value, fields) if others is None else {k: others(v) for k, v in value.items()}
        if isinstance(value, list):
            return made([*value] if items is None else [items(item) for item in value])
        if isinstance(value, str):
            return _typed_text(value, form) if kind == "string" else value
        if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    return convert


def _made_list(raw: Raw) -> Callable[[list[Any]], Any]:
    match raw.get("x-kubernetes-list-type"):
        case "set":
            return SetList
        case "map":
            keys = tuple(escape(key) or key for key in raw.get("x-kubernetes-list-map-keys") or ())
            return lambda items: MapList(items, keys)
    return lambda items: items


class _Field:
    """One declared field: as what rules know it, and how its values are converted (None: not at all)."""

    __slots__ = ("convert", "described", "name")

    def __init__(self, name: str, raw: Any) -> None:
        self.name = escape(name) or name
        self.described = isinstance(raw, Mapping)
        plain = not self.described or (raw.get("type") == "string" and (raw.get("format") or "") not in _TYPED)
        self.convert: _Convert | None = None if plain else _converter(raw)


def _object_to_cel(value: dict[str, Any], fields: Mapping[str, _Field]) -> dict[str, Any]:
    result = {}
    for name, item in value.items():
        known = fields.get(name)
        if known is None:
            result[escape(name) or name] = item
        elif item is None and known.described:
            continue  # For expressions a null is as good as absent, allowed or not.
        else:
            result[known.name] = item if known.convert is None else known.convert(item)
    return result


_TYPED = frozenset({"date-time", "date", "duration", "byte"})


def _typed_text(value: str, form: str) -> Any:
    if form == "date-time":
        return _instant(value)
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


@lru_cache(maxsize=4096)
def _instant(value: str) -> Any:
    """Objects repeat their times in every condition."""
    try:
        return to_timestamp(value.upper().replace(" ", "T"))
    except EvaluationError:
        return value
