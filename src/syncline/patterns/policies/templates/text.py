"""What happens to the text of a template before Go's engine sees it; pure.

The text of an object is YAML. Templates that give another type than text lose their quotes, and ``autoindent`` becomes
``indent`` with the indentation of its line. The rules are those of upstream's go-template-utils.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from syncline.kube.gotemplate.lexer import BRACES, Delimiters
from syncline.kube.text.re2 import Searcher, compile_searcher

HUB: Final = Delimiters("{{hub", "hub}}")
MANAGED: Final = BRACES
ENCRYPTED: Final = "$ocm_encrypted:"


def has_template(text: str, delimiters: Delimiters, *, encrypted: bool = False) -> bool:
    """Return whether there is something to resolve; ``encrypted``: also encrypted values."""
    return delimiters.left in text or (encrypted and ENCRYPTED in text)


@lru_cache(maxsize=8)
def _patterns(delimiters: Delimiters) -> tuple[Searcher, Searcher, Searcher]:
    left, right = re.escape(delimiters.left), re.escape(delimiters.right)
    typed = (
        rf"(:\s+(?:[\|>]-?\s+)?'?\s*)({left}-?(?:.*\|\s*(?:toInt|toBool|toLiteral)"
        rf"|(?:.*(?:copyConfigMapData|copySecretData))).*{right})(\s*'?)"
    )
    indented = rf"( *)(?:'|\")?({left}.*\| *autoindent *-?{right})"
    secret = rf"{left}-?(\s*fromSecret\s+.*|\s*copySecretData\s+.*|.*\|\s*protect\s*)-?{right}"
    return (
        compile_searcher(typed, groups=True),
        compile_searcher(indented, groups=True),
        compile_searcher(secret, groups=True),
    )


def uses_encryption(text: str, delimiters: Delimiters) -> bool:
    """Return whether a template of the text gives an encrypted value."""
    return next(_found(text.encode(), _patterns(delimiters)[2]), None) is not None


def prepared(text: str, delimiters: Delimiters, more_indent: int) -> str:
    """Return the text for the engine. ``more_indent``: what ``indent`` adds by itself."""
    typed, indented, _ = _patterns(delimiters)
    data = text.encode("utf-8", "surrogateescape")
    made, at = [], 0
    for spans in _found(data, typed):
        made += [data[at : spans[0][0]], b": ", data[slice(*spans[2])]]
        at = spans[0][1]
    text = b"".join([*made, data[at:]]).decode("utf-8", "surrogateescape")
    if "autoindent" not in text:
        return text
    data, made, at = text.encode("utf-8", "surrogateescape"), [], 0
    for spans in _found(data, indented):
        start, end = spans[2]
        spaces = spans[1][1] - spans[1][0] - more_indent
        made += [data[at:start], data[start:end].replace(b"autoindent", f"indent {spaces}".encode(), 1)]
        at = end
    return b"".join([*made, data[at:]]).decode("utf-8", "surrogateescape")


def _found(data: bytes, pattern: Searcher) -> Iterator[tuple[tuple[int, int], ...]]:
    at = 0
    while (spans := pattern.search(data, at)) is not None:
        yield spans
        at = max(spans[0][1], at + 1)
