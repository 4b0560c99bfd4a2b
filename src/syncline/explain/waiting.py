"""Explains what a sync waits for before it writes anything: windows, other Applications, conditions of manifests.

The explanation of Applications calls these functions. Pure; they use the controller's own checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from syncline.argo.application import typed_name
from syncline.argo.dependencies import DEPENDS_ON, depends_on, missing, not_ready
from syncline.argo.project.windows import SyncWindow, WindowError, matching_windows, read_windows, window_problem
from syncline.base.cause import Cause
from syncline.base.clock import format_time, time_or_none
from syncline.explain.view import Found, one_line
from syncline.gitops.application.observing.observe import AppObserved
from syncline.gitops.application.operating.autosync import SelfHealBackoff, decide
from syncline.gitops.sync.conditions import (
    WAIT_FOR,
    Condition,
    ConditionError,
    OutOfSteps,
    WaveGate,
    seen_by,
    waits_of,
)
from syncline.kube.objects import Obj, ObjectRef, dig, ref_of

MAX_STARTS = 1000
"""Starts of a window that are followed to its end; one that begins more often never ends."""

# -- windows ---------------------------------------------------------------------------------------------------------


def awaited_windows(observed: AppObserved, now: datetime, *, manual: bool) -> list[Found]:
    """Return the project's windows that block a sync now; empty if it may sync."""
    if not window_problem(observed.project, observed.view.obj, now, manual=manual):
        return []
    found: list[Found] = []
    entries = dig(observed.project, "spec", "syncWindows", default=[])
    ours = matching_windows(entries, observed.view.obj)
    for number, entry in enumerate(entries):
        if not any(entry is one for one in ours):
            continue
        try:
            (window,) = read_windows([entry])
        except (WindowError, ValueError) as error:
            found.append(Found(Cause(_place(observed, number), "unreadable", str(error)), blocked=True))
            continue
        if window.denies if window.is_active(now) else window.allows:
            found.append(Found(_window(observed, number, entry, window, now), blocked=True))
    return found


def _place(observed: AppObserved, number: int) -> str:
    return f"sync window {number} of project {observed.view.project}"


def _window(observed: AppObserved, number: int, entry: Obj, window: SyncWindow, now: datetime) -> Cause:
    opens = _opens(window, now)
    zone = f" {window.zone}" if window.zone else ""
    text = f"{entry.get('kind')} {entry.get('schedule')!r} for {entry.get('duration')}{zone}"
    until = f"{'opens' if window.allows else 'ends'} at {format_time(opens)}" if opens else "goes on and on"
    by_hand = f"sync by hand: syncline app sync {observed.view.typed}"
    allow = f"allow syncs by hand: syncline proj windows enable-manual-sync {observed.view.project} {number}"
    return Cause(
        _place(observed, number),
        "closed" if window.allows else "denies",
        f"{text}, {until}",
        next_action=f"wait for it, or {by_hand if window.manual else allow}",
        evidence=(("entry", one_line(str(entry))),),
    )


def _opens(window: SyncWindow, now: datetime) -> datetime | None:
    """Return in UTC when an allow window opens next or a deny window closes."""
    shift = window.local(now) - now.astimezone(UTC)
    if window.allows:
        begins = window.schedule.next_after(window.local(now))
        return begins - shift if begins is not None else None
    begun = window.schedule.next_after(window.local(now) - window.duration)
    for _ in range(MAX_STARTS):
        following = window.schedule.next_after(begun) if begun is not None else None
        if begun is None or following is None or following >= begun + window.duration:
            return begun + window.duration - shift if begun is not None else None
        begun = following  # the next window begins before this one ends
    return None


def no_automated_sync(observed: AppObserved, now: datetime) -> list[Found]:
    """Explain why an automated Application is out of sync and not synced now; empty if it is not automated."""
    app = observed.view.obj
    if dig(app, "spec", "syncPolicy", "automated") is None:
        return []
    closed = awaited_windows(observed, now, manual=False)
    if closed:
        return closed
    sync = dig(app, "status", "sync", default={})
    revisions = sync.get("revisions") or [str(sync.get("revision") or "")]
    rows = dig(app, "status", "resources", default=[])
    decision = decide(app, str(sync.get("status")), revisions, rows, now, backoff=SelfHealBackoff())
    if decision.operation is not None:
        return [Found(Cause("automated sync", "due", decision.why), blocked=False)]
    return [Found(Cause("automated sync", "not started", decision.why), blocked=False)]


# -- other applications ----------------------------------------------------------------------------------------------


def awaited_applications(observed: AppObserved) -> list[Found]:
    """Return the Applications that this one depends on and that are not ready."""
    app = observed.view.obj
    if not not_ready(app, observed.before, observed.reach_of_applications):
        return []
    known = {ref_of(one): one for one in observed.before if not isinstance(one, ObjectRef)}
    return [found for ref in depends_on(app) if (found := _application(observed, ref, known.get(ref))) is not None]


