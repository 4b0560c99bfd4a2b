"""Explores a scenario in batches of schedules: guided or blind, each in a forked process, as far as one likes.

A batch is a function of scenario, way, seed and number alone: neither how many processes there are nor where an
exploration was interrupted changes what is run. :class:`Exploration` yields one :class:`Batch` after the other; who
keeps them can go on later. Fork only where no other thread runs.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar, cast
from zlib import crc32

from syncline.rehearsal.explore import Explorer, Rehearsed
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.guided.accesses import Trace
from syncline.rehearsal.guided.conflicts import Conflict, conflicts
from syncline.rehearsal.guided.drawing import Guide, untried
from syncline.rehearsal.verdict import Verdict

BATCH = 64
"""Schedules of one batch by default: they share one undisturbed run."""
MAX_PROCESSES = 16

W = TypeVar("W", bound=Rehearsed)


class Way(StrEnum):
    GUIDED = "guided"
    BLIND = "blind"


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of the schedules of one batch. ``broken``: those that broke a law, by their place in the whole
    exploration, from 1; ``states``: distinct states in which its branches were."""

    number: int
    schedules: int
    broken: Mapping[int, Verdict]
    merged: int = 0
    states: int = 0
    checks: int = 0
    cpu_s: float = 0.0

    def to_obj(self) -> dict[str, Any]:
        """Return the batch as JSON, for a pipe or a file."""
        return asdict(self) | {"broken": {str(place): one.to_obj() for place, one in self.broken.items()}}

    @classmethod
    def of_obj(cls, found: Mapping[str, Any]) -> Batch:
        broken = {int(place): Verdict.of_obj(one) for place, one in found["broken"].items()}
        return cls(**{**found, "broken": broken})


def broken_of(batches: Iterable[Batch]) -> dict[int, Verdict]:
    """Return the schedules that broke a law by their place, in order."""
    return dict(sorted((place, one) for batch in batches for place, one in batch.broken.items()))


def figures_of(batches: Sequence[Batch]) -> str:
    """Return what was done in a sentence."""
    run, merged = (sum(getattr(one, name) for one in batches) for name in ("schedules", "merged"))
    cpu_s, states = sum(one.cpu_s for one in batches), sum(one.states for one in batches)
    return (
        f"{run:,} schedules, {merged:,} of them came to one of {states:,} known states, "
        f"{len(broken_of(batches))} broke a law; {cpu_s:.0f} s of CPU, {cpu_s / max(run, 1) * 1000:.0f} ms each"
    )


class ExplorationError(Exception):
    """The undisturbed run breaks a law, or a process of the exploration died."""


