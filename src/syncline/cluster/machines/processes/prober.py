"""Run probes and lifecycle hooks of containers that are processes, with the kubelet's counting.

Counting is pure; :class:`Prober` has one thread per probe, because a slow probe must not delay others. The results
become the container's :class:`Course`, which the kubelet reads as for simulated containers. Source of the rules:
Kubernetes ``pkg/kubelet/prober/worker.go`` and ``prober.go``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from syncline.cluster.machines.probes import (
    DEFAULT_FAILURES,
    DEFAULT_PERIOD_S,
    DEFAULT_SUCCESSES,
    FIELDS,
    HEALTHY,
    Course,
    Failure,
    Probe,
    port_number,
)
from syncline.kube.objects import Obj, dig

MAX_FAILURES_REPORTED = 64
"""Limit per container; a probe that keeps flapping emits no more Events."""
DEFAULT_TIMEOUT_S = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """``message`` is the error."""

    ok: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a probe: ``passes`` is its effective result, ``row`` the number of equal consecutive results."""

    passes: bool
    needs: int
    tolerates: int
    last: bool | None = None
    row: int = 0

    @classmethod
    def of(cls, probe: Probe, spec: Obj) -> Tally:
        """Return the initial count: a container is alive, but neither started nor ready."""
        needs = int(spec.get("successThreshold") or DEFAULT_SUCCESSES)
        return cls(probe is Probe.LIVENESS, needs, int(spec.get("failureThreshold") or DEFAULT_FAILURES))

    def after(self, ok: bool) -> Tally:
        row = self.row + 1 if self.last == ok else 1
        passes = ok if row >= (self.needs if ok else self.tolerates) else self.passes
        return replace(self, passes=passes, last=ok, row=row)

    @property
    def decided(self) -> bool:
        """Return True exactly when the threshold is reached."""
        return self.row == (self.needs if self.last else self.tolerates)


def course_at_start(container: Obj) -> Course:
    """Return the course before the first probe."""
    starts = bool(container.get(FIELDS[Probe.STARTUP]))
    waits = starts or bool(container.get(FIELDS[Probe.READINESS]))
    return replace(HEALTHY, started_s=None if starts else 0.0, ready_s=None if waits else 0.0)


def course_with(course: Course, container: Obj, probe: Probe, tally: Tally, answer: Answer, at_s: float) -> Course:
    """Return the course after a result ``at_s`` seconds after the start; ``tally`` counts it."""
    if not answer.ok and (tally.row == 1 or tally.decided) and len(course.failures) < MAX_FAILURES_REPORTED:
        course = replace(course, failures=(*course.failures, Failure(at_s, probe, answer.message)))
    if not tally.decided:
        return course
    match probe:
        case Probe.STARTUP if answer.ok:
            waits = bool(container.get(FIELDS[Probe.READINESS]))
            return replace(course, started_s=at_s, ready_s=None if waits else at_s)
        case Probe.READINESS if answer.ok:
            ready = course.ready_s is not None and course.unready_s is None
            return course if ready else replace(course, ready_s=at_s, unready_s=None)
        case Probe.READINESS:
            return course if course.ready_s is None else replace(course, unready_s=at_s)
        case Probe.STARTUP | Probe.LIVENESS if not answer.ok:
            return replace(course, killed_s=at_s, killed_by=probe.lower())
    return course


Ask = Callable[[Obj, float], Answer]
"""Runs a probe handler within a time limit in seconds."""
Note = Callable[[Probe, Tally, Answer], None]
HOOK_ANSWERS_S = 60.0
"""Time limit of a hook that requests a port."""


def asker(
    inside: Callable[[Sequence[str], float], tuple[int | None, bytes]],
    port: Callable[[Mapping[str, object]], str],
    container: Obj,
) -> Ask:
    """Return a function that probes a container: ``inside`` runs a command in its sandbox, ``port`` probes a port. gRPC
    probes are not run, and succeed."""

    def ask(probe: Obj, timeout_s: float) -> Answer:
        try:
            if "exec" in probe:
                command = [str(word) for word in probe["exec"].get("command") or ()]
                code, said = inside(command, timeout_s)
                if code is None:
                    return Answer(False, f'command timed out: "{" ".join(command)}" timed out after {timeout_s:g}s')
                return Answer(code == 0, said.decode("utf-8", "replace") or f"command exited with {code}")
            handler: Obj = probe.get("httpGet") or probe.get("tcpSocket") or {}
            if not handler:
                return Answer(True)
            wish: dict[str, object] = {"port": port_number(handler.get("port"), container), "timeout_s": timeout_s}
            if "httpGet" in probe:
                headers = [(each["name"], each.get("value", "")) for each in handler.get("httpHeaders") or ()]
                path = "/" + str(handler.get("path") or "").lstrip("/")
                wish |= {"path": path, "headers": headers, "tls": handler.get("scheme") == "HTTPS"}
            problem = port(wish)
            return Answer(not problem, problem)
        except OSError as error:
            return Answer(False, str(error))

    return ask


def run_hook(ask: Ask, hook: Obj, timeout_s: float, ended: threading.Event) -> Answer:
    """Run a hook; a request to another host is skipped and succeeds, since it cannot be routed."""
    if "sleep" in hook:
        ended.wait(min(float(hook["sleep"].get("seconds") or 0), timeout_s))
        return Answer(True)
    if dig(hook, "httpGet", "host") or dig(hook, "tcpSocket", "host"):
        return Answer(True)
    return ask(hook, timeout_s if "exec" in hook else min(timeout_s, HOOK_ANSWERS_S))


def course_failed(course: Course, at_s: float) -> Course:
    """Return the course after a failed postStart hook."""
    return replace(course, killed_s=at_s, killed_by="post-start")


class Prober:
    """Runs the probes of one attempt of a container until ``ended``; ``note`` gets every result, from threads."""

    def __init__(self, container: Obj, ask: Ask, note: Note, ended: threading.Event) -> None:
        self._specs: Mapping[Probe, Obj] = {
            probe: container[field] for probe, field in FIELDS.items() if container.get(field)
        }
        self._ask = ask
        self._note = note
        self._ended = ended
        self._started = threading.Event()
        if Probe.STARTUP not in self._specs:
            self._started.set()

    def start(self) -> None:
        for probe, spec in self._specs.items():
            threading.Thread(target=self._run, args=(probe, spec), name=f"{probe} probe", daemon=True).start()

    def _run(self, probe: Probe, spec: Obj) -> None:
        if self._ended.wait(float(spec.get("initialDelaySeconds") or 0)):
            return
        period_s = float(spec.get("periodSeconds") or DEFAULT_PERIOD_S)
        tally = Tally.of(probe, spec)
        while not self._ended.is_set():
            if probe is Probe.STARTUP or self._started.is_set():
                answer = self._ask(spec, float(spec.get("timeoutSeconds") or DEFAULT_TIMEOUT_S))
                if self._ended.is_set():
                    return
                tally = tally.after(answer.ok)
                self._note(probe, tally, answer)
                if probe is Probe.STARTUP and tally.passes:
                    self._started.set()
                    return
                if probe is not Probe.READINESS and not answer.ok and tally.decided:
                    return  # the container is killed for it; its next attempt is probed again
            elif self._started.wait(min(period_s, 1.0)):
                continue
            self._ended.wait(period_s)
