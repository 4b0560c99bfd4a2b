"""Reads jq expressions: text to a tree.

Called by :mod:`syncline.gitops.diff.jq`. The part of jq that addresses fields is read: paths, iteration, pipes,
alternatives, comparisons, ``select`` and a list of functions, ``as $name``. Anything else is a :class:`JqError` that
names the place. Source of the grammar: the jq manual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Bind",
    "Binary",
    "Call",
    "Collect",
    "Expression",
    "Field",
    "Identity",
    "Iterate",
    "JqError",
    "Literal",
    "Optional",
    "Recurse",
    "Slice",
    "Variable",
    "parse_jq",
]

MAX_EXPRESSION = 4_096
MAX_NESTING = 64


class JqError(ValueError):
    """An expression that cannot be read or run."""


@dataclass(frozen=True, slots=True)
class Identity:
    """``.``"""


@dataclass(frozen=True, slots=True)
class Recurse:
    """``..``"""


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """``base.name``, ``base["name"]``, ``base[2]``; the key is an expression over the input."""

    base: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Slice:
    base: Expression
    start: Expression | None
    end: Expression | None


@dataclass(frozen=True, slots=True)
class Iterate:
    """``base[]``"""

    base: Expression


@dataclass(frozen=True, slots=True)
class Optional:
    """``base?``: errors are no results."""

    base: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """``|``, ``,``, ``//``, ``and``, ``or`` and comparisons."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Bind:
    """``source as $name | body``"""

    source: Expression
    name: str
    body: Expression


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Collect:
    """``[body]``"""

    body: Expression | None


Expression = (
    Identity | Recurse | Literal | Variable | Field | Slice | Iterate | Optional | Binary | Bind | Call | Collect
)

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>[0-9]+(?:\.[0-9]+)?)
  | (?P<variable>\$[A-Za-z_][A-Za-z0-9_]*)
  | (?P<field>\.[A-Za-z_][A-Za-z0-9_]*)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark>\.\.|//|==|!=|<=|>=|[.\[\](){}|,?<>:;\-])
    )""",
    re.VERBOSE | re.ASCII,
)
_LEVELS: tuple[tuple[str, ...], ...] = (("//",), ("or",), ("and",), ("==", "!=", "<", "<=", ">", ">="))
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}


def parse_jq(text: str) -> Expression:
    """The tree of an expression. Raises :class:`JqError`."""
    if len(text) > MAX_EXPRESSION:
        raise JqError(f"expression is longer than {MAX_EXPRESSION} characters")
    reader = _Reader(_tokens(text))
    found = reader.pipe()
    if reader.here() is not None:
        raise JqError(f'unexpected token "{reader.here()}"')
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise JqError(f'unexpected token "{text[at:].strip()[0]}"')
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _text(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError as error:
        raise JqError(f"unreadable string {token}") from error


def _number(token: str) -> int | float:
    return int(token) if token.isdigit() else float(token)


class _Reader:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def here(self, ahead: int = 0) -> str | None:
        index = self._at + ahead
        return self._tokens[index][1] if index < len(self._tokens) else None

    def _kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        text = self.here()
        if text is None:
            raise JqError("unexpected end of query")
        self._at += 1
        return text

    def _accept(self, *texts: str) -> str | None:
        if self.here() in texts and self._kind() in ("mark", "name"):
            return self._take()
        return None

    def _expect(self, text: str) -> None:
        if self._accept(text) is None:
            found = self.here()
            raise JqError("unexpected end of query" if found is None else f'unexpected token "{found}"')

    def pipe(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise JqError(f"expression is nested deeper than {MAX_NESTING}")
        left = self._comma()
        if self._accept("as"):
            name = self._take()
            self._expect("|")
            left = Bind(left, name, self.pipe())
        elif self._accept("|"):
            left = Binary("|", left, self.pipe())
        self._depth -= 1
        return left

    def _comma(self) -> Expression:
        left = self._binary(0)
        while self._accept(","):
            left = Binary(",", left, self._binary(0))
        return left

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._postfix()
        left = self._binary(level + 1)
        while operator := self._accept(*_LEVELS[level]):
            left = Binary(operator, left, self._binary(level + 1))
        return left

    def _postfix(self) -> Expression:
        found = self._term()
        while True:
            if self._accept("?"):
                found = Optional(found)
            elif self._kind() == "field":
                found = Field(found, Literal(self._take()[1:]))
            elif self.here() == "." and self._kind() == "mark":
                self._take()
                found = self._bracket(found) if self._accept("[") else Field(found, self._key())
            elif self._accept("["):
                found = self._bracket(found)
            else:
                return found

    def _term(self) -> Expression:
        kind, text = self._kind(), self._take()
        if kind == "string":
            return Literal(_text(text))
        if kind == "number":
            return Literal(_number(text))
        if kind == "variable":
            return Variable(text)
        if kind == "field":
            return Field(Identity(), Literal(text[1:]))
        if kind == "name":
            return Literal(_CONSTANTS[text]) if text in _CONSTANTS else self._call(text)
        return self._marked(text)

    def _marked(self, mark: str) -> Expression:
        readers: dict[str, Callable[[], Expression]] = {
            ".": self._path,
            "..": Recurse,
            "(": self._group,
            "[": self._list,
            "-": self._negative,
        }
        if mark not in readers:
            raise JqError(f'unexpected token "{mark}"')
        return readers[mark]()

    def _path(self) -> Expression:
        if self._accept("["):
            return self._bracket(Identity())
        return Field(Identity(), self._key()) if self._kind() == "string" else Identity()

    def _key(self) -> Expression:
        kind, text = self._kind(), self._take()
        if kind != "string":
            raise JqError(f'unexpected token "{text}"')
        return Literal(_text(text))

    def _group(self) -> Expression:
        found = self.pipe()
        self._expect(")")
        return found

    def _list(self) -> Expression:
        if self._accept("]"):
            return Collect(None)
        found = self.pipe()
        self._expect("]")
        return Collect(found)

    def _negative(self) -> Expression:
        if self._kind() != "number":
            raise JqError('unexpected token "-"')
        return Literal(-_number(self._take()))

    def _bracket(self, base: Expression) -> Expression:
        if self._accept("]"):
            return Iterate(base)
        start = None if self.here() == ":" else self.pipe()
        if self._accept(":"):
            end = None if self.here() == "]" else self.pipe()
            self._expect("]")
            return Slice(base, start, end)
        self._expect("]")
        assert start is not None, "a bracket without colon holds an index"
        return Field(base, start)

    def _call(self, name: str) -> Expression:
        arguments: list[Expression] = []
        if self._accept("("):
            arguments.append(self.pipe())
            while self._accept(";"):
                arguments.append(self.pipe())
            self._expect(")")
        return Call(name, tuple(arguments))
