"""Compute the results of a container's probes, as offsets in seconds from its start.

The staged runtime calls it at a container's start. Nothing is probed: the container's behaviour is data, and the
probes' delays, periods and thresholds determine when the kubelet notices. Source of the rules: Kubernetes
``pkg/kubelet/prober``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from syncline.kube.objects import Obj, dig

DEFAULT_PERIOD_S, DEFAULT_FAILURES, DEFAULT_SUCCESSES = 10, 3, 1
"""Defaults of the API."""


class Probe(StrEnum):
    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Seconds from start: when the startup and readiness probes begin to succeed (None: never), and when the readiness
    and liveness probes begin to fail (None: never)."""

    startup_s: float | None = 0.0
    ready_s: float | None = 0.0
    unready_s: float | None = None
    live_s: float | None = None
    post_start_fails: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed probe with an Event: the first of a series, or one with consequences."""

    after_s: float
    probe: Probe
    message: str = ""
    """The actual response; "" if nothing was probed."""


@dataclass(frozen=True, slots=True)
class Course:
    """What the kubelet notices, and when. ``killed_by`` is ``startup``, ``liveness`` or ``post-start``."""

    started_s: float | None = 0.0
    ready_s: float | None = 0.0
    unready_s: float | None = None
    killed_s: float | None = None
    killed_by: str = ""
    failures: tuple[Failure, ...] = ()

    def instants_s(self) -> list[float]:
        """Offsets at which the state changes or an Event is due."""
        known = (self.started_s, self.ready_s, self.unready_s, self.killed_s, *(each.after_s for each in self.failures))
        return [each for each in known if each is not None]


HEALTHY = Course()


@dataclass(frozen=True, slots=True)
class _Ticks:
    """The instants of a probe."""

    first_s: float
    period_s: float

    @classmethod
    def of(cls, probe: Obj, not_before_s: float) -> _Ticks:
        delay = float(probe.get("initialDelaySeconds") or 0)
        return cls(max(delay, not_before_s), float(probe.get("periodSeconds") or DEFAULT_PERIOD_S))

    def from_(self, at_s: float) -> float:
        """Return the first instant at or after ``at_s``."""
        missed = math.ceil(max(at_s - self.first_s, 0.0) / self.period_s)
        return self.first_s + missed * self.period_s

    def after_more(self, at_s: float, count: int) -> float:
        return at_s + (count - 1) * self.period_s


def course_of(container: Obj, behaves: Behaviour) -> Course:
    """Return the course; a missing probe notices nothing, and without a readiness probe readiness is as given."""
    if behaves.post_start_fails:
        return Course(started_s=None, ready_s=None, killed_s=0.0, killed_by="post-start")
    started_s, failures, killed_s = _starting(container.get("startupProbe"), behaves)
    if started_s is None:
        return Course(None, None, killed_s=killed_s, killed_by="startup", failures=tuple(failures))
    ready_s, unready_s, report = _readiness(container.get("readinessProbe"), behaves, started_s)
    killed_s, noticed = _liveness(container.get("livenessProbe"), behaves, started_s)
    every = sorted([*failures, *report, *noticed], key=lambda each: (each.after_s, each.probe))
    return Course(started_s, ready_s, unready_s, killed_s, "liveness" if killed_s is not None else "", tuple(every))


def _starting(probe: Obj | None, behaves: Behaviour) -> tuple[float | None, list[Failure], float | None]:
    """Return when the container counts as started, the failures, and when it is killed for not starting."""
    if not probe:
        return 0.0, [], None
    ticks = _Ticks.of(probe, 0.0)
    last_s = ticks.after_more(ticks.first_s, _failures(probe))
    passes_s = None if behaves.startup_s is None else ticks.from_(behaves.startup_s)
    first = [Failure(ticks.first_s, Probe.STARTUP)]
    if passes_s is not None and passes_s <= last_s:
        return passes_s, first if passes_s > ticks.first_s else [], None
    return None, _row(first[0], last_s), last_s


def _readiness(
    probe: Obj | None, behaves: Behaviour, started_s: float
) -> tuple[float | None, float | None, list[Failure]]:
    if not probe:
        return (None if behaves.ready_s is None else max(behaves.ready_s, started_s)), None, []
    ticks = _Ticks.of(probe, started_s)
    if behaves.ready_s is None:
        return None, None, [Failure(ticks.first_s, Probe.READINESS)]
    answers_s = ticks.from_(behaves.ready_s)
    failures = [Failure(ticks.first_s, Probe.READINESS)] if answers_s > ticks.first_s else []
    ready_s = ticks.after_more(answers_s, int(probe.get("successThreshold") or DEFAULT_SUCCESSES))
    if behaves.unready_s is None:
        return ready_s, None, failures
    silent_s = max(ticks.from_(behaves.unready_s), ready_s)
    unready_s = ticks.after_more(silent_s, _failures(probe))
    return ready_s, unready_s, [*failures, *_row(Failure(silent_s, Probe.READINESS), unready_s)]


def _liveness(probe: Obj | None, behaves: Behaviour, started_s: float) -> tuple[float | None, list[Failure]]:
    if not probe or behaves.live_s is None:
        return None, []
    ticks = _Ticks.of(probe, started_s)
    silent_s = ticks.from_(behaves.live_s)
    killed_s = ticks.after_more(silent_s, _failures(probe))
    return killed_s, _row(Failure(silent_s, Probe.LIVENESS), killed_s)


def _failures(probe: Obj) -> int:
    return int(probe.get("failureThreshold") or DEFAULT_FAILURES)


def _row(first: Failure, last_s: float) -> list[Failure]:
    return [first] if last_s <= first.after_s else [first, Failure(last_s, first.probe)]


FIELDS = {Probe.STARTUP: "startupProbe", Probe.READINESS: "readinessProbe", Probe.LIVENESS: "livenessProbe"}


def failure_text(container: Obj, failure: Failure, pod_ip: str) -> str:
    """Return the message of the Event Unhealthy; if nothing was probed, it derives from the probe's handler."""
    handler: Obj = container.get(FIELDS[failure.probe]) or {}
    return f"{failure.probe} probe failed: {failure.message or _why(handler, container, pod_ip)}"


def _why(handler: Obj, container: Obj, pod_ip: str) -> str:
    if "tcpSocket" in handler:
        host = dig(handler, "tcpSocket", "host") or pod_ip
        return (
            f"dial tcp {host}:{port_number(handler['tcpSocket'].get('port'), container)}: connect: connection refused"
        )
    if "grpc" in handler:
        return 'service unhealthy (responded with "NOT_SERVING")'
    if "exec" in handler:
        return "command exited with 1"
    return "HTTP probe failed with statuscode: 503"


def port_number(port: object, container: Obj) -> object:
    """Return a port's number; a name is looked up in the container's ports."""
    named = {each.get("name"): each.get("containerPort") for each in container.get("ports") or ()}
    return named.get(port, port)
