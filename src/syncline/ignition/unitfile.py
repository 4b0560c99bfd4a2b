"""Parses the text of a systemd unit as strictly as coreos/go-systemd: :func:`sections_with_options`.

A unit is read in steps over a buffer of 4096 bytes; a line is too long if at the start of a step 2048 bytes are
buffered and the next 2048 contain no line end. This is upstream's rule, so a long line late in a buffer may pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from syncline.ignition.golang import quoted

LINE_MAX = 2048
_BUFFER = 4096
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
_SPACES = _SPACE + "\u205f\u3000"
_ASCII_SPACE = b"\t\n\v\f\r "


class UnitError(ValueError):
    """Upstream's sentence about what is wrong with the unit; ``garbage``: what followed a section's name."""

    def __init__(self, message: str, garbage: bytes = b"") -> None:
        super().__init__(message)
        self.garbage = garbage


def sections_with_options(text: str) -> frozenset[str]:
    """Return the names of the sections with at least one option; raises :class:`UnitError`."""
    sections, problem = _known(text) if len(text) <= _REMEMBERED_MAX else _read(text)
    if problem is not None:
        raise UnitError(str(problem), problem.garbage)
    return sections


_REMEMBERED_MAX = 16 * 1024
"""Signs of a unit whose verdict is remembered: one configuration is judged at every step between versions."""


def _read(text: str) -> tuple[frozenset[str], UnitError | None]:
    try:
        return frozenset(_Reader(text.encode("utf-8", "replace")).run()), None
    except UnitError as problem:
        return frozenset(), problem.with_traceback(None)


_known = lru_cache(maxsize=1024)(_read)


@dataclass(slots=True)
class _Reader:
    """``at``: the next byte; ``filled``: how far the buffer reaches."""

    text: bytes
    at: int = 0
    filled: int = 0

    def run(self) -> set[str]:
        found: set[str] = set()
        section = self._next_section()
        while section is not None:
            section = self._options(section, found)
        return found

    def _step(self) -> None:
        """Before every step: refuse a line that systemd would cut."""
        if self.filled - self.at >= LINE_MAX:
            ahead = self.text[self.at : self.at + LINE_MAX]
            if b"\n" not in ahead and b"\r" not in ahead:
                raise UnitError(f"line too long (max {LINE_MAX} bytes)")

    def _fill(self) -> bool:
        """Whether another byte came in."""
        before, self.filled = self.filled, min(len(self.text), self.at + _BUFFER)
        return self.filled > before

    def _sign(self) -> str:
        """The next character, empty at the end."""
        if self.at == self.filled and not self._fill():
            return ""
        first = self.text[self.at]
        if first < 0x80:
            self.at += 1
            return chr(first)
        size = _size(first)
        if self.at + size > self.filled:
            self._fill()
        sign = self.text[self.at : self.at + size].decode("utf-8", "replace")
        self.at += size
        return sign

    def _until(self, mark: bytes) -> tuple[bytes, bool]:
        """Through ``mark``; whether it was there."""
        start = self.at
        while True:
            found = self.text.find(mark, self.at, self.filled)
            if found >= 0:
                self.at = found + 1
                return self.text[start : self.at], True
            if self.filled - self.at >= _BUFFER:
                self.at = self.filled
            if not self._fill():
                self.at = self.filled
                return self.text[start : self.at], False

    def _line(self) -> tuple[bytes, bool]:
        """The rest of the line without its end, and whether the text ended with it. Only ``\\n`` ends a line; a
        carriage return goes with it only where nothing follows it."""
        line, ended = self._until(b"\n")
        return line.removesuffix(b"\r").removesuffix(b"\n"), not ended

    def _comment(self) -> None:
        """A comment line, with the lines that a backslash at the end adds: one step, however long they are."""
        self._step()
        while True:
            line, _ = self._line()
            if not line.removesuffix(b" ").endswith(b"\\"):
                return

    def _next_section(self) -> str | None:
        """Everything before the first ``[`` is passed over."""
        while True:
            self._step()
            sign = self._sign()
            if sign == "[":
                return self._section()
            if sign in ("#", ";"):
                self._comment()
            elif not sign:
                return None

    def _section(self) -> str:
        self._step()
        name, ended = self._until(b"]")
        if not ended:
            raise UnitError("unable to find end of section")
        self._step()
        garbage, _ = self._line()
        rest = garbage.decode("utf-8", "replace").strip(_SPACES)
        if rest:
            raise UnitError(f"found garbage after section name : {quoted(rest)}", rest.encode())
        return name[:-1].decode("utf-8", "replace")

    def _options(self, section: str, found: set[str]) -> str | None:
        """The options of one section; returns the next section's name."""
        while True:
            self._step()
            before = self.at
            sign = self._sign()
            if not sign:
                return None
            if sign in _SPACES:
                continue
            if sign == "[":
                return self._section()
            if sign in ("#", ";"):
                self._comment()
                continue
            self.at = before
            self._option()
            found.add(section)

    def _option(self) -> None:
        self._step()
        self._name()
        while True:
            self._step()
            line, _ = self._line()
            if not line.endswith(b"\\") or not line.strip(_ASCII_SPACE):
                return

    def _name(self) -> None:
        """The name of an option, through its equals sign."""
        found = _NAME_END.search(self.text, self.at, self.filled)
        if found is not None:
            self.at = found.start()
        while (sign := self._sign()) != "=":
            if not sign:
                raise UnitError("EOF")
            if sign in ("\n", "\r"):
                raise UnitError("unexpected newline encountered while parsing option name")


_NAME_END = re.compile(rb"[=\r\n]")


def _size(first: int) -> int:
    """Bytes of the character that begins with ``first``; text comes in as valid UTF-8."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
