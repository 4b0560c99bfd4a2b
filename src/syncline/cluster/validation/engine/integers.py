"""Parse integers in untrusted text: annotations, parameters, versions.

Python accepts more than Go (``"²".isdigit()``, ``int("１")``) and refuses very long numbers, so use :func:`natural`.
"""

from __future__ import annotations

MOST_INT64 = 2**63 - 1
MOST_UINT64 = 2**64 - 1
DIGITS = 20
"""Digits of Go's largest integer; leading zeros do not count."""


def natural(text: object, most: int = MOST_INT64) -> int | None:
    """Return the number in ``text`` if it is plain digits and at most ``most``; else None."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit():
        return None
    text = text.lstrip("0") or "0"
    if len(text) > DIGITS:
        return None
    number = int(text)
    return number if number <= most else None
