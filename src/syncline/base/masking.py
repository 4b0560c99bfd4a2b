"""Masks credentials in texts: statuses, Events, explanations, logs and traces all use this module.

Pure. :func:`mask_credentials` knows patterns (user info in URLs, headers, keys, tokens, ``password=…``); a
:class:`Masker` also knows values, in every spelling in which a program or an API repeats them. Masking twice changes
nothing more. Values below :data:`LEAST` characters are not masked: they occur in any text.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus

MASK = "***"
LEAST = 4
WHOLE = 8
"""Shorter values are masked as whole words only: ``admin`` is not masked in ``administrator``."""
SLICE = 12
"""This many consecutive characters of a long value count as a part of it: texts are cut and wrapped."""
MAX_TEXT = 16_384
"""The longest message; of a longer one the beginning and the end remain."""
MAX_READ = 16 * MAX_TEXT
MAX_VALUE = 65_536
"""The longest searched prefix of one value."""
MAX_VALUES = 20_000
MAX_KNOWN = 500_000
"""The most characters of all values together; with more Secrets than this the first ones are masked."""
COMMON = frozenset(
    ("true", "false", "null", "none", "default", "enabled", "disabled", "secret", "opaque", "localhost", "string")
)
"""Values of Secrets that are common words and reveal nothing."""

_NAME = (
    r"(?:pass(?:wor[dt]|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key"
    r"|client[_-]?secret|signing[_-]?key|encryption[_-]?key|credentials?|auth)"
)
_VALUE = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"',;&|)\]}]+)"""
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)(?!\*)(?:.*?-----END [A-Z0-9 ]*-----|.*)", re.S),
        r"\1***",
    ),
    (re.compile(r"(?<=://)[^/@:\s]*+:(?!\*\*\*@)[^/\s]*@"), "***@"),
    (re.compile(r"(?<=://)[^/@:\s]{20,}@"), "***@"),
    (
        re.compile(
            r"""(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:(?:basic|bearer|token|digest)\s+)?)"""
            r"""(?!(?:basic|bearer|token|digest)\s)[^\s"',;]+"""
        ),
        r"\1***",
    ),
    (re.compile(r"(?i)\b((?:bearer|basic)\s+)(?=[^\s\"',;]*[\d._=+-])[A-Za-z0-9._~+/=-]{8,}"), r"\1***"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"), MASK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), MASK),
    (
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,})"
        ),
        MASK,
    ),
    (re.compile(rf"(?i)({_NAME}[\"']?=)(?!=){_VALUE}"), r"\1***"),
    (re.compile(rf"(?i)(?<!-)(--[\w-]{{0,60}}{_NAME}\s+)(?!-){_VALUE}"), r"\1***"),
    # After a colon a sentence may follow ("password: Required value"): a value is quoted, or no plain word.
    (
        re.compile(
            rf"""(?i)(["'][\w.-]{{0,60}}{_NAME}\\*["']\s*:\s*)"""
            r"""(?:\\+"[^"\\\n]*\\+"|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\d.+-]+)"""
        ),
        r"\1***",
    ),
    (
        re.compile(r"(?i)(\b\w{0,60}pass(?:wor[dt]|wd|phrase)\s*:\s+)(?=[^\s\"',;]*[\d!#$%&*+/?@^_=-])[^\s\"',;]+"),
        r"\1***",
    ),
)
_HINT = re.compile(
    r"(?i)://|PRIVATE KEY|authorization|bearer|basic|eyJ|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|AIza|pass|pwd"
    r"|secret|token|key|credential|auth"
)


def mask_credentials(text: str) -> str:
    """Return ``text`` without credentials: ``https://user:secret@host`` becomes ``https://***@host``."""
    if _HINT.search(text) is None:
        return text
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def bounded(text: str, limit: int = MAX_TEXT) -> str:
    """Return ``text``, cut in the middle if it is longer than ``limit``."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} … {text[-half + 3 :]}"


_LINE = re.compile(
    rf"""(?i)(?<![\w.\-/])["']?([\w.\-/]{{0,100}}{_NAME}[\w\-]{{0,60}})["']?\s{{0,20}}(?:=>|:=|[:=])\s*({_VALUE})""",
)
_REFERENCE = re.compile(r"(?i)(?:name|names|ref|class|type|path|file|mount|namespace|enabled|length|policy)$")


def credential_values(text: str) -> Iterator[str]:
    """Yield the values after names of credentials in a text of any format, even one that cannot be parsed."""
    for found in _LINE.finditer(text[:MAX_READ]):
        if _REFERENCE.search(found[1]) is None:
            yield found[2].strip("\"'")


