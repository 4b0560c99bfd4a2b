"""Chooses files of a repository by their paths: :func:`file_matcher`. Pure; the reader of Git calls it.

The default is how ``git ls-files -- PATTERN`` matches: ``*`` crosses ``/``, and a directory stands for all files in it.
With ``doublestar`` it is the library of that name: ``*`` stops at ``/``, ``**`` is any number of directories, ``{a,b}``
are alternatives. Patterns become expressions of RE2, so that time is linear.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TypeAlias

from syncline.kube.schema.fieldcauses import quoted
from syncline.kube.text.re2 import Pattern, compile_pattern

MAX_PATTERN = 1_000
"""Characters of a pattern."""
MAX_ALTERNATIVES = 500
"""Patterns that the braces of one stand for."""
_CLASSES = frozenset(
    ("alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit")
)
Matcher: TypeAlias = Callable[[str], bool]
_MAGIC = frozenset(("top", "literal", "icase", "glob"))


class PatternError(ValueError):
    """A pattern for files cannot be used; the message names it."""


def file_matcher(include: Iterable[str], exclude: Iterable[str] = (), *, doublestar: bool = False) -> Matcher:
    """Return whether a path matches one of ``include`` and none of ``exclude``; raises :class:`PatternError`, as do
    calls of the result: for a pattern that stands for a directory (``doublestar``), or costs too much."""
    make = _doublestar if doublestar else _ls_files
    included, excluded = [make(one) for one in include], [make(one) for one in exclude]

    def matches(path: str) -> bool:
        # Each pattern sees each path, since it may fail.
        wanted = [one(path) for one in included]
        unwanted = [one(path) for one in excluded]
        return any(wanted) and not any(unwanted)

    return matches


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"a pattern for files has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")


def _found(pattern: Pattern, text: str) -> bool:
    try:
        return pattern.search(text) is not None
    except re.error as error:
        raise PatternError(str(error)) from None


def _expression(text: str, pattern: str) -> Pattern:
    try:
        return compile_pattern(text)
    except re.error as error:
        raise PatternError(f"the pattern {quoted(pattern)} is invalid: {error}") from None


# --- git ls-files -------------------------------------------------------------------------------------------------


def _ls_files(pattern: str) -> Matcher:
    literal, matcher = _pathspec(pattern)
    under = f"{literal.removesuffix('/')}/" if literal else ""
    return partial(_is_listed, literal, under, matcher)


def _is_listed(literal: str | None, under: str, matcher: Pattern | None, path: str) -> bool:
    if literal is not None and (path == literal or path.startswith(under)):
        return True
    return matcher is not None and _found(matcher, _octets(path))


def _octets(text: str) -> str:
    """Return a text with a letter for each byte: git's wildcards match bytes."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


@lru_cache(1024)
def _pathspec(pattern: str) -> tuple[str | None, Pattern | None]:
    """Return the text that stands for itself and what is below it (None: nothing), and the wildcard expression."""
    _check_length(pattern)
    magic, text = _magic(pattern)
    text = _normal(text, pattern)
    octets = _octets(text)
    flags = "(?si)" if "icase" in magic else "(?s)"
    if "literal" in magic or not re.search(r"[*?\[\\]", text):
        if "icase" in magic:
            below = f"{flags}^{re.escape(octets.removesuffix('/'))}(?:/|$)" if text else f"{flags}^"
            return None, _expression(below, pattern)
        return text, None
    body = _segments(octets, _git_class) if "glob" in magic else _wildmatch(octets, ".", _git_class)
    return text, _expression(f"{flags}^(?:{body})$", pattern) if body is not None else None


