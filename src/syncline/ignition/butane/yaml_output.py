"""Prints a MachineConfig like Butane: go-yaml v3's block style, byte for byte, with its quirks: :func:`dump`.

Numbers have passed through JSON, so those from 1,000,000 on are written with an exponent; an empty line at the start of
a text is lost. Both are upstream's behavior.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, Final

from syncline.base.natural import by_number
from syncline.ignition.butane.scalars import OLD_BOOLS, resolve
from syncline.kube.yaml.resolve import go_shortest

_INDENT: Final = 2
_SIMPLE_KEY: Final = 128
"""Longer keys, in bytes, are written behind ``?``."""

_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")

_SPECIAL: Final = re.compile("[^\t\n\x20-\x7e]")
"""Candidates: what lies beyond ASCII is examined by :func:`_is_printable`, since large sets compile slowly."""
_BREAK: Final = "\r\n\x85\u2028\u2029"
_BREAKS: Final = re.compile(f"[{_BREAK}]")
_BREAK_RUN: Final = re.compile(f"[{_BREAK}]+(?=[^{_BREAK}])")
_BREAK_SPACE: Final = re.compile(f"[{_BREAK}] ")
_SPACE_BREAK: Final = re.compile(f" [{_BREAK}]")
_GAP: Final = r"[ \t\r\n\x85\u2028\u2029]"
_INDICATOR: Final = re.compile(
    rf"""[#,\[\]{{}}&*!|>'"%@`]|---|\.\.\.|[?:-](?:[ \t]|\Z)|.*?(?::(?:[ \t]|\Z)|{_GAP}#)""", re.DOTALL
)
"""Text that would begin or hold something else than a plain word: go-yaml's block indicators."""

_ESCAPES: Final = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e",
    '"': '"', "\\": "\\", "\x85": "N", "\u2028": "L", "\u2029": "P",
}  # fmt: skip
_ESCAPED: Final = re.compile(r'[^\x20-\x7e]|["\\]')


def dump(value: dict[str, Any]) -> str:
    """Return the mapping as YAML, every line ended by a newline."""
    return "".join(_mapping(value, 0))


def _mapping(value: dict[str, Any], indent: int) -> Iterator[str]:
    """Yield the text in pieces, including line ends."""
    pad = " " * indent
    for key in sorted(sorted(value), key=functools.cmp_to_key(key_order)):
        simple = not _BREAKS.search(key) and len(key.encode()) <= _SIMPLE_KEY
        if simple:
            lead = f"{pad}{_inline(key, 0)}:"
        else:
            yield f"{pad}? {_scalar(key, indent + _INDENT)}"
            lead = f"{pad}:"
        yield from _led(lead, value[key], indent, compact=not simple)


def _led(lead: str, value: Any, indent: int, *, compact: bool) -> Iterator[str]:
    """Yield ``value`` after ``lead``; ``compact``: a mapping or list may begin on the same line."""
    inner = indent + _INDENT
    if isinstance(value, dict | list) and value:
        pieces = _mapping(value, inner) if isinstance(value, dict) else _sequence(value, inner)
        yield f"{lead} {next(pieces)[inner:]}" if compact else f"{lead}\n"
        yield from pieces
    else:
        yield f"{lead} {_scalar(value, inner)}"


def _sequence(value: list[Any], indent: int) -> Iterator[str]:
    for item in value:
        yield from _led(f"{' ' * indent}-", item, indent, compact=True)


def _scalar(value: Any, indent: int) -> str:
    """Return a scalar after its key, with final line end; further lines are indented."""
    if isinstance(value, str):
        if "\n" in value and _block_allowed(value):
            return _literal(value, indent)
        return f"{_inline(value, indent)}\n"
    if isinstance(value, bool):
        return "true\n" if value else "false\n"
    if value is None:
        return "null\n"
    if isinstance(value, int | float):
        return f"{go_shortest(float(value))}\n"
    return "{}\n" if isinstance(value, dict) else "[]\n"


def _block_allowed(text: str) -> bool:
    return not (text.endswith(" ") or _SPACE_BREAK.search(text) or _has_special(text))


def _inline(text: str, indent: int) -> str:
    """Return the text plain if it parses to itself, otherwise quoted."""
    if text == "<<":
        return text  # go-yaml takes it for a merge key and writes it as it is
    tag, _ = resolve("", text)
    if "\n" in text or tag != "!!str" or text in OLD_BOOLS or _BASE_60.fullmatch(text):
        return _double_quoted(text)
    breaks = _BREAKS.search(text) is not None
    quoted = text[0] == " " or text[-1] == " " or breaks or _INDICATOR.match(text) is not None
    if "\t" in text or _has_special(text) or _BREAK_SPACE.search(text) or _SPACE_BREAK.search(text):
        return _double_quoted(text)
    if not quoted:
        return text
    return "'" + _BREAK_RUN.sub(lambda match: match[0] + " " * indent, text.replace("'", "''")) + "'"


def _has_special(text: str) -> bool:
    return any(not _is_printable(match[0]) for match in _SPECIAL.finditer(text))


def _is_printable(sign: str) -> bool:
    """Return True for printable characters beyond ASCII, except the byte order mark."""
    code = ord(sign)
    return 0xA0 <= code <= 0xD7FF or (0xE000 <= code <= 0xFFFD and code != 0xFEFF)


def _double_quoted(text: str) -> str:
    if text.startswith("\ufeff"):  # go-yaml looks for the mark at the beginning, whichever character it asks about
        return '"' + re.sub(".", _escape_always, text, flags=re.DOTALL) + '"'
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape_always(match: re.Match[str]) -> str:
    return "\\_" if match[0] == "\xa0" else _escape(match, spare=False)


def _escape(match: re.Match[str], *, spare: bool = True) -> str:
    short = _ESCAPES.get(match[0])
    if short is not None:
        return f"\\{short}"
    if spare and _is_printable(match[0]):
        return match[0]
    code = ord(match[0])
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _literal(text: str, indent: int) -> str:
    """Return a block; Unicode line separators count as breaks, too."""
    hints = str(_INDENT) if text[0] in " " + _BREAK else ""
    if text[-1] not in _BREAK:
        hints += "-"
    elif len(text) == 1 or text[-2] in _BREAK:
        hints += "+"
    pad = " " * indent
    # The break after the header is the first of the text, if the text begins with one: upstream loses it.
    body = text if text[0] in _BREAK else f"\n{text}"
    body = _BREAK_RUN.sub(lambda match: match[0] + pad, body)
    return f"|{hints}{body}" if text[-1] in _BREAK else f"|{hints}{body}\n"


def key_order(left: str, right: str) -> int:
    """Negative if ``left`` comes first: digits by value, letters after other characters, but before digits that follow
    digits (go-yaml v3 ``keyList``)."""
    digits = False
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            digits = a.isdecimal()
            continue
        if a.isalpha() and b.isalpha():
            return -1 if a < b else 1
        if a.isalpha() or b.isalpha():
            return -1 if (a.isalpha() if digits else b.isalpha()) else 1
        return by_number(left, right, index)
    return len(left) - len(right)
