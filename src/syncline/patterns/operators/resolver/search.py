"""A bounded search for a set of variables that satisfies all constraints, and the reasons if there is none.

The first candidate of a dependency is preferred, as in upstream's solver (``resolver/solver``); the same input gives
the same answer. Upstream's is a SAT solver; here candidates are tried in order, and what follows from each choice is
derived at once, so that a contradiction shows without trying all combinations. Everything has a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

MOST_STEPS: Final = 400_000
"""Variables that are decided, in one search."""
MOST_WORK: Final = 100_000
"""Constraints that are searched again, in total, to reduce the reasons of a failure to those that matter."""


class TooManySteps(ValueError):
    """The search was given up."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One constraint of a variable, with the text that says it.

    ``must``: the variable is in each answer. ``never``: in none. ``one_of``: with it at least one of these (empty:
    nothing can be). ``without``: not together with this one. ``most_one_of``: at most one of these, whatever else.
    """

    text: str
    must: bool = False
    never: bool = False
    one_of: tuple[str, ...] | None = None
    without: str = ""
    most_one_of: tuple[str, ...] = ()


Rules = Mapping[str, Sequence[Rule]]
"""The constraints of each variable."""
Known = dict[str, bool]
"""What is decided: whether a variable is in the answer."""
Needs = list[tuple[str, ...]]


@dataclass(slots=True)
class _Search:
    rules: Rules
    most: int
    steps: int = 0
    apart: dict[str, set[str]] = field(init=False)
    groups: dict[str, list[tuple[str, ...]]] = field(init=False)
    needed_by: dict[str, list[tuple[str, tuple[str, ...]]]] = field(init=False)

    def __post_init__(self) -> None:
        self.apart, self.groups, self.needed_by = {}, {}, {}
        for name, rules in self.rules.items():
            for rule in rules:
                if rule.without:
                    self.apart.setdefault(name, set()).add(rule.without)
                    self.apart.setdefault(rule.without, set()).add(name)
                for each in rule.most_one_of:
                    self.groups.setdefault(each, []).append(rule.most_one_of)
                for each in rule.one_of or ():
                    self.needed_by.setdefault(each, []).append((name, rule.one_of or ()))

    def needs(self, name: str) -> Needs:
        return [rule.one_of for rule in self.rules.get(name, ()) if rule.one_of is not None]

    def decide(self, known: Known, queue: list[tuple[str, bool]]) -> bool:
        """Add decisions and all that follow from them; returns whether they agree."""
        while queue:
            name, value = queue.pop()
            before = known.get(name)
            if before is value:
                continue
            self.steps += 1
            if self.steps > self.most:
                raise TooManySteps(f"no answer after {self.most} steps")
            if before is not None:
                return False
            known[name] = value
            queue += self._excluded(name) if value else []
            clauses = [(name, need) for need in self.needs(name)] if value else self.needed_by.get(name, ())
            for one, need in clauses:
                open_ = [each for each in need if known.get(each) is not False]
                if not open_:
                    queue.append((one, False))
                elif len(open_) == 1 and known.get(one):
                    queue.append((open_[0], True))
        return True

    def _excluded(self, name: str) -> list[tuple[str, bool]]:
        """Return what cannot be together with a variable."""
        together = (each for group in self.groups.get(name, ()) for each in group if each != name)
        return [(each, False) for each in (*self.apart.get(name, ()), *together)]

    def begin(self) -> Known | None:
        """Return what the rules alone decide; None: they contradict each other."""
        first: list[tuple[str, bool]] = []
        for name, own in self.rules.items():
            first += [(name, True) for rule in own if rule.must]
            # A need that nothing can meet rules its variable out, whether it is chosen or not.
            first += [(name, False) for rule in own if rule.never or rule.one_of == ()]
        known: Known = {}
        return known if self.decide(known, first) else None

    def run(self, chosen: dict[str, None], open_: Needs, known: Known) -> dict[str, None] | None:
        """Choose a candidate for each open need; a stack of choices instead of recursion."""
        stack: list[tuple[dict[str, None], Needs, Known, int]] = [(chosen, open_, known, 0)]
        while stack:
            chosen, open_, known, first = stack.pop()
            while open_ and any(one in chosen for one in open_[0]):
                open_, first = open_[1:], 0
            if not open_:
                return chosen
            for index in range(first, len(open_[0])):
                name, after = open_[0][index], dict(known)
                if known.get(name) is not False and self.decide(after, [(name, True)]):
                    stack.append((chosen, open_, known, index + 1))
                    stack.append(({**chosen, name: None}, [*open_[1:], *self.needs(name)], after, 0))
                    break
        return None


def _answer(rules: Rules, most: int) -> list[str] | None:
    search = _Search(rules, most)
    known = search.begin()
    if known is None:
        return None
    chosen = dict.fromkeys(name for name, own in rules.items() if any(rule.must for rule in own))
    found = search.run(dict(chosen), [need for name in chosen for need in search.needs(name)], known)
    return None if found is None else list(found)


def solve(rules: Rules, most: int = MOST_STEPS) -> tuple[list[str], tuple[str, ...]]:
    """Return the chosen variables, in the order in which they were needed, and the texts of the constraints that
    contradict each other if nothing can be chosen. Raises :class:`TooManySteps`."""
    found = _answer(rules, most)
    return (found, ()) if found is not None else ([], _contradiction(rules, most))


def _contradiction(rules: Rules, most: int) -> tuple[str, ...]:
    """Return the texts of a set of constraints of which none can be left out: large parts are left out first."""
    kept = [(name, rule) for name, own in rules.items() for rule in own]
    size, work = max(len(kept) // 2, 1), 0
    while work < MOST_WORK:
        at, before = 0, len(kept)
        while at < len(kept) and work < MOST_WORK:
            rest = [*kept[:at], *kept[at + size :]]
            work += len(rest)
            if _answer(_grouped(rest), most) is None:
                kept = rest
            else:
                at += size
        if size == 1 and len(kept) == before:
            break
        size = max(size // 2, 1)
    return tuple(sorted(rule.text for _, rule in kept))


def _grouped(pairs: Iterable[tuple[str, Rule]]) -> Rules:
    made: dict[str, list[Rule]] = {}
    for name, rule in pairs:
        made.setdefault(name, []).append(rule)
    return made
