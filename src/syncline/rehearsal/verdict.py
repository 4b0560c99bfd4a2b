"""The result of a fault schedule: :class:`Verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a schedule. ``broken``: findings by law, in the order in which the laws were broken. ``took_s``:
    virtual seconds to the end; ``struck``: the faulted steps; ``journal``: JSON lines (from forked runs only if a law
    is broken)."""

    schedule: str
    broken: Mapping[str, str]
    took_s: float
    steps: int
    struck: tuple[str, ...] = ()
    checks: int = 0
    cpu_s: float = 0.0
    journal: str = ""
    merged: bool = False
    """It came to a state of a schedule that held, and was not run on."""
    states: int = 0
    """Of the undisturbed run: the distinct states in which its branches were."""
    same: int = 0
    """Schedules that need no run: those of this one with one more fault after that state are those of the other one
    with it."""

    @property
    def held(self) -> bool:
        return not self.broken

    @property
    def first(self) -> str:
        """The law that was broken first; empty if none was."""
        return next(iter(self.broken), "")

    def line(self) -> str:
        if self.held:
            then = ", then as another" if self.merged else ""
            return f"ok      {self.schedule}  ({self.steps} steps, {self.took_s:.0f} s{then})"
        why = "; ".join(f"{law}: {text}" for law, text in self.broken.items())
        return f"BROKEN  {self.schedule}  {why}  [{', '.join(self.struck)}]"

    def to_obj(self) -> dict[str, Any]:
        """Return the verdict as JSON, for a pipe or a file."""
        return asdict(self) | {"journal": "" if self.held else self.journal}

    @classmethod
    def of_obj(cls, found: Mapping[str, Any]) -> Verdict:
        return cls(**{**found, "struck": tuple(found["struck"])})
