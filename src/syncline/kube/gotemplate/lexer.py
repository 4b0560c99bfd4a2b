"""The tokens of a template: :func:`tokens`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from syncline.kube.gotemplate.strconv import quote, unicode_point
from syncline.kube.gotemplate.values import encode


class Type(Enum):
    """Types of tokens."""

    ERROR = auto()
    EOF = auto()
    TEXT = auto()
    LEFT = auto()
    RIGHT = auto()
    SPACE = auto()
    ASSIGN = auto()
    DECLARE = auto()
    PIPE = auto()
    OPEN = auto()
    CLOSE = auto()
    CHAR = auto()
    """Any other printable ASCII character."""
    BOOL = auto()
    RUNE = auto()
    COMPLEX = auto()
    NUMBER = auto()
    STRING = auto()
    RAW_STRING = auto()
    IDENTIFIER = auto()
    FIELD = auto()
    VARIABLE = auto()
    DOT = auto()
    BLOCK = auto()
    BREAK = auto()
    CONTINUE = auto()
    DEFINE = auto()
    ELSE = auto()
    END = auto()
    IF = auto()
    NIL = auto()
    RANGE = auto()
    TEMPLATE = auto()
    WITH = auto()


KEYWORDS: Final[Mapping[str, Type]] = {
    "block": Type.BLOCK,
    "break": Type.BREAK,
    "continue": Type.CONTINUE,
    "define": Type.DEFINE,
    "else": Type.ELSE,
    "end": Type.END,
    "if": Type.IF,
    "nil": Type.NIL,
    "range": Type.RANGE,
    "template": Type.TEMPLATE,
    "with": Type.WITH,
}
_WORDS: Final[Mapping[str, Type]] = {**KEYWORDS, "true": Type.BOOL, "false": Type.BOOL}
_NAMED: Final = frozenset((*KEYWORDS.values(), Type.DOT))
_SIGNS: Final[Mapping[str, Type]] = {"=": Type.ASSIGN, "|": Type.PIPE, "(": Type.OPEN, ")": Type.CLOSE}
_SPACES: Final = " \t\r\n"
_SPACE: Final = re.compile(r"[ \t\r\n]+")
_WORD: Final = re.compile(r"\w*")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_RUNE: Final = re.compile(r"'(?:[^'\\\n]|\\[^\n])*'")
_RAW: Final = re.compile(r"`[^`]*`")
_NUMBER: Final = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?"
    r"|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
_TRIM_LEFT: Final = re.compile(r"-[ \t\r\n]")


class Delimiters(NamedTuple):
    """What actions stand between."""

    left: str = "{{"
    right: str = "}}"


BRACES: Final = Delimiters()


@functools.lru_cache(maxsize=16)
def _right(delimiter: str) -> re.Pattern[str]:
    return re.compile(rf"(?:[ \t\r\n]-)?{re.escape(delimiter)}")


class Token(NamedTuple):
    """A token: where it begins, as an index of characters and as a line from 1 on."""

    type: Type
    at: int
    text: str
    line: int

    def __str__(self) -> str:
        """Return it as error messages do."""
        if self.type in (Type.EOF, Type.ERROR):
            return "EOF" if self.type is Type.EOF else self.text
        if self.type in _NAMED:
            return f"<{self.text}>"
        return f"{quote(self.text[:10])}..." if len(encode(self.text)) > 10 else quote(self.text)


class _Refused(Exception):
    """What is wrong at ``_Lexer.start``."""


def tokens(text: str, names: frozenset[str] = frozenset(), delimiters: Delimiters = BRACES) -> Iterator[Token]:
    """Yield the tokens of a template: after one of type ``ERROR`` or ``EOF`` the latter without end.

    ``names``: functions called ``break`` or ``continue`` take the place of the keywords.
    """
    lexer = _Lexer(text, names, delimiters)
    try:
        yield from lexer.run()
        last = lexer.token(Type.EOF, len(text), "")
    except _Refused as error:
        yield (last := lexer.token(Type.ERROR, lexer.start, str(error)))
    while True:
        yield Token(Type.EOF, last.at, "", last.line)


def _word_end(text: str, at: int) -> int:
    """Where a word of letters, decimal digits and underscores ends."""
    found = _WORD.match(text, at)
    end = found.end() if found else at
    if not text[at:end].isascii():
        for index in range(at, end):
            if not (text[index].isalpha() or text[index].isdecimal() or text[index] == "_"):
                return index
    return end


class _Lexer:
    def __init__(self, text: str, names: frozenset[str], delimiters: Delimiters) -> None:
        self._text, self._delimiters = text, delimiters
        self._right = _right(delimiters.right)
        self._words = {word: kind for word, kind in _WORDS.items() if word not in names}
        self.start = 0
        self._parens = 0
        self._line, self._counted = 1, 0
        self._next = 0
        self._scanners: Mapping[str, Callable[[int], Token]] = {
            '"': self._string,
            "'": self._rune,
            "`": self._raw,
            "$": self._variable,
            ".": self._dot,
            ":": self._declare,
            **dict.fromkeys("+-0123456789", self._number),
        }

    def token(self, kind: Type, start: int, text: str) -> Token:
        """Make a token; they are made in the order of the text."""
        self._line += self._text.count("\n", self._counted, start)
        self._counted = max(self._counted, start)
        return Token(kind, start, text, self._line)

    def run(self) -> Iterator[Token]:
        text, at, opening = self._text, 0, self._delimiters.left
        while True:
            self.start = at
            left = text.find(opening, at)
            if left < 0:
                if at < len(text):
                    yield self.token(Type.TEXT, at, text[at:])
                return
            trim = _TRIM_LEFT.match(text, left + len(opening)) is not None
            plain = text[at:left].rstrip(_SPACES) if trim else text[at:left]
            if plain:
                yield self.token(Type.TEXT, at, plain)
            after = left + len(opening) + (2 if trim else 0)
            if text.startswith("/*", after):
                at = self._comment(after)
                continue
            yield self.token(Type.LEFT, left, opening)
            self._parens = 0
            yield from self._action(after)
            at = self._next

    def _comment(self, at: int) -> int:
        self.start = at
        close = self._text.find("*/", at + 2)
        if close < 0:
            raise _Refused("unclosed comment")
        right = self._right.match(self._text, close + 2)
        if right is None:
            raise _Refused("comment ends before closing delimiter")
        return self._behind(right)

    def _behind(self, right: re.Match[str]) -> int:
        """Where the text goes on after a right delimiter, which may trim it."""
        trims = right.end() - right.start() > len(self._delimiters.right)
        found = _SPACE.match(self._text, right.end()) if trims else None
        return found.end() if found else right.end()

    def _action(self, at: int) -> Iterator[Token]:
        text = self._text
        while True:
            self.start = at
            right = self._right.match(text, at)
            if right is not None:
                if self._parens:
                    raise _Refused("unclosed left paren")
                self._next = self._behind(right)
                closing = self._delimiters.right
                yield self.token(Type.RIGHT, right.end() - len(closing), closing)
                return
            char = text[at : at + 1]
            if not char:
                raise _Refused("unclosed action")
            if char in _SPACES:
                token = self._space(at)
            elif char in self._scanners:
                token = self._scanners[char](at)
            elif char == "_" or char.isalpha() or char.isdecimal():
                token = self._identifier(at)
            elif char.isascii() and char.isprintable():
                token = self._sign(at, char)
            else:
                raise _Refused(f"unrecognized character in action: {unicode_point(char)}")
            yield token
            at += len(token.text)

    def _space(self, at: int) -> Token:
        """A run of spaces, without the last where it belongs to a trimming delimiter."""
        found = _SPACE.match(self._text, at)
        end = found.end() if found else at
        trims = self._text.startswith("-" + self._delimiters.right, end)
        return self.token(Type.SPACE, at, self._text[at : end - 1 if trims else end])

    def _sign(self, at: int, char: str) -> Token:
        if char == "(":
            self._parens += 1
        elif char == ")":
            self._parens -= 1
            if self._parens < 0:
                raise _Refused("unexpected right paren")
        return self.token(_SIGNS.get(char, Type.CHAR), at, char)

    def _declare(self, at: int) -> Token:
        if not self._text.startswith(":=", at):
            raise _Refused("expected :=")
        return self.token(Type.DECLARE, at, ":=")

    def _quoted(self, at: int, kind: Type, pattern: re.Pattern[str], name: str) -> Token:
        found = pattern.match(self._text, at)
        if found is None:
            raise _Refused(f"unterminated {name}")
        return self.token(kind, at, found[0])

    def _string(self, at: int) -> Token:
        return self._quoted(at, Type.STRING, _STRING, "quoted string")

    def _raw(self, at: int) -> Token:
        return self._quoted(at, Type.RAW_STRING, _RAW, "raw quoted string")

    def _rune(self, at: int) -> Token:
        return self._quoted(at, Type.RUNE, _RUNE, "character constant")

    def _identifier(self, at: int) -> Token:
        end = _word_end(self._text, at)
        self._terminated(end)
        word = self._text[at:end]
        return self.token(self._words.get(word, Type.IDENTIFIER), at, word)

    def _dot(self, at: int) -> Token:
        following = self._text[at + 1 : at + 2]
        if not following or following in "0123456789":  # at the end Go takes it as a number as well
            return self._number(at)
        return self._name(at, Type.FIELD, Type.DOT)

    def _variable(self, at: int) -> Token:
        return self._name(at, Type.VARIABLE, Type.VARIABLE)

    def _name(self, at: int, kind: Type, alone: Type) -> Token:
        end = _word_end(self._text, at + 1)
        if end == at + 1:
            kind = alone
        self._terminated(end)
        return self.token(kind, at, self._text[at:end])

    def _terminated(self, end: int) -> None:
        """Refuse what cannot follow a name."""
        char = self._text[end : end + 1]
        if char and char not in " \t\r\n.,|:)(" and not self._text.startswith(self._delimiters.right, end):
            raise _Refused(f"bad character {unicode_point(char)}")

    def _number(self, at: int) -> Token:
        end = self._number_end(at, at)
        if self._text[end : end + 1] not in ("+", "-"):
            return self.token(Type.NUMBER, at, self._text[at:end])
        end = self._number_end(at, end)
        if self._text[end - 1] != "i":
            raise _Refused(f"bad number syntax: {quote(self._text[at:end])}")
        return self.token(Type.COMPLEX, at, self._text[at:end])

    def _number_end(self, start: int, at: int) -> int:
        found = _NUMBER.match(self._text, at)
        end = found.end() if found else at
        if _word_end(self._text, end) > end:
            raise _Refused(f"bad number syntax: {quote(self._text[start : end + 1])}")
        return end
