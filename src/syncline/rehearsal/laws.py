"""What must hold of a world at every step: begin at :class:`Ledger`.

A :class:`Law` says what is demanded; one that can be judged by a single state is a pure check over it. Those that need
to know what was before are kept by the room that they are of, and tell the ledger of a breach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CONVERGENCE", "Law", "Ledger"]


@dataclass(frozen=True, slots=True)
class Law:
    """``check``: from a state to what was found in it against the law."""

    name: str
    demand: str
    check: Callable[[Any], Iterable[str]] | None = None


CONVERGENCE = (
    Law("bounded", "the number of writes is bounded"),
    Law("idle", "a world at rest writes nothing"),
    Law("converges", "after the last fault has healed every node is done, and nothing is left over"),
)
"""Judged of each schedule by ``explore.py``."""


@dataclass
class Ledger:
    """The first breach of each law, with the place where it happened. ``where``: tells the current step."""

    laws: Iterable[Law]
    where: Callable[[], str]
    broken: dict[str, str] = field(default_factory=dict)
    checked: Counter[str] = field(default_factory=Counter)
    """How often each law was judged."""
    watching: bool = False
    """Nothing counts before a scenario has begun."""

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
