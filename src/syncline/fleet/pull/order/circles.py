"""Circles among things that wait for one another; pure. Each thing and each wait is looked at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, Generic, TypeVar

N = TypeVar("N", bound=Hashable)
MAX_FOLLOWED: Final = 20_000
"""Things that are followed; of those further away nothing is known."""


class Circles(Generic[N]):
    """Finds the circle that a thing is in. ``following``: what it waits for."""

    def __init__(self, following: Callable[[N], Iterable[N]]) -> None:
        self._following = following
        self._after: dict[N, tuple[N, ...]] = {}
        self._number: dict[N, int] = {}
        self._lowest: dict[N, int] = {}
        self._open: dict[N, None] = {}
        """What is followed now and belongs to no part yet."""
        self._circles: dict[N, tuple[N, ...]] = {}

    def of(self, start: N) -> tuple[N, ...]:
        """Return the circle that a thing is in, from it and without its repetition at the end; empty: it is in none.
        One that is in several gets one of them; if that leads by others only, it begins elsewhere."""
        if start not in self._number:
            self._follow(start)
        found = self._circles.get(start, ())
        if start not in found:
            return found
        at = found.index(start)
        return (*found[at:], *found[:at])

    def _follow(self, start: N) -> None:
        """Part what can be reached into strongly connected parts, as Tarjan does, without recursion."""
        way: list[tuple[N, Iterator[N]]] = [(start, self._begin(start))]
        while way:
            one, left = way[-1]
            following = next(left, None)
            if following is None:
                way.pop()
                if way:
                    before = way[-1][0]
                    self._lowest[before] = min(self._lowest[before], self._lowest[one])
                if self._lowest[one] == self._number[one]:
                    self._close(one)
            elif following not in self._number:
                way.append((following, self._begin(following)))
            elif following in self._open:
                self._lowest[one] = min(self._lowest[one], self._number[following])

    def _begin(self, one: N) -> Iterator[N]:
        self._number[one] = self._lowest[one] = len(self._number)
        self._open[one] = None
        known = len(self._number) < MAX_FOLLOWED
        self._after[one] = tuple(dict.fromkeys(self._following(one))) if known else ()
        return iter(self._after[one])

    def _close(self, root: N) -> None:
        part: dict[N, None] = {}
        while root not in part:
            part[self._open.popitem()[0]] = None
        if len(part) == 1 and root not in self._after[root]:
            return
        self._circles |= dict.fromkeys(part, self._circle(root, part))

    def _circle(self, start: N, part: dict[N, None]) -> tuple[N, ...]:
        """Return the shortest way from a thing back to it."""
        before: dict[N, N] = {}
        waiting = deque([start])
        while start not in before:
            one = waiting.popleft()
            for following in self._after[one]:
                if following in part and following not in before:
                    before[following] = one
                    waiting.append(following)
        found = [start]
        while (earlier := before[found[-1]]) != start:
            found.append(earlier)
        return tuple(reversed([*found[1:], start])) if len(found) > 1 else (start,)
