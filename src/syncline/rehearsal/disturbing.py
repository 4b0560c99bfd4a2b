"""Faults in a rehearsed world: its GitOps and machine-config controllers are processes that can die, and whose writes
and watches can fail. Entry points: :class:`Disturbance`, :func:`read_faults`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from syncline.control.loop import ControlLoop
from syncline.control.virtual import Actor, LoopActor
from syncline.kube.client import Response, Transport
from syncline.rehearsal.faults import AROUND, AT_WRITES, Fault, Schedule, by_name, read
from syncline.rehearsal.guided.accesses import Trace, Turn
from syncline.rehearsal.injecting import Injector
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.seams import Armed, SkewedClock, Step

if TYPE_CHECKING:
    from syncline.rehearsal.world import World

GITOPS, MACHINES = "gitops", "machine-config"
ELSEWHERE = ("away", "stood-still")
"""Faults that need a process of one's own."""
_MINE = (kind for kind in (*AT_WRITES, *AROUND) if not kind.name.startswith("clock") and kind.name not in ELSEWHERE)
KINDS = by_name(*_MINE)
"""Faults of a rehearsal: those of a process's writes and watches."""
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
    """Runs the controllers of a rehearsed world as processes, and strikes at their writes by a schedule."""

    def __init__(self, world: World, schedule: Schedule) -> None:
        super().__init__(world, _Nothing(), KINDS)
        self.world = world
        self.faults = list(schedule.faults)
        self.transports: dict[str, Armed] = {}
        self._trace: Trace | None = None
        if not schedule.faults and not schedule.seed:
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
        restart = self.world.start_gitops if who == GITOPS else self.world.start_machine_config
        before = list(self.world.driver.actors)
        restart(wrap=partial(self._armed, who))
        for actor in self.world.driver.actors:
            if self._trace is not None and isinstance(actor, LoopActor) and actor not in before:
                self._trace.follow(who, actor.loop)
        mine: list[Actor] = [self.agenda, *self.transports.values()]
        self.world.driver.actors = [one for one in self.world.driver.actors if one not in mine] + mine

    def stop(self, who: str) -> None:
        transport = self.transports.pop(who, None)
        if transport is not None:
            transport.close()

    def _armed(self, who: str, transport: Transport) -> Transport:
        world = self.world
        made = Armed(transport, world.clock, world.entropy.fork(f"faults/{who}"), who, self.steps)
        self.transports[who] = made
        return made

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