def _magic(pattern: str) -> tuple[frozenset[str], str]:
    """Split off git's pathspec magic: ``:(glob)PATTERN``, ``:/PATTERN``."""
    if not pattern.startswith(":"):
        return frozenset(), pattern
    if pattern.startswith(":/"):
        return frozenset({"top"}), pattern[2:]
    words, closed, text = pattern[2:].partition(")")
    magic = frozenset(filter(None, words.split(",")))
    if not pattern.startswith(":(") or not closed or not magic <= _MAGIC:
        raise PatternError(
            f"the pattern {quoted(pattern)} begins with pathspec magic that is not supported; "
            f"use one of {', '.join(sorted(_MAGIC))} as in :(glob)**/config.json, or exclude: true"
        )
    return magic, text


def _normal(text: str, pattern: str) -> str:
    """Remove empty and ``.`` segments and resolve ``..``, which must not lead out of the repository."""
    if text.startswith("/"):
        raise PatternError(f"fatal: '{pattern}' is outside repository")
    kept: list[str] = []
    for segment in text.split("/"):
        if segment == ".." and not kept:
            raise PatternError(f"fatal: '{pattern}' is outside repository")
        if segment == "..":
            kept.pop()
        elif segment not in ("", "."):
            kept.append(segment)
    return "/".join(kept) + ("/" if text.endswith(("/", "/.", "/..")) and kept else "")


def _wildmatch(text: str, one: str, letters: Callable[[str, int], tuple[str, int] | None]) -> str | None:
    """Return an expression with wildcards; ``one``: what a wildcard's character may be, ``letters`` reads a class. None
    for a syntax error."""
    made: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "*":
            made.append(f"{one}*")
            at += 1
        elif letter == "?":
            made.append(one)
            at += 1
        elif letter == "[":
            found = letters(text, at + 1)
            if found is None:
                return None
            made.append(found[0])
            at = found[1]
        else:
            at += int(letter == "\\")
            if at >= len(text):
                return None
            made.append(re.escape(text[at]))
            at += 1
    return "".join(made)


