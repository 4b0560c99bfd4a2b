"""The pattern dialects that Argo CD's fields speak, each by its own rules.

``glob_match`` is gobwas/glob (projects, directory include and exclude, sync windows), ``path_match`` is Go's
``filepath.Match`` (kinds and groups of projects). Choosing the dialect is the caller's business: reference
argocd-app, section 0. Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

__all__ = [
    "MAX_PATTERN",
    "GlobError",
    "ListStyle",
    "glob_match",
    "glob_matches",
    "list_matches",
    "path_match",
    "rule_matches",
]

MAX_PATTERN = 4096
"""Characters of one pattern; nobody writes longer ones, and matching time grows with it."""


class GlobError(ValueError):
    """The pattern does not compile."""


def glob_match(pattern: str, text: str, *, separators: str = "") -> bool:
    """Whether ``text`` as a whole matches; ``*`` stops at ``separators``, ``**`` does not. Raises GlobError."""
    return _compiled(pattern, separators).matches(text)


def glob_matches(pattern: str, text: str, *, separators: str = "") -> bool:
    """As :func:`glob_match`, but a pattern that does not compile matches nothing (sync windows, namespaces)."""
    try:
        return glob_match(pattern, text, separators=separators)
    except GlobError:
        return False


def rule_matches(pattern: str, text: str, *, separators: str = "") -> bool:
    """An AppProject's source or destination: a bare ``*`` is everything, a leading ``!`` turns the answer round."""
    if pattern == "*":
        return True
    if pattern.startswith("!"):
        return not glob_matches(pattern[1:], text, separators=separators)
    return glob_matches(pattern, text, separators=separators)


class ListStyle(StrEnum):
    """How the entries of a list of namespaces are read."""

    EXACT = "exact"
    GLOB = "glob"
    REGEXP = "regexp"
    """``/expression/`` is a regular expression that may match anywhere; every entry is tried as a glob too."""


def list_matches(patterns: Iterable[str], text: str, style: ListStyle) -> bool:
    """Whether any entry matches (Argo CD ``util/glob`` MatchStringInList)."""
    return any(_entry_matches(pattern, text, style) for pattern in patterns)


def _entry_matches(pattern: str, text: str, style: ListStyle) -> bool:
    match style:
        case ListStyle.EXACT:
            return pattern == text
        case ListStyle.GLOB:
            return glob_matches(pattern, text)
        case ListStyle.REGEXP:
            return _expression_matches(pattern, text) or glob_matches(pattern, text)
    assert_never(style)


def _expression_matches(pattern: str, text: str) -> bool:
    if len(pattern) < 2 or not (pattern.startswith("/") and pattern.endswith("/")):
        return False
    try:
        return re.search(pattern[1:-1], text) is not None
    except re.error:
        return False


@dataclass(frozen=True, slots=True)
class _Glob:
    expression: re.Pattern[str]
    ends: tuple[str, str] | None
    empty: bool

    def matches(self, text: str) -> bool:
        if text == "" and self.empty:
            return True
        if self.ends is not None:
            return text.startswith(self.ends[0]) and text.endswith(self.ends[1])
        return self.expression.fullmatch(text) is not None


@dataclass(slots=True)
class _Scan:
    """What a pattern is made of, for gobwas' two optimisations that change the answer."""

    position: int = 0
    depth: int = 0
    output: list[str] = field(default_factory=list)
    literals: list[str] = field(default_factory=lambda: [""])
    supers: int = 0
    others: list[str] = field(default_factory=list)


