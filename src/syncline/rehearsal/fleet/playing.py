"""Plays clusters of a fleet singly, in processes of their own: :class:`Plays`, which plays nothing twice."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from syncline.rehearsal.answer.answer import Answer, Outcome
from syncline.rehearsal.answer.judging import answer_of
from syncline.rehearsal.cures.proposing import Proposal, Situation, proposals
from syncline.rehearsal.fleet.reactions import Reactions, reactions_of
from syncline.rehearsal.playing import Asked, play
from syncline.rehearsal.rehearsing import Settings, laws_of
from syncline.rehearsal.scenario import ScenarioError

MOST_PROCESSES = 8


@dataclass(frozen=True)
class Played:
    """What became of one cluster. ``ideas``: cures that are worth a rehearsal, of a cluster that is not safe."""

    cluster: str
    answer: Answer
    reactions: Reactions
    ideas: tuple[Proposal, ...] = ()


@dataclass(frozen=True)
class Question:
    """A cluster to play. ``key``: equal for plays with equal answers."""

    key: str
    asked: Asked


@dataclass
class Plays:
    """Plays of one rehearsal, below ``scratch``."""

    scratch: Path
    settings: Settings
    processes: int = 0
    """How many at once; 0: as many as there are processors, at most :data:`MOST_PROCESSES`."""
    known: dict[str, Played] = field(default_factory=dict)
    _count: int = 0

    def of(self, questions: Iterable[Question]) -> Mapping[str, Played]:
        """Return the answers by key. Raises ScenarioError, the first that a play raises."""
        wanted = {one.key: one for one in questions}
        new = [one for key, one in wanted.items() if key not in self.known]
        tasks = [
            _Task(one.asked, self.scratch / f"cluster-{self._count + n}", self.settings) for n, one in enumerate(new)
        ]
        self._count += len(new)
        count = min(self.processes or min(len(os.sched_getaffinity(0)), MOST_PROCESSES), len(new))
        for one in new:
            self.settings.report(f"rehearsing cluster {one.asked.name}")
        found = _apart(tasks, count) if count > 1 else [each.play() for each in tasks]
        self.known |= {one.key: played for one, played in zip(new, found, strict=True)}
        return {key: self.known[key] for key in wanted}


@dataclass(frozen=True)
class _Task:
    asked: Asked
    place: Path
    settings: Settings

    def play(self) -> Played:
        asked = self.asked
        record = play(asked, self.place)
        found = answer_of(
            record,
            name=asked.name,
            seed=asked.seed,
            durations=tuple(asked.world.durations.values()),
            assumed=(*asked.world.assumed, *asked.applications.assumed),
            laws=laws_of(asked.files, self.settings.without, self.settings.more),
        )
        ideas = () if found.outcome is Outcome.SAFE else proposals(Situation(asked, record, found))
        return Played(asked.name, found, reactions_of(record), ideas)


# -- processes ---------------------------------------------------------------------------------------------------------

_tasks: list[_Task] = []
"""Of this process, if it was forked to play some of them: what it plays is not sent to it."""


def _apart(tasks: list[_Task], count: int) -> list[Played]:
    """Play in processes that are forked from this one, so that they have all that it has loaded."""
    gc.collect()
    gc.freeze()  # what is loaded is not collected in each process, which would copy its pages
    try:
        with ProcessPoolExecutor(count, get_context("fork"), _tasks.extend, (tasks,)) as pool:
            return list(pool.map(_numbered, range(len(tasks))))
    except BrokenProcessPool as error:
        raise ScenarioError(f"a process ended while it played one of {len(tasks)} clusters: {error}") from error
    finally:
        gc.unfreeze()


def _numbered(number: int) -> Played:
    found = _tasks[number].play()
    gc.collect()  # worlds are full of cycles: without this that of the last play lives on beside the next one
    return found
