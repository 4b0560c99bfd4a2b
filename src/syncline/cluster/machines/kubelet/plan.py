"""Plan the kubelet's next actions for a pod: the first of a list of stages that returns a plan decides.

Runtime actions are separate steps; their results are known at the end of the reconcile (``settle``), which then writes
the status once. Rules are those of Kubernetes' kubelet (``kuberuntime_manager.go`` computePodActions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.pods import is_finished
from syncline.cluster.machines.containers import Container, Sandbox
from syncline.cluster.machines.kubelet.actions import (
    CreateSandbox,
    ForgetPod,
    GoOn,
    KillContainer,
    NoteFailures,
    PodAction,
    RefreshVolumes,
    StartContainer,
)
from syncline.cluster.machines.kubelet.admit import answered_at, refusal_of, refused_status
from syncline.cluster.machines.kubelet.events import (
    events_between,
    killing,
    pulling,
    refused,
    restarting,
    unhealthy,
)
from syncline.cluster.machines.kubelet.observe import Observed, order_of
from syncline.cluster.machines.kubelet.status import status_of
from syncline.cluster.machines.kubelet.views import View, views_of
from syncline.cluster.machines.processes.volumes import shown_of
from syncline.cluster.machines.scripted.images import ImageCache, known_images
from syncline.cluster.machines.scripted.stages import Timing, stage_of
from syncline.control.plan import Delete, Done, Emit, Outcome, Plan, Requeue, Result, set_status
from syncline.kube.objects import Obj, dig, is_terminating, meta, ref_of, uid_of

SETTLED_ATTEMPT = 4
"""From this restart on, a crash loop counts as settled: its reconciles are background work."""
DEFAULT_GRACE_S = 30.0
MIN_GRACE_S = 2.0
"""Minimum grace period of a container that is stopped last (``minimumGracePeriodInSeconds``)."""
CACHE_WAIT_S = 0.1


@dataclass(frozen=True, slots=True)
class _Case:
    """One pod at one instant."""

    observed: Observed
    pod: Obj
    views: tuple[View, ...]
    now: datetime

    @property
    def past_deadline(self) -> bool:
        ends = _deadline(self.pod)
        return dig(self.pod, "status", "reason") == "DeadlineExceeded" or (ends is not None and ends <= self.now)


def plan(observed: Observed, now: datetime) -> Plan:
    """Return a plan of either runtime actions, or a status with its Events. Pure."""
    forgotten = tuple(ForgetPod(observed.ref, uid, "the pod is gone") for uid in observed.leftovers)
    if observed.pod is None or observed.machine is None:
        return Plan((forgotten,), why="end what is left of a pod that is gone")
    if forgotten:
        return Plan((forgotten,), Requeue(0.0, "then the pod that is there now"), "a pod of this name is gone")
    if not observed.machine.up:
        return Plan(why="the machine is down")
    if not observed.complete:
        return Plan((), Requeue(CACHE_WAIT_S, "ConfigMaps and Secrets are not listed yet"))
    case = _Case(observed, observed.pod, views_of(observed, now), now)
    for stage in _STAGES:
        decided = stage(case)
        if decided is not None:
            return decided
    return _report(case, "the pod is as it should be")


def settle(observed: Observed, done: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    """Plan again with the results of runtime actions."""
    if observed.pod is None or not any(isinstance(result.action, _RUNTIME) for result in results):
        return None
    if not all(result.ok for result in results):
        return None
    events: list[Emit] = []
    for result in results:
        if isinstance(result.action, StartContainer) and isinstance(result.value, Container):
            events += pulling(observed.pod, result.action.order.container, result.value)
            problem = known_images(observed.objects).problem
            if problem:
                events.append(refused(observed.pod, "ImageDataIgnored", problem))
        observed = _with(observed, result.value)
    more = plan(observed, now)
    return observed, replace(more, steps=((tuple(events), *more.steps) if events else more.steps))


_RUNTIME = (CreateSandbox, StartContainer, GoOn, KillContainer, RefreshVolumes, NoteFailures)


def _with(observed: Observed, value: object) -> Observed:
    if isinstance(value, Sandbox):
        return replace(observed, sandbox=value)
    if isinstance(value, Container):
        others = [each for each in observed.containers if (each.name, each.attempt) != (value.name, value.attempt)]
        return replace(observed, containers=tuple(sorted([*others, value], key=lambda each: (each.name, each.attempt))))
    return observed


# -- the stages of a pod's life --------------------------------------------------------------------------------------


def _going(case: _Case) -> Plan | None:
    """For a terminating pod: stop its containers, report their end, and remove the pod."""
    if not is_terminating(case.pod):
        return None
    kills = _kills(case, _next_to_go(case), _grace_left_s(case), "the pod is being deleted")
    if kills is not None:
        return kills
    if any(view.alive for view in case.views):
        return _report(case, "containers are stopping")
    report = _report(case, "all containers have ended")
    if meta(case.pod).get("deletionGracePeriodSeconds") == 0 and is_finished(case.pod) and not report.steps:
        return Plan(why="others still have to let the pod go")
    gone = Delete.of(case.pod, "its containers have ended", grace_period_s=0)
    forget = ForgetPod(ref_of(case.pod), uid_of(case.pod), "its containers have ended")
    return Plan((*report.steps, (gone,), (forget,)), why="let the pod go")


def _next_to_go(case: _Case) -> list[View]:
    """Return what to stop next: sidecars last, one by one in reverse order; all at once without a grace period."""
    others = [view for view in case.views if view.alive and not view.sidecar]
    sidecars = [view for view in case.views if view.alive and view.sidecar]
    if not meta(case.pod).get("deletionGracePeriodSeconds"):
        return [*others, *sidecars]
    return others or sidecars[-1:]


def _grace_left_s(case: _Case) -> float:
    """Return the rest of the grace period, at least two seconds, for containers that are stopped later."""
    whole = float(meta(case.pod).get("deletionGracePeriodSeconds") or 0)
    until = time_or_none(meta(case.pod).get("deletionTimestamp"))
    if not whole or until is None or not any(view.exited for view in case.views):
        return whole
    return min(whole, max((until - case.now).total_seconds(), MIN_GRACE_S))


def _finished(case: _Case) -> Plan | None:
    """For a finished pod: stop what still runs; nothing restarts."""
    if not is_finished(case.pod):
        return None
    return _kills(case, list(case.views), 0.0, "the pod has ended") or Plan(why="the pod has ended")


def _refused(case: _Case) -> Plan | None:
    """For a new pod that does not fit on this machine: fail it before anything runs."""
    arrival, machine = case.observed.arrival, case.observed.machine
    if arrival is None or machine is None:
        return None
    refusal = refusal_of(case.pod, arrival.node, arrival.others, machine.room)
    if refusal is None:
        return None
    at, count = answered_at(case.pod, arrival.refused)
    if at is not None and at > case.now:
        wait = f"{count} pods of its controller were refused on {machine.name} already: {refusal.message}"
        waits = {**(case.pod.get("status") or {}), "reason": "AdmissionBackOff", "message": wait}
        later = Requeue((at - case.now).total_seconds(), wait, background=True)
        return Plan((set_status(case.pod, waits, wait),), later, wait)
    status = set_status(case.pod, refused_status(case.pod, refusal, format_time(case.now)), refusal.message)
    return Plan((status, (refused(case.pod, refusal.reason, refusal.message),)), why=refusal.message)


def _overdue(case: _Case) -> Plan | None:
    """Enforce activeDeadlineSeconds."""
    if not case.past_deadline:
        return None
    kills = _kills(case, list(case.views), _grace_s(case.pod), "the pod ran longer than it may")
    if kills is not None:
        return kills
    if any(view.alive for view in case.views):
        return Plan(outcome=_next_look(case), why="containers are stopping")
    return _report(case, "the pod ran longer than it may")


def _sandbox(case: _Case) -> Plan | None:
    machine, sandbox = case.observed.machine, case.observed.sandbox
    assert machine is not None
    if case.observed.missing.volumes:
        return _report(case, case.observed.missing.volumes[0])
    if sandbox is not None and sandbox.boot_id == machine.boot_id:
        return None
    return Plan(((CreateSandbox(case.pod, machine.name, machine.boot_id, "the pod has no sandbox"),),))


def _due(case: _Case) -> Plan | None:
    """Continue with containers whose ``wakes_at`` has come."""
    due = tuple(
        GoOn(case.pod, view.record, "its runtime has more to do")
        for view in case.views
        if view.record is not None and view.alive and view.record.wakes_at and view.record.wakes_at <= case.now
    )
    return Plan((due,)) if due else None


def _probing(case: _Case) -> Plan | None:
    """Report failed probes, and stop containers at the failure threshold; the restart policy decides what follows."""
    acts: list[PodAction] = []
    events: list[Emit] = []
    for view in case.views:
        record = view.record
        if record is None or not view.running or record.stopping:
            continue
        course = record.course
        due = [each for each in course.failures if view.passed(each.after_s, case.now)]
        if len(due) > record.reported:
            ip = case.observed.sandbox.ip if case.observed.sandbox is not None else ""
            acts.append(NoteFailures(case.pod, record, len(due), "Events are written"))
            events += [unhealthy(case.pod, view.spec, each, ip) for each in due[record.reported :]]
        elif view.passed(course.killed_s, case.now):
            acts.append(KillContainer(case.pod, record, _probe_grace_s(case, view), f"it failed: {course.killed_by}"))
            events += restarting(case.pod, view.name, course.killed_by, again=view.would_run_again(case.pod))
    return Plan((tuple(acts), tuple(events)), why="probes failed") if acts else None


def _refreshing(case: _Case) -> Plan | None:
    """Update volumes after changes of ConfigMaps, Secrets or the pod; while one is missing, they stay unchanged."""
    shown = [view.record for view in case.views if view.running and view.record is not None and view.record.shown]
    if not shown or case.observed.missing.volumes:
        return None
    now = shown_of(case.pod, case.observed.objects)
    specs = {view.name: view.spec for view in case.views}
    old = [
        RefreshVolumes(
            order_of(case.observed, specs[each.name], each.attempt), each, "what its volumes show has changed"
        )
        for each in shown
        if each.shown != now and not each.stopping
    ]
    return Plan((tuple(old),)) if old else None


def _probe_grace_s(case: _Case, view: View) -> float:
    """Return the grace period of a probe, which may differ from the pod's."""
    by = view.record.course.killed_by if view.record is not None else ""
    own = dig(view.spec, f"{by}Probe", "terminationGracePeriodSeconds")
    return _grace_s(case.pod) if own is None else float(own)