def decoded(text: str) -> str:
    """Return the decoded base64 text, or an empty one if it is invalid."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


class Masker:
    """A callable that returns a text with the given values and everything that looks like a credential masked.

    ``values`` is called once, at the first text. ``plain`` returns names that are not secret although a Secret contains
    them.
    """

    __slots__ = ("_by_start", "_given", "_plain", "_slices")

    def __init__(self, values: Callable[[], Iterable[str]] = tuple, plain: Callable[[], Iterable[str]] = tuple) -> None:
        self._given = values
        self._plain = plain
        self._by_start: dict[str, list[str]] | None = None
        self._slices: dict[str, tuple[str, int]] = {}

    def __repr__(self) -> str:
        return "Masker(***)"

    def __call__(self, text: str, limit: int = MAX_TEXT) -> str:
        return bounded(mask_credentials(self._without_values(text[:MAX_READ])), limit)

    def _without_values(self, text: str) -> str:
        known = self._known()
        if not known:
            return text
        made: list[str] = []
        at = 0
        for start, end in _joined(self._spans(text, known)):
            made += (text[at:start], MASK)
            at = end
        return "".join((*made, text[at:]))

    def _known(self) -> dict[str, list[str]]:
        if self._by_start is None:
            by_start: dict[str, set[str]] = {}
            values = dict.fromkeys(self._given())
            plain = COMMON.union(self._plain()) if values else COMMON
            known = 0
            for number, value in enumerate(values):
                known += min(len(value), MAX_VALUE)
                if number >= MAX_VALUES or known > MAX_KNOWN:
                    break
                for spelling in _spellings(value[:MAX_VALUE]):
                    if len(spelling) >= LEAST and spelling not in plain and spelling.lower() not in COMMON:
                        by_start.setdefault(spelling[:LEAST], set()).add(spelling)
                        self._slice(spelling)
            self._by_start = {key: sorted(found, key=len, reverse=True) for key, found in by_start.items()}
            self._given = self._plain = tuple
        return self._by_start

    def _slice(self, spelling: str) -> None:
        if len(spelling) > SLICE and "\n" not in spelling and "://" not in spelling[:SLICE]:
            for at in range(0, len(spelling) - SLICE + 1, SLICE):
                self._slices.setdefault(spelling[at : at + SLICE], (spelling, at))
            self._slices.setdefault(spelling[-SLICE:], (spelling, len(spelling) - SLICE))

    def _spans(self, text: str, known: dict[str, list[str]]) -> Iterator[tuple[int, int]]:
        at = 0
        while at <= len(text) - LEAST:
            end = self._whole(text, at, known)
            if end:
                yield at, end
                at = end
                continue
            part = self._slices.get(text[at : at + SLICE])
            if part is not None:
                start, end = _stretched(text, at, *part)
                yield start, end
                at = end
                continue
            at += 1

    @staticmethod
    def _whole(text: str, at: int, known: dict[str, list[str]]) -> int:
        """Return the end of the longest value that begins at ``at``, or 0."""
        for spelling in known.get(text[at : at + LEAST], ()):
            end = at + len(spelling)
            if text.startswith(spelling, at) and (len(spelling) >= WHOLE or _is_word(text, at, end)):
                return end
        return 0


def _is_word(text: str, start: int, end: int) -> bool:
    return not text[max(start - 1, 0) : start].isalnum() and not text[end : end + 1].isalnum()


def _stretched(text: str, at: int, value: str, offset: int) -> tuple[int, int]:
    """Return the bounds of the longest part of ``value`` around ``at``."""
    start, before = at, offset
    while start > 0 and before > 0 and text[start - 1] == value[before - 1]:
        start, before = start - 1, before - 1
    end, after = at + SLICE, offset + SLICE
    while end < len(text) and after < len(value) and text[end] == value[after]:
        end, after = end + 1, after + 1
    return start, end


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join spans that touch or overlap: they are parts of one value."""
    last: tuple[int, int] | None = None
    for start, end in spans:
        if last is not None and start <= last[1]:
            last = min(last[0], start), max(last[1], end)
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last


def _spellings(value: str) -> set[str]:
    """Return the forms in which programs and APIs write a value: whole, by line, escaped, in base64, URL-quoted."""
    lines = [line.strip() for line in value.splitlines()]
    # A line of a file in a Secret is taken whole or not at all: "port: 80" stands in many texts.
    plain = {value, value.strip(), *(line for line in lines if len(line) >= WHOLE and len(lines) > 1)}
    found = set(plain)
    raw = value.encode("utf-8", "surrogatepass")
    for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        found |= {encoded.decode(), encoded.decode().rstrip("=")}
    for one in plain:
        escaped = json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1], repr(one)[1:-1]
        found |= {*escaped, quote(one, errors="replace"), quote(one, "", errors="replace")}
        found.add(quote_plus(one, errors="replace"))
    return {one for one in found if one}
