"""Executes a fault schedule in a world whose controllers are processes that can die. Entry point: :class:`Injector`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from syncline.control.loop import ControlLoop
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Conflict, InternalError, TooManyRequests, Unavailable
from syncline.rehearsal.faults import Fault, Kind
from syncline.rehearsal.seams import Agenda, Armed, Killed, SkewedActor, SkewedClock, Step, Steps
from syncline.rehearsal.world import World

REFUSALS: Mapping[str, ApiError] = {
    "conflict": Conflict("the object has been modified (injected)"),
    "busy": TooManyRequests("too many requests (injected)"),
    "error": InternalError("the disk of the API is full (injected)"),
    "lost-request": Unavailable("the server does not answer (injected)"),
}
ARMED: Mapping[str, tuple[tuple[str, int], ...]] = {
    "late": (("delayed watch", 5),),
    "twice": (("duplicate", 10),),
    "lost-watch": (("lost watch", 3),),
    "gone": (("lost watch", 3), ("gone", 3)),
    "stale-list": (("lost watch", 3), ("gone", 3), ("stale list", 3)),
}
"""Transport faults and how often they strike, by kind of fault."""


class Death(Killed):
    """Ends one process of the world, which restarts after ``away_s`` seconds."""

    def __init__(self, who: str, away_s: float = 0.0) -> None:
        super().__init__(who)
        self.who, self.away_s = who, away_s


@dataclass(slots=True)
class Process:
    loop: ControlLoop
    actor: SkewedActor
    transport: Armed


class Room(Protocol):
    """Hooks of the package whose controllers run as the processes."""

    def loop(self, who: str, clock: SkewedClock) -> ControlLoop | None:
        """Return a new loop for a process, or None if the process does not restart."""
        ...

    def noticed(self, step: Step) -> None:
        """Observe a step before any fault strikes."""
        ...

    def refused(self, step: Step) -> None:
        """Observe a write that the API refused."""
        ...

    def struck_before(self, fault: Fault, step: Step) -> Response | None:
        """Apply a fault of the package's own kind: return a response in place of the step, or raise."""
        ...

    def struck_after(self, fault: Fault, step: Step) -> None: ...


class Injector:
    """Runs the processes of a world and injects the faults. ``at_step``, if set, is called first at each step."""

    def __init__(self, world: World, room: Room, kinds: Mapping[str, Kind]) -> None:
        self._world, self._room, self._kinds = world, room, kinds
        self.agenda = Agenda(world.clock)
        self.steps = Steps(self)
        self.processes: dict[str, Process] = {}
        self.clocks: dict[str, SkewedClock] = {}
        self.faults: list[Fault] = []
        self.fired: list[tuple[Fault, Step]] = []
        self.at_step: Callable[[Step], None] | None = None
        self._refusing: dict[str, datetime] = {}
        self._striking: Fault | None = None

    def where(self) -> str:
        return f"step {self.steps.log[-1]}" if self.steps.log else "the start"

    def refusing(self) -> list[tuple[str, int]]:
        """Return the processes whose writes are refused, and for how many seconds more."""
        now = self._world.clock.now()
        left = ((who, round((until - now).total_seconds())) for who, until in self._refusing.items())
        return sorted((who, seconds) for who, seconds in left if seconds > 0)

    def heals_s(self, fault: Fault) -> float:
        return self._kinds[fault.kind].heals_s

    # -- processes ------------------------------------------------------------------------------------------------

    def start(self, who: str) -> None:
        """Start a process; a running one of the same name is stopped and loses its memory."""
        self.stop(who)
        world = self._world
        clock = self.clocks.setdefault(who, SkewedClock(world.clock))
        loop = self._room.loop(who, clock)
        if loop is None:
            return
        transport = Armed(world.admin, world.clock, world.entropy.fork(f"faults/{who}"), who, self.steps)
        actor = SkewedActor(loop, transport, world.order, clock=clock)
        self.processes[who] = Process(loop, actor, transport)
        world.driver.actors += [actor, transport]

    def stop(self, who: str) -> None:
        process = self.processes.pop(who, None)
        if process is not None:
            self._world.driver.actors.remove(process.actor)
            self._world.driver.actors.remove(process.transport)
            process.transport.close()

    def live(self, seconds: float) -> None:
        """Advance virtual time by ``seconds``; processes that die are restarted."""
        clock = self._world.clock
        end = clock.now() + timedelta(seconds=seconds)
        while (left := (end - clock.now()).total_seconds()) > 0:
            try:
                self._world.driver.advance(left)
            except Death as death:
                self.stop(death.who)
                if death.away_s:
                    self.agenda.after(death.away_s, lambda who=death.who: self.start(who))  # type: ignore[misc]
                else:
                    self.start(death.who)

    # -- faults ---------------------------------------------------------------------------------------------------

    def before(self, step: Step) -> Response | None:
        """Return a response in place of the step, which is not executed then; else None."""
        self._room.noticed(step)
        if self.at_step is not None:
            self.at_step(step)
        until = self._refusing.get(step.who)
        if until is not None and not step.on_host and self._world.clock.now() < until:
            return self._refuse(step, "error")
        fault = self._striking = self._due(step)
        if fault is None:
            return None
        self.fired.append((fault, step))
        if fault.kind in REFUSALS:
            return self._refuse(step, fault.kind)
        if fault.kind == "kill-before":
            raise Death(step.who)
        if fault.kind == "stood-still":
            late = self.writing(step.who)
            assert late is not None, "it strikes at writes"
            self.agenda.after(self.heals_s(fault), lambda: self._world.admin.send(late))
            raise Death(step.who)
        return self._room.struck_before(fault, step)

    def writing(self, who: str) -> Request | None:
        """Return the write of a process that is in progress."""
        return self.processes[who].transport.writing

    def arm(self, who: str, name: str, times: int) -> None:
        """Let the transport of a process, if it runs, fail ``times`` times."""
        if who in self.processes:
            self.processes[who].transport.arm(name, times)

    def _refuse(self, step: Step, kind: str) -> Response:
        self._room.refused(step)
        return Response.refused(REFUSALS[kind])

    def _due(self, step: Step) -> Fault | None:
        due = (each for each in self.faults if each.at <= step.number and each.text in str(step))
        found = next((each for each in due if self._strikes(self._kinds[each.kind], step)), None)
        if found is not None:
            self.faults.remove(found)
        return found

    @staticmethod
    def _strikes(kind: Kind, step: Step) -> bool:
        return kind.fits(on_host=step.on_host) and step.text.startswith(kind.only)

    def after(self, step: Step) -> Response | None:
        """Return a response in place of the real one, or None."""
        fault, self._striking = self._striking, None
        if fault is None:
            return None
        lasts, who = self.heals_s(fault), fault.who or step.who
        match fault.kind:
            case "lost-answer":
                return Response.refused(Unavailable("the server does not answer (injected)"))
            case "kill" | "away":
                raise Death(step.who, lasts)
            case "refusals":
                self._refusing[step.who] = self._world.clock.now() + timedelta(seconds=lasts)
                self.agenda.after(lasts, lambda: None)  # it ends by itself
            case kind if kind in ARMED:
                for name, times in ARMED[kind]:
                    self.arm(who, name, times)
            case kind if kind.startswith("clock"):
                clock = self.clocks[who]
                clock.off_s += int(kind.removeprefix("clock"))
                self._room.struck_after(fault, step)
                if lasts:
                    self.agenda.after(lasts, lambda: setattr(clock, "off_s", 0.0))
            case _:
                self._room.struck_after(fault, step)
        return None
