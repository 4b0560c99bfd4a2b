"""JSON as Ignition reads and writes it: Go's rules, with the place of every value.

Reading is two-fold: values come from the fast parser of the standard library; places and Go's wording of syntax errors
come from a slower scan that only runs when a report needs them. Differences to the standard library are settled here:
repeated keys of objects join when both values are objects (otherwise the last one wins), bytes that are no UTF-8 and
lone surrogates become U+FFFD, ``NaN`` is no number, and nesting is bounded.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from syncline.ignition.golang import quoted
from syncline.ignition.report import Path

SIZE_MAX = 32 * 2**20
"""Bytes of one configuration; the API refuses objects far below that, and files of a person are smaller still."""
VALUES_MAX = 2_000_000
"""Values of which the places are kept; in larger documents every entry stands at the beginning."""
NESTING_MAX = 400
"""Depth of a document. The specification needs 12; Go would follow 10000."""


class JsonError(ValueError):
    """``offset``: how many bytes were read when the text turned out wrong, the offending ones included. ``older``: the
    same as Go reported it up to 1.26, and as the reader of specification 2 and Butane still do."""

    def __init__(self, message: str, offset: int, older: tuple[str, int] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.older = older or (message, offset)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, in bytes: ``start`` of a literal is its first byte, of an object or list the byte after
    its bracket (upstream's habit); ``end`` is the byte behind it. ``shape`` holds the places of what is inside: of an
    object also where each key begins."""

    start: int
    end: int
    shape: dict[str, tuple[int, Place]] | list[Place] | None = None