@dataclass
class Exploration(Generic[W]):
    """Schedules of one scenario. ``traced``: attaches a trace to a world at rest."""

    explorer: Explorer[W]
    scenario: str
    traced: Callable[[W], Trace]
    seed: int = 1
    way: Way = Way.GUIDED
    processes: int = 1
    size: int = BATCH
    """Schedules of one batch."""
    world: W = field(init=False)
    """At rest; only forked processes change it."""

    def __post_init__(self) -> None:
        self.world = self.explorer.scenes[self.scenario].world()
        gc.collect()
        gc.freeze()

    @cached_property
    def _undisturbed(self) -> tuple[int, tuple[Conflict, ...]]:
        """The steps of the undisturbed run, and its conflicts."""

        def run() -> Any:
            trace = self.traced(self.world)
            verdict = self.explorer.simulate(Schedule(self.scenario), world=self.world)
            if not verdict.held:
                raise ExplorationError(verdict.line())
            return verdict.steps, [conflict.to_obj() for conflict in conflicts(trace.turns())]

        steps, found = ended_apart(*begun_apart(run))
        return steps, tuple(map(Conflict.of_obj, found))

    @property
    def steps(self) -> int:
        return self._undisturbed[0]

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        return self._undisturbed[1]

    @cached_property
    def guide(self) -> Guide:
        return Guide(self.scenario, self.steps, self.explorer.kinds, self.conflicts)

    def about(self) -> dict[str, Any]:
        """Return what decides which schedules are run: an exploration with another value is another one."""
        pairs = crc32("\n".join(map(str, self.conflicts)).encode())
        named = {"scenario": self.scenario, "way": str(self.way), "seed": self.seed, "size": self.size}
        return {**named, "steps": self.steps, "pairs": pairs}

    def schedules(self) -> Iterator[Schedule]:
        """Yield the schedules of this exploration, in order and without end."""
        if self.way is Way.GUIDED:
            yield from self.guide.schedules(self.seed)
        number = 0
        while True:
            number += 1
            yield self.guide.blind(self.seed, number)

    def untried(self, total: int) -> list[Conflict]:
        """Return the conflicts that none of the first ``total`` schedules was to reverse."""
        tried = {fault for schedule in islice(self.schedules(), total) for fault in schedule.faults}
        return untried(self.conflicts, self.guide.attempts(self.seed), tried)

    def batches(
        self, total: int, known: Mapping[int, Batch], is_over: Callable[[], bool] = lambda: False
    ) -> Iterator[Batch]:
        """Run the batches of the first ``total`` schedules but for those that are ``known``, and yield each as it ends;
        begin no further one when ``is_over()``."""
        assert 1 <= self.processes <= MAX_PROCESSES, "processes are bounded"
        self.guide  # noqa: B018  it is made once, before processes are forked
        left = ((number, chunk) for number, chunk in self._chunks(total) if number not in known)
        running: dict[Connection, int] = {}
        try:
            while True:
                while len(running) < self.processes and not is_over() and (next_ := next(left, None)) is not None:
                    number, chunk = next_
                    reading, pid = begun_apart(lambda number=number, chunk=chunk: self._batch(number, chunk).to_obj())  # type: ignore[misc]
                    running[reading] = pid
                if not running:
                    return
                ready = cast("list[Connection]", wait(list(running)))
                for reading in ready:
                    yield Batch.of_obj(ended_apart(reading, running.pop(reading)))
        finally:
            for reading, pid in running.items():
                killed_apart(reading, pid)

    def _chunks(self, total: int) -> Iterator[tuple[int, list[Schedule]]]:
        schedules = islice(self.schedules(), total)
        number = 0
        while chunk := list(islice(schedules, self.size)):
            yield number, chunk
            number += 1

    def _batch(self, number: int, chunk: list[Schedule]) -> Batch:
        found: dict[int, Verdict] = {}
        first = self.explorer.several(chunk, self.steps, found.__setitem__, self.world)
        if not first.held:
            raise ExplorationError(first.line())
        spent = os.times()
        return Batch(
            number,
            len(chunk),
            {number * self.size + place + 1: one for place, one in sorted(found.items()) if not one.held},
            sum(one.merged for one in found.values()),
            first.states,
            sum(one.checks for one in found.values()),
            spent.user + spent.system + spent.children_user + spent.children_system,
        )


# -- processes --------------------------------------------------------------------------------------------------------

Apart = tuple[Connection, int]
"""A forked process, and where its result comes from."""


def begun_apart(act: Callable[[], Any]) -> Apart:
    """Fork a process that acts and sends the result as JSON; return the connection and the process."""
    reading, writing = Pipe(duplex=False)
    pid = os.fork()
    if pid:
        writing.close()
        return reading, pid
    try:
        reading.close()
        try:
            answer = {"found": act()}
        except BaseException:
            answer = {"error": traceback.format_exc(limit=-8)}
        writing.send_bytes(json.dumps(answer).encode())
    finally:  # whatever happens, also where no one reads any more: what called this goes on in the other process alone
        os._exit(0)


def ended_apart(reading: Connection, pid: int) -> Any:
    """Return what a process sent. Raises ExplorationError if it failed."""
    try:
        answer = json.loads(reading.recv_bytes())
    except EOFError:
        answer = {"error": "the process died"}
    finally:
        reading.close()
        os.waitpid(pid, 0)
    if "error" in answer:
        raise ExplorationError(answer["error"])
    return answer["found"]


def killed_apart(reading: Connection, pid: int) -> None:
    """End a process whose result is not wanted any more."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended by itself, and is reaped
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    reading.close()