def _winding_up(case: _Case) -> Plan | None:
    """When all main containers have ended permanently, stop the accompanying ones, then finish the pod."""
    if not all(view.over for view in case.views if view.main):
        return None
    sidecars = [view for view in case.views if view.sidecar or view.ephemeral]
    kills = _kills(case, sidecars, _grace_s(case.pod), "the pod has ended")
    if kills is None and any(view.alive for view in sidecars):
        return Plan(outcome=_next_look(case), why="the last containers are stopping")
    return kills or _report(case, "the pod has ended")


def _initializing(case: _Case) -> Plan | None:
    """Run init containers in sequence; sidecars only need to be started."""
    for view in case.views:
        if not view.init or (view.succeeded and not view.sidecar):
            continue
        if any(each.main and each.record is not None for each in case.views) and not view.sidecar:
            continue
        start = _start_if_due(case, view)
        if start is not None:
            return start
        if not (view.sidecar and view.started):
            return _report(case, f"init container {view.name} is not done")
    return None


def _running(case: _Case) -> Plan | None:
    """Start all other containers at once."""
    starts = [start for view in case.views if not view.init and (start := _start_of(case, view)) is not None]
    return Plan((tuple(starts),)) if starts else None


_STAGES: tuple[Callable[[_Case], Plan | None], ...] = (
    _going,
    _finished,
    _refused,
    _overdue,
    _sandbox,
    _due,
    _refreshing,
    _probing,
    _winding_up,
    _initializing,
    _running,
)