def _git_class(text: str, at: int) -> tuple[str, int] | None:
    """Return the expression of ``[...]`` whose content begins at ``at``, and where it ends; None if not closed."""
    negated = text[at : at + 1] in ("!", "^")
    at += int(negated)
    parts: list[str] = []
    first = True
    while first or text[at : at + 1] != "]":
        first = False
        if at >= len(text):
            return None
        if text.startswith("[:", at) and (named := text.partition(":]")[0]) and ":]" in text[at:]:
            named = text[at + 2 : text.index(":]", at)]
            if named not in _CLASSES:
                return None
            parts.append(f"[:{named}:]")
            at += len(named) + 4
            continue
        low, at = _class_letter(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _class_letter(text, at + 1)
        parts.append(_range(low, high))
    return f"[{'^' if negated else ''}{''.join(parts)}]", at + 1


def _range(low: str, high: str) -> str:
    """Return a range for a class; of one that runs backwards its first letter counts."""
    return f"{_in_class(low)}-{_in_class(high)}" if low <= high else _in_class(low)


def _class_letter(text: str, at: int) -> tuple[str, int]:
    at += int(text[at] == "\\" and at + 1 < len(text))
    return text[at], at + 1


def _in_class(letter: str) -> str:
    return f"\\x{{{ord(letter):x}}}"


# --- doublestar ---------------------------------------------------------------------------------------------------


def _doublestar(pattern: str) -> Matcher:
    matchers = _alternatives(pattern)
    seen: dict[str, bool] = {}

    def matches(path: str) -> bool:
        for folder in _parents(path):
            if seen.setdefault(folder, folder not in seen and any(_found(one, folder) for one in matchers)):
                raise PatternError(
                    f"the pattern {quoted(pattern)} matches the directory {folder}, which cannot be read as a file; "
                    "name the files, as in **/*.yaml"
                )
        return any(_found(one, path) for one in matchers)

    return matches


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


@lru_cache(1024)
def _alternatives(pattern: str) -> tuple[Pattern, ...]:
    _check_length(pattern)
    made: list[Pattern] = []
    normal = posixpath.normpath(pattern).lstrip("/") if pattern.strip("/") else "."
    if normal == ".":
        raise PatternError(f"the pattern {quoted(pattern)} is the directory of the repository; name files in it")
    if _first_brace(normal, pattern) < 0 and not re.search(r"[*?\[]", normal):
        return (_expression(f"^{re.escape(normal)}$", pattern),)  # a backslash is a letter of a name
    for one in _expanded(normal):
        body = _segments(one, _star_class)
        if body is None:
            raise PatternError(f"the pattern {quoted(pattern)} is invalid: syntax error in pattern")
        made.append(_expression(f"(?s)^(?:{body})$", pattern))
    return tuple(made)


def _expanded(pattern: str) -> list[str]:
    """Return the patterns that braces stand for; raises :class:`PatternError` if they do not match or are too many."""
    ready: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(waiting) + len(ready) > MAX_ALTERNATIVES:
            raise PatternError(f"the braces of {quoted(pattern)} stand for more than {MAX_ALTERNATIVES} patterns")
        text = waiting.pop()
        start = _first_brace(text, pattern)
        if start < 0:
            ready.append(text)
            continue
        options, end = _options(text, start + 1, pattern)
        waiting += [text[:start] + option + text[end:] for option in options]
    return ready


def _first_brace(text: str, pattern: str) -> int:
    """Return where the first brace begins that is no letter of a class, -1 without one."""
    at = 0
    while at < len(text):
        match text[at]:
            case "{":
                return at
            case "}":
                raise PatternError(f"the pattern {quoted(pattern)} is invalid: syntax error in pattern")
            case "\\" if at + 1 == len(text):
                raise PatternError(f"the pattern {quoted(pattern)} is invalid: syntax error in pattern")
            case "\\":
                at += 2
            case "[" if (found := _star_class(text, at + 1)) is not None:
                at = found[1]
            case _:
                at += 1
    return -1


def _options(text: str, at: int, pattern: str) -> tuple[list[str], int]:
    """Return what stands between the commas of a brace whose content begins at ``at``, and the position behind."""
    options: list[str] = []
    depth, begin = 1, at
    while at < len(text):
        match text[at]:
            case "\\":
                at += 1
            case "{":
                depth += 1
            case "," if depth == 1:
                options.append(text[begin:at])
                begin = at + 1
            case "}":
                depth -= 1
                if depth == 0:
                    return [*options, text[begin:at]], at + 1
        at += 1
    raise PatternError(f"the pattern {quoted(pattern)} is invalid: syntax error in pattern")


def _star_class(text: str, at: int) -> tuple[str, int] | None:
    """As :func:`_git_class`, but ``]`` always ends it, it is not empty, and there are no named classes."""
    negated = text[at : at + 1] in ("!", "^")
    at += int(negated)
    parts: list[str] = ["/"] if negated else []
    begin = at
    while text[at : at + 1] != "]":
        if at >= len(text) or (text.endswith("\\", at, at + 1) and at + 1 >= len(text)):
            return None
        low, at = _class_letter(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _class_letter(text, at + 1)
        parts.append(_range(low, high))
    return None if at == begin else (f"[{'^' if negated else ''}{''.join(parts)}]", at + 1)


def _segments(text: str, letters: Callable[[str, int], tuple[str, int] | None]) -> str | None:
    """Return an expression in which ``*`` stops at ``/`` and a segment ``**`` is any number of directories."""
    segments = text.split("/")
    made: list[str] = []
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "**":
            made.append(".*" if last else "(?:[^/]+/)*")
            continue
        body = _wildmatch(segment, "[^/]", letters)
        if body is None:
            return None
        made.append(body if last else f"{body}/")
    whole = "".join(made)
    if len(segments) > 1 and segments[-1] == "**":
        # a/** stands for a itself as well
        return f"{whole}|{''.join(made[:-1]).removesuffix('/')}"
    return whole
