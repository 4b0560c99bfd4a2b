"""The pattern dialects of Argo CD's fields: :func:`glob_match` and :func:`path_match`.

``glob_match`` is gobwas/glob (projects, directory include and exclude, sync windows), ``path_match`` is Go's
``filepath.Match`` (kinds and groups of projects). The caller chooses the dialect: reference argocd-app, section 0.
Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, assert_never

from syncline.kube.text.re2 import compile_pattern

MAX_PATTERN = 4096
"""The longest pattern; honest ones are shorter."""

MAX_TEXT = 8192
"""The longest text that is matched: addresses, paths and names are shorter."""

MAX_NESTING = 64
"""The deepest nesting of alternatives."""


class GlobError(ValueError):
    """An invalid pattern, or a text that is too long."""


def glob_match(pattern: str, text: str, *, separators: str = "") -> bool:
    """Return True if all of ``text`` matches; ``*`` stops at ``separators``, ``**`` does not. Raises GlobError."""
    return _compiled(pattern, separators).matches(text)


def glob_matches(pattern: str, text: str, *, separators: str = "") -> bool:
    """Like :func:`glob_match`, but an invalid pattern matches nothing (sync windows, namespaces)."""
    try:
        return glob_match(pattern, text, separators=separators)
    except GlobError:
        return False


def rule_matches(pattern: str, text: str, *, separators: str = "") -> bool:
    """Match a source or destination of an AppProject: ``*`` alone matches everything, a leading ``!`` negates."""
    if pattern == "*":
        return True
    if pattern.startswith("!"):
        if len(text) > MAX_TEXT:
            return False  # texts that are too long are denied
        return not glob_matches(pattern[1:], text, separators=separators)
    return glob_matches(pattern, text, separators=separators)


class ListStyle(StrEnum):
    """How the entries of a list of namespaces are matched."""

    EXACT = "exact"
    GLOB = "glob"
    REGEXP = "regexp"
    """``/expression/`` is a regular expression that may match anywhere; every entry is also tried as a glob."""


def list_matches(patterns: Iterable[str], text: str, style: ListStyle) -> bool:
    """Return True if any entry matches (Argo CD ``util/glob`` MatchStringInList)."""
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
        return compile_pattern(pattern[1:-1]).search(text) is not None
    except re.error:
        return _looked_around(pattern[1:-1], text)


_AROUND = re.compile(r"\(\?<?[!=](?:[^()\\]|\([^()\\]*\))*\)")
MAX_LOOKED_AT = 253
"""The longest text for an expression with look-around: the length of a name."""


def _looked_around(expression: str, text: str) -> bool:
    """Match an expression with look-around (``^((?!team-b).)*$``), which RE2 does not support.

    Python backtracks, so only expressions that cannot take long are accepted: one repetition inside the look-around,
    one outside, and no alternatives in a part that repeats.
    """
    parts = [*_AROUND.findall(expression), _AROUND.sub("", expression)]
    repeats = [sum(part.count(sign) for sign in "*+{") for part in parts]
    if (
        len(parts) == 1
        or len(text) > MAX_LOOKED_AT
        or any(count > 1 or (count and "|" in part) for part, count in zip(parts, repeats, strict=True))
    ):
        return False
    try:
        return re.search(expression, text) is not None
    except re.error:
        return False


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True)
class _Star:
    """Any run of characters except those in ``stop``."""

    stop: str


@dataclass(frozen=True, slots=True)
class _One:
    """One character within one of ``ranges``, or outside all of them, but never one of ``stop``."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool
    stop: str = ""

    def accepts(self, letter: str) -> bool:
        within = any(low <= letter <= high for low, high in self.ranges)
        return within is not self.negated and letter not in self.stop


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[tuple[_Part, ...], ...]


_Part: TypeAlias = _Text | _Star | _One | _Choice


@dataclass(frozen=True, slots=True)
class _Glob:
    parts: tuple[_Part, ...]

    def matches(self, text: str) -> bool:
        """Match by gobwas' rules, including two of its optimisations, which change the result."""
        match self.parts:
            case (_One() as one,) if text == "":
                # A single character decodes an empty text as an invalid character and matches that.
                return one.negated
            case (_Text(first), _Star(""), _Text(last)):
                # One star between texts is compiled to "begins and ends with", so that both may overlap.
                return text.startswith(first) and text.endswith(last)
        return _whole(self.parts, text)


