"""Checks the syntax of Go's regular expressions (no look-around, no back references): :func:`check_pattern`.

Called before a pattern is compiled. Raises ``re.error`` in the words of Go's ``regexp/syntax``.
"""

from __future__ import annotations

import re

MAX_REPEAT = 1000

_ESCAPED = frozenset("abfnrtvABbdDsSwWzQEpPx01234567")
_CLASSES = frozenset("dDsSwWpP")
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_POSIX = re.compile(r"\[:\^?(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]")
_POSIX_LIKE = re.compile(r"\[:[^\]]*:\]")


def check_pattern(text: str) -> None:
    """Raise ``re.error`` if Go would not compile ``text``."""
    _Reader(text).read()


def _error(what: str, where: str) -> re.error:
    return re.error(f"{what}: `{where}`")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._repeatable = False
        self._last_repeat = -1

    def read(self) -> None:
        text = self._text
        while self._at < len(text):
            letter = text[self._at]
            if letter == "(":
                self._open()
            elif letter == ")":
                if self._depth == 0:
                    raise _error("unexpected )", text)
                self._depth -= 1
                self._atom(1)
            elif letter == "[":
                self._class()
            elif letter in "*+?" or (letter == "{" and _REPEAT.match(text, self._at)):
                self._repeat()
            elif letter == "\\":
                self._escape()
            elif letter == "|":
                self._at += 1
                self._repeatable = False
            else:
                self._atom(1)
        if self._depth:
            raise _error("missing closing )", text)

    def _atom(self, length: int) -> None:
        self._at += length
        self._repeatable = True
        self._last_repeat = -1

    def _open(self) -> None:
        text, start = self._text, self._at
        self._depth += 1
        self._repeatable = False
        self._last_repeat = -1
        if not text.startswith("(?", start):
            self._at += 1
            return
        named = text.startswith(("(?P<", "(?<"), start)
        if named:
            begin = text.index("<", start) + 1
            end = text.find(">", begin)
            if end < 0:
                raise _error("invalid named capture", text[start:])
            if not _NAME.fullmatch(text[begin:end]):
                raise _error("invalid named capture", text[start : end + 1])
            self._at = end + 1
            return
        at, minus, flags = start + 2, False, False
        while at < len(text):
            letter = text[at]
            at += 1
            if letter in "imsU":
                flags = True
            elif letter == "-" and not minus:
                minus, flags = True, False
            elif letter in ":)" and not (minus and not flags):
                self._at = at
                if letter == ")":
                    self._depth -= 1
                return
            else:
                break
        raise _error("invalid or unsupported Perl syntax", text[start:at])

    def _repeat(self) -> None:
        text, start = self._text, self._at
        found = _REPEAT.match(text, start) if text[start] == "{" else None
        end = found.end() if found else start + 1
        if text.startswith("?", end):
            end += 1
        if self._last_repeat >= 0:
            raise _error("invalid nested repetition operator", text[self._last_repeat : end])
        if not self._repeatable:
            raise _error("missing argument to repetition operator", text[start:end])
        if found:
            least, most = int(found.group(1)), int(found.group(3) or found.group(1))
            if max(least, most) > MAX_REPEAT or most < least:
                raise _error("invalid repeat count", found.group(0))
        self._last_repeat = start
        self._at = end

    def _escape(self) -> None:
        text, start = self._text, self._at
        if start + 1 >= len(text):
            raise re.error("trailing backslash at end of expression: ``")
        letter = text[start + 1]
        if text.startswith("\\Q", start):
            end = text.find("\\E", start)
            self._atom((end + 2 if end >= 0 else len(text)) - start)
            return
        if (letter.isalnum() or letter == "_") and ord(letter) < 128 and letter not in _ESCAPED:
            raise _error("invalid escape sequence", text[start : start + 2])
        if letter in "123456789" and not text[start + 2 : start + 3].isdigit():
            raise _error("invalid escape sequence", text[start : start + 2])
        self._atom(2)

    def _class(self) -> None:
        text, start = self._text, self._at
        at = start + 1
        if text.startswith("^", at):
            at += 1
        first = True
        while True:
            if at >= len(text):
                raise _error("missing closing ]", text[start:])
            if text[at] == "]" and not first:
                break
            first = False
            posix = _POSIX.match(text, at)
            if posix:
                at = posix.end()
                continue
            if _POSIX_LIKE.match(text, at):
                raise _error("invalid character class range", _POSIX_LIKE.match(text, at)[0])  # type: ignore[index]
            low, at = self._letter(at, start)
            if low is not None and text.startswith("-", at) and at + 1 < len(text) and text[at + 1] != "]":
                begin = at - 1
                high, at = self._letter(at + 1, start)
                if high is None or high < low:
                    raise _error("invalid character class range", text[begin:at])
        self._atom(at + 1 - start)

    def _letter(self, at: int, start: int) -> tuple[str | None, int]:
        """Return (letter, next position) in a class; None for an escape that stands for several."""
        text = self._text
        if at >= len(text):
            raise _error("missing closing ]", text[start:])
        if text[at] != "\\":
            return text[at], at + 1
        if at + 1 >= len(text):
            raise re.error("trailing backslash at end of expression: ``")
        letter = text[at + 1]
        if letter in _CLASSES:
            return None, at + 2
        if letter.isalnum() and ord(letter) < 128 and letter not in "afnrtvx01234567":
            raise _error("invalid escape sequence", text[at : at + 2])
        if letter == "x" or letter.isdigit():
            found = re.compile(r"\\(x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3})").match(text, at)
            return (None, found.end()) if found else (letter, at + 2)
        return {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}.get(letter, letter), at + 2
