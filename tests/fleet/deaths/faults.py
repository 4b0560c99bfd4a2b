"""Faults of processes and links of a fleet, and what people do meanwhile: kinds, and :class:`Strikes`, which lets them
strike at numbered writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fleet.rollingout import SPARED, Process

from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unavailable
from syncline.rehearsal.faults import AT_WRITES, Fault, Kind, On, by_name
from syncline.rehearsal.injecting import REFUSALS
from syncline.rehearsal.seams import Agenda, Killed, Step, Steps

if TYPE_CHECKING:
    from tests.fleet.deaths.world import OrderedRollOut

_WRITES = by_name(*AT_WRITES)
DEATHS = {name: _WRITES[name] for name in ("kill", "kill-before", "lost-answer", "lost-request")}
"""The process dies after the write took effect, before the write; or lives, and the answer or the write is lost."""
AROUND = by_name(
    Kind("parted", On.ANY, "the agent of a cluster does not reach its hub for two minutes", 120),
    Kind("lost", On.ANY, "the same for fifteen minutes: its lease lapses, and it is tainted", 900),
    Kind("island", On.ANY, "the GitOps controllers of a cluster do not reach its API for five minutes", 300),
    Kind("blind", On.ANY, "the agent of a cluster does not reach the cluster's API for five minutes", 300),
    Kind("denied", On.ANY, "the hub denies a cluster, and accepts it again after five minutes", 300),
)
PEOPLE = by_name(
    Kind("edited", On.ANY, "the template of the set changes"),
    Kind("committed", On.ANY, "another version is committed"),
)
KINDS = {**DEATHS, **{name: _WRITES[name] for name in ("away", "conflict", "busy", "error")}, **AROUND, **PEOPLE}


class Strikes:
    """Lets faults strike; what ``rehearsal/explore.py`` calls an injector."""

    def __init__(self, run: OrderedRollOut) -> None:
        self._run = run
        self.agenda = Agenda(run.fleet.clock)
        run.fleet.time.add(self.agenda)
        self.steps = Steps(self)
        self.faults: list[Fault] = []
        self.fired: list[tuple[Fault, Step]] = []
        self.at_step: Callable[[Step], None] | None = None
        self.away: dict[str, float] = {}
        """For how many seconds a process that dies now is away."""
        self.seed = 0
        self._striking: Fault | None = None

    def where(self) -> str:
        return f"step {self.steps.log[-1]}" if self.steps.log else "the start"

    def live(self, seconds: float) -> None:
        self._run.go(seconds)

    def before(self, step: Step) -> Response | None:
        if self.at_step is not None:
            self.at_step(step)
        fault = self._striking = next((one for one in self.faults if one.at <= step.number), None)
        if fault is None:
            return None
        self.faults.remove(fault)
        self.fired.append((fault, step))
        if fault.kind in REFUSALS:
            return Response.refused(REFUSALS[fault.kind])
        if fault.kind == "kill-before":
            raise Killed(step.who)
        return None

    def after(self, step: Step) -> Response | None:
        fault, self._striking = self._striking, None
        if fault is None:
            return None
        lasts = KINDS[fault.kind].heals_s
        if fault.kind == "lost-answer":
            return Response.refused(Unavailable("the server does not answer (injected)"))
        if fault.kind in ("kill", "away"):
            self.away[step.who] = lasts
            raise Killed(step.who)
        if fault.kind in AROUND:
            self._around(fault.kind, self._cluster(fault, step), lasts)
        elif fault.kind in PEOPLE:
            self.agenda.after(0.5, self._run.edit if fault.kind == "edited" else self._run.commit)
        return None

    def _cluster(self, fault: Fault, step: Step) -> str:
        """Return the cluster that a fault concerns: that of the process, else one by the number of the step."""
        names = sorted(self._run.waves)
        return fault.who or step.who.partition("/")[2] or names[fault.at % len(names)]

    def _around(self, kind: str, cluster: str, lasts: float) -> None:
        run = self._run
        member = run.fleet.members[cluster]
        if kind == "denied":
            self.agenda.after(0.5, lambda: run.accept(cluster, False))
            self.agenda.after(lasts, lambda: run.accept(cluster, True))
            return
        find = {
            "parted": lambda: member.hub_cable,
            "lost": lambda: member.hub_cable,
            "blind": lambda: member.own_cable,
            "island": lambda: run.cables[f"gitops/{cluster}"],
        }[kind]
        self.agenda.after(0, lambda: find().cut())
        self.agenda.after(lasts, lambda: find().mend())


@dataclass(slots=True)
class Struck:
    """The way of a process to an API, on which faults strike."""

    inner: Transport
    process: Process
    run: OrderedRollOut

    def send(self, request: Request) -> Response:
        if request.method == "GET" or "dryRun" in request.query or any(part in request.path for part in SPARED):
            return self.inner.send(request)
        injector = getattr(self.run, "injector", None)
        if injector is None or not injector.steps.counting:
            return self.inner.send(request)
        step = injector.steps.next(self.process.name, "", request.describe(), on_host=False)
        instead = injector.before(step)
        if instead is not None:
            return instead
        self.run.laws.before(self.process, request)
        answer = self.inner.send(request)
        if answer.ok:
            self.run.laws.after(self.process, request)
        return injector.after(step) or answer
