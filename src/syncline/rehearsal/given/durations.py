"""How long things take in a rehearsed world, and how that is known: :class:`Duration`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from syncline.base.entropy import Entropy
from syncline.kube.text.durations import format_seconds


class Origin(StrEnum):
    GUESSED = "guessed"
    STATED = "stated"
    DRAWN = "drawn"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Duration:
    """``usual_s`` is what a rehearsal takes, ``least_s`` and ``most_s`` give the range of its end. A DRAWN one takes a
    value between them, from the seed."""

    name: str
    usual_s: float
    least_s: float
    most_s: float
    origin: Origin

    def of(self, seed: int) -> float:
        """Return the seconds that it takes in the worlds of a seed."""
        if self.origin is not Origin.DRAWN or self.most_s <= self.least_s:
            return self.usual_s
        share = Entropy(f"{self.name}/{seed}").randrange(1001) / 1000
        return round(self.least_s + (self.most_s - self.least_s) * share, 1)

    def __str__(self) -> str:
        if self.origin in (Origin.DRAWN, Origin.GUESSED) and self.least_s < self.most_s:
            between = f"{_said(self.least_s)} to {_said(self.most_s)}"
            return f"{self.name} {_said(self.usual_s)} ({self.origin}, {between})"
        return f"{self.name} {_said(self.usual_s)} ({self.origin})"


def _said(seconds: float) -> str:
    return format_seconds(round(seconds)) if seconds >= 1 else f"{seconds:g}s"


def stated(name: str, seconds: float) -> Duration:
    return Duration(name, seconds, seconds, seconds, Origin.STATED)


def drawn(name: str, least_s: float, most_s: float) -> Duration:
    return Duration(name, (least_s + most_s) / 2, least_s, most_s, Origin.DRAWN)


def fixed(each: Duration, seconds: float) -> Duration:
    """Return the duration as one that always takes so long."""
    return Duration(each.name, seconds, seconds, seconds, each.origin)


def _guess(name: str, usual_s: float, least_s: float, most_s: float) -> Duration:
    return Duration(name, usual_s, least_s, most_s, Origin.GUESSED)


GUESSES: Mapping[str, Duration] = {
    each.name: each
    for each in (
        _guess("shutdown", 30, 10, 120),
        _guess("boot", 210, 90, 600),
        _guess("pull", 10, 2, 120),
        _guess("start", 1, 0.5, 10),
        _guess("run", 10, 1, 300),
        _guess("stop", 1, 1, 30),
    )
}
"""What is assumed where a world says nothing. Of a machine: shutdown and boot (together four minutes, as ``mc impact``
assumes). Of a container: pull of its image, start, run of one that completes and whose command is unknown, stop."""
