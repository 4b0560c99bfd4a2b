"""Runs schedules: one after the other, or branched off one undisturbed run at each of its steps.

Branches are forked processes: the parent goes on undisturbed, each child has one fault from there. So the way to a step
is gone once for all faults that strike there. Fork only where no other thread runs.
"""

from __future__ import annotations

import gc
import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from tests.machineconfig.faults.schedule import KINDS, Fault, On, Schedule
from tests.machineconfig.faults.seams import Step
from tests.machineconfig.faults.stories import STORIES
from tests.machineconfig.faults.world import FaultWorld

LIMIT_S = 3 * 3600.0
"""Virtual time within which everything is done after the last fault has healed: drains are tried again every five
minutes, failed passes every two."""
LOOK_S = 60.0
SETTLE_S = 420.0
"""Who was refused for five minutes tries again two minutes later."""
REST_S = 900.0
MOST_WRITES = 130
"""Of one node and one fault, beyond those of the undisturbed run; refused ones are tried again: a cordon five times in
a pass, and a dozen passes in the five minutes in which everything is refused."""


@dataclass(frozen=True)
class Outcome:
    """``broken``: breaches by law; ``took_s``: virtual seconds to the end; ``struck``: the steps that faults met."""

    schedule: str
    broken: dict[str, str]
    took_s: float
    steps: int
    struck: tuple[str, ...]
    checks: int = 0
    cpu_s: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.broken

    def line(self) -> str:
        if self.ok:
            return f"ok      {self.schedule}  ({self.steps} steps, {self.took_s:.0f} s)"
        why = "; ".join(f"{law}: {text}" for law, text in self.broken.items())
        return f"BROKEN  {self.schedule}  {why}  [{', '.join(self.struck)}]"


def finish(world: FaultWorld, schedule: Schedule, usual: int = 0) -> Outcome:
    """From the story's beginning to its rest. ``usual``: steps of the undisturbed run."""
    began, limit = world.clock.now(), LIMIT_S
    why = "nothing has happened"
    while why and not world.laws.broken:
        world.live(LOOK_S)
        why = world.unfinished()
        healed = world.agenda.last
        limit = LIMIT_S if healed is not None else limit - LOOK_S
        if limit <= 0:
            world.laws.breach("converges", f"after {LIMIT_S:.0f} s: {why}")
    took = (world.clock.now() - began).total_seconds()
    if not world.laws.broken:
        _rest(world)
    most = usual + MOST_WRITES * len(world.fired) * len(world.laws.nodes)
    if usual and len(world.steps.log) > most:
        world.laws.breach("bounded", f"{len(world.steps.log)} writes, {usual} without faults")
    struck = tuple(f"{fault} met {step}" for fault, step in world.fired)
    checks = sum(world.laws.checked.values())
    return Outcome(str(schedule), world.laws.broken, took, len(world.steps.log), struck, checks)


def _rest(world: FaultWorld) -> None:
    limit, before = LIMIT_S, -1
    while len(world.steps.log) != before and limit > 0:  # a change that was refused so far may not have begun
        before, limit = len(world.steps.log), limit - SETTLE_S
        world.live(SETTLE_S)
    before = len(world.steps.log)
    world.live(REST_S)
    for step in world.steps.log[before:]:
        world.laws.breach("idle", f"{step} at rest")
    why = world.unfinished()
    if why:
        world.laws.breach("converges", f"was done, and then: {why}")
    world.at_rest()


def play(schedule: Schedule, usual: int = 0, world: FaultWorld | None = None) -> Outcome:
    """One schedule from its beginning."""
    story = STORIES[schedule.story]
    world = world or story.world(schedule.seed)
    world.faults = list(schedule.faults)
    story.begin(world)
    return finish(world, schedule, usual)


# -- many -------------------------------------------------------------------------------------------------------------


def branched(
    story: str, kinds: Iterable[str], chosen: Callable[[Step, str], bool], tell: Callable[[Outcome], None]
) -> Outcome:
    """The undisturbed run; and at each step each of the ``kinds`` that fits, if ``chosen``. ``tell`` has the outcomes
    of those."""
    world = STORIES[story].world()
    gc.collect()
    gc.freeze()
    names = list(kinds)
    undisturbed = _child(Schedule(story))
    if undisturbed is None:
        STORIES[story].begin(world)
        _as_child(lambda: finish(world, Schedule(story)))
        raise AssertionError("a child ends with its outcome")
    if not names or not undisturbed.ok:
        return undisturbed

    def at_step(step: Step) -> None:
        for kind in names:
            if KINDS[kind].on is (On.REQUEST if step.on_host else On.HOST) or not chosen(step, kind):
                continue
            fault = Fault(kind, step.number)
            told = _child(Schedule(story, (fault,)))
            if told is None:
                world.at_step = None
                world.faults = [fault]
                return
            tell(told)

    world.at_step = at_step
    STORIES[story].begin(world)
    return _as_child(lambda: finish(world, Schedule(story), undisturbed.steps))


_PIPES: list[tuple[int, Schedule, float]] = []
"""In a child: where its outcome goes."""


def _child(schedule: Schedule) -> Outcome | None:
    """None in the child; in the parent what came of it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _PIPES.append((writing, schedule, time.process_time()))
        return None
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    if not told:
        return Outcome(str(schedule), {"converges": "the process died"}, 0, 0, ())
    found = json.loads(told)
    return Outcome(**found | {"struck": tuple(found["struck"])})


def _as_child(run: Callable[[], Outcome]) -> Outcome:
    """Run to the end; a child tells its outcome and is gone."""
    try:
        outcome = run()
    except BaseException:
        if not _PIPES:
            raise
        outcome = Outcome(str(_PIPES[-1][1]), {"converges": traceback.format_exc(limit=-6)}, 0, 0, ())
    if _PIPES:
        writing, schedule, began = _PIPES[-1]
        shown = asdict(outcome) | {"schedule": str(schedule), "cpu_s": time.process_time() - began}
        with open(writing, "wb") as pipe:
            pipe.write(json.dumps(shown).encode())
        os._exit(0)
    return outcome


def each_alone(schedules: Iterable[Schedule], usual: dict[str, int]) -> Iterator[Outcome]:
    """Each in a forked process of its own."""
    for schedule in schedules:
        told = _child(schedule)
        if told is None:
            _as_child(lambda schedule=schedule: play(schedule, usual.get(schedule.story, 0)))  # type: ignore[misc]
        else:
            yield told
