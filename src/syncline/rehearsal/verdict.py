"""What came of a schedule: begin at :class:`Verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """``broken``: what was found by law, the law that was broken first at the beginning. ``took_s``: virtual seconds
    to the end; ``struck``: the steps that faults met; ``journal``: as JSON lines, of runs in other processes only where
    a law is broken."""

    schedule: str
    broken: Mapping[str, str]
    took_s: float
    steps: int
    struck: tuple[str, ...] = ()
    checks: int = 0
    cpu_s: float = 0.0
    journal: str = ""

    @property
    def held(self) -> bool:
        return not self.broken

    @property
    def first(self) -> str:
        """The law that was broken first; empty: none."""
        return next(iter(self.broken), "")

    def line(self) -> str:
        if self.held:
            return f"ok      {self.schedule}  ({self.steps} steps, {self.took_s:.0f} s)"
        why = "; ".join(f"{law}: {text}" for law, text in self.broken.items())
        return f"BROKEN  {self.schedule}  {why}  [{', '.join(self.struck)}]"

    def to_obj(self) -> dict[str, Any]:
        """As it goes through a pipe or into a file of verdicts."""
        return asdict(self) | {"journal": "" if self.held else self.journal}

    @classmethod
    def of_obj(cls, found: Mapping[str, Any]) -> Verdict:
        return cls(**{**found, "struck": tuple(found["struck"])})
