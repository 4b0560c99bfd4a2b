"""Faults in a rehearsed world: its GitOps and machine-config controllers are processes that can die, and whose writes
and watches can fail. Entry points: :class:`Disturbance`, :func:`read_faults`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from syncline.control.loop import ControlLoop
from syncline.control.virtual import Actor, LoopActor
from syncline.kube.client import Request, Response, Transport
from syncline.rehearsal.faults import AROUND, AT_WRITES, Fault, Schedule, by_name, read
from syncline.rehearsal.guided.accesses import Trace, Turn
from syncline.rehearsal.injecting import Injector
from syncline.rehearsal.mishaps import GITOPS, MACHINES, Partition
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.seams import Armed, SkewedClock, Step

if TYPE_CHECKING:
    from syncline.rehearsal.world import World

KINDS = by_name(*AT_WRITES, *AROUND)
"""Faults of a rehearsal: those of a process's writes, watches and clock."""
SCENARIO = "rehearsal"
MAX_FAULTS, MAX_LINE = 50, 2_000


def read_faults(text: str, file: str) -> Schedule:
    """Return the schedule of a file: one line such as ``rehearsal/7; kill@12, lost-watch@30``. Raises ScenarioError."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) != 1 or len(lines[0]) > MAX_LINE:
        raise ScenarioError(f"{file}: found {len(lines)} lines; allowed: one such as `{SCENARIO}; kill@12`", usage=True)
    try:
        found = read(lines[0], KINDS)
    except ValueError as error:
        raise ScenarioError(f"{file}: {error}", usage=True) from error
    if len(found.faults) > MAX_FAULTS:
        raise ScenarioError(f"{file}: found {len(found.faults)} faults; allowed: at most {MAX_FAULTS}", usage=True)
    return found


class Disturbance(Injector):
    """Runs the controllers of a rehearsed world as processes, and strikes at their writes by a schedule; None: only
    what cuts their ways and puts their clocks out strikes. An undisturbed schedule notes who read and wrote what."""

    def __init__(self, world: World, schedule: Schedule | None) -> None:
        super().__init__(world, _Nothing(), KINDS)
        self.world = world
        self.faults = list(schedule.faults) if schedule is not None else []
        self.transports: dict[str, Armed] = {}
        self.partitions: dict[str, Partition] = {}
        self._actors: dict[str, list[LoopActor]] = {}
        self._trace: Trace | None = None
        if schedule is not None and not schedule.faults and not schedule.seed:
            self._trace = Trace({"": world.core.store})
            self.at_step = self._trace.begins

    def turns(self) -> tuple[Turn, ...]:
        """Return who read and wrote what; nothing where faults strike."""
        return self._trace.turns() if self._trace is not None else ()

    def begin(self, *, machine_config: bool) -> None:
        """Start the processes; writes count from now on."""
        self.steps.counting = True
        for who in (GITOPS, MACHINES) if machine_config else (GITOPS,):
            self.start(who)

    def start(self, who: str) -> None:
        self.stop(who)
        driver, before = self.world.driver, list(self.world.driver.actors)
        restart = self.world.start_gitops if who == GITOPS else self.world.start_machine_config
        restart(wrap=partial(self._armed, who))  # of the actors only those of the controllers are left now
        loops = [one for one in driver.actors if isinstance(one, LoopActor)]
        self._actors[who] = [one for one in loops if one not in before]
        for actor in self._actors[who]:
            if self._trace is not None:
                self._trace.follow(who, actor.loop)
        mine: list[Actor] = [self.agenda, *self.transports.values()]
        others = [one for one in before if not isinstance(one, LoopActor | Armed) and one is not self.agenda]
        driver.actors = [*loops, *others, *mine]
        self._end_dead()

    def stop(self, who: str) -> None:
        transport = self.transports.pop(who, None)
        if transport is not None:
            transport.close()
            self.world.driver.actors.remove(transport)
            self._end_dead()

    def _end_dead(self) -> None:
        """Let processes that are away do nothing."""
        dead = [one for who, actors in self._actors.items() if who not in self.transports for one in actors]
        self.world.driver.actors = [one for one in self.world.driver.actors if one not in dead]

    def _armed(self, who: str, transport: Transport) -> Transport:
        world, before = self.world, self.partitions.get(who)
        made = Armed(transport, world.clock, world.entropy.fork(f"faults/{who}"), who, self.steps)
        clock = self.clocks.setdefault(who, SkewedClock(world.clock))
        self.transports[who] = made
        self.partitions[who] = Partition(made, clock, is_cut=before is not None and before.is_cut)
        return self.partitions[who]

    def writing(self, who: str) -> Request | None:
        return self.transports[who].writing

    def arm(self, who: str, name: str, times: int) -> None:
        if who in self.transports:
            self.transports[who].arm(name, times)

    def advance(self, seconds: float) -> None:
        """As the driver's, with processes that die and begin again."""
        self.live(seconds)


class _Nothing:
    """A room without faults of its own."""

    def loop(self, who: str, clock: SkewedClock) -> ControlLoop | None:
        raise AssertionError(f"{who} is started by the world")

    def noticed(self, step: Step) -> None: ...

    def refused(self, step: Step) -> None: ...

    def struck_before(self, fault: Fault, step: Step) -> Response | None:
        return None

    def struck_after(self, fault: Fault, step: Step) -> None: ...
