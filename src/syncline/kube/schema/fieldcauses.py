"""Causes of a refusal in the words of apimachinery's ``field.Error``.

Called by every validator of objects. Takes a field path and what is wrong; out comes a :class:`FieldCause`. Paths are
text (``spec.ports[0].name``); the empty path is an error of the whole object, which Kubernetes writes as ``<nil>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from syncline.kube.errors import FieldCause

OMITTED: Final = object()
"""A value that the message leaves out."""


def _path(field: str) -> str:
    return field or "<nil>"


def quoted(text: str) -> str:
    """A text as Go's ``%q`` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_quoted_char, text)) + '"'


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _quoted_char(char: str) -> str:
    code = ord(char)
    if code in _ESCAPES:
        return _ESCAPES[code]
    if char.isprintable():
        return char
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_float(value: float) -> str:
    """A float as Go's ``%v`` prints it: shortest digits, an exponent from a million up."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent and 1e-4 <= abs(value) < 1e6:
        return mantissa
    digits = repr(float(value))
    power = int(f"{value:e}".partition("e")[2])
    significant = digits.partition("e")[0].replace("-", "").replace(".", "").strip("0") or "0"
    head = significant[0] + ("." + significant[1:] if len(significant) > 1 else "")
    return f"{'-' if value < 0 else ''}{head}e{'+' if power >= 0 else '-'}{abs(power):02d}"


def go_value(value: Any) -> str:
    """A bad value as messages show it: texts quoted, simple values plain, anything else as JSON."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return go_float(value)
    return msgspec.json.encode(value, order="sorted").decode()


def _with(value: Any, detail: str, head: str) -> str:
    parts = [head] if value is OMITTED else [head, go_value(value)]
    return ": ".join([*parts, detail] if detail else parts)


def required(field: str, detail: str = "") -> FieldCause:
    return FieldCause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", _path(field))


def invalid_value(field: str, value: Any, detail: str) -> FieldCause:
    return FieldCause("FieldValueInvalid", _with(value, detail, "Invalid value"), _path(field))


def type_invalid(field: str, value: Any, detail: str) -> FieldCause:
    return FieldCause("FieldValueTypeInvalid", _with(value, detail, "Invalid value"), _path(field))


def duplicate(field: str, value: Any) -> FieldCause:
    return FieldCause("FieldValueDuplicate", f"Duplicate value: {go_value(value)}", _path(field))


def forbidden(field: str, detail: str) -> FieldCause:
    return FieldCause("FieldValueForbidden", f"Forbidden: {detail}" if detail else "Forbidden", _path(field))


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> FieldCause:
    """Allowed values in the order given; other values than texts are shown as quoted JSON."""
    shown = ", ".join(quoted(item if isinstance(item, str) else go_value(item)) for item in supported)
    return FieldCause(
        "FieldValueNotSupported", f"Unsupported value: {go_value(value)}: supported values: {shown}", _path(field)
    )


def too_long(field: str, limit_bytes: int) -> FieldCause:
    return FieldCause("FieldValueTooLong", f"Too long: may not be more than {limit_bytes} bytes", _path(field))


def too_many(field: str, actual: int, limit: int) -> FieldCause:
    things = "item" if limit == 1 else "items"
    return FieldCause("FieldValueTooMany", f"Too many: {actual}: must have at most {limit} {things}", _path(field))


def child(path: str, name: str) -> str:
    """The path of a field below ``path``."""
    return f"{path}.{name}" if path else name


def under(prefix: str, causes: Sequence[FieldCause]) -> list[FieldCause]:
    """The same causes with their fields below ``prefix``."""
    return [
        FieldCause(cause.reason, cause.message, prefix if cause.field == "<nil>" else child(prefix, cause.field))
        for cause in causes
    ]
