"""Fault schedules as values: printed in one line, parsed from one, drawn from a seed. Entry point: :class:`Schedule`.

``update; kill@12, clock+86400@30:worker-0`` means scenario ``update``: step 12 kills the process that executes it, and
the clock of worker-0 jumps a day ahead at step 30. ``kill@1~store`` strikes at the first step that stores a config.
Steps are the writes of processes to the API and to machines, counted together from the scenario's start.
:class:`~syncline.rehearsal.injecting.Injector` executes the kinds of this module; a package adds its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from syncline.base.entropy import Entropy


class On(StrEnum):
    """The steps at which a kind of fault can strike."""

    ANY = "any step"
    REQUEST = "a write to the API"
    HOST = "a change of a machine"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault. ``heals_s``: its duration in virtual seconds; ``only``: prefix of its steps."""

    name: str
    on: On
    about: str
    heals_s: float = 0.0
    only: str = ""

    def fits(self, *, on_host: bool) -> bool:
        """Return whether the fault applies to changes of a machine (``on_host``) or to writes to the API."""
        return self.on in (On.ANY, On.HOST if on_host else On.REQUEST)


AT_WRITES = (
    Kind("kill", On.ANY, "the process dies right after the step took effect"),
    Kind("kill-before", On.ANY, "the process dies right before the step"),
    Kind("away", On.ANY, "the process dies after the step and is back ten minutes later", 600),
    Kind("conflict", On.REQUEST, "the write is refused: 409"),
    Kind("busy", On.REQUEST, "the write is refused: 429"),
    Kind("error", On.REQUEST, "the write fails: 500"),
    Kind("lost-request", On.REQUEST, "the write never arrives: 503"),
    Kind("lost-answer", On.REQUEST, "the write takes effect and its answer is lost: 503"),
    Kind("stood-still", On.REQUEST, "the process is replaced; its write arrives ten minutes later", 600),
    Kind("refusals", On.REQUEST, "every write of the process fails for five minutes: 500", 300),
)
"""Faults of a process and its writes."""
AROUND = (
    Kind("lost-watch", On.ANY, "the next watches of the process break, half of the events undelivered"),
    Kind("gone", On.ANY, "the next watches break and cannot be resumed: 410, listed again"),
    Kind("late", On.ANY, "events reach the process up to twenty seconds late", 20),
    Kind("twice", On.ANY, "events reach the process twice"),
    Kind("stale-list", On.ANY, "watches break, cannot be resumed, and lists are answered from before"),
    Kind("clock+3600", On.ANY, "the clock of the process jumps an hour ahead, and back after an hour", 3600),
    Kind("clock-3600", On.ANY, "the clock of the process jumps an hour back"),
    Kind("clock+86400", On.ANY, "the clock of the process jumps a day ahead, and back after ten minutes", 600),
    Kind("clock-86400", On.ANY, "the clock of the process jumps a day back"),
)
"""Faults of a process's watches and clock."""


def by_name(*kinds: Kind) -> Mapping[str, Kind]:
    return {kind.name: kind for kind in kinds}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. It strikes at the first step from number ``at`` on whose text contains ``text``. ``who``: the process
    whose clock or watches fail; empty: the process that executes the step."""

    kind: str
    at: int
    who: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{self.kind}@{self.at}" + (f":{self.who}" if self.who else "") + (f"~{self.text}" if self.text else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults of one run of a scenario."""

    scenario: str
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    """Seed of the order in which ready keys are processed; 0: oldest first."""

    def __str__(self) -> str:
        seeded = f"/{self.seed}" if self.seed else ""
        return f"{self.scenario}{seeded}; {', '.join(map(str, self.faults)) or 'undisturbed'}"


_FAULT = re.compile(r"([a-z+-]+[0-9]*)@([0-9]+)(?::([a-z0-9-]+))?(?:~(.+))?")


def read(line: str, kinds: Mapping[str, Kind]) -> Schedule:
    """Parse a schedule from one line. Raises ValueError."""
    head, _, rest = line.strip().partition(";")
    scenario, _, seed = head.strip().partition("/")
    faults = []
    for text in (each.strip() for each in rest.split(",")):
        found = _FAULT.fullmatch(text)
        if found is not None and found[1] in kinds:
            faults.append(Fault(found[1], int(found[2]), found[3] or "", found[4] or ""))
        elif text and text != "undisturbed":
            raise ValueError(f"{text!r} is no fault such as kill@12; kinds: {', '.join(kinds)}")
    return Schedule(scenario, tuple(faults), int(seed or 0))


def drawn(scenario: str, seed: int, steps: int, kinds: Mapping[str, Kind]) -> Schedule:
    """Return a random schedule: two to five faults in a scenario of ``steps`` steps, with a random order of keys."""
    chance, names = Entropy(f"{scenario}/{seed}"), list(kinds)
    faults = [Fault(chance.choice(names), 1 + chance.randrange(steps)) for _ in range(2 + chance.randrange(4))]
    return Schedule(scenario, tuple(sorted(faults, key=lambda each: each.at)), seed)