def _application(observed: AppObserved, ref: ObjectRef, other: Obj | None) -> Found | None:
    subject = f"Application {ref.namespace}/{ref.name}"
    if other is None:
        fix = f"create it, or correct {DEPENDS_ON} of {observed.view.name}"
        return Found(
            Cause(subject, "Missing", missing(ref, observed.reach_of_applications), next_action=fix), blocked=True
        )
    sync = str(dig(other, "status", "sync", "status", default="Unknown"))
    health = str(dig(other, "status", "health", "status", default="Unknown"))
    busy = bool(other.get("operation"))
    if (sync, health, busy) == ("Synced", "Healthy", False):
        return None
    phase = dig(other, "status", "operationState", "phase", default="")
    by_itself = busy or (dig(other, "spec", "syncPolicy", "automated") is not None and phase not in ("Failed", "Error"))
    typed = typed_name(ref.name, ref.namespace)
    fix = f"syncline app sync {typed}" if sync != "Synced" and phase not in ("Failed", "Error") else ""
    text = "an operation runs" if busy else str(dig(other, "status", "operationState", "message", default=""))
    since = time_or_none(dig(other, "status", "health", "lastTransitionTime"))
    look = f"syncline explain {typed}"
    step = "" if by_itself and health != "Degraded" else fix or look
    return Found(
        Cause(subject, f"{sync}, {health}", one_line(text), since, next_action=step or look),
        blocked=not by_itself or health == "Degraded",
    )


# -- conditions ------------------------------------------------------------------------------------------------------


def awaited_conditions(observed: AppObserved, now: datetime, started: datetime | None) -> list[Cause]:
    """Return the ``syncline.dev/wait-for`` conditions in the running operation's manifests that are not met."""
    pinned = observed.pinned
    found: dict[str, Cause] = {}
    for target in pinned.objects if pinned is not None else ():
        try:
            conditions = waits_of(target, observed.kinds, observed.view.destination_namespace, observed.reach.refuses)
            problems = [(one, _problem(observed, one, now)) for one in conditions]
        except ConditionError:
            continue  # the operation has reported it and ended
        for condition, problem in problems:
            if problem:
                found.setdefault(str(condition.ref), _condition(observed, target, condition, problem, started))
    return list(found.values())


def awaited_gates(
    observed: AppObserved, gates: Iterable[WaveGate], now: datetime, started: datetime | None
) -> list[Cause]:
    """Return the gates of the running operation that are closed."""
    found: dict[str, Cause] = {}
    for gate in gates:
        problem = gate.unserved or _problem(observed, gate.condition, now)
        if problem:
            limit = gate.condition.deadline
            then = "the operation goes on without it" if gate.goes_on else "the operation fails"
            until = started + limit if started is not None and limit is not None else None
            end = f"; {then} at {format_time(until)}" if until is not None else ""
            cause = Cause(
                str(gate.condition.ref),
                "Missing" if observed.lookup(gate.condition.ref) is None else "Waiting",
                f"{gate.who.kind} {gate.who.name} holds what comes after wave {gate.wave}: {problem}{end}",
                started,
                until=until,
                then=then if limit is not None else "",
            )
            found.setdefault(str(gate.condition.ref), cause)
    return list(found.values())


def _problem(observed: AppObserved, condition: Condition, now: datetime) -> str:
    known = seen_by(observed.referred.objects.get, observed.unread_there)
    unread = observed.unread_there(condition.ref)
    try:
        obj = observed.lookup(condition.ref)
        return condition.problem(obj, observed.health, unread=unread, known=known, now=now)
    except OutOfSteps as error:
        return str(error)


def _condition(
    observed: AppObserved, target: Obj, condition: Condition, problem: str, started: datetime | None
) -> Cause:
    limit: timedelta | None = condition.deadline
    live = observed.lookup(condition.ref)
    who = f"{ref_of(target).kind} {ref_of(target).name}"
    own = [ref_of(one) for one in (observed.pinned.objects if observed.pinned is not None else ())]
    same = any((one.group, one.kind, one.name) == (*condition.ref[:2], condition.ref.name) for one in own)
    hidden = observed.unread_there(condition.ref)
    if live is not None or hidden:
        fix = ""
    elif same:
        fix = f"the same sync brings it: give it an earlier sync wave than {who}"
    else:
        fix = f"bring it, or correct {WAIT_FOR} of {who}"
    return Cause(
        str(condition.ref),
        "unread" if hidden else "Missing" if live is None else "Present",
        f"{who} waits for it: {problem}",
        started,
        until=started + limit if started is not None and limit is not None else None,
        then="the operation fails" if limit is not None else "",
        next_action=fix,
    )
