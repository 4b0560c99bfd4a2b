"""A request that others have to be asked for: given up while they answer, run again with what they said.

Made by ``api`` while webhooks or policies are configured, and for what takes long to evaluate. Each run sees the store
as it is then, so a write that came in between is seen like any other; the request's clock and its chance stand still.
Holds nothing but the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from syncline.cluster.admission.dynamic.calls import MAX_RUNS, Asking, Tape
from syncline.cluster.answers import refusal
from syncline.cluster.users import UserInfo
from syncline.cluster.verbs.admitting import REQUEST_S
from syncline.cluster.verbs.exchange import Backend
from syncline.kube.client import Request, Response
from syncline.kube.elsewhere import Here, Slow, keeping_to
from syncline.kube.errors import ApiError
from syncline.kube.outcall import Awaiting, Errand, Outcall, Outcome

__all__ = ["Asked", "Waiting"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known from earlier runs, and when the first of them began."""

    asking: Asking
    now: datetime


Run = Callable[[Backend, Request, UserInfo, Asked | None], Response]


class Waiting:
    """A ``Pending``: see ``kube.outcall``. ``slow`` None: everything is evaluated here, however
    long it takes."""

    __slots__ = ("_asked", "_backend", "_keys", "_request", "_run", "_runs", "_slow", "_tape", "_user", "calls")

    def __init__(self, run: Run, backend: Backend, request: Request, user: UserInfo, slow: Slow | None = None) -> None:
        self._slow = slow
        self._tape = Tape(backend.entropy)
        self._backend = replace(backend, entropy=self._tape)
        self._asked = Asked(Asking(self._tape.untaped), backend.clock.now())
        self._run, self._request, self._user = run, request, user
        self._runs = 0
        self._keys: tuple[str, ...] = ()
        self.calls: tuple[Outcall | Errand, ...] = ()

    def run(self) -> Response:
        """An answer, or one that waits for :attr:`calls`."""
        self._runs += 1
        self._tape.rewind()
        try:
            if self._slow is None:
                return self._run(self._backend, self._request, self._user, self._asked)
            with keeping_to(Here(self._asked.asking, self._user.name, self._slow)):
                return self._run(self._backend, self._request, self._user, self._asked)
        except Awaiting as awaiting:
            took = (self._backend.clock.now() - self._asked.now).total_seconds()
            if took >= REQUEST_S or self._runs >= MAX_RUNS:
                return refusal(_too_late())
            self._keys = tuple(key for key, _ in awaiting.calls)
            self.calls = tuple(
                replace(call, share=self._user.name) if isinstance(call, Errand) else call for _, call in awaiting.calls
            )
            return Response(202, pending=self)

    def resume(self, outcomes: Sequence[Outcome]) -> Response:
        self._asked.asking.learn(self._keys, outcomes)
        return self.run()


def _too_late() -> ApiError:
    why = "Timeout: request did not complete within requested timeout - context deadline exceeded"
    return ApiError(why, code=504, reason="Timeout", details={})
