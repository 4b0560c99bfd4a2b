"""Resolve a number of pods that may be a percentage."""

from __future__ import annotations

import math


def share(value: int | str, of: int, *, up: bool) -> int:
    """Return ``value`` itself, or its percentage of ``of``, rounded up or down (``GetScaledValueFromIntOrPercent``);
    other text is 0."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    percent = int(text) if text.isascii() and text.isdigit() else 0
    return math.ceil(percent * of / 100) if up else percent * of // 100
