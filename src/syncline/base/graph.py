"""Stable topological order."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = ["CycleError", "topological"]

N = TypeVar("N", bound=Hashable)


class CycleError(ValueError):
    """Some nodes wait for each other; ``cycle`` lists one such ring, first node repeated at the end."""

    def __init__(self, cycle: list[object]) -> None:
        self.cycle = cycle
        super().__init__("these wait for each other: " + " -> ".join(str(n) for n in cycle))


def topological(nodes: Iterable[N], before: Mapping[N, Iterable[N]]) -> list[N]:
    """Order ``nodes`` so that every ``before[n]`` stands ahead of ``n``; ties keep the order given.

    Dependencies that are not among ``nodes`` are ignored. Raises :class:`CycleError`.
    """
    order = {node: index for index, node in enumerate(nodes)}
    needs = {node: {d for d in before.get(node, ()) if d in order and d != node} for node in order}
    followers: dict[N, list[N]] = {node: [] for node in order}
    for node, wanted in needs.items():
        for dependency in wanted:
            followers[dependency].append(node)
    names = list(order)
    ready = [order[node] for node, wanted in needs.items() if not wanted]
    heapq.heapify(ready)
    done: list[N] = []
    while ready:
        node = names[heapq.heappop(ready)]
        done.append(node)
        for follower in followers[node]:
            needs[follower].discard(node)
            if not needs[follower]:
                heapq.heappush(ready, order[follower])
    if len(done) < len(order):
        left = {node: wanted for node, wanted in needs.items() if wanted}
        raise CycleError(_ring(left))
    return done


def _ring(left: Mapping[N, set[N]]) -> list[object]:
    path: list[N] = []
    node = next(iter(left))
    while node not in path:
        path.append(node)
        node = min(left[node], key=str)
    return [*path[path.index(node) :], node]
