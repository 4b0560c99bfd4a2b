"""Whole numbers that strangers wrote as text: annotations, parameters, versions.

Python reads more than Go does (``"²".isdigit()``, ``int("１")``) and refuses what is very long; so ask here.
"""

from __future__ import annotations

__all__ = ["MOST_INT64", "MOST_UINT64", "natural"]

MOST_INT64 = 2**63 - 1
MOST_UINT64 = 2**64 - 1
DIGITS = 20
"""Of the largest number that Go's integers hold; zeros in front do not count."""


def natural(text: object, most: int = MOST_INT64) -> int | None:
    """The number that ``text`` is, when it is plain digits and at most ``most``; else None."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit():
        return None
    text = text.lstrip("0") or "0"
    if len(text) > DIGITS:
        return None
    number = int(text)
    return number if number <= most else None
