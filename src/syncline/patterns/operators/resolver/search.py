"""A bounded search for a set of variables that satisfies all constraints, and the reasons if there is none.

The first candidate of a dependency is preferred, as in upstream's solver (``resolver/solver``); the same input gives
the same answer. Upstream's is a SAT solver; here candidates are tried in order, with a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

MOST_STEPS: Final = 200_000
MOST_MINIMIZED: Final = 400
"""Constraints up to which the reasons of a failure are reduced to those that matter."""


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


@dataclass(slots=True)
class _Search:
    rules: Rules
    most: int
    steps: int = 0
    never: set[str] = field(init=False)
    apart: dict[str, set[str]] = field(init=False)
    groups: dict[str, list[frozenset[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self.never = {name for name, rules in self.rules.items() if any(rule.never for rule in rules)}
        self.apart = {}
        self.groups = {}
        for name, rules in self.rules.items():
            for rule in rules:
                if rule.without:
                    self.apart.setdefault(name, set()).add(rule.without)
                    self.apart.setdefault(rule.without, set()).add(name)
                for each in rule.most_one_of:
                    self.groups.setdefault(each, []).append(frozenset(rule.most_one_of) - {each})

    def fits(self, name: str, chosen: Mapping[str, None]) -> bool:
        if name in self.never or any(one in chosen for one in self.apart.get(name, ())):
            return False
        return not any(any(one in chosen for one in group) for group in self.groups.get(name, ()))

    def needs(self, name: str) -> list[tuple[str, ...]]:
        return [rule.one_of for rule in self.rules.get(name, ()) if rule.one_of is not None]

    def run(self, chosen: dict[str, None], open_: list[tuple[str, ...]]) -> dict[str, None] | None:
        """Choose a candidate for each open need; a stack of choices instead of recursion."""
        stack: list[tuple[dict[str, None], list[tuple[str, ...]], int]] = [(chosen, open_, 0)]
        while stack:
            chosen, open_, first = stack.pop()
            while open_ and any(one in chosen for one in open_[0]):
                open_ = open_[1:]
                first = 0
            if not open_:
                return chosen
            for index in range(first, len(open_[0])):
                self.steps += 1
                if self.steps > self.most:
                    raise TooManySteps(f"no answer after {self.most} steps")
                name = open_[0][index]
                if self.fits(name, chosen):
                    stack.append((chosen, open_, index + 1))
                    stack.append(({**chosen, name: None}, [*open_[1:], *self.needs(name)], 0))
                    break
        return None


def _answer(rules: Rules, most: int) -> list[str] | None:
    search = _Search(rules, most)
    chosen: dict[str, None] = {}
    for name, own in rules.items():
        if any(rule.must for rule in own):
            if not search.fits(name, chosen):
                return None
            chosen[name] = None
    found = search.run(dict(chosen), [need for name in chosen for need in search.needs(name)])
    return None if found is None else list(found)


def solve(rules: Rules, most: int = MOST_STEPS) -> tuple[list[str], tuple[str, ...]]:
    """Return the chosen variables, in the order in which they were needed, and the texts of the constraints that
    contradict each other if nothing can be chosen. Raises :class:`TooManySteps`."""
    found = _answer(rules, most)
    return (found, ()) if found is not None else ([], _contradiction(rules, most))


def _contradiction(rules: Rules, most: int) -> tuple[str, ...]:
    """Return the texts of a set of constraints of which none can be left out."""
    kept = [(name, rule) for name, own in rules.items() for rule in own]
    if len(kept) <= MOST_MINIMIZED:
        for one in list(kept):
            rest = [other for other in kept if other is not one]
            if _answer(_grouped(rest), most) is None:
                kept = rest
    return tuple(sorted({rule.text for _, rule in kept}))


def _grouped(pairs: Iterable[tuple[str, Rule]]) -> Rules:
    made: dict[str, list[Rule]] = {}
    for name, rule in pairs:
        made.setdefault(name, []).append(rule)
    return made
