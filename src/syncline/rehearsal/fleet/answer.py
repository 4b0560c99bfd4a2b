"""What the rehearsal of a fleet says, as one frozen value: :class:`FleetAnswer`. Times are seconds since the commit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from syncline.rehearsal.answer.answer import Answer, Cure, Outcome


@dataclass(frozen=True, slots=True)
class ClassAnswer:
    """Clusters that are equal up to their names. ``played``: the one whose ``answer`` it is; ``reached``: how many of
    them get the release; ``begins_s``, ``ends_s``: the first begin, and the last end (None: there is none)."""

    clusters: tuple[str, ...]
    played: str
    reached: int
    applications: int
    begins_s: float | None
    ends_s: float | None
    answer: Answer

    @property
    def outcome(self) -> Outcome:
        return self.answer.outcome


@dataclass(frozen=True, slots=True)
class WaveAnswer:
    """A wave of a group of Applications. ``proved``: how many of its ``clusters`` prove the release; ``why``: what the
    first of the others waits for, or how it ends."""

    group: str
    wave: int
    clusters: int
    begins_s: float | None
    ends_s: float | None
    proved: int
    held: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """Clusters that never get the release of a group, for one reason; ``by``: the clusters that hold them."""

    group: str
    clusters: tuple[str, ...]
    by: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class FleetAnswer:
    """``done_s``: when the last cluster was done; None: never. ``problems``: what makes nothing on the hub. ``sample``:
    clusters that were played beside those of the classes, and found equal to the played one of theirs."""

    name: str
    seed: int
    outcome: Outcome
    headline: str
    advice: str
    done_s: float | None
    clusters: int
    classes: tuple[ClassAnswer, ...]
    waves: tuple[WaveAnswer, ...]
    held: tuple[Held, ...]
    problems: tuple[str, ...]
    sample: tuple[str, ...]
    cures: tuple[Cure, ...]
    assumed: tuple[str, ...]
    checked: tuple[str, ...]
    quickest_s: float | None = None
    slowest_s: float | None = None
    """When the last cluster is done with the least and the longest durations; None: that was not rehearsed."""
    schedule: str = ""
    """The faults that strike in each cluster; empty: none."""

    def to_obj(self) -> dict[str, Any]:
        """Return the value of ``-o json``; equal rehearsals return equal bytes."""
        return asdict(self)
