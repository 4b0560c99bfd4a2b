"""Names made of other texts: :func:`normalize`, :func:`slug`, :func:`slugify`.

Source of the rules: Argo CD ``SanitizeName`` and ``SlugifyName``; ``gosimple/slug`` 1.15 with English substitutions.
"""

from __future__ import annotations

import re
from typing import Any

from syncline.appset.rendering.goforms import GO_SPACE
from syncline.kube.gotemplate.functions import FunctionError
from syncline.kube.gotemplate.values import go_type

MAX_NAME = 253
MAX_SLUG = 50
"""Bytes of ``branch_slug``, and of ``slugify`` without a size."""

_NOT_IN_NAMES = re.compile("[^-a-z0-9.]")
_NOT_IN_SLUGS = re.compile("[^a-zA-Z0-9_-]")
_DASHES = re.compile("-+")
_ENGLISH = str.maketrans({"&": "and", "@": "at"})
_UNKNOWN = "[?]"
"""What the table has for letters that it does not know; upstream's has nothing."""


def normalize(text: str) -> str:
    """Lower-case, ``-`` for what a DNS name cannot have, at most 253 characters, no ``-`` and ``.`` at the ends."""
    # Of the letters beyond ASCII two have an ASCII letter as lower case: Python writes the first as two characters.
    lower = text.replace("\u0130", "i").lower()
    return _NOT_IN_NAMES.sub("-", lower)[:MAX_NAME].strip("-.")


def slug(text: str, size: int = MAX_SLUG, *, whole_words: bool = True) -> str:
    """Transliterate to ASCII, lower-case, ``-`` for everything but letters, digits and ``_``; cut at ``size`` bytes,
    after a whole word if there is one."""
    made = _ascii(text.strip(GO_SPACE).translate(_ENGLISH)).lower()
    if not whole_words and len(made) >= size:
        if size < 0:
            raise FunctionError(f"runtime error: slice bounds out of range [:{size}]")
        made = made[:size]
    made = _DASHES.sub("-", _NOT_IN_SLUGS.sub("-", made)).strip("-_")
    if not (whole_words and 0 < size < len(made)):
        return made
    cut = made.rfind("-", 0, size + 1)
    return made[:cut] if cut >= 0 else made[:size]


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    from text_unidecode import unidecode  # reads a table of 0.3 MB

    letters = (letter if letter.isascii() else unidecode(letter) for letter in text)
    return "".join("" if letter.startswith(_UNKNOWN) else letter for letter in letters)


def slugify(*given: Any) -> str:
    """The template function: ``[size [whole words]] text``. Raises :class:`FunctionError` for other types."""
    size, whole_words, text = MAX_SLUG, True, ""
    for index, value in enumerate(given):
        if index == len(given) - 1:
            text = _of_type(value, "string")
        elif index == 0:
            size = _of_type(value, "int")
        elif index == 1:
            whole_words = _of_type(value, "bool")
    return slug(normalize(text), size, whole_words=whole_words)


def _of_type(value: Any, wanted: str) -> Any:
    found = go_type(value)
    if found != wanted:
        shown = "nil" if value is None else found
        raise FunctionError(f"interface conversion: interface {{}} is {shown}, not {wanted}")
    return value
