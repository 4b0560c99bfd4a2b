"""Strict decoding: finds unknown fields and values of the wrong type in an object. :func:`decode`.

Called by the server for every body of a built-in kind, and by linters of manifests. From a JSON object and its
:class:`~syncline.kube.schema.model.Schema` it returns the object without unknown fields, and Kubernetes' texts for
``fieldValidation`` (sigs.k8s.io/json, Go's encoding/json). Duplicate fields are only visible in the text, so
:func:`loads` finds them while parsing. Nothing is defaulted, validated or changed in place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from syncline.base.clock import parse_time
from syncline.kube.objects import Obj
from syncline.kube.schema.fieldcauses import quoted
from syncline.kube.schema.fitting import (
    ALTERNATIVES,
    INTEGERS,
    MAX_DEPTH,
    OR_BOOL,
    OR_LIST,
    OR_NAMES,
    QUANTITY,
    SCHEMA_PROPS,
    TIMES,
    fits,
    zero_of,
)
from syncline.kube.schema.model import Schema, definition
from syncline.kube.schema.store import go_names
from syncline.kube.text.jsontext import finite, has_long_numbers, no_constant, sound, whole
from syncline.kube.text.quantity import QuantityError, parse_quantity

__all__ = ["MAX_DEPTH", "decode", "decode_errors", "field_problems", "go_kind", "loads", "strict_problems"]

MAX_STRICT_ERRORS = 100
"""Texts per object; more tell no one anything (sigs.k8s.io/json has the same limit)."""

MAX_SHOWN = 60
"""Characters of a value that a problem quotes."""
RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
"""Any JSON: the client meant for reads it."""
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*")
_ELEMENT = re.compile(r"\[\]|map\[\w+\]")
_WITHOUT_MICROSECONDS = re.compile(r"[^.]*T\d\d:\d\d:\d\d(?!\.\d{6})(.*)")
"""An instant that MicroTime does not read: it wants six digits of a second."""


class Decoded(msgspec.Struct, frozen=True):
    """A decoded object. ``obj`` is the input itself if nothing was dropped.

    ``errors`` are refusals, the one that Go would report first; ``unknown`` are texts for strict decoding.
    """

    obj: Obj
    unknown: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def decode(obj: Obj, schema: Schema, *, converting: bool = False) -> Decoded:
    """Drop and report unknown fields, write instants in UTC, and report wrong types, in document order.

    ``converting``: the object was no text, so errors are worded like apimachinery's ``FromUnstructured``.
    """
    if fits(obj, schema):
        return Decoded(obj)
    reader = _Reader(converting=converting)
    made = reader.object(obj, schema, None, _Place("", ()), 0)
    hard, soft = reader.refusals[:MAX_STRICT_ERRORS], reader.misfits[:MAX_STRICT_ERRORS]
    return Decoded(made, tuple(reader.unknown[:MAX_STRICT_ERRORS]), (*hard, *soft))


def decode_errors(obj: Obj, schema: Schema) -> list[str]:
    """Why the object does not decode, Go's own first choice first; empty if it does.

    The words are Go's.
    """
    return list(decode(obj, schema).errors)


def field_problems(obj: Obj, schema: Schema, *, values: bool = True, unknown: bool = True) -> list[str]:
    """Return one text per unknown field and wrong value, with its path and the allowed type.

    For example ``spec.replicas: found "three", must be an integer``. ``values`` False hides the found values;
    ``unknown`` False ignores unknown fields.
    """
    if fits(obj, schema):
        return []
    reader = _Reader()
    reader.object(obj, schema, None, _Place("", ()), 0)
    strange = [f"{_shown(path)}: no such field" for path in reader.strange] if unknown else []
    wrong = [f"{_shown(path)}: {_mismatch(value, wanted, values)}" for path, value, wanted in reader.wrong]
    return [*strange, *wrong][:MAX_STRICT_ERRORS]


def _mismatch(value: Any, schema: Schema, shown: bool) -> str:
    kind = go_kind(value)
    article = "an" if kind[0] in "ao" else "a"
    found = json.dumps(value)[:MAX_SHOWN] if shown and not isinstance(value, (dict, list)) else f"{article} {kind}"
    return f"found {found}, must be {_wanted(schema)}"


def _wanted(schema: Schema) -> str:
    if schema.name in TIMES:
        return "a time such as 2026-01-31T12:00:00Z"
    if schema.name == QUANTITY:
        return "a quantity such as 500m or 1Gi"
    if schema.int_or_string:
        return "an integer or a string"
    if schema.format == "byte":
        return "a string in base64"
    if schema.type == "integer" and schema.format in INTEGERS:
        return "an integer from {} to {}".format(*INTEGERS[schema.format])
    return {"integer": "an integer", "array": "a list", "object": "a map"}.get(schema.type, f"a {schema.type}")


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, repeated keys and all."""


