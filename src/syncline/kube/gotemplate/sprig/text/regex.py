"""sprig's regular expressions: RE2 over the bytes of Go strings, with Go's order of matches and replacement syntax.

A search costs at most the states of the pattern times the bytes of the text, and all searches of one call are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_items, check_text, spend
from syncline.kube.gotemplate.sprig.text.runes import runes
from syncline.kube.gotemplate.values import NilStrings, Strings, decode, encode
from syncline.kube.text.re2 import MAX_WORK, Searcher, compile_searcher

STRING, INT, STRINGS = Kind.STRING, Kind.INT, Kind.STRINGS

MAX_CALL_WORK = 5 * MAX_WORK
"""Bytes times states of all searches of one call, each from its start to the end of the text."""

WORK_PER_STEP = 1_000

Span = tuple[int, int]


def _compiled(pattern: str, *, groups: bool = False) -> Searcher:
    try:
        return compile_searcher(pattern, groups=groups)
    except re.error as error:
        raise FunctionError(f"error parsing regexp: {error}") from None


def _compiled_or_panic(pattern: str, *, groups: bool = False) -> Searcher:
    try:
        return _compiled(pattern, groups=groups)
    except FunctionError as error:
        shown = f"`{pattern}`" if _can_backquote(pattern) else sprintf("%q", pattern)
        raise FunctionError(f"regexp: Compile({shown}): {error}") from None


def _can_backquote(text: str) -> bool:
    return not any(
        char == "`"
        or char == "\x7f"
        or char == "\ufeff"
        or (char < " " and char != "\t")
        or "\ud800" <= char <= "\udfff"
        for char in text
    )


Compile = Callable[..., Searcher]


def _matches(searcher: Searcher, data: bytes, most: int) -> list[tuple[Span, ...]]:
    """Return the spans of up to ``most`` matches (-1 for all) with their groups; an empty match never follows a match
    at once."""
    data, places = _readable(data)
    found: list[tuple[Span, ...]] = []
    at, end, work = 0, -1, 0
    while at <= len(data) and (most < 0 or len(found) < most):
        cost = (len(data) - at + 1) * searcher.states
        work += cost
        if work > MAX_CALL_WORK:
            raise FunctionError(
                f"the pattern has {searcher.states} states and the text {len(data)} bytes: too many to search"
            )
        spend(1 + cost // WORK_PER_STEP)
        spans = searcher.search(data, at)
        if spans is None:
            break
        start, stop = spans[0]
        if stop > start or start != end:
            found.append(spans)
        end = stop
        at = stop if stop > at else at + _width(data, at)
    check_items(len(found))
    if not places:
        return found
    return [tuple((places.get(start, start), places.get(stop, stop)) for start, stop in spans) for spans in found]


def _readable(data: bytes) -> tuple[bytes, Mapping[int, int]]:
    """Return what Go's engine reads: U+FFFD for each byte that is no UTF-8. With such bytes also the places of the
    characters in ``data``."""
    try:
        data.decode()
        return data, {}
    except UnicodeDecodeError:
        text = decode(data)
    made, places, at = bytearray(), {}, 0
    for char in text:
        places[len(made)] = at
        made += encode(runes(char))
        at += len(encode(char))
    places[len(made)] = at
    return bytes(made), places


def _width(data: bytes, at: int) -> int:
    """Return the bytes of the character at a place."""
    first = data[at] if at < len(data) else 0
    size = 1 if first < 0xC2 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    try:
        data[at : at + size].decode()
    except UnicodeDecodeError:
        return 1
    return size


def _match(pattern: str, text: str) -> bool:
    return bool(_matches(_compiled(pattern), encode(text), 1))


def _match_or_false(pattern: str, text: str) -> bool:
    try:
        searcher = _compiled(pattern)
    except FunctionError:
        return False
    return bool(_matches(searcher, encode(text), 1))


def _find(compiled: Compile) -> Callable[[str, str], str]:
    def call(pattern: str, text: str) -> str:
        data = encode(text)
        found = _matches(compiled(pattern), data, 1)
        return decode(data[slice(*found[0][0])]) if found else ""

    return call


def _find_all(compiled: Compile) -> Callable[[str, str, int], Strings]:
    def call(pattern: str, text: str, most: int) -> Strings:
        data = encode(text)
        found = _matches(compiled(pattern), data, most)
        return Strings(decode(data[slice(*spans[0])]) for spans in found) if found else NilStrings()

    return call


def _split(compiled: Compile) -> Callable[[str, str, int], Strings]:
    def call(pattern: str, text: str, most: int) -> Strings:
        searcher = compiled(pattern)
        if most == 0:
            return NilStrings()
        if pattern and not text:
            return Strings([""])
        data = encode(text)
        parts, begin, end = Strings(), 0, 0
        for spans in _matches(searcher, data, most):
            if most > 0 and len(parts) == most - 1:
                break
            end, stop = spans[0]
            if stop:
                parts.append(decode(data[begin:end]))
            begin = stop
        if end != len(data):
            parts.append(decode(data[begin:]))
        return parts

    return call


def _replace_literally(compiled: Compile) -> Callable[[str, str, str], str]:
    def call(pattern: str, text: str, replacement: str) -> str:
        new = encode(replacement)
        return _replaced(compiled(pattern), text, lambda data, spans: new)

    return call


def _replace(compiled: Compile) -> Callable[[str, str, str], str]:
    def call(pattern: str, text: str, replacement: str) -> str:
        if "$" not in replacement:
            return _replace_literally(compiled)(pattern, text, replacement)
        searcher = compiled(pattern, groups=True)
        parts = _template(replacement, searcher.names)
        return _replaced(searcher, text, lambda data, spans: _expanded(parts, data, spans))

    return call


def _replaced(searcher: Searcher, text: str, new: Callable[[bytes, tuple[Span, ...]], bytes]) -> str:
    data = encode(text)
    made, begin, size = [], 0, len(data)
    for spans in _matches(searcher, data, -1):
        start, stop = spans[0]
        made += [data[begin:start], inserted := new(data, spans)]
        size += len(inserted)
        check_text(size)
        begin = stop
    return decode(b"".join([*made, data[begin:]]))


_REFERENCE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")


def _template(text: str, names: Mapping[str, tuple[int, ...]]) -> list[bytes | tuple[int, ...]]:
    """Return the texts of a replacement and, between them, the groups of which the first that matched is inserted."""
    parts: list[bytes | tuple[int, ...]] = []
    end = 0
    for found in _REFERENCE.finditer(text):
        parts.append(encode(text[end : found.start()]))
        end = found.end()
        name = found[2] or found[3]
        if found[1]:
            parts.append(b"$")
        elif name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 9:
            parts.append((int(name),))
        else:
            parts.append(names.get(name, ()))
    return [*parts, encode(text[end:])]


def _expanded(parts: list[bytes | tuple[int, ...]], data: bytes, spans: tuple[Span, ...]) -> bytes:
    made = []
    for part in parts:
        if isinstance(part, bytes):
            made.append(part)
        else:
            span = next((spans[group] for group in part if group < len(spans) and spans[group][0] >= 0), (0, 0))
            made.append(data[span[0] : span[1]])
    return b"".join(made)


_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


def _both(name: str, make: Callable[[Compile], Any], *params: Kind, result: Kind = STRING) -> dict[str, Function]:
    """Return a function that panics about a pattern, and with ``must`` one that returns the error."""
    return {
        name: Function(make(_compiled_or_panic), params, result=result),
        f"must{name[0].upper()}{name[1:]}": Function(make(_compiled), params, result=result),
    }


REGEX: Mapping[str, Function] = {
    "regexMatch": Function(_match_or_false, (STRING, STRING), result=Kind.BOOL),
    "mustRegexMatch": Function(_match, (STRING, STRING), result=Kind.BOOL),
    **_both("regexFind", _find, STRING, STRING),
    **_both("regexFindAll", _find_all, STRING, STRING, INT, result=STRINGS),
    **_both("regexReplaceAll", _replace, STRING, STRING, STRING),
    **_both("regexReplaceAllLiteral", _replace_literally, STRING, STRING, STRING),
    **_both("regexSplit", _split, STRING, STRING, INT, result=STRINGS),
    "regexQuoteMeta": Function(lambda text: _SPECIAL.sub(r"\\\1", text), (STRING,), result=STRING),
}
