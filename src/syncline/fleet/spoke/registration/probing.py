"""Performs what the plans of registration ask for, and remembers its results: probes and renewals of the lease."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import datetime
from typing import Any, Final

from syncline.base.clock import format_micro_time
from syncline.fleet.hub.registration.leases import LEASE
from syncline.fleet.spoke.link import SPOKE
from syncline.fleet.spoke.registration.beats import Renewal, RenewLease
from syncline.fleet.spoke.registration.health import Answer, Health
from syncline.fleet.spoke.registration.status import Probe
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import Conflict, Unanswered
from syncline.kube.mapper import server_version
from syncline.kube.objects import Obj, ResourceInfo

NOT_SERVED: Final = (403, 404)
"""Answers to ``/livez`` after which ``/healthz`` decides: of old servers, and where only that may be read."""
LEASES: Final = ResourceInfo("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)


class Prober:
    """Handler of :class:`Probe`; :attr:`health` is what it found."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.health = Health()

    def handle(self, _action: Probe) -> Generator[Request, Response, Health]:
        found = yield Request("GET", "/livez", cluster=SPOKE)
        if found.status in NOT_SERVED:
            found = yield Request("GET", "/healthz", cluster=SPOKE)
        version = (yield from _at_spoke(server_version())) if found.status == 200 else ""
        self.health = self.health.noted(_answer(found, version), self._now())
        return self.health


def _at_spoke(steps: Generator[Request, Response, str]) -> Generator[Request, Response, str]:
    answer: Any = None
    while True:
        try:
            wanted = steps.send(answer)
        except StopIteration as end:
            return str(end.value)
        answer = yield Request(wanted.method, wanted.path, wanted.query, wanted.headers, cluster=SPOKE)


def _answer(found: Response, version: str) -> Answer:
    if isinstance(found.error, Unanswered):
        return Answer(0, str(found.error))
    body = found.obj
    text = str(body.get("message") or "") if isinstance(body, dict) else str(body or "")
    return Answer(found.status, "" if found.status == 200 else " ".join(text.split()), version)


class Renewer:
    """Handler of :class:`RenewLease`; :attr:`last` is the last success. One request, while the lease is only written by
    this process: the answer to each write is what the next one changes."""

    def __init__(self, now: Callable[[], datetime], draw: Callable[[], float]) -> None:
        self._now, self._draw = now, draw
        self._known: Obj | None = None
        self.last: Renewal | None = None

    def handle(self, action: RenewLease) -> Generator[Request, Response, None]:
        known, self._known = self._known, None
        answer = (yield self._write(known)) if known is not None else None
        if answer is None or answer.status in (404, Conflict.code):
            found: Obj = (yield client.get(LEASES, action.name, LEASE)).or_raise()
            answer = yield self._write(found)
        self._known = answer.or_raise()
        self.last = Renewal(self._now(), self._draw(), action.loss)

    def _write(self, lease: Obj) -> Request:
        spec = {**(lease.get("spec") or {}), "renewTime": format_micro_time(self._now())}
        return client.update(LEASES, {**lease, "spec": spec})
