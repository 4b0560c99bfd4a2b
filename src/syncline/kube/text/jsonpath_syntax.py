"""Parses a JSONPath template in kubectl's syntax: :func:`parse_template`.

Used by ``jsonpath`` only. The result is a tree of frozen nodes; a mistake is a :class:`JsonPathError` with its position
and the message of client-go's ``util/jsonpath``. Never reads an object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

MAX_LENGTH = 16_384
"""The longest template; the longest ones in scripts are a tenth of it."""

MAX_NESTING = 32
"""The deepest nesting of ranges and filters."""


class JsonPathError(ValueError):
    """An invalid template, or one that does not apply to an object. ``position`` counts characters of the template from
    0; it is None for errors of the object."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        self.reason = reason
        self.position = position
        super().__init__(reason if position is None else f"{reason} at position {position}")


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text, or a quoted string inside an action."""

    text: str


@dataclass(frozen=True, slots=True)
class Field:
    name: str


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``.*``: all values of a map or list."""


@dataclass(frozen=True, slots=True)
class Recursive:
    """``..``: the value and all maps and lists below it."""


@dataclass(frozen=True, slots=True)
class Slice:
    """``[start:stop:step]``; ``single``: only one index was written."""

    start: int | None
    stop: int | None
    step: int | None
    single: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """``[?(left operator right)]``; the operator is ``exists`` for a path alone."""

    left: tuple[Node, ...]
    operator: str
    right: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool | int | float


Node: TypeAlias = Text | Field | Wildcard | Recursive | Slice | Filter | Union | Constant


