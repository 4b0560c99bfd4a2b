"""Single characters as Go sees them: its spaces, its cases (one character becomes one), and strings that are no UTF-8.

Python's ``upper`` turns ``ß`` into two letters and its ``lower`` knows the final sigma; Go's do not.
"""

from __future__ import annotations

import re
import unicodedata

SPACES = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_NO_TEXT = re.compile("[\ud800-\udfff]")


def runes(text: str) -> str:
    """Return the characters of a Go string: each byte that is no UTF-8 becomes U+FFFD."""
    return text if text.isascii() else _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def is_upper(char: str) -> bool:
    return unicodedata.category(char) == "Lu"


def is_letter(char: str) -> bool:
    return unicodedata.category(char)[0] == "L"


def upper(char: str) -> str:
    """Return the upper case of a character where that is one character."""
    raised = char.upper()
    return raised if len(raised) == 1 else title(char)


def title(char: str) -> str:
    raised = char.title()
    return raised if len(raised) == 1 else char


def lower(char: str) -> str:
    return "i" if char == "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" else char.lower()


def all_upper(text: str) -> str:
    return text.upper() if text.isascii() else "".join(map(upper, runes(text)))


def all_lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(map(lower, runes(text)))
