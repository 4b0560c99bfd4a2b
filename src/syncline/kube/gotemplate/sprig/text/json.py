"""JSON as Go's ``encoding/json`` writes and reads it."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_text, spend
from syncline.kube.gotemplate.sprig.reflection import NIL_TYPES, Walk, text_size
from syncline.kube.gotemplate.values import Bytes, Opaque, encode
from syncline.kube.text.jsontext import finite, no_constant, sound

ANY, STRING = Kind.ANY, Kind.STRING


@runtime_checkable
class WritesJson(Protocol):
    """A Go type with ``MarshalJSON``."""

    def json(self) -> str:
        """Return its JSON. Raises :class:`FunctionError`."""


_ALWAYS = {0x2028: "\\u2028", 0x2029: "\\u2029"}
_HTML = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def quoted(text: str, html: bool = True) -> str:
    """Return a JSON string, with ``html`` also ``<``, ``>`` and ``&`` escaped; bytes that are no UTF-8 are U+FFFD."""
    made = json.dumps(text, ensure_ascii=False)
    if not made.isascii():
        made = _SURROGATE.sub(r"\\ufffd", made).translate(_ALWAYS)
    return made.translate(_HTML) if html else made


_SURROGATE = re.compile("[\ud800-\udfff]")


def number(value: float) -> str:
    """Return the text of a float: the shortest digits, with an exponent below 1e-6 and from 1e21 on."""
    if not math.isfinite(value):
        raise FunctionError(f"json: unsupported value: {'NaN' if value != value else '+Inf' if value > 0 else '-Inf'}")
    text = repr(value)
    digits, _, exponent = text.partition("e")
    if value and not 1e-6 <= abs(value) < 1e21:
        digits, exponent = (digits, exponent) if exponent else _scientific(value)
        return f"{digits.removesuffix('.0')}e{int(exponent):+}".replace("e+", "e+").replace("e-0", "e-")
    if exponent:
        return (
            f"{value:.0f}"
            if abs(value) >= 1
            else f"{value:.{len(digits.replace('.', '').lstrip('-')) - 1 - int(exponent)}f}"
        )
    return text.removesuffix(".0")


def _scientific(value: float) -> tuple[str, str]:
    """Of a number that Python writes without an exponent."""
    digits, _, exponent = f"{value:e}".partition("e")
    return digits, exponent


class _Writer:
    def __init__(self, *, html: bool, indent: str) -> None:
        self._html, self._indent = html, indent
        self._walk, self._size = Walk(), 0
        self._made: list[str] = []

    def write(self, value: Any) -> str:
        self._add(value, 0)
        return "".join(self._made)

    def _put(self, text: str) -> None:
        self._size += text_size([text])
        check_text(self._size)
        spend(1)
        self._made.append(text)

    def _add(self, value: Any, depth: int) -> None:
        match value:
            case list() | dict() if isinstance(value, NIL_TYPES):
                self._put("null")
            case Bytes():
                self._put(quoted(base64.b64encode(bytes(value)).decode()))
            case list():
                self._several("[]", [("", one) for one in value], depth)
            case dict():
                pairs = sorted(value.items(), key=lambda pair: encode(pair[0]))
                self._several("{}", [(self._key(name), one) for name, one in pairs], depth)
            case Opaque() if not isinstance(value, WritesJson):
                self._several("{}", [(self._key(name), one) for name, one in value.fields().items()], depth)
            case _:
                self._put(self._scalar(value))

    def _scalar(self, value: Any) -> str:
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                return str(int(value))
            case float():
                return number(value)
            case str():
                return quoted(value, self._html)
            case WritesJson():
                return value.json()
        raise FunctionError(f"json: unsupported type: {type(value).__name__}")

    def _key(self, name: str) -> str:
        return quoted(name, self._html) + (": " if self._indent else ":")

    def _several(self, brackets: str, items: list[tuple[str, Any]], depth: int) -> None:
        self._walk.enter(depth, len(items))
        if not items:
            self._put(brackets)
            return
        inner = "\n" + self._indent * (depth + 1) if self._indent else ""
        self._put(brackets[0])
        for at, (key, value) in enumerate(items):
            self._put(("," if at else "") + inner + key)
            self._add(value, depth + 1)
        self._put(("\n" + self._indent * depth if self._indent else "") + brackets[1])


def write(value: Any, *, html: bool = True, indent: str = "") -> str:
    """Return the JSON of a template value. Raises :class:`FunctionError` for what has none."""
    return _Writer(html=html, indent=indent).write(value)


def _write_or_empty(value: Any, *, indent: str = "") -> str:
    """As ``toJson``: an empty text for what has no JSON, such as NaN."""
    try:
        return write(value, indent=indent)
    except FunctionError as error:
        if str(error).startswith("json:"):
            return ""
        raise


def read(text: str) -> Any:
    """Parse JSON into template values; each number is a float64. Raises :class:`FunctionError` in Go's words."""
    try:
        return _loaded(text, finite)
    except (ValueError, RecursionError):
        raise FunctionError(complaint(text)) from None


def _read_or_nil(text: str) -> Any:
    """As ``fromJson``: nil for what is no JSON, and for numbers beyond a float64."""
    try:
        return _loaded(text, lambda digits: value if math.isfinite(value := float(digits)) else None)
    except (ValueError, RecursionError):
        return None


def _loaded(text: str, read_number: Callable[[str], float | None]) -> Any:
    return json.loads(
        sound(encode(text)).decode(), parse_int=read_number, parse_float=read_number, parse_constant=no_constant
    )


