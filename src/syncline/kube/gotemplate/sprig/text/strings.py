"""sprig's functions of strings. A length is in bytes and may cut a character. Source: sprig's strings.go, goutils."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_items, check_text
from syncline.kube.gotemplate.sprig.reflection import go_slice, joined, shown, strval, text_size
from syncline.kube.gotemplate.sprig.text.runes import (
    SPACES,
    all_lower,
    all_upper,
    is_letter,
    lower,
    runes,
    title,
    upper,
)
from syncline.kube.gotemplate.sprig.text.words import camel_case, delimited
from syncline.kube.gotemplate.values import StringMap, Strings, decode, encode

STRING, INT, BOOL, ANY = Kind.STRING, Kind.INT, Kind.BOOL, Kind.ANY


def _repeat(count: int, text: str) -> str:
    if count < 0:
        raise FunctionError("strings: negative Repeat count")
    check_text(text_size([text]) * count)
    return text * count


def _replace(old: str, new: str, text: str) -> str:
    count = text.count(old)
    check_text(text_size([text]) + count * (text_size([new]) - text_size([old])))
    return decode(encode(text).replace(encode(old), encode(new))) if old else text.replace(old, new)


def _indent(spaces: int, text: str) -> str:
    pad = _repeat(spaces, " ")
    return pad + _replace("\n", "\n" + pad, text)


def _trunc(count: int, text: str) -> str:
    data = encode(text)
    if count < 0:
        return decode(data[count:]) if len(data) + count > 0 else text
    return decode(data[:count])


def _substr(start: int, end: int, text: str) -> str:
    data = encode(text)
    if start < 0:
        return decode(go_slice(data, None, end))
    return decode(go_slice(data, start, None if end < 0 or end > len(data) else end))


def _abbrev(width: int, text: str) -> str:
    return text if width < 4 else decode(_abbreviated(encode(text), 0, width))


def _abbrev_both(left: int, right: int, text: str) -> str:
    if right < 4 or (left > 0 and right < 7):
        return text
    return decode(_abbreviated(encode(text), left, right))


def _abbreviated(data: bytes, offset: int, width: int) -> bytes:
    """Return at most ``width`` bytes that show those at ``offset``, with dots for what is left out."""
    if len(data) <= width:
        return data
    offset = min(offset, len(data), len(data) - width + 3 if len(data) - min(offset, len(data)) < width - 3 else offset)
    if offset <= 4:
        return data[: width - 3] + b"..."
    if offset + width - 3 < len(data):
        tail, inner = data[offset:], width - 3
        return b"..." + (tail if len(tail) <= inner else tail[: inner - 3] + b"...")
    return b"..." + data[len(data) - width + 3 :]


def _title(text: str) -> str:
    """Raise the first letter of each word; letters, digits and ``_`` continue a word, also signs beyond ASCII."""
    made, before = [], " "
    for char in runes(text):
        made.append(title(char) if _separates(before) else char)
        before = char
    return "".join(made)


def _separates(char: str) -> bool:
    if char.isascii():
        return not (char.isalnum() or char == "_")
    return not is_letter(char) and unicodedata.category(char) != "Nd" and char in SPACES


def _untitle(text: str) -> str:
    made, begins = [], True
    for char in runes(text):
        space = char in SPACES
        made.append(lower(char) if begins and not space else char)
        begins = space
    return "".join(made)


def _swapcase(text: str) -> str:
    """Swap cases; a lower-case letter that begins a word becomes a title letter."""
    made, begins = [], True
    for char in runes(text):
        match unicodedata.category(char):
            case "Lu" | "Lt":
                made.append(lower(char))
                begins = False
            case "Ll":
                made.append(title(char) if begins else upper(char))
                begins = False
            case _:
                made.append(char)
                begins = char in SPACES
    return "".join(made)


def _nospace(text: str) -> str:
    """Remove spaces; upstream reads bytes as characters, which garbles others than ASCII where there is a space."""
    bytewise = encode(text).decode("latin-1")
    kept = "".join(char for char in bytewise if char not in SPACES)
    return text if len(kept) == len(bytewise) else kept


def _initials(text: str) -> str:
    """Return the first byte of each word, as a character."""
    made, begins = [], True
    for char in encode(text).decode("latin-1"):
        space = char in SPACES
        if begins and not space:
            made.append(char)
        begins = space
    return "".join(made)


def _wrap(width: int, text: str) -> str:
    return decode(_wrapped(encode(text), max(width, 1), b"\n", cut=False))


def _wrap_with(width: int, separator: str, text: str) -> str:
    return decode(_wrapped(encode(text), max(width, 1), encode(separator) or b"\n", cut=True))


def _wrapped(data: bytes, width: int, separator: bytes, *, cut: bool) -> bytes:
    """Break lines at spaces; ``cut`` also breaks words longer than ``width`` bytes."""
    lines, offset = [], 0
    check_text(len(data) + (len(data) // width + 1) * len(separator))
    while len(data) - offset > width:
        if data[offset : offset + 1] == b" ":
            offset += 1
            continue
        space = data.rfind(b" ", offset, offset + width + 1)
        if space < 0 and cut:
            lines.append(data[offset : offset + width])
            offset += width
            continue
        if space < 0:
            space = data.find(b" ", offset + width)
        if space < 0:
            break
        lines.append(data[offset:space])
        offset = space + 1
    return separator.join([*lines, data[offset:]])


def _quote(*values: Any) -> str:
    return joined(" ", [sprintf("%q", strval(value)) for value in values if value is not None])


def _squote(*values: Any) -> str:
    return joined(" ", [f"'{shown(value)}'" for value in values if value is not None])


def _cat(*values: Any) -> str:
    return joined(" ", [shown(value) for value in values if value is not None])


def _parts(separator: str, text: str, most: int = -1) -> list[str]:
    """Split as ``strings.SplitN``: -1 for all parts; an empty separator splits after each character."""
    if most == 0:
        return []
    if not separator:
        count = len(text) if most < 0 else min(most, len(text))
        check_items(count)
        return [*text[: count - 1], text[count - 1 :]] if count else []
    parts = encode(text).split(encode(separator), most - 1 if most > 0 else -1)
    check_items(len(parts))
    return [decode(part) for part in parts]


def _numbered(parts: list[str]) -> StringMap:
    return StringMap((f"_{index}", part) for index, part in enumerate(parts))


def _contains(part: str, text: str) -> bool:
    return encode(part) in encode(text)


def _trim_prefix(prefix: str, text: str) -> str:
    return decode(encode(text).removeprefix(encode(prefix)))


def _trim_suffix(suffix: str, text: str) -> str:
    return decode(encode(text).removesuffix(encode(suffix)))


def _trim_all(signs: str, text: str) -> str:
    """Remove signs from both ends; U+FFFD stands for every byte that is no UTF-8."""
    strange = "".join(map(chr, range(0xDC80, 0xDD00)))
    cut = runes(signs)
    return text.strip(cut + strange if "\N{REPLACEMENT CHARACTER}" in cut else cut)


def _text(call: Any, *params: Kind, variadic: bool = False, result: Kind = STRING) -> Function:
    return Function(call, params, variadic, result)


TRIM_ALL = _text(_trim_all, STRING, STRING)

STRINGS: Mapping[str, Function] = {
    "abbrev": _text(_abbrev, INT, STRING),
    "abbrevboth": _text(_abbrev_both, INT, INT, STRING),
    "trunc": _text(_trunc, INT, STRING),
    "substr": _text(_substr, INT, INT, STRING),
    "trim": _text(lambda text: text.strip(SPACES), STRING),
    "trimall": TRIM_ALL,
    "trimAll": TRIM_ALL,
    "trimPrefix": _text(_trim_prefix, STRING, STRING),
    "trimSuffix": _text(_trim_suffix, STRING, STRING),
    "upper": _text(all_upper, STRING),
    "lower": _text(all_lower, STRING),
    "title": _text(_title, STRING),
    "untitle": _text(_untitle, STRING),
    "swapcase": _text(_swapcase, STRING),
    "camelcase": _text(camel_case, STRING),
    "snakecase": _text(lambda text: delimited(text, "_"), STRING),
    "kebabcase": _text(lambda text: delimited(text, "-"), STRING),
    "repeat": _text(_repeat, INT, STRING),
    "replace": _text(_replace, STRING, STRING, STRING),
    "nospace": _text(_nospace, STRING),
    "initials": _text(_initials, STRING),
    "wrap": _text(_wrap, INT, STRING),
    "wrapWith": _text(_wrap_with, INT, STRING, STRING),
    "contains": _text(_contains, STRING, STRING, result=BOOL),
    "hasPrefix": _text(lambda part, text: encode(text).startswith(encode(part)), STRING, STRING, result=BOOL),
    "hasSuffix": _text(lambda part, text: encode(text).endswith(encode(part)), STRING, STRING, result=BOOL),
    "quote": _text(_quote, ANY, variadic=True),
    "squote": _text(_squote, ANY, variadic=True),
    "cat": _text(_cat, ANY, variadic=True),
    "indent": _text(_indent, INT, STRING),
    "nindent": _text(lambda spaces, text: "\n" + _indent(spaces, text), INT, STRING),
    "plural": _text(lambda one, many, count: one if count == 1 else many, STRING, STRING, INT),
    "split": _text(lambda separator, text: _numbered(_parts(separator, text)), STRING, STRING, result=Kind.STRING_MAP),
    "splitn": _text(
        lambda separator, most, text: _numbered(_parts(separator, text, most)),
        STRING,
        INT,
        STRING,
        result=Kind.STRING_MAP,
    ),
    "splitList": _text(lambda separator, text: Strings(_parts(separator, text)), STRING, STRING, result=Kind.STRINGS),
}
