"""Schedules of faults as values: printed in one line, read from one line, drawn from a seed.

``update; kill@12, clock+86400@30:worker-0`` is the story ``update``: step 12 kills whoever makes it, and the clock of
worker-0 jumps a day ahead at step 30. ``kill@1~store`` strikes at the first step that stores a config. Steps are the
writes of our processes to the API and to the machines, counted together from the story's start.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import StrEnum


class On(StrEnum):
    """The steps at which a fault of a kind can strike."""

    ANY = "any step"
    REQUEST = "a write to the API"
    HOST = "a change of a machine"


@dataclass(frozen=True)
class Kind:
    """``heals_s``: how long it lasts, in virtual seconds."""

    name: str
    on: On
    about: str
    heals_s: float = 0.0


KINDS = {
    kind.name: kind
    for kind in (
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
        Kind("host-error", On.HOST, "the operation of the machine fails: input/output error"),
        Kind("no-reboot", On.HOST, "the next reboot that is asked for does not happen"),
        Kind("power-before", On.ANY, "the machine loses its power right before the step, for two minutes", 120),
        Kind("power", On.ANY, "the machine loses its power right after the step, for two minutes", 120),
        Kind("node-lost", On.ANY, "the machine is off for half an hour", 1800),
        Kind("deleted", On.ANY, "the node is deleted, and two minutes later there is a new machine of its name", 120),
        Kind("lost-watch", On.ANY, "the next watches of the process break, half of the events undelivered"),
        Kind("gone", On.ANY, "the next watches break and cannot be resumed: 410, listed anew"),
        Kind("late", On.ANY, "events reach the process up to twenty seconds late", 20),
        Kind("twice", On.ANY, "events reach the process twice"),
        Kind("stale-list", On.ANY, "watches break, cannot be resumed, and lists are answered from before"),
        Kind("clock+3600", On.ANY, "the clock of the process jumps an hour ahead, and back after an hour", 3600),
        Kind("clock-3600", On.ANY, "the clock of the process jumps an hour back"),
        Kind("clock+86400", On.ANY, "the clock of the process jumps a day ahead, and back after ten minutes", 600),
        Kind("clock-86400", On.ANY, "the clock of the process jumps a day back"),
        Kind("pause", On.ANY, "a person pauses the pool, for five minutes", 300),
        Kind("hold", On.ANY, "a person holds the pool, for five minutes", 300),
        Kind("new-config", On.ANY, "a person applies another config"),
        Kind("no-config", On.ANY, "a person deletes the config that is being rolled out"),
        Kind("blocked", On.ANY, "a budget allows no eviction, for 25 minutes", 1500),
        Kind("cordon", On.ANY, "a person cordons a node that is in service"),
    )
}


@dataclass(frozen=True)
class Fault:
    """``text``: strikes at the first step from ``at`` that contains it, as steps are printed. ``who``: of a clock, a
    process (``controllers`` or the node of an agent); empty: whoever makes the step."""

    kind: str
    at: int
    who: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{self.kind}@{self.at}" + (f":{self.who}" if self.who else "") + (f"~{self.text}" if self.text else "")


@dataclass(frozen=True)
class Schedule:
    story: str
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    """Of the order in which ready keys are taken; 0: the oldest first."""

    def __str__(self) -> str:
        seeded = f"/{self.seed}" if self.seed else ""
        return f"{self.story}{seeded}; {', '.join(map(str, self.faults)) or 'undisturbed'}"


_FAULT = re.compile(r"([a-z+-]+[0-9]*)@([0-9]+)(?::([a-z0-9-]+))?(?:~(.+))?")


def read(line: str) -> Schedule:
    """Raises ValueError for what is no schedule."""
    head, _, rest = line.strip().partition(";")
    story, _, seed = head.strip().partition("/")
    faults = []
    for text in (each.strip() for each in rest.split(",")):
        found = _FAULT.fullmatch(text)
        if found is not None and found[1] in KINDS:
            faults.append(Fault(found[1], int(found[2]), found[3] or "", found[4] or ""))
        elif text and text != "undisturbed":
            raise ValueError(f"{text!r} is no fault such as kill@12; kinds: {', '.join(KINDS)}")
    return Schedule(story, tuple(faults), int(seed or 0))


def drawn(story: str, seed: int, steps: int) -> Schedule:
    """Two to five faults somewhere in a story of ``steps`` steps, in an order of keys of its own."""
    chance = random.Random(f"{story}/{seed}")
    kinds = list(KINDS)
    faults = [Fault(chance.choice(kinds), chance.randrange(1, steps + 1)) for _ in range(chance.randrange(2, 6))]
    return Schedule(story, tuple(sorted(faults, key=lambda each: each.at)), seed)