_TOKEN = re.compile(
    r'[ \t\r\n]*(?:(?P<mark>[{}\[\]:,])|(?P<value>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null))"
)
_SPACE = re.compile(r"[ \t\r\n]*")
END = "unexpected end of JSON input"


def complaint(text: str) -> str:
    """Return why Go does not read a text as JSON."""
    stack: list[str] = []
    expect, at = "value", 0
    while True:
        found = _TOKEN.match(text, at)
        start = _space_end(text, at)
        if expect == "end":
            return _invalid(text, start, "after top-level value") if start < len(text) else _too_large(text)
        if start >= len(text):
            return END
        char = text[start]
        wrong, expect = _next(stack, expect, char)
        if wrong:
            return _invalid(text, start, wrong)
        if found is None:
            return _broken(text, start)
        if char in "-0123456789" and (wrong := _broken_number(text, start)):
            return wrong
        at = found.end()


def _space_end(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _too_large(text: str) -> str:
    """Say which number is beyond a float64."""
    for found in re.finditer(r"-?[0-9][0-9.eE+-]*", text):
        try:
            if not math.isfinite(float(found[0])):
                return f"json: cannot unmarshal number {found[0]} into Go value of type float64"
        except ValueError:
            continue
    return "exceeded max depth"


_AFTER = {"[": ("after array element", "]"), "{": ("after object key:value pair", "}")}


def _next(stack: list[str], expect: str, char: str) -> tuple[str, str]:
    """Return what is wrong with a token that begins with ``char``, and what comes after it."""
    after = ("after" if stack else "end") if char not in "[{" else ""
    match expect:
        case "first" if char in "]}" and (char == "]") == (stack[-1] == "["):
            stack.pop()
            return "", "after" if stack else "end"
        case "first" | "key" if stack[-1] == "{":
            return ("", "colon") if char == '"' else ("looking for beginning of object key string", "")
        case "colon":
            return ("", "value") if char == ":" else ("after object key", "")
        case "after":
            context, closing = _AFTER[stack[-1]]
            if char == ",":
                return "", "key" if stack[-1] == "{" else "value"
            if char != closing:
                return context, ""
            stack.pop()
            return "", "after" if stack else "end"
    if char in "[{":
        stack.append(char)
        return "", "first"
    return ("", after) if char in '"-0123456789tfn' else ("looking for beginning of value", "")


def _broken(text: str, start: int) -> str:
    """Say where a string, number or word breaks off."""
    char, rest = text[start], text[start:]
    if char in "tfn":
        word = {"t": "true", "f": "false", "n": "null"}[char]
        at = next(index for index, letter in enumerate(word) if rest[index : index + 1] != letter)
        return _invalid(text + " ", start + at, f"in literal {word} (expecting '{word[at]}')")
    if char == '"':
        good = re.match(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*', rest)
        at = good.end() if good else 1
        if rest[at : at + 2] == "\\u":
            hexadecimal = re.match(r"[0-9a-fA-F]*", rest[at + 2 :])
            wrong = start + at + 2 + (hexadecimal.end() if hexadecimal else 0)
            return _invalid(text + " ", wrong, "in \\u hexadecimal character escape")
        if rest[at : at + 1] == "\\":
            return _invalid(text + " ", start + at + 1, "in string escape code")
        return _invalid(text, start + at, "in string literal")
    return _invalid(text + " ", start + 1, "in numeric literal")


def _broken_number(text: str, start: int) -> str:
    """Return what is wrong with a number that goes on after its token, empty if it does not."""
    found = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?").match(text, start)
    if found is None:
        return ""
    end, rest = found.end(), text[found.end() : found.end() + 2]
    if rest[:1] == "." and not found[1] and not found[2]:
        return _invalid(text + " ", end + 1, "after decimal point in numeric literal")
    if rest[:1] in ("e", "E") and not found[2]:
        signed = rest[1:] in ("+", "-")
        return _invalid(text + " ", end + 1 + signed, "in exponent of numeric literal")
    return ""


def _invalid(text: str, at: int, context: str) -> str:
    if at >= len(text):
        return END
    char = chr(encode(text[at])[0])
    shown = {"'": "\\'", '"': '"'}.get(char) or quoted_char(char)
    return f"invalid character '{shown}' {context}"


def quoted_char(char: str) -> str:
    """Return a character (from U+0000 to U+00FF) as Go's ``strconv.Quote`` writes it."""
    named = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\"}
    if char in named:
        return named[char]
    if char < " " or char == "\x7f":
        return f"\\x{ord(char):02x}"
    return char if char.isprintable() and char != "\xad" else f"\\u{ord(char):04x}"


JSON: Mapping[str, Function] = {
    "toJson": Function(_write_or_empty, (ANY,), result=STRING),
    "mustToJson": Function(write, (ANY,), result=STRING),
    "toPrettyJson": Function(lambda value: _write_or_empty(value, indent="  "), (ANY,), result=STRING),
    "mustToPrettyJson": Function(lambda value: write(value, indent="  "), (ANY,), result=STRING),
    "toRawJson": Function(lambda value: write(value, html=False), (ANY,), result=STRING),
    "mustToRawJson": Function(lambda value: write(value, html=False), (ANY,), result=STRING),
    "fromJson": Function(_read_or_nil, (STRING,)),
    "mustFromJson": Function(read, (STRING,)),
}
