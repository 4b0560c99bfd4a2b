"""Words of identifiers: :func:`camel_case` joins them, :func:`delimited` puts a sign between them.

Rules of ``huandu/xstrings`` 1.5: ``HTTPServer`` and ``http2xx`` are two words each, ``Bld4Floor`` is ``bld4`` and
``floor``.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from syncline.kube.gotemplate.sprig.text.runes import SPACES, is_upper, lower, runes, upper

CONNECTOR, PUNCTUATION, UPPER, LETTER, NUMBER, OTHER = " ", ".", "U", "a", "0", "o"
_DASH = "-"
"""A connector that also continues punctuation."""
_CONNECTING = frozenset("-_" + SPACES)
_IDEOGRAPHS = ((0x3400, 0x4D85), (0x4E00, 0x9FCC), (0x20000, 0x2B81D))
"""Letters that form no words."""
_WORD = re.compile(r"[ -]+|\.[.-]*|U+(?=Ua)|Ua+|U+|a+|0+|o+")
_UNREADABLE = "\N{REPLACEMENT CHARACTER}"


class Word(NamedTuple):
    sort: str
    text: str


def camel_case(text: str) -> str:
    """Return ``SomeWords`` for ``some_words``: a connector raises what follows; those at the begin stay."""
    chars = runes(text)
    lead = len(chars) - len(chars.lstrip("".join(_CONNECTING)))
    if lead >= len(chars) - 1:
        return chars[:lead] + upper(chars[-1:])  # upstream writes the last of nothing but connectors twice
    made, shouting, last = [chars[:lead]], is_upper(chars[lead]), upper(chars[lead])
    for char in chars[lead + 1 :]:
        if last in _CONNECTING and char in _CONNECTING:
            made.append(last)
        elif last in _CONNECTING:
            shouting, char = is_upper(char), upper(char)
        else:
            shouting = shouting and is_upper(char)
            char = lower(char) if shouting else char
            made.append(last)
        last = char
    return "".join([*made, last])


def delimited(text: str, sign: str) -> str:
    """Return ``some_words`` for ``SomeWords``, with ``sign`` between words and for each connector."""
    words = [*_words(text), Word("", "")]
    made, at = [], 0

    def take(*sorts: str) -> None:
        nonlocal at
        while words[at].sort in sorts:
            made.append(_small(words[at], sign))
            at += 1

    def separate() -> None:
        if words[at].sort not in ("", CONNECTOR, PUNCTUATION):
            made.append(sign)

    while at < len(words) - 1:
        word = words[at]
        made.append(_small(word, sign))
        at += 1
        if word.sort == NUMBER:
            take(LETTER, NUMBER)
            separate()
        elif word.sort not in (CONNECTOR, PUNCTUATION):
            number = words[at]
            if number.sort != NUMBER:
                separate()
            elif words[at + 1].sort == LETTER:
                made.append(sign)
                take(NUMBER, LETTER)
                separate()
            else:
                made.append(_small(number, sign))
                at += 1
                separate()
    return "".join(made)


def _small(word: Word, sign: str) -> str:
    if word.sort == CONNECTOR:
        return "".join(sign if char in _CONNECTING else char for char in word.text)
    return "".join(map(lower, word.text)) if word.sort == UPPER else word.text


def _words(text: str) -> list[Word]:
    """Split into runs of one sort. A character that cannot be read belongs to the next one, at the end to the last."""
    chars = runes(text)
    sorts = ["" if char == _UNREADABLE else _sort(char) for char in chars]
    following = ""
    for index in range(len(sorts) - 1, -1, -1):
        following = sorts[index] = sorts[index] or following
    last = OTHER
    for index, sort in enumerate(sorts):
        last = sorts[index] = sort or last
    return [
        Word(CONNECTOR if found[0][0] == _DASH else found[0][0], text[found.start() : found.end()])
        for found in _WORD.finditer("".join(sorts))
    ]


def _sort(char: str) -> str:
    category = unicodedata.category(char)
    if char in _CONNECTING:
        return _DASH if char in "-_" else CONNECTOR
    if category == "Lu":
        return UPPER
    if category[0] == "L" and not any(low <= ord(char) <= high for low, high in _IDEOGRAPHS):
        return LETTER
    return {"P": PUNCTUATION, "N": NUMBER}.get(category[0], OTHER)
