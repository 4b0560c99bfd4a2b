"""Questions over many paths or spans whose cost does not grow with the square of their number: configurations of
strangers may hold a hundred thousand of each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

Span: TypeAlias = "tuple[int, int]"
"""First and last, both inside."""


class Prefixes:
    """Texts that others may begin with."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._places: dict[str, list[int]] = {}
        for index, text in enumerate(texts):
            self._places.setdefault(text, []).append(index)
        self._lengths = sorted({len(text) for text in self._places})

    def of(self, text: str) -> Iterator[int]:
        """Indices of the texts that ``text`` begins with, those of shorter ones first."""
        for length in self._lengths:
            if length > len(text):
                return
            yield from self._places.get(text[:length], ())


_CROOKED_MAX = 1024
"""Spans that end before they begin make the answer depend on who is asked, so all pairs are tried; with more spans than
any disk can have partitions the crooked ones are passed over."""


def first_overlap(spans: Sequence[Span | None]) -> int | None:
    """Upstream's answer to which spans collide: for the first span that touches another, the first one it touches."""
    known = {index: span for index, span in enumerate(spans) if span is not None}
    if len(known) <= _CROOKED_MAX and any(end < start for start, end in known.values()):
        asking: Iterable[int] = known
    else:
        known = {index: (start, end) for index, (start, end) in known.items() if start <= end}
        asking = _colliding(known)
    for index in asking:
        for other, against in known.items():
            if other != index and _touch(known[index], against):
                return other
    return None


def _colliding(known: dict[int, Span]) -> Iterator[int]:
    """Spans that another one touches: more spans begin before their end than end before their begin, without them."""
    starts = sorted(start for start, _ in known.values())
    ends = sorted(end for _, end in known.values())
    for index, (start, end) in known.items():
        if bisect_right(starts, end) - bisect_left(ends, start) > 1:
            yield index
            return


def _touch(one: Span, other: Span) -> bool:
    (start, end), (first, last) = one, other
    return first <= start <= last or first <= end <= last or (start < first and end > last)