class _Places:
    """Sets of positions in one text as the bits of a number, so that a part moves all of them at once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = (1 << (len(text) + 1)) - 1
        self._classes: dict[_One | _Star, int] = {}
        self._letters: dict[str, int] = {}
        for at, letter in enumerate(text):
            self._letters[letter] = self._letters.get(letter, 0) | 1 << at

    def of(self, part: _One | _Star) -> int:
        """Return the positions of characters that the part accepts."""
        known = self._classes.get(part)
        if known is None:
            accepts = part.accepts if isinstance(part, _One) else lambda letter: letter not in part.stop
            known = sum(self._letters[letter] for letter in filter(accepts, self._letters))
            self._classes[part] = known
        return known

    def after_text(self, places: int, wanted: str) -> int:
        for letter in wanted:
            places = (places & self._letters.get(letter, 0)) << 1
            if not places:
                break
        return places

    def after_star(self, places: int, star: _Star) -> int:
        """Return, for each position, all positions up to the next stop character or the end."""
        if not star.stop:
            return self.all & ~((places & -places) - 1)
        free, width = self.of(star), 1
        while width <= len(self.text):
            moved = places | (places & free) << width
            if moved == places:
                break
            places, free, width = moved, free & free >> width, width * 2
        return places


def _whole(parts: Sequence[_Part], text: str) -> bool:
    if len(text) > MAX_TEXT:
        raise GlobError(f"the text has {len(text)} characters, at most {MAX_TEXT} are matched")
    return bool(_ends(parts, _Places(text), 1) >> len(text) & 1)


def _ends(parts: Sequence[_Part], text: _Places, places: int) -> int:
    """Return where matches of ``parts`` from ``places`` may end; all alternatives at once, without backtracking."""
    for part in parts:
        match part:
            case _Text(wanted):
                places = text.after_text(places, wanted)
            case _One():
                places = (places & text.of(part)) << 1
            case _Star():
                places = text.after_star(places, part)
            case _Choice(options):
                before, places = places, 0
                for option in options:
                    places |= _ends(option, text, before)
            case _:
                assert_never(part)
        if not places:
            break
    return places


@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str, separators: str) -> _Glob:
    _check_length(pattern)
    parts, _ = _sequence(pattern, 0, separators, 0)
    return _Glob(parts)


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise GlobError(f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")


def _sequence(pattern: str, at: int, separators: str, depth: int) -> tuple[tuple[_Part, ...], int]:
    """Return the parts up to the end, or inside braces up to ``,`` or ``}``, and their end."""
    if depth > MAX_NESTING:
        raise GlobError(f"{pattern!r}: braces are nested deeper than {MAX_NESTING}")
    parts: list[_Part] = []
    while at < len(pattern) and not (depth and pattern[at] in ",}"):
        part, at = _part(pattern, at, separators, depth)
        if isinstance(part, _Text) and parts and isinstance(parts[-1], _Text):
            part = _Text(parts.pop().text + part.text)  # type: ignore[union-attr]
        parts.append(part)
    return tuple(parts), at


def _part(pattern: str, at: int, separators: str, depth: int) -> tuple[_Part, int]:
    match pattern[at]:
        case "*" if pattern[at + 1 : at + 2] == "*":
            return _Star(""), at + 2
        case "*":
            return _Star(separators), at + 1
        case "?":
            return _One((), True, separators), at + 1
        case "[":
            return _class(pattern, at + 1)
        case "{":
            return _choice(pattern, at + 1, separators, depth + 1)
        case "\\":
            return _Text(pattern[at + 1 : at + 2]), at + 2
        case letter:
            return _Text(letter), at + 1


def _choice(pattern: str, at: int, separators: str, depth: int) -> tuple[_Part, int]:
    options: list[tuple[_Part, ...]] = []
    while True:
        option, at = _sequence(pattern, at, separators, depth)
        options.append(option)
        if pattern[at : at + 1] != ",":
            # A closing brace, or the end: gobwas forgives a missing one.
            return _Choice(tuple(options)), at + 1
        at += 1


def _class(pattern: str, at: int) -> tuple[_Part, int]:
    """Parse ``[abc]``, ``[!abc]`` or one range ``[a-c]``; gobwas has no ``^`` and no mixture."""
    negated = pattern[at : at + 1] == "!"
    at += int(negated)
    if pattern[at + 1 : at + 2] == "-":
        low, high = pattern[at], pattern[at + 2 : at + 3]
        if pattern[at + 3 : at + 4] != "]" or high < low:
            raise GlobError(f"{pattern!r}: a range is written [a-z], lower end first, and alone")
        return _One(((low, high),), negated), at + 4
    letters: list[str] = []
    while at < len(pattern) and pattern[at] != "]":
        at += int(pattern[at] == "\\")
        letters.append(pattern[at : at + 1])
        at += 1
    if at >= len(pattern) or not letters:
        raise GlobError(f"{pattern!r}: a list of characters is written [abc]")
    return _One(tuple((letter, letter) for letter in letters), negated), at + 1


def path_match(pattern: str, text: str) -> bool:
    """Match like ``filepath.Match``: ``*`` and ``?`` stop at ``/``, ``[^a-z]`` negates, no ``**``. Raises GlobError."""
    return _whole(_path_parts(pattern), text)


@functools.lru_cache(maxsize=4096)
def _path_parts(pattern: str) -> tuple[_Part, ...]:
    _check_length(pattern)
    parts: list[_Part] = []
    at = 0
    while at < len(pattern):
        match pattern[at]:
            case "*":
                parts.append(_Star("/"))
                at += 1
            case "?":
                parts.append(_One((), True, "/"))
                at += 1
            case "[":
                part, at = _path_class(pattern, at + 1)
                parts.append(part)
            case _:
                letter, at = _path_letter(pattern, at)
                parts.append(_Text(letter))
    return tuple(parts)


def _path_class(pattern: str, at: int) -> tuple[_Part, int]:
    negated = pattern[at : at + 1] == "^"
    at += int(negated)
    ranges: list[tuple[str, str]] = []
    while not (pattern[at : at + 1] == "]" and ranges):
        low, at = _path_end(pattern, at)
        high = low
        if pattern[at : at + 1] == "-":
            high, at = _path_end(pattern, at + 1)
        # A range that runs backwards matches nothing, but is no error.
        ranges.append((low, high))
    return _One(tuple(ranges), negated), at + 1


def _path_end(pattern: str, at: int) -> tuple[str, int]:
    """Return one end of a range in brackets, and the next position."""
    if pattern[at : at + 1] in ("", "-", "]"):
        raise GlobError(f"{pattern!r}: syntax error in pattern")
    return _path_letter(pattern, at)


def _path_letter(pattern: str, at: int) -> tuple[str, int]:
    at += int(pattern[at] == "\\")
    if at >= len(pattern):
        raise GlobError(f"{pattern!r}: syntax error in pattern")
    return pattern[at], at + 1