def loads(text: str | bytes) -> tuple[Any, list[str]]:
    """Parse JSON and name repeated fields: ``duplicate field "data.a"``; the last value wins.

    Raises ValueError (json.JSONDecodeError) for malformed text, RecursionError never: depth is bounded by MAX_DEPTH.
    """
    repeated = False

    def pairs(found: list[tuple[str, Any]]) -> Obj:
        nonlocal repeated
        made = dict(found)
        repeated = repeated or len(made) != len(found)
        return made

    value = _parsed(text, pairs)
    return value, strict_problems(text, None) if repeated else []


def strict_problems(text: str | bytes, schema: Schema | None) -> list[str]:
    """Return the errors of strict decoding for a valid body, in document order: unknown and duplicate fields.
    ``schema`` None: an untyped object, which has no unknown fields."""
    found: dict[str, None] = {}
    _note(_parsed(text, _Pairs), schema, None, found, 0)
    return list(found)[:MAX_STRICT_ERRORS]


def _parsed(text: str | bytes, pairs: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    source = sound(text.encode("utf-8", "replace") if isinstance(text, str) else text)
    integers = whole if has_long_numbers(source) else None
    try:
        return json.loads(
            source.decode(),
            object_pairs_hook=pairs,
            parse_constant=no_constant,
            parse_float=finite,
            parse_int=integers,
        )
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None


def _note(node: Any, schema: Schema | None, path: _Path, found: dict[str, None], depth: int) -> None:
    """One walk as Go's decoder goes: into a value that a later one replaces, too, and into no unknown field."""
    if depth > MAX_DEPTH or (schema is not None and _reads_itself(schema)):
        return
    if isinstance(node, _Pairs):
        seen: set[str] = set()
        for key, child in node:
            field = schema.field(key) if schema is not None else None
            here = (path, key)
            if schema is not None and field is None:
                found[f"unknown field {quoted(_shown(here))}"] = None
                continue
            if key in seen:
                found[f"duplicate field {quoted(_shown(here))}"] = None
            seen.add(key)
            _note(child, field, here, found, depth + 1)
    elif isinstance(node, list):
        items = schema.items if schema is not None else None
        if schema is None or items is not None:
            for index, child in enumerate(node):
                _note(child, items, (path, index), found, depth + 1)


def _reads_itself(schema: Schema) -> bool:
    """Types whose own decoders are no strict ones, and values of any type."""
    return schema.name == RAW or schema.name in ALTERNATIVES or schema.is_open


_Path = tuple[Any, str | int] | None
"""A path as a chain from the leaf to the root: nothing is formatted until it must be shown."""


def _shown(path: _Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where Go's decoder believes to be: the innermost struct and the names of fields down to here."""

    struct: str
    fields: tuple[str, ...]
    go: str = ""
    """The Go type of the field where the schema does not tell it."""

    def field(self, schema: Schema, key: str) -> _Place:
        """The place of a field of a struct, or of a value of a map."""
        if not schema.properties:
            return self.inside()
        go, via = "", ""
        known = go_names().get(schema.name, {}).get(key)
        if known is not None:
            go, via = (*known, "")[:2]
        steps = (*via.split("."), key) if via else (key,)
        return _Place(schema.name.rpartition(".")[2], (*self.fields, *steps), go)

    def inside(self) -> _Place:
        """The place of an element."""
        element = _ELEMENT.match(self.go)
        return replace(self, go=self.go[element.end() :] if element else "")

    def __str__(self) -> str:
        if not self.fields:
            return "Go value"
        return f"Go struct field {self.struct}.{'.'.join(self.fields)}"


class _Reader:
    """One walk over one object."""

    def __init__(self, *, converting: bool = False) -> None:
        self._converting = converting
        self.unknown: list[str] = []
        self.misfits: list[str] = []
        self.refusals: list[str] = []
        self.strange: list[_Path] = []
        """Where each of ``unknown`` stands."""
        self.wrong: list[tuple[_Path, Any, Schema]] = []
        """Where each value that does not fit stands, and what belongs there."""

    def object(self, value: Obj, schema: Schema, path: _Path, place: _Place, depth: int) -> Obj:
        if depth > MAX_DEPTH:
            self.refusals.append(f"the object is nested deeper than {MAX_DEPTH} levels")
            return {}
        made: Obj = {}
        changed = False
        for key, child in value.items():
            field = schema.field(key)
            if field is None:
                if schema.is_open:
                    made[key] = child
                else:
                    self.unknown.append(f"unknown field {quoted(_shown((path, key)))}")
                    self.strange.append((path, key))
                    changed = True
                continue
            if child is None and key not in schema.properties:
                child = zero_of(field)
            made[key] = self.value(child, field, (path, key), place.field(schema, key), depth + 1)
            changed = changed or made[key] is not value[key]
        return made if changed else value

    def value(self, value: Any, schema: Schema, path: _Path, place: _Place, depth: int) -> Any:
        named, counted = len(self.wrong), len(self.misfits) + len(self.refusals)
        made = self._value(value, schema, path, place, depth)
        if len(self.misfits) + len(self.refusals) > counted and len(self.wrong) == named:
            self.wrong.append((path, value, schema))
        return made

    def _value(self, value: Any, schema: Schema, path: _Path, place: _Place, depth: int) -> Any:
        if value is None or not (schema.type or schema.name or schema.int_or_string):
            return value
        if schema.name in ALTERNATIVES:
            return self.alternative(value, schema.name, path, place, depth)
        match schema.type:
            case "object" if schema.name == RAW:
                return value
            case "object" if isinstance(value, dict):
                return value if schema.is_open else self.object(value, schema, path, place, depth)
            case "array" if isinstance(value, list):
                return self.array(value, schema, path, place, depth)
            case "object" | "array":
                self.misfit(go_kind(value), value, schema, place)
            case "string" if schema.name in TIMES:
                return self.time(value, schema.name, place)
            case "integer" if self._converting and schema.format == "int32" and _is_integer(value, "int64"):
                return (value + 2**31) % 2**32 - 2**31  # Go cuts off what does not fit.
            case _:
                self.scalar(value, schema, place)
        return value.strip() if schema.name == QUANTITY and isinstance(value, str) else value

    def alternative(self, value: Any, name: str, path: _Path, place: _Place, depth: int) -> Any:
        """A schema inside a schema. Its own decoder is not a strict one: unknown fields are dropped without a word."""
        props = definition(SCHEMA_PROPS)
        assert props is not None, "the schema of schemas is built in"
        if isinstance(value, dict):
            report = len(self.unknown)
            made = self.object(value, props, path, place, depth)
            del self.unknown[report:], self.strange[report:]
            return made
        if name == OR_LIST:
            # What is neither a schema nor a list of them reads as none.
            return (
                [self.value(item, props, path, place, depth + 1) for item in value] if isinstance(value, list) else None
            )
        if name == OR_BOOL and not isinstance(value, bool):
            self.refusals.append("boolean or JSON schema expected")
        if name == OR_NAMES and isinstance(value, list):
            for item in value:
                if not isinstance(item, str):
                    self.misfits.append(f"json: cannot unmarshal {go_kind(item)} into Go value of type string")
        return value if name == OR_BOOL or isinstance(value, list) else None

    def array(self, value: list[Any], schema: Schema, path: _Path, place: _Place, depth: int) -> list[Any]:
        items = schema.items
        if items is None:
            return value
        inside = place.inside()
        made = [
            self.value(zero_of(items) if item is None else item, items, (path, i), inside, depth + 1)
            for i, item in enumerate(value)
        ]
        return value if all(a is b for a, b in zip(made, value)) else made

    def scalar(self, value: Any, schema: Schema, place: _Place) -> None:
        if schema.name == QUANTITY:
            self.quantity(value)
        elif schema.int_or_string:
            if not isinstance(value, str) and not _is_integer(value, "int32"):
                self.refusals.append(f"json: cannot unmarshal {_number(value)} into {place} of type int32")
        elif schema.format == "byte":
            self.bytes(value, place)
        elif not _fits(value, schema):
            self.misfit(_number(value) if schema.type == "integer" else go_kind(value), value, schema, place)

    def misfit(self, found: str, value: Any, schema: Schema, place: _Place) -> None:
        if self._converting:
            self.misfits.append(_unrestorable(value, schema, place.go))
            return
        self.misfits.append(f"json: cannot unmarshal {found} into {place} of type {place.go or _go_type(schema)}")

    def quantity(self, value: Any) -> None:
        try:
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                parse_quantity("not a number")
            parse_quantity(value.strip() if isinstance(value, str) else value)
        except QuantityError as error:
            self.refusals.append(str(error))

    def time(self, value: Any, name: str, place: _Place) -> Any:
        """An instant is kept as Kubernetes writes it: in UTC, in whole seconds or microseconds (metav1.Time,
        metav1.MicroTime). Clients send back what they read with other offsets and fractions."""
        form, layout = TIMES[name]
        if not isinstance(value, str):
            self.refusals.append(f"json: cannot unmarshal {go_kind(value)} into {place} of type string")
            return value
        try:
            written = form(parse_time(value))
        except ValueError:
            self.refusals.append(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
            return value
        short = _WITHOUT_MICROSECONDS.fullmatch(value) if layout.endswith(".000000Z07:00") else None
        if short is not None:
            self.refusals.append(f'parsing time "{value}" as "{layout}": cannot parse "{short[1]}" as ".000000"')
        return value if written == value else written

    def bytes(self, value: Any, place: _Place) -> None:
        if not isinstance(value, str):
            self.misfits.append(f"json: cannot unmarshal {go_kind(value)} into {place} of type []uint8")
            return
        matched = _BASE64.match(value)
        end = matched.end() if matched else 0
        plain = re.sub(r"[\r\n]", "", value)
        if end < len(value) or len(plain) % 4:
            wrong = end if end < len(value) else len(value) - len(plain) % 4
            self.misfits.append(f"illegal base64 data at input byte {wrong}")


def _fits(value: Any, schema: Schema) -> bool:
    match schema.type:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_integer(value, schema.format)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
    return True


def _is_integer(value: Any, form: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    low, high = INTEGERS.get(form, INTEGERS["int64"])
    return low <= value <= high


_GO_KINDS = {bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map"}
_NUMBERS = frozenset({"integer", "number"})


def _unrestorable(value: Any, schema: Schema, go: str) -> str:
    found = _GO_KINDS[type(value)]
    if schema.type == "array":
        return f"cannot restore slice from {found}"
    if schema.type == "object":
        return f"cannot restore struct from: {found}" if schema.properties else f"cannot restore map from {found}"
    wanted = go or _go_type(schema)
    if (found == "int64" and schema.type == "string") or (found == "float64" and schema.type in _NUMBERS):
        return f"cannot convert {found} to {wanted}"
    return f"unrecognized type: {schema.type if schema.type == 'string' else wanted}"


def go_kind(value: Any) -> str:
    """Go's name for a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def _number(value: Any) -> str:
    """A number that is no integer of the right size is named with its digits."""
    return f"number {value}" if go_kind(value) == "number" else go_kind(value)


def _go_type(schema: Schema) -> str:
    """The Go type of a field, as far as the schema tells it."""
    if schema.name:
        package, _, struct = schema.name.rpartition(".")
        return f"{package.rpartition('.')[2]}.{struct}"
    if schema.items is not None:
        return f"[]{_go_type(schema.items)}"
    if schema.additional is not None:
        return f"map[string]{_go_type(schema.additional)}"
    if schema.format == "byte":
        return "[]uint8"
    named = {"boolean": "bool", "number": "float64", "integer": schema.format or "int64", "": "interface {}"}
    return named.get(schema.type, schema.type)
