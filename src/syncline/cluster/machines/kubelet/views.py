"""The state of each container of a pod at an instant, derived from records for plan, status and events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from syncline.cluster.machines.containers import Container, ContainerState
from syncline.cluster.machines.kubelet.faults import Fault, fault_of
from syncline.cluster.machines.kubelet.observe import Observed, order_of
from syncline.cluster.machines.scripted.stages import is_sidecar
from syncline.kube.objects import Obj, dig, is_terminating

CRASH_BACKOFF_S, CRASH_BACKOFF_MAX_S = 10.0, 300.0
"""Delays of 10, 20, 40 … 300 s before the kubelet restarts a container; the first restart is immediate."""
CRASH_RESET_S = 600.0
"""Run time after which a container's delay is reset."""


@dataclass(frozen=True, slots=True)
class View:
    """One container. ``state`` None: never tried. ``again_at``: when it restarts after its end, or None."""

    spec: Obj
    init: bool
    sidecar: bool
    record: Container | None
    previous: Container | None
    state: ContainerState | None
    again_at: datetime | None
    started: bool
    """It runs, and its startup probe has succeeded."""
    fault: Fault | None = None
    """Why it cannot be created as specified."""
    ephemeral: bool = False
    """Added to a running pod (``kubectl debug``): it never restarts, and does not affect the pod's status."""

    @property
    def main(self) -> bool:
        """Return True for a container that is neither an init nor an ephemeral one."""
        return not self.init and not self.ephemeral

    @property
    def name(self) -> str:
        return str(self.spec.get("name"))

    @property
    def running(self) -> bool:
        return self.state is ContainerState.RUNNING

    @property
    def exited(self) -> bool:
        return self.state is ContainerState.EXITED

    @property
    def alive(self) -> bool:
        """Return True for a container that is created and not ended, so that it must be stopped."""
        return self.state in (ContainerState.CREATED, ContainerState.RUNNING) and not self.pull_failed

    @property
    def pull_failed(self) -> bool:
        return self.record is not None and bool(self.record.pull_error)

    @property
    def pulls_again_at(self) -> datetime | None:
        """When the kubelet retries a failed image pull: after 10, 20, 40 … 300 seconds."""
        if self.record is None or not self.record.pull_error:
            return None
        return self.record.created_at + timedelta(seconds=backoff_s(self.record.pulls))

    @property
    def succeeded(self) -> bool:
        return self.exited and self.record is not None and self.record.exit_code == 0

    @property
    def over(self) -> bool:
        """Return True if it ended permanently."""
        return self.exited and self.again_at is None

    def would_run_again(self, pod: Obj) -> bool:
        """Return whether its restart policy would restart it after a kill."""
        return self.sidecar or dig(pod, "spec", "restartPolicy", default="Always") != "Never"

    def ready(self, now: datetime) -> bool:
        """Return whether its probes succeed; an init container is ready when it is done."""
        if self.init and not self.sidecar:
            return self.succeeded
        if not self.running or self.record is None or self.ephemeral:
            return False
        since_s, until_s = self.record.course.ready_s, self.record.course.unready_s
        return self.passed(since_s, now) and not self.passed(until_s, now)

    def passed(self, offset_s: float | None, now: datetime) -> bool:
        """Return whether this many seconds have passed since its start; False without a number or start."""
        if offset_s is None or self.record is None or self.record.started_at is None:
            return False
        return self.record.started_at + timedelta(seconds=offset_s) <= now


def views_of(observed: Observed, now: datetime) -> tuple[View, ...]:
    """Return init containers first, in the pod's order, and ephemeral ones last."""
    pod = observed.pod
    assert pod is not None, "views are made of pods that exist"
    init = [_view(observed, each, True, now) for each in dig(pod, "spec", "initContainers", default=[])]
    main = [_view(observed, each, False, now) for each in dig(pod, "spec", "containers", default=[])]
    added = [_view(observed, each, False, now) for each in dig(pod, "spec", "ephemeralContainers", default=[])]
    return (*init, *main, *(replace(view, again_at=None, ephemeral=True) for view in added))


def _view(observed: Observed, spec: Obj, init: bool, now: datetime) -> View:
    attempts = [each for each in observed.containers if each.name == spec.get("name")]
    record = attempts[-1] if attempts else None
    previous = attempts[-2] if len(attempts) > 1 else None
    sidecar = init and is_sidecar(spec)
    state = record.state(now) if record is not None else None
    again = None
    if record is not None and state is ContainerState.EXITED and _runs_again(observed.pod or {}, record, init, sidecar):
        again = _again_at(record)
    view = View(spec, init, sidecar, record, previous, state, again, started=False)
    passed = record is not None and view.running and view.passed(record.course.started_s, now)
    to_make = not view.running and observed.sandbox is not None and (record is None or again is not None)
    missing = observed.missing.variables.get(view.name, "")
    fault = fault_of(order_of(observed, spec, 0), missing) if to_make else None
    return replace(view, started=passed, fault=fault)


def _runs_again(pod: Obj, record: Container, init: bool, sidecar: bool) -> bool:
    if is_terminating(pod):
        return False
    policy = dig(pod, "spec", "restartPolicy", default="Always")
    if sidecar:
        return True
    if policy == "Never":
        return False
    return record.exit_code != 0 or (policy == "Always" and not init)


def backoff_s(attempt: int) -> float:
    """Return the seconds between the end of an attempt (0 is the first) and the next one."""
    if attempt == 0:
        return 0.0
    return float(min(CRASH_BACKOFF_S * 2 ** min(attempt - 1, 10), CRASH_BACKOFF_MAX_S))


def _again_at(record: Container) -> datetime:
    assert record.ends_at is not None, "only a container that ended runs again"
    ran = (record.ends_at - (record.started_at or record.ends_at)).total_seconds()
    wait = 0.0 if ran >= CRASH_RESET_S else backoff_s(record.attempt)
    return record.ends_at + timedelta(seconds=wait)