@dataclass(frozen=True, slots=True)
class Action:
    """``{…}``: nodes applied one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """``{range …}body{end}``: the body once per result."""

    nodes: tuple[Node, ...]
    body: tuple[Part, ...]


Part: TypeAlias = Text | Action | Range

_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(?::(-?[0-9]*))?(?::(-?[0-9]*))?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9.]*")
_WORD = re.compile(r"\w+")
_FIELD = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])*", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLAIN_ESCAPES = "\\\"'/"
_OPERATORS = frozenset({"<", ">", "==", "!=", "<=", ">="})


def parse_template(text: str) -> tuple[Part, ...]:
    """Return the parts of a template: literal text and ``{actions}``, with ranges nested.

    A range without ``{end}`` reaches to the end of the template, as in kubectl. Raises JsonPathError.
    """
    if len(text) > MAX_LENGTH:
        raise JsonPathError(f"a template of {len(text)} characters; {MAX_LENGTH} are allowed", MAX_LENGTH)
    open_ranges: list[tuple[tuple[Node, ...], list[Part]]] = []
    here: list[Part] = []
    place = 0
    while place < len(text):
        brace = text.find("{", place)
        if brace != place:
            literal = text[place:] if brace < 0 else text[place:brace]
            here.append(Text(literal))
            place += len(literal)
            continue
        reader = _ActionReader(text, brace + 1, closed=True)
        nodes = reader.read()
        place = reader.place
        match reader.word:
            case "":
                here.append(Action(nodes))
            case "range":
                if len(open_ranges) == MAX_NESTING:
                    raise JsonPathError(f"more than {MAX_NESTING} ranges inside one another", brace)
                open_ranges.append((nodes, here))
                here = []
            case "end":
                if not open_ranges:
                    raise JsonPathError("not in range, nothing to end", brace)
                here = _closed(open_ranges.pop(), here)
            case word:
                raise JsonPathError(f"unrecognized identifier {word}", brace)
    while open_ranges:
        here = _closed(open_ranges.pop(), here)
    return tuple(here)


def _closed(opened: tuple[tuple[Node, ...], list[Part]], body: list[Part]) -> list[Part]:
    nodes, outside = opened
    return [*outside, Range(nodes, tuple(body))]


def _inner(text: str, offset: int, depth: int) -> tuple[Node, ...]:
    """Return the nodes of an action without braces: one branch of a union, one side of a comparison."""
    reader = _ActionReader(text, 0, closed=False, offset=offset, depth=depth)
    nodes = reader.read()
    if reader.word:
        raise JsonPathError(f"unrecognized identifier {reader.word}", offset)
    return nodes


class _ActionReader:
    """Parses one action. ``closed`` actions end at a brace, inner ones at the end of the text."""

    def __init__(self, text: str, place: int, *, closed: bool, offset: int = 0, depth: int = 0) -> None:
        self.text = text
        self.place = place
        self.closed = closed
        self.offset = offset
        self.depth = depth
        self.word = ""
        self.nodes: list[Node] = []
        if depth > MAX_NESTING:
            raise self.error(f"more than {MAX_NESTING} expressions inside one another")

    def error(self, reason: str) -> JsonPathError:
        return JsonPathError(reason, self.offset + self.place)

    def read(self) -> tuple[Node, ...]:
        while not self.finished():
            if self.text.startswith("[?(", self.place):
                self.filter()
            elif self.text.startswith("..", self.place):
                self.recursive()
            else:
                self.step(self.text[self.place])
        return tuple(self.nodes)

    def finished(self) -> bool:
        if self.place >= len(self.text):
            if self.closed:
                raise self.error("unclosed action")
            return True
        if self.text[self.place] == "}":
            self.place += 1
            return True
        return False

    def step(self, character: str) -> None:
        if character in " @$":
            self.place += 1
        elif character == "[":
            self.array()
        elif character in "\"'":
            self.quote(character)
        elif character == ".":
            self.place += 1
            self.field()
        elif character in "+-" or character.isdigit():
            self.number()
        elif character == "_" or character.isalpha():
            self.identifier()
        elif character in "\r\n":
            raise self.error("unclosed action")
        else:
            raise self.error(f"unrecognized character in action: U+{ord(character):04X} {character!r}")

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.place)
        found = match[0] if match else ""
        self.place += len(found)
        return found

    def field(self) -> None:
        name = self.take(_FIELD)
        self.nodes.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def recursive(self) -> None:
        if self.nodes and isinstance(self.nodes[-1], Recursive):
            raise self.error("invalid multiple recursive descent")
        self.place += 2
        self.nodes.append(Recursive())
        if _WORD.match(self.text, self.place):
            self.field()

    def identifier(self) -> None:
        word = self.take(_WORD)
        if word in ("true", "false"):
            self.nodes.append(Constant(word == "true"))
        elif self.word or self.nodes:
            raise self.error(f"unrecognized identifier {word}")
        else:
            self.word = word

    def number(self) -> None:
        digits = self.take(_NUMBER)
        try:
            self.nodes.append(Constant(float(digits) if "." in digits else int(digits)))
        except ValueError:
            raise self.error(f"cannot parse number {digits}") from None

    def quote(self, mark: str) -> None:
        end = _quote_end(self.text, self.place, mark)
        if end < 0:
            raise self.error("unterminated quoted string")
        self.nodes.append(Text(_ESCAPE.sub(self.unescape, self.text[self.place + 1 : end])))
        self.place = end + 1

    def unescape(self, match: re.Match[str]) -> str:
        code = match[1]
        if code in _ESCAPES:
            return _ESCAPES[code]
        if code in _PLAIN_ESCAPES:
            return code
        if len(code) == 1:
            raise self.error(f"invalid escape \\{code}")
        value = int(code[1:], 16) if code[0] in "xuU" else int(code, 8)
        if value > 0x10FFFF:
            raise self.error(f"invalid escape \\{code}")
        return chr(value)

    def array(self) -> None:
        end = self.text.find("]", self.place)
        if end < 0 or "\n" in self.text[self.place : end]:
            raise self.error("unterminated array")
        inside, start = self.text[self.place + 1 : end], self.offset + self.place
        self.place = end + 1
        branches = inside.split(",")
        if len(branches) > 1:
            read = (_inner(f"[{branch.strip(' ')}]", start, self.depth + 1) for branch in branches)
            self.nodes.append(Union(tuple(read)))
        elif key := _KEY.fullmatch(inside):
            self.nodes += _inner(f".{key[1]}", start, self.depth + 1)
        else:
            self.nodes.append(_slice(":" if inside == "*" else inside, start))

    def filter(self) -> None:
        end = self.filter_end()
        inside, start = self.text[self.place + 3 : end], self.offset + self.place + 3
        if not self.text.startswith(")]", end):
            raise self.error("unclosed array expect ]")
        self.place = end + 2
        parts = _COMPARISON.fullmatch(inside)
        if parts is None:
            self.nodes.append(Filter(_inner(inside, start, self.depth + 1), "exists", ()))
            return
        left, operator, right = parts.groups()
        if operator not in _OPERATORS:
            raise JsonPathError(f"unrecognized filter operator {operator}", start + len(left))
        before = _inner(left, start, self.depth + 1)
        after = _inner(right, start + parts.start(3), self.depth + 1)
        self.nodes.append(Filter(before, operator, after))

    def filter_end(self) -> int:
        """Return the closing parenthesis that is not inside a quoted string."""
        place = self.place + 3
        while place < len(self.text) and self.text[place] not in ")\n":
            if self.text[place] in "\"'":
                place = _quote_end(self.text, place, self.text[place])
                if place < 0:
                    break
            place += 1
        if place < 0 or place >= len(self.text) or self.text[place] == "\n":
            raise self.error("unterminated filter")
        return place


def _quote_end(text: str, start: int, mark: str) -> int:
    """Return the position of the closing quote, or -1."""
    place = start + 1
    while place < len(text) and text[place] not in (mark, "\n"):
        place += 2 if text[place] == "\\" else 1
    return place if place < len(text) and text[place] == mark else -1


def _slice(text: str, position: int) -> Slice:
    match = _SLICE.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        start, stop, step = (int(part) if part else None for part in match.groups())
    except ValueError:
        raise JsonPathError(f"invalid array index {text}", position) from None
    return Slice(start, stop, step, single=match[2] is None)
