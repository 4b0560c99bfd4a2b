"""What a rehearsal says, as one frozen value: :class:`Answer`. Times are seconds since the commit arrived.

:func:`~syncline.rehearsal.answer.judging.answer_of` makes it of a record; the command's views only format it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from syncline.rehearsal.given.durations import Duration


class Outcome(StrEnum):
    """SAFE: all is done, and no law is broken. FAILED: a sync ends failed. BLOCKED: something waits for ever, or longer
    than the limit. UNSAFE: a law is broken. The last that holds counts."""

    SAFE = "safe"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNSAFE = "unsafe"


class Doing(StrEnum):
    """What a bar of the timeline shows."""

    SYNC = "sync"
    WAVE = "wave"
    HOOK = "hook"
    POOL = "pool"
    WAITS = "waits"
    DRAINS = "drains"
    REBOOTS = "reboots"
    IN_PLACE = "in place"
    PLAYS = "plays"
    SETTLES = "settles"
    """From the end of a sync until the Application is healthy."""
    ROLLS = "rolls out"
    """A wave of clusters, or clusters that are equal."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of the timeline. ``ends_s`` None: it lasts at the end. ``row``: what it belongs to."""

    row: str
    doing: Doing
    began_s: float
    ends_s: float | None
    state: str = ""

    def length_s(self, end_s: float) -> float:
        return (end_s if self.ends_s is None else self.ends_s) - self.began_s


@dataclass(frozen=True, slots=True)
class Wait:
    """Something waited, and for what: the chain from the object down to what holds it. ``until_s`` None: for ever."""

    subject: str
    state: str
    since_s: float
    until_s: float | None
    chain: tuple[str, ...]
    next_action: str = ""


@dataclass(frozen=True, slots=True)
class Outage:
    """Who was less available than usual. ``had``: the most that it had before, ``least``: the fewest meanwhile, both as
    people count them: ready pods of a Service, healthy pods of a budget (``had``: those it wants)."""

    subject: str
    since_s: float
    until_s: float | None
    had: int
    least: int


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken law, at the first time that it was."""

    law: str
    found: str
    at_s: float
    demand: str


@dataclass(frozen=True, slots=True)
class Cure:
    """An edit, and what the rehearsal of the edited repository said. ``file``: what is edited; ``diff``: unified;
    ``outages``: who is unavailable meanwhile."""

    text: str
    file: str
    diff: str
    outcome: Outcome
    headline: str
    done_s: float | None
    outages: tuple[Outage, ...] = ()

    @property
    def proved(self) -> bool:
        return self.outcome is Outcome.SAFE


@dataclass(frozen=True, slots=True)
class Broken:
    """A schedule of faults that ends worse than the undisturbed rehearsal: the shortest one found, and the drawn one
    (``shrunk_from``). ``--faults`` with a file of that line plays it again."""

    schedule: str
    outcome: Outcome
    headline: str
    law: str
    shrunk_from: str


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration has tried: ``schedules``, ``distinct`` courses of events among them and the undisturbed one,
    and the ``steps`` (writes) at which faults could strike; ``pairs`` of accesses whose order could matter, and those
    ``left`` that no schedule was to reverse."""

    schedules: int
    distinct: int
    steps: int
    broken: tuple[Broken, ...]
    pairs: int = 0
    left: int = 0


@dataclass(frozen=True)
class Answer:
    """``headline``: what would happen; ``advice``: the one thing to do. ``done_s``: when nothing was waited for; None:
    never. ``quickest_s`` and ``slowest_s``: the same with the least and the longest durations, as far as rehearsed.
    ``path``: the bars that decide when it is done."""

    name: str
    seed: int
    outcome: Outcome
    headline: str
    advice: str
    played_s: float
    done_s: float | None
    quickest_s: float | None
    slowest_s: float | None
    bars: tuple[Bar, ...]
    path: tuple[Bar, ...]
    waits: tuple[Wait, ...]
    outages: tuple[Outage, ...]
    breaches: tuple[Breach, ...]
    checked: tuple[str, ...]
    cures: tuple[Cure, ...]
    assumed: tuple[str, ...]
    durations: tuple[Duration, ...]
    shorter: str = ""
    """What would shorten it, in a sentence; empty: nothing that is known here."""
    schedule: str = ""
    """The faults that it is rehearsed with; empty: none."""
    explored: Explored | None = None

    def to_obj(self) -> dict[str, Any]:
        """Return the value of ``-o json``; equal rehearsals return equal bytes."""
        found = asdict(self)
        return found | {"durations": [asdict(each) for each in self.durations]}