class Source:
    """The text of one configuration, its ``value``, and on demand the places of its parts. ``first``: the same with the
    first of repeated keys in place of the last, None where no key is repeated: its values have to fit, too."""

    def __init__(self, raw: bytes, value: Any, *, first: Source | None = None, keeps_first: bool = False) -> None:
        self.raw = raw
        self.value = value
        self.first = first
        self._keeps_first = keeps_first
        self._root: Place | None = None
        self._lines: list[int] | None = None

    @property
    def root(self) -> Place:
        if self._root is None:
            try:
                self._root = _scan(self.raw, keeps_first=self._keeps_first)
            except JsonError:  # too many values; everything else was read before
                self._root = Place(0, len(self.raw))
        return self._root

    def place(self, path: Path) -> Place:
        """The place of the deepest part of ``path`` that exists."""
        place = self.root
        for step in path:
            inner = _inside(place, step)
            if inner is None:
                break
            place = inner
        return place

    def key_start(self, path: Path) -> int:
        """Where the last key of ``path`` begins, or the deepest part that exists."""
        shape = self.place(path[:-1]).shape
        last = path[-1]
        if isinstance(shape, dict) and isinstance(last, str) and last in shape:
            return shape[last][0]
        return self.place(path).start

    def key_end(self, start: int) -> int:
        """The byte behind the key that begins at ``start``."""
        return _string(self.raw, start)

    def line_column(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte, from 1; (0, 0) behind the end of the text, as upstream has it."""
        if offset >= len(self.raw):
            return 0, 0
        line = self.line(offset)
        return line, offset - self.line_start(line) + 1

    def line(self, offset: int) -> int:
        """The line in which a byte stands, from 1."""
        return bisect_right(self._starts(), offset)

    def line_start(self, line: int) -> int:
        """The first byte of a line."""
        return self._starts()[line - 1]

    def _starts(self) -> list[int]:
        if self._lines is None:
            self._lines = [0, *(match.end() for match in re.finditer(b"\n", self.raw))]
        return self._lines


def line_column(raw: bytes, offset: int) -> tuple[int, int]:
    """Line and column of a byte, from 1; (0, 0) behind the end."""
    if offset >= len(raw):
        return 0, 0
    return raw.count(b"\n", 0, offset) + 1, offset - raw.rfind(b"\n", 0, offset)


def _inside(place: Place, step: str | int) -> Place | None:
    shape = place.shape
    if isinstance(shape, dict) and isinstance(step, str):
        return shape[step][1] if step in shape else None
    if isinstance(shape, list) and isinstance(step, int):
        return shape[step] if step < len(shape) else None
    return None


# -- reading ---------------------------------------------------------------------------------------------------------


def read(raw: bytes) -> Source:
    """The value of a JSON text; raises :class:`JsonError` with Go's words."""
    if len(raw) > SIZE_MAX:
        raise JsonError(f"the configuration has {len(raw)} bytes; at most {SIZE_MAX} are read", 0)
    text = _text(raw)
    repeated = False

    def joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        repeated = True
        return _joined(pairs)

    try:
        value = json.loads(text, object_pairs_hook=joined, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _scan(raw)  # raises with the right words
        raise JsonError(f"exceeded max depth of {NESTING_MAX} or number too long", 0) from None
    if "\\u" in text and _SURROGATE.search(text):
        value = _without_surrogates(value)
    if not repeated:
        return Source(raw, value)
    first = _without_surrogates(json.loads(text, object_pairs_hook=lambda pairs: _joined(pairs, keep_first=True)))
    return Source(raw, value, first=Source(raw, first, keeps_first=True))


_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(_lenient(raw))


def _lenient(raw: bytes) -> list[str]:
    """UTF-8 with one U+FFFD for each bad byte, as Go decodes it."""
    pieces: list[str] = []
    at = 0
    while at < len(raw):
        try:
            pieces.append(raw[at:].decode())
            break
        except UnicodeDecodeError as problem:
            pieces.append(raw[at : at + problem.start].decode() + "\ufffd")
            at += problem.start + 1
    return pieces


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _joined(pairs: list[tuple[str, Any]], *, keep_first: bool = False) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        _put(members, key, value, keep_first)
    return members


def _put(members: dict[str, Any], key: str, value: Any, keep_first: bool) -> None:
    """An object joins the one that is there; everything else takes its place, or leaves it where it is first."""
    before = members.get(key)
    if isinstance(before, dict) and isinstance(value, dict):
        for inner, part in value.items():
            _put(before, inner, part, keep_first)
    elif not keep_first or key not in members:
        members[key] = value


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


# -- places ----------------------------------------------------------------------------------------------------------

_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_Opened: TypeAlias = "tuple[int, dict[str, tuple[int, Place]] | list[Place]]"


def _scan(raw: bytes, *, keeps_first: bool = False) -> Place:
    """Places of all values; raises :class:`JsonError` at the first byte that does not fit."""
    opened: list[_Opened] = []
    keys: list[tuple[str, int]] = []
    at = _skip(raw, 0)
    for _ in range(VALUES_MAX):
        start = at
        head = raw[at : at + 1]
        if head in (b"{", b"["):
            if len(opened) == NESTING_MAX:
                raise JsonError("exceeded max depth", at + 1)
            inner = _skip(raw, at + 1)
            opened.append((at + 1, {} if head == b"{" else []))
            if raw[inner : inner + 1] != (b"}" if head == b"{" else b"]"):
                at = _key(raw, inner, keys) if head == b"{" else inner
                continue
            at = inner
            place = None
        else:
            at = _literal(raw, at)
            place = Place(start, at)
        at, done = _close(raw, at, place, opened, keys, keeps_first)
        if done is not None:
            return done
    raise JsonError(f"more than {VALUES_MAX} values", at)


def _close(
    raw: bytes,
    at: int,
    place: Place | None,
    opened: list[_Opened],
    keys: list[tuple[str, int]],
    keeps_first: bool,
) -> tuple[int, Place | None]:
    """Behind a value (``place``; None: at the bracket that ends an empty object or list): put it where it belongs and
    continue to the next value. Returns where that begins, and the root when it is complete."""
    while True:
        if place is None:
            start, shape = opened.pop()
            place, at = Place(start, at + 1, shape), at + 1
        at = _skip(raw, at)
        if not opened:
            if at < len(raw):
                raise _unexpected(raw, at, "after top-level value")
            return at, place
        shape = opened[-1][1]
        sign = raw[at : at + 1]
        if isinstance(shape, dict):
            key, key_start = keys.pop()
            if not keeps_first or key not in shape:
                shape[key] = (key_start, place)
            if sign == b",":
                return _key(raw, _skip(raw, at + 1), keys), None
            if sign != b"}":
                raise _unexpected(raw, at, "after object key:value pair")
        else:
            shape.append(place)
            if sign == b",":
                return _skip(raw, at + 1), None
            if sign != b"]":
                raise _unexpected(raw, at, "after array element")
        place = None


def _key(raw: bytes, at: int, keys: list[tuple[str, int]]) -> int:
    """Read a key and its colon; returns where the value begins."""
    if raw[at : at + 1] != b'"':
        raise _unexpected(raw, at, "looking for beginning of object key string")
    end = _string(raw, at)
    inner = raw[at + 1 : end - 1]
    keys.append((_without_surrogates(json.loads(_text(raw[at:end]))) if b"\\" in inner else _text(inner), at))
    at = _skip(raw, end)
    if raw[at : at + 1] != b":":
        raise _unexpected(raw, at, "after object key")
    return _skip(raw, at + 1)


def _skip(raw: bytes, at: int) -> int:
    match = _SPACE.match(raw, at)
    assert match
    return match.end()


def _literal(raw: bytes, at: int) -> int:
    """The end of the string, number or word that begins at ``at``."""
    head = raw[at : at + 1]
    if head == b'"':
        return _string(raw, at)
    if word := _WORDS.get(head):
        for index, letter in enumerate(word):
            if raw[at + index : at + index + 1] != bytes((letter,)):
                context = f"in literal {word.decode()} (expecting {chr(letter)!r})"
                raise _unexpected(raw, at + index, context)
        return at + len(word)
    if head and head in b"-0123456789":
        match = _NUMBER.match(raw, at)
        if match is None:
            raise _unexpected(raw, at + 1, "in numeric literal")
        end = match.end()
        rest = raw[end : end + 1]
        whole = match[0]
        if rest == b"." and b"." not in whole and b"e" not in whole.lower():
            raise _unexpected(raw, end + 1, "after decimal point in numeric literal")
        if rest in (b"e", b"E") and b"e" not in whole.lower():
            sign = raw[end + 1 : end + 2] in (b"+", b"-")
            raise _unexpected(raw, end + 1 + sign, "in exponent of numeric literal")
        return end
    raise _unexpected(raw, at, "looking for beginning of value")


def _string(raw: bytes, at: int) -> int:
    match = _STRING.match(raw, at)
    if match is not None:
        return match.end()
    at += 1
    while True:
        byte = raw[at : at + 1]
        if byte == b"\\":
            if raw[at + 1 : at + 2] == b"u":
                for index in range(at + 2, at + 6):
                    if raw[index : index + 1] not in _HEX:
                        raise _bad_escape(raw, at, 6, _unexpected(raw, index, f"in \\u {_HEXADECIMAL}"))
                at += 6
                continue
            if raw[at + 1 : at + 2] not in _ESCAPED:
                raise _bad_escape(raw, at, 2, _unexpected(raw, at + 1, "in string escape code"))
            at += 2
            continue
        if not byte or byte < b"\x20":
            raise _unexpected(raw, at, "in string", "in string literal")
        at += 1


_HEX = frozenset(bytes((byte,)) for byte in b"0123456789abcdefABCDEF")
_ESCAPED = frozenset(bytes((byte,)) for byte in b'"\\/bfnrt')


_HEXADECIMAL = "hexadecimal character escape"


def _bad_escape(raw: bytes, at: int, length: int, older: JsonError) -> JsonError:
    """Of a backslash and what follows; the end of the text has a name."""
    if len(raw) < at + length:
        return JsonError("unexpected end of JSON input", len(raw), older.older)
    what = "".join(_lenient(raw[at : at + length]))
    plain = what.isprintable() and not any(sign.isspace() or sign in "`\ufffd" for sign in what)
    shown = f"`{what}`" if plain else quoted(what)
    return JsonError(f"invalid escape sequence {shown} in string", at + length, older.older)


def _unexpected(raw: bytes, at: int, context: str, older: str = "") -> JsonError:
    if at >= len(raw):
        return JsonError("unexpected end of JSON input", len(raw))
    sign = _lenient(raw[at : at + 4])[0][:1]
    size = 1 if sign == "\ufffd" else len(sign.encode())
    if sign == "'":
        shown = "\\'"
    elif sign == '"':
        shown = sign
    elif sign == "\ufffd" and raw[at : at + 3] != b"\xef\xbf\xbd":
        shown = f"\\x{raw[at]:02x}"
    else:
        shown = quoted(sign)[1:-1]
    byte = shown if size == 1 and raw[at] < 0x80 else quoted(chr(raw[at]))[1:-1]
    return JsonError(
        f"invalid character '{shown}' {context}",
        at + size,
        (f"invalid character '{byte}' {older or context}", at + 1),
    )


# -- writing ---------------------------------------------------------------------------------------------------------

_ESCAPED_SIGNS = "<>&\u2028\u2029"
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in _ESCAPED_SIGNS}


def dump(config: Any, *, indent: int | None = None) -> str:
    """JSON as Go writes it: in the order of the fields, ``<``, ``>``, ``&``, U+2028 and U+2029 escaped, other
    characters raw; ``indent`` spaces per level, or all on one line. No newline at the end."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(config, ensure_ascii=False, separators=separators, indent=indent)
    if any(sign in text for sign in _ESCAPED_SIGNS):
        text = text.translate(_ESCAPES)
    return _BACKSLASH.sub(_go_escape, text) if "\\b" in text or "\\f" in text else text


_BACKSLASH = re.compile(r"\\(.)")


def _go_escape(match: re.Match[str]) -> str:
    """Upstream's encoder knows no short form for backspace and form feed."""
    return {"b": "\\u0008", "f": "\\u000c"}.get(match[1], match[0])