# -- pieces ----------------------------------------------------------------------------------------------------------


def _kills(case: _Case, views: list[View], grace_s: float, reason: str) -> Plan | None:
    """Stop the running containers that are not stopping yet."""
    kills: list[PodAction] = []
    events: list[Emit] = []
    for view in views:
        if view.alive and view.record is not None and not view.record.stopping:
            kills.append(KillContainer(case.pod, view.record, grace_s, reason))
            events.append(killing(case.pod, view.name))
    return Plan((tuple(kills), tuple(events)), why=reason) if kills else None


def _start_if_due(case: _Case, view: View) -> Plan | None:
    start = _start_of(case, view)
    return Plan(((start,),)) if start is not None else None


def _start_of(case: _Case, view: View) -> StartContainer | None:
    """Start a container that never ran, or is due for a restart or another image pull."""
    if view.fault is not None:
        return None
    if view.record is None:
        return StartContainer(order_of(case.observed, view.spec, 0), "it has not run yet")
    if view.pull_failed and not _still_fails(case.pod, view, known_images(case.observed.objects)):
        return StartContainer(order_of(case.observed, view.spec, view.record.attempt), "its image can be had now")
    if view.pulls_again_at is not None and view.pulls_again_at <= case.now:
        return StartContainer(order_of(case.observed, view.spec, view.record.attempt), "its image is pulled once more")
    if view.again_at is not None and view.again_at <= case.now:
        return StartContainer(
            order_of(case.observed, view.spec, view.record.attempt + 1), "it ended and is to run again"
        )
    return None


