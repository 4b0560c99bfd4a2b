"""Invariants of a world that are checked at every step. Entry point: :class:`Ledger`.

A :class:`Law` is a pure check of a single state. A package that needs earlier states for a law keeps them and reports a
breach to the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Law:
    """An invariant. ``check`` returns what breaks the law in a state."""

    name: str
    demand: str
    check: Callable[[Any], Iterable[str]] | None = None


CONVERGENCE = (
    Law("bounded", "the number of writes is bounded"),
    Law("idle", "a world at rest writes nothing"),
    Law("converges", "after the last fault has healed every node is done, and nothing is left over"),
)
"""Laws that ``explore.py`` checks for each schedule."""


@dataclass
class Ledger:
    """Records the first breach of each law, with its step. ``where`` returns the current step."""

    laws: Iterable[Law]
    where: Callable[[], str]
    broken: dict[str, str] = field(default_factory=dict)
    checked: Counter[str] = field(default_factory=Counter)
    """How often each law was checked."""
    watching: bool = False
    """False until a scenario has begun; breaches do not count before."""

    def __post_init__(self) -> None:
        self._laws = {law.name: law for law in self.laws}

    def breach(self, law: str, found: str) -> None:
        assert law in self._laws, f"no law {law!r}"
        if self.watching:
            self.broken.setdefault(law, f"{found} (at {self.where()})")

    def judge(self, law: str, state: Any) -> None:
        check = self._laws[law].check
        assert check is not None, f"law {law!r} cannot be judged by one state"
        self.checked[law] += 1
        for found in check(state):
            self.breach(law, found)
