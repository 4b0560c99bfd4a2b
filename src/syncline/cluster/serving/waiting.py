"""Run a request that depends on outbound calls: stop at a missing result, make the calls, run it again.

``api`` creates a :class:`Waiting` while webhooks or policies are configured, and for slow evaluations. Each run reads
the current store, so it sees writes made in between; the request's clock and random values stay the same. It holds only
the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from syncline.base.strand import Strand
from syncline.cluster.access.users import UserInfo
from syncline.cluster.admission.dynamic.calls import MAX_RUNS, Asking, Tape
from syncline.cluster.resources.routes import route_of
from syncline.cluster.serving.answers import refusal
from syncline.cluster.verbs.admitting import REQUEST_S, too_late
from syncline.cluster.verbs.exchange import Backend
from syncline.cluster.verbs.write import MODIFIED
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, conflict
from syncline.kube.transport.elsewhere import Here, Overtaken, Slow, TooLarge, keeping_to
from syncline.kube.transport.outbound import Aside, Awaiting, Computation, OutboundCall, Outcome

MAX_OVERTAKEN = 5
"""Runs overtaken by other writes before a large request gets 409 (apiserver ``MaxRetryWhenPatchConflicts``)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Results of earlier runs, and the time of the first run."""

    asking: Asking
    now: datetime


Run = Callable[[Backend, Request, UserInfo, Asked | None], Response]


class Waiting:
    """A ``Pending`` (see ``kube.outbound``). With ``slow`` None, every evaluation runs here, however long it takes."""

    __slots__ = (
        *("_asked", "_backend", "_keys", "_large", "_overtaken", "_request", "_run", "_runs", "_slow", "_strand"),
        *("_tape", "_user", "calls"),
    )

    def __init__(self, run: Run, backend: Backend, request: Request, user: UserInfo, slow: Slow | None = None) -> None:
        self._slow = slow
        self._tape = Tape(backend.entropy)
        self._backend = replace(backend, entropy=self._tape)
        self._asked = Asked(Asking(self._tape.untaped), backend.clock.now())
        self._run, self._request, self._user = run, request, user
        self._runs = self._overtaken = 0
        self._large = False
        self._strand: Strand[Response] | None = None
        self._keys: tuple[str, ...] = ()
        self.calls: tuple[OutboundCall | Computation | Aside, ...] = ()

    def run(self) -> Response:
        """Run the request; return its response, or a pending one with :attr:`calls`."""
        self._runs += 1
        self._tape.rewind()
        if not self._large:
            try:
                return self._ended(self._once)
            except TooLarge:
                self._large = True
                self._tape.rewind()
        self._strand = Strand(self._once, "large request")
        return self._go_on(self._strand, first=True)

    def abandon(self) -> None:
        if self._strand is not None:
            self._strand.abandon()
            self._strand = None

    def _once(self) -> Response:
        if self._slow is None:
            return self._run(self._backend, self._request, self._user, self._asked)
        with keeping_to(Here(self._asked.asking, self._user.name, self._slow, parts=self._strand)):
            return self._run(self._backend, self._request, self._user, self._asked)

    def _go_on(self, strand: Strand[Response], *, first: bool = False) -> Response:
        """Continue a large request until it ends or has a part to run in a thread."""
        job = strand.go_on()
        if job is not None:
            self.calls = (Aside(job.run, self._user.name, first),)
            return Response(202, pending=self)
        self._strand = None
        return self._ended(strand.result)

    def _late(self) -> bool:
        return (self._backend.clock.now() - self._asked.now).total_seconds() >= REQUEST_S

    def _ended(self, run: Callable[[], Response]) -> Response:
        """Return the response of one run, or a pending one if the run waits for calls."""
        try:
            return run()
        except Overtaken:
            self._overtaken += 1
            if self._late():
                return refusal(too_late())
            return self.run() if self._overtaken < MAX_OVERTAKEN else refusal(_overtaken(self._request))
        except Awaiting as awaiting:
            if self._late() or self._runs >= MAX_RUNS:
                return refusal(too_late())
            self._keys = tuple(key for key, _ in awaiting.calls)
            self.calls = tuple(
                replace(call, share=self._user.name) if isinstance(call, Computation) else call
                for _, call in awaiting.calls
            )
            return Response(202, pending=self)

    def resume(self, outcomes: Sequence[Outcome]) -> Response:
        if self._strand is not None:
            error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
            if error is None:
                return self._go_on(self._strand)
            self.abandon()
            return refusal(error)
        self._asked.asking.learn(self._keys, outcomes)
        return self.run()


def _overtaken(request: Request) -> ApiError:
    route = route_of(request.path)
    return conflict(route.resource, route.name, MODIFIED, route.group)