def _still_fails(pod: Obj, view: View, images: ImageCache) -> bool:
    """Return whether the image of the last try still fails; the pod may have changed since."""
    tried = view.record.pulls if view.record is not None else 1
    return bool(stage_of(pod, view.spec, 0, Timing(), tried - 1, images).pull_error)


def _report(case: _Case, why: str) -> Plan:
    """Return the current status, its Events, and the next reconcile."""
    new = status_of(case.observed, case.views, case.now, past_deadline=case.past_deadline)
    written = set_status(case.pod, new, why)
    if not written:
        return Plan((), _next_look(case), why)
    records = {view.name: view.record for view in case.views if view.record is not None}
    events = events_between(case.pod, new, records)
    steps: tuple[tuple[Any, ...], ...] = (written, events) if events else (written,)
    return Plan(steps, _next_look(case), why)


def _deadline(pod: Obj) -> datetime | None:
    seconds = dig(pod, "spec", "activeDeadlineSeconds")
    began = time_or_none(dig(pod, "status", "startTime"))
    return began + timedelta(seconds=float(seconds)) if seconds and began else None


def _grace_s(pod: Obj) -> float:
    return float(dig(pod, "spec", "terminationGracePeriodSeconds", default=DEFAULT_GRACE_S))


def _next_look(case: _Case) -> Outcome:
    """Requeue at the next instant at which the pod changes without an event."""
    looks: list[tuple[datetime, bool]] = []
    for view in case.views:
        looks += [(at, _at_rest(view)) for at in _instants(view) if at > case.now]
        if view.record is not None and view.pulls_again_at is not None:
            if view.record.created_at == case.now and view.record.pulls == 1:
                looks.append((case.now + timedelta(seconds=1), False))
            looks.append((max(view.pulls_again_at, case.now), True))
    ends = _deadline(case.pod)
    if ends is not None and ends > case.now and not is_finished(case.pod):
        looks.append((ends, True))
    if not looks:
        return Done()
    at, background = min(looks)
    foreground = [instant_ for instant_, rest in looks if not rest]
    if background and foreground and min(foreground) > at:
        background = False
    return Requeue((at - case.now).total_seconds(), "the next stage of a container", background)


def _instants(view: View) -> list[datetime]:
    record = view.record
    if record is None:
        return []
    probed: list[datetime] = []
    if record.started_at is not None and not record.stopping:
        probed = [record.started_at + timedelta(seconds=offset_s) for offset_s in record.course.instants_s()]
    return [*probed, *(at for at in (record.started_at, record.ends_at, view.again_at, record.wakes_at) if at)]


def _at_rest(view: View) -> bool:
    return view.record is not None and view.record.attempt >= SETTLED_ATTEMPT
