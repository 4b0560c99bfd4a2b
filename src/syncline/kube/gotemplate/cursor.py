"""Reads the tokens of a template one after another, and refuses what is wrong where Go does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from syncline.kube.gotemplate.errors import TemplateError
from syncline.kube.gotemplate.lexer import Token, Type
from syncline.kube.gotemplate.strconv import unquote


class Stream:
    """The tokens, with a step back."""

    def __init__(self, source: Iterator[Token], most: int) -> None:
        self._source = source
        self.most = most
        """How many there may be."""
        self._read: list[Token] = []
        self.at = 0
        self._from = 0

    def get(self, at: int) -> Token:
        """Return the token of a number."""
        while at - self._from >= len(self._read):
            if len(self._read) > 4096:  # no step back is longer than three tokens
                self._from += 2048
                del self._read[:2048]
            self._read.append(next(self._source))
        return self._read[at - self._from]


class Cursor:
    """The place of one body in the tokens. An error names the line of the last token that this body has seen."""

    def __init__(self, shown: str, stream: Stream, nesting: int) -> None:
        self.shown, self.stream, self.nesting = shown, stream, nesting
        self._seen, self._line = stream.at, 0
        self.action_line = 0
        """Where the action that is read begins; 0 between actions."""

    def next(self) -> Token:
        """Take the next token."""
        stream = self.stream
        token = stream.get(stream.at)
        stream.at += 1
        if stream.at > self._seen:
            self._seen, self._line = stream.at, token.line
            if stream.at > stream.most:
                self.refuse(f"the template has more than {stream.most} words and signs")
        return token

    def back(self) -> None:
        """Step back by one token."""
        self.stream.at -= 1

    def peek(self) -> Token:
        """Look at the next token."""
        token = self.next()
        self.back()
        return token

    def next_non_space(self) -> Token:
        """Take the next token that is no space."""
        token = self.next()
        while token.type is Type.SPACE:
            token = self.next()
        return token

    def peek_non_space(self) -> Token:
        """Look at the next token that is no space; those before it are taken."""
        token = self.next_non_space()
        self.back()
        return token

    def refuse(self, message: str) -> NoReturn:
        """Refuse the template."""
        raise TemplateError(f"template: {self.shown}:{self._line}: {message}")

    def unexpected(self, token: Token, context: str) -> NoReturn:
        """Refuse a token."""
        if token.type is not Type.ERROR:
            self.refuse(f"unexpected {token} in {context}")
        started = ""
        if self.action_line not in (0, token.line):
            started = f" started at {self.shown}:{self.action_line}"
            if not token.text.endswith(" action"):
                started = " in action" + started
        self.refuse(f"{token}{started}")

    def expect(self, context: str, *allowed: Type) -> Token:
        """Take the next token, of one of the types."""
        token = self.next_non_space()
        if token.type not in allowed:
            self.unexpected(token, context)
        return token

    def unquoted(self, token: Token) -> str:
        """Return the value of a string literal."""
        value = unquote(token.text)
        if value is None:
            self.refuse("invalid syntax")
        return value

    def deeper(self) -> None:
        """Enter a structure or parentheses."""
        if self.nesting <= 0:
            self.refuse("max expression depth exceeded")
        self.nesting -= 1
