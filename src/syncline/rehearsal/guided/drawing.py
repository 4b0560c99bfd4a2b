"""Schedules that reverse, or die in, the conflicts of a run first, and blind ones among them: :class:`Guide`."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import TypeVar

from syncline.base.entropy import Entropy
from syncline.rehearsal.faults import Fault, Kind, Schedule, drawn
from syncline.rehearsal.guided.conflicts import Conflict, Order

T = TypeVar("T")

REVERSING: Mapping[Order, tuple[tuple[str, ...], ...]] = {
    Order.SEEN: (("late", "parted"), ("stale-list", "refusals")),
    Order.DECIDED: (("stood-still",), ("kill-before", "lost-request")),
    Order.OVERWRITTEN: (("stood-still",), ("lost-answer",)),
    Order.BETWEEN: (("kill",), ("lost-answer", "away")),
}
"""Kinds of faults that reverse a pair, or die in it: the plainest first, then others."""
OF_READER = frozenset({"late", "stale-list"})
"""Kinds that strike the process that reads, not the one that writes."""
BLIND = 4
"""Every so many schedules one is drawn without guidance: what a trace does not show is not left out."""
SEVERAL = 3
"""Most attempts of a schedule. A fault may shift the steps after it; each attempt comes alone, too."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A fault that is to reverse a pair."""

    conflict: Conflict
    fault: Fault


@dataclass(frozen=True)
class Guide:
    """Draws schedules of one scenario. ``steps``: those of its undisturbed run."""

    scenario: str
    steps: int
    kinds: Mapping[str, Kind]
    conflicts: Sequence[Conflict]

    def attempts(self, seed: int) -> list[Attempt]:
        """Return one attempt for each pair and kind. One of each shape comes before the second of any, since nodes and
        objects of one kind are treated alike; then the plainer kinds, and passes that write; the rest is an order of
        the seed."""
        chance = Entropy(f"{self.scenario}/guided/{seed}")
        alike: dict[tuple[object, ...], list[tuple[int, Attempt]]] = {}
        for conflict in self.conflicts:
            for rank, names in enumerate(REVERSING[conflict.order]):
                for name in filter(self.kinds.__contains__, names):
                    who = conflict.who if name in OF_READER else ""
                    attempt = Attempt(conflict, Fault(name, max(conflict.first, 1), who))
                    alike.setdefault((*conflict.shape, name), []).append((rank, attempt))
        ranked: list[tuple[int, int, float, Attempt]] = []
        for several in alike.values():
            for turn, (rank, attempt) in enumerate(_shuffled(several, chance)):
                ranked.append((turn, rank + (not attempt.conflict.acts), chance.uniform(0, 1), attempt))
        ranked.sort(key=lambda one: one[:3])
        found: dict[Fault, Attempt] = {}
        for *_, attempt in ranked:
            found.setdefault(attempt.fault, attempt)
        return list(found.values())

    def schedules(self, seed: int) -> Iterator[Schedule]:
        """Yield schedules without end: the attempts in threes, then one by one, then drawn ones together with an order
        of ready keys; every :data:`BLIND` th is one that is drawn blindly."""
        attempts, chance = self.attempts(seed), Entropy(f"{self.scenario}/mixed/{seed}")
        together = list(_together(attempts))
        alone = {one[0].fault for one in together if len(one) == 1}
        planned = chain(together, ([attempt] for attempt in attempts if attempt.fault not in alone))
        for number in count(1):
            if number % BLIND == 0 or not attempts:
                yield self.blind(seed, number)
                continue
            chosen, order = next(planned, None), 0
            if chosen is None:
                chosen, order = (
                    _shuffled(attempts, chance)[: 1 + chance.randrange(SEVERAL)],
                    chance.randrange(10**6) + 1,
                )
            faults = {attempt.fault for attempt in chosen}
            yield Schedule(self.scenario, tuple(sorted(faults, key=lambda each: (each.at, str(each)))), order)

    def blind(self, seed: int, number: int) -> Schedule:
        """Return a schedule that is drawn without guidance."""
        return drawn(self.scenario, seed * 1_000_003 + number, max(self.steps, 1), self.kinds)


def untried(pairs: Sequence[Conflict], attempts: Sequence[Attempt], tried: Collection[Fault]) -> list[Conflict]:
    """Return the pairs that none of the faults was to reverse, in order."""
    reversing = dict.fromkeys(pairs, False)
    for attempt in attempts:
        reversing[attempt.conflict] |= attempt.fault in tried
    return [conflict for conflict, done in reversing.items() if not done]


def _together(attempts: Sequence[Attempt]) -> Iterator[list[Attempt]]:
    """Yield the attempts in threes, by turns one that comes between two writes of a pass with two that strike later,
    and three others. What is between two writes is seldom met by chance, and only in a run that is undisturbed until
    then."""
    torn = deque(attempt for attempt in attempts if _tears(attempt.conflict))
    others = [attempt for attempt in attempts if not _tears(attempt.conflict)]
    while torn or others:
        if torn:
            first = torn.popleft()
            later = list(islice((one for one in others if one.fault.at > first.fault.at), SEVERAL - 1))
            others = [one for one in others if one not in later]
            yield [first, *later]
        if others:
            yield others[:SEVERAL]
            others = others[SEVERAL:]


def _tears(conflict: Conflict) -> bool:
    """Return whether a fault comes between two writes of one pass."""
    return conflict.order is Order.BETWEEN and conflict.acts


def _shuffled(items: Sequence[T], chance: Entropy) -> list[T]:
    left, found = list(items), []
    while left:
        found.append(left.pop(chance.randrange(len(left))))
    return found