@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str, separators: str) -> _Glob:
    if len(pattern) > MAX_PATTERN:
        raise GlobError(f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    scan = _Scan()
    while scan.position < len(pattern):
        _token(pattern, separators, scan)
    scan.output.append(")" * scan.depth)
    # One star between plain texts is compiled to "begins and ends with", so that both may overlap.
    ends = (scan.literals[0], scan.literals[1]) if scan.supers == 1 and not scan.others else None
    # A pattern of one single character decodes an empty text as an invalid rune and compares that.
    alone = not scan.supers and len(scan.others) == 1 and scan.literals == [""]
    empty = alone and (scan.others[0] == "?" or scan.others[0].startswith("[!"))
    return _Glob(re.compile("".join(scan.output), re.DOTALL), ends, empty)


def _token(pattern: str, separators: str, scan: _Scan) -> None:
    letter = pattern[scan.position]
    scan.position += 1
    inside = f"[^{re.escape(separators)}]" if separators else "."
    if letter == "*":
        _star(pattern, inside, bool(separators), scan)
    elif letter == "?":
        scan.output.append(inside)
        scan.others.append("?")
    elif letter == "[":
        start = scan.position - 1
        scan.output.append(_class(pattern, scan))
        scan.others.append(pattern[start : scan.position])
    elif letter == "{":
        scan.depth += 1
        scan.output.append("(?:")
        scan.others.append("{")
    elif letter == "}" and scan.depth:
        scan.depth -= 1
        scan.output.append(")")
    elif letter == "," and scan.depth:
        scan.output.append("|")
    else:
        if letter == "\\":
            letter = pattern[scan.position : scan.position + 1]
            scan.position += 1
        scan.output.append(re.escape(letter))
        scan.literals[-1] += letter


def _star(pattern: str, inside: str, separated: bool, scan: _Scan) -> None:
    double = pattern[scan.position : scan.position + 1] == "*"
    scan.position += int(double)
    if double or not separated:
        scan.supers += 1
        scan.literals.append("")
        scan.output.append(".*")
    else:
        scan.others.append("*")
        scan.output.append(f"{inside}*")


def _class(pattern: str, scan: _Scan) -> str:
    """``[abc]``, ``[!abc]`` or one range ``[a-c]``; gobwas knows no ``^`` and no mixture."""
    negated = pattern[scan.position : scan.position + 1] == "!"
    scan.position += int(negated)
    body = pattern[scan.position :]
    if len(body) >= 2 and body[1] == "-":
        if len(body) < 4 or body[3] != "]" or body[2] < body[0]:
            raise GlobError(f"{pattern!r}: a range is written [a-z], lower end first, and alone")
        scan.position += 4
        content = f"{re.escape(body[0])}-{re.escape(body[2])}"
    else:
        content = _listed(pattern, scan)
    return f"[{'^' if negated else ''}{content}]"


def _listed(pattern: str, scan: _Scan) -> str:
    letters: list[str] = []
    while scan.position < len(pattern) and pattern[scan.position] != "]":
        if pattern[scan.position] == "\\":
            scan.position += 1
        letters.append(pattern[scan.position : scan.position + 1])
        scan.position += 1
    if scan.position >= len(pattern) or not letters:
        raise GlobError(f"{pattern!r}: a list of characters is written [abc]")
    scan.position += 1
    return "".join(re.escape(letter) for letter in letters)


def path_match(pattern: str, text: str) -> bool:
    """Go's ``filepath.Match``: ``*`` and ``?`` stop at ``/``, ``[^a-z]`` negates, no ``**``. Raises GlobError."""
    return _path_expression(pattern).fullmatch(text) is not None


@functools.lru_cache(maxsize=4096)
def _path_expression(pattern: str) -> re.Pattern[str]:
    if len(pattern) > MAX_PATTERN:
        raise GlobError(f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    output: list[str] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        position += 1
        if letter == "*":
            output.append("[^/]*")
        elif letter == "?":
            output.append("[^/]")
        elif letter == "[":
            text, position = _path_class(pattern, position)
            output.append(text)
        else:
            text, position = _path_character(pattern, position - 1)
            output.append(text)
    return re.compile("".join(output), re.DOTALL)


def _path_class(pattern: str, position: int) -> tuple[str, int]:
    negated = pattern[position : position + 1] == "^"
    position += int(negated)
    ranges: list[str] = []
    while not (pattern[position : position + 1] == "]" and ranges):
        if pattern[position : position + 1] in ("", "-", "]"):
            raise GlobError(f"{pattern!r}: syntax error in pattern")
        low, position = _path_character(pattern, position)
        high = low
        if pattern[position : position + 1] == "-":
            if pattern[position + 1 : position + 2] in ("", "-", "]"):
                raise GlobError(f"{pattern!r}: syntax error in pattern")
            high, position = _path_character(pattern, position + 1)
        # A range that runs backwards matches nothing, but is no error.
        if low[-1] <= high[-1]:
            ranges.append(f"{low}-{high}")
        else:
            ranges.append("")
    content = "".join(ranges)
    if not content:
        return ("." if negated else "(?!)"), position + 1
    return f"[{'^' if negated else ''}{content}]", position + 1


def _path_character(pattern: str, position: int) -> tuple[str, int]:
    if pattern[position] == "\\":
        position += 1
        if position >= len(pattern):
            raise GlobError(f"{pattern!r}: syntax error in pattern")
    return re.escape(pattern[position]), position + 1
