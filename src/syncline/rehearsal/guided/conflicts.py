"""Which order of which two accesses could matter: :func:`conflicts`, a pure function of the turns of one run.

Two accesses conflict if they meet in a field, one of them writes, and they are of different processes; of one process,
if it can die between them. As in dynamic partial order reduction only neighbours count: what lies further apart is
reversed by reversing what is between. Unlike it, nothing is proved by what is left out: accesses that do not show in a
trace (of machines, clocks, Git) conflict unseen, so schedules that are drawn blindly remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import pairwise
from typing import Any

from syncline.rehearsal.guided.accesses import CLUSTER, Place, Turn


class Order(StrEnum):
    """How two accesses followed one another."""

    SEEN = "a write, then a pass of another process that read it"
    DECIDED = "a pass read it and wrote, then another process wrote what it had read"
    OVERWRITTEN = "two writes of one field by different processes"
    BETWEEN = "two writes of one process, which can die between them"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A pair of accesses. ``first`` and ``second``: the steps of which each is or after which it was; ``who``: the
    process that is to be late, or to die; ``by``: its controller; ``other``: that of the other access (empty: the
    cluster itself)."""

    order: Order
    first: int
    second: int
    who: str
    by: str
    other: str
    place: Place
    acts: bool = True
    """Both writes are of one pass (BETWEEN), or the pass that read it wrote (SEEN)."""
    then: str = ""
    """Of what kind the object of the second write is (BETWEEN)."""

    @property
    def shape(self) -> tuple[object, ...]:
        """What it has in common with conflicts of other nodes and objects: order, controllers, kind and field; of two
        writes of one process also the kind of the second, and whether one pass makes both: only that one relies on
        their order."""
        parts = [part for part in self.place.path if "/" not in part or "." in part.partition("/")[0]]
        torn = self.acts if self.order is Order.BETWEEN else None
        return self.order, self.by, self.other, self.place.kind, ".".join(parts), self.then, torn

    def to_obj(self) -> list[Any]:
        """Return the conflict as JSON."""
        return [*(getattr(self, each.name) for each in fields(self))]

    @classmethod
    def of_obj(cls, found: Sequence[Any]) -> Conflict:
        order, first, second, who, by, other, (what, path), acts, then = found
        return cls(Order(order), first, second, who, by, other, Place(what, tuple(path)), acts, then)

    def __str__(self) -> str:
        actors = " | ".join(dict.fromkeys((self.by or "the cluster", self.other or "the cluster")))
        return f"{self.first} and {self.second}: {self.order}: {actors}: {self.place}"


@dataclass(frozen=True, slots=True)
class _Write:
    turn: int
    step: int
    place: Place


def conflicts(turns: Sequence[Turn]) -> tuple[Conflict, ...]:
    """Return the pairs of neighbouring accesses whose order could matter, by their steps; the passes that wrote
    nothing count as readers, too, since in another order they might."""
    found = dict.fromkeys((*_of_readers(turns), *_of_writers(turns), *_of_one(turns)))
    kept: dict[tuple[Order, int, int, str], Conflict] = {}
    for one in found:  # of several fields the first by name stands for all
        kept.setdefault((one.order, one.first, one.second, one.who), one)
    return tuple(sorted(kept.values(), key=lambda one: (one.first, one.second, one.order, one.who)))


def _writes(turns: Sequence[Turn]) -> Mapping[str, list[_Write]]:
    """Return the writes by object, in order."""
    found: dict[str, list[_Write]] = {}
    for number, turn in enumerate(turns):
        for step, places in turn.writes:
            for place in sorted(places):
                found.setdefault(place.what, []).append(_Write(number, step, place))
    return found


def _of_readers(turns: Sequence[Turn]) -> Iterator[Conflict]:
    """The last foreign write before each read, and the first one after it."""
    writes, last = _writes(turns), max((step for turn in turns for step, _ in turn.writes), default=0)
    for number, turn in enumerate(turns):
        if turn.after > last:
            return
        decides = turn.writes[0][0] if turn.writes else 0
        for place in sorted(turn.reads):
            before: _Write | None = None
            for write in writes.get(place.what, ()):
                other = turns[write.turn]
                if other.who == turn.who or not write.place.meets(place):
                    continue
                if write.turn < number:
                    before = write
                    continue
                if decides:
                    yield Conflict(
                        Order.DECIDED, decides, write.step, turn.who, turn.controller, other.controller, place
                    )
                break
            if before is not None and before.step:
                other = turns[before.turn]
                second, by = decides or turn.after, turn.controller
                yield Conflict(Order.SEEN, before.step, second, turn.who, by, other.controller, place, bool(decides))


def _of_writers(turns: Sequence[Turn]) -> Iterator[Conflict]:
    for writes in _writes(turns).values():
        for place, first in enumerate(writes):
            one = turns[first.turn]
            if one.who == CLUSTER:
                continue
            for second in writes[place + 1 :]:
                other = turns[second.turn]
                if other.who != one.who and first.place.meets(second.place):
                    yield Conflict(
                        Order.OVERWRITTEN,
                        first.step,
                        second.step,
                        one.who,
                        one.controller,
                        other.controller,
                        first.place,
                    )
                    break


def _of_one(turns: Sequence[Turn]) -> Iterator[Conflict]:
    """What a process wrote and later reads again, with its next write behind it."""
    mine: dict[str, list[tuple[int, Turn, frozenset[Place]]]] = {}
    for turn in turns:
        for step, places in turn.writes if turn.who != CLUSTER else ():
            mine.setdefault(turn.who, []).append((step, turn, places))
    for who, writes in mine.items():
        read: dict[str, set[Place]] = {}
        for turn in turns:
            for place in turn.reads if turn.who == who else ():
                read.setdefault(place.what, set()).add(place)
        for (step, turn, places), (then, following, next_places) in pairwise(writes):
            seen = (place for place in sorted(places) if any(map(place.meets, read.get(place.what, ()))))
            met, by = next(seen, None), turn.controller
            if met is not None or any(place.what.startswith("machine ") for place in places):
                place = met or next(iter(places))
                yield Conflict(Order.BETWEEN, step, then, who, by, by, place, turn is following, min(next_places).kind)
