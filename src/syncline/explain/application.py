"""Explains what blocks an Application, down to the object that causes it. Entry point: :func:`explain_application`.

``syncline explain`` calls it with what the controller observes and a view of the cluster. Pure. It checks in order:
deletion, the running operation, a broken spec or source, failures of the last operation, bad health, a difference. The
first check with a result decides. Leftovers of ended operations are added to every result.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from syncline.apply.actions import (
    AfterWave,
    ApplyMode,
    ApplyObject,
    DeleteHook,
    PruneObject,
    ReadObject,
    SyncAction,
)
from syncline.apply.annotations import is_delete_hook
from syncline.apply.causes.advice import advice
from syncline.apply.causes.masking import masked_found
from syncline.apply.managed import LABEL, manager_of, refused_namespace
from syncline.apply.outcome import Outcome, WaitKind
from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.explain.graph import deepened, explain_object
from syncline.explain.view import Found, View, one_line
from syncline.explain.waiting import (
    awaited_applications,
    awaited_conditions,
    awaited_gates,
    awaited_windows,
    no_automated_sync,
)
from syncline.gitops.application.deletion import plan_deletion
from syncline.gitops.application.observing.observe import AppObserved
from syncline.gitops.application.operating.operation import sync_observed
from syncline.gitops.application.operating.pools import left_paused, still_left
from syncline.gitops.application.plan import compare_application
from syncline.gitops.application.problems import spec_problems
from syncline.gitops.application.status import SOURCE_WAIT
from syncline.gitops.sync.cause import causes
from syncline.gitops.sync.model import SyncObserved, SyncPlan
from syncline.gitops.sync.plan import plan_sync, record
from syncline.kube.objects import Obj, ObjectRef, dig, is_terminating
from syncline.machineconfig.causes.configs import APPLIED
from syncline.machineconfig.names import MACHINE_CONFIG, POOL

MAY_NOT = "you may not read it"
MAX_ROWS = 5
"""Maximum failed or unhealthy resources that are explained; the Application's rows list all."""
MAX_CONFIGS = 10
"""Maximum MachineConfigs of one Application whose progress is explained."""
MAX_READS = 20
"""Maximum rounds of a simulated reconcile; each unseen object is read once."""
UNWELL = ("Degraded", "Missing", "Progressing", "Suspended", "Unknown")
FIXES = {
    "InvalidSpecError": "correct the Application's spec",
    "ComparisonError": "correct the source, then: syncline app get --refresh {name}",
    "SyncError": "correct the cause, then: syncline app sync {name}",
    "OperationError": "correct the operation that is asked for",
    "DeletionError": "correct the cause; deletion goes on by itself",
}
"""Fixes by type of condition, for messages without better advice."""


def explain_application(view: View, observed: AppObserved) -> Found:
    """Return the chain of causes whose head is the Application."""
    for part in (_deletion, _operation, _conditions, _reading, _last_operation, _health):
        found = part(view, observed)
        if found is not None:
            break
    else:
        found = _settled(view, observed)
    found = _with_left_behind(observed, found)
    return masked_found(view, replace(found, cause=_naming(found.cause, observed.view.typed)), observed.view.mask)


def _naming(cause: Cause, name: str) -> Cause:
    """Insert the Application's name into commands that contain a placeholder for it."""
    step = re.sub(r"(syncline app [a-z-]+) APP\b", rf"\1 {name}", cause.next_action)
    return replace(cause, next_action=step, because=tuple(_naming(each, name) for each in cause.because))


def _head(
    observed: AppObserved, state: str, message: str, since: datetime | None, *because: Cause, next_action: str = ""
) -> Cause:
    app = observed.view
    evidence = {
        "revision": dig(app.status, "sync", "revision"),
        "operation": dig(app.operation_state, "phase"),
        "sync": dig(app.status, "sync", "status"),
        "health": dig(app.status, "health", "status"),
        "resourceVersion": dig(app.obj, "metadata", "resourceVersion"),
    }
    return Cause(
        subject=f"Application {app.namespace}/{app.name}",
        state=state,
        message=one_line(message),
        since=since,
        next_action=next_action,
        evidence=tuple((key, str(value)) for key, value in evidence.items() if value),
        because=because,
    )


def _joined(observed: AppObserved, state: str, message: str, since: datetime | None, below: list[Found]) -> Found:
    head = _head(observed, state, message, since, *(found.cause for found in below))
    return Found(head, blocked=any(found.blocked for found in below))


# -- deletion and running operations ---------------------------------------------------------------------------------


def _deletion(view: View, observed: AppObserved) -> Found | None:
    if not observed.view.terminating or observed.view.operation is not None:
        return None
    plan = plan_deletion(observed, view.now)
    live = [obj for ref, obj in sorted(observed.live.items()) if not observed.reach.refuses_own(ref)]
    going = [obj for obj in live if is_terminating(obj) or _runs_at_the_end(obj)]
    below = [explain_object(view, obj) for obj in going[:MAX_ROWS]]
    return _joined(
        observed, "Deleting", plan.why, time_or_none(dig(observed.view.obj, "metadata", "deletionTimestamp")), below
    )


def _runs_at_the_end(obj: Obj) -> bool:
    return is_delete_hook(obj, "PreDelete") or is_delete_hook(obj, "PostDelete")


def _operation(view: View, observed: AppObserved) -> Found | None:
    if observed.view.operation is None:
        return None
    state = observed.view.operation_state or {}
    since = time_or_none(state.get("startedAt"))
    if not state:
        fix = "is the controller running? syncline up runs one"
        return Found(
            _head(observed, "Requested", "the operation has not begun yet", since, next_action=fix), blocked=False
        )
    message = str(state.get("message") or "the operation has begun")
    if state.get("finishedAt"):
        return _joined(observed, "Retrying", message, since, _failed_rows(view, observed, state))
    if observed.pinned is not None and observed.pinned.error:
        text = f"{message}; its source cannot be read: {observed.pinned.error}"
        return Found(_head(observed, "Running", text, since, next_action=advice(observed.pinned.error)), blocked=True)
    first = [] if state.get("syncResult") else awaited_windows(observed, view.now, manual=_by_hand(observed))
    first = first or awaited_applications(observed)
    first = first or [deepened(view, cause) for cause in awaited_conditions(observed, view.now, since)]
    if first and not dig(state, "syncResult", "resources"):
        return _joined(observed, str(state.get("phase") or "Running"), message, since, first)
    waits = _waits(view, observed)
    below = [deepened(view, cause) for cause in waits] if waits else _running_rows(view, observed, state)
    return _joined(observed, str(state.get("phase") or "Running"), message, since, below)


def _by_hand(observed: AppObserved) -> bool:
    return not dig(observed.view.operation, "initiatedBy", "automated")


def _waits(view: View, seen: AppObserved) -> tuple[Cause, ...]:
    """Return the causes of the current waits, from the plan that the controller would make now."""
    if seen.pinned is None:
        return ()
    observed = sync_observed(seen, seen.pinned, compare_application(seen, seen.pinned))
    report = _end_of_pass(view, observed)
    if report is None:
        return ()
    wait = report[1].wait
    if wait is not None and wait.kind is WaitKind.CONDITION:
        awaited = {str(ref) for ref in wait.refs}
        gates = [gate for gate in observed.gates if str(gate.condition.ref) in awaited]
        since = observed.started_at
        closed = [*awaited_gates(seen, gates, view.now, since), *awaited_conditions(seen, view.now, since)]
        if found := tuple(cause for cause in closed if cause.subject in awaited):
            return found
    return causes(*report)


def _end_of_pass(view: View, observed: SyncObserved) -> tuple[SyncObserved, SyncPlan] | None:
    """Simulate a reconcile with predicted responses; None if it would write something new."""
    for _ in range(MAX_READS):
        plan = plan_sync(observed, view.now)
        if plan.ended:
            return observed, plan
        answers = tuple(tuple(_answer(view, action) for action in step) for step in plan.steps)
        known = tuple(tuple(one for one in step if one is not None) for step in answers)
        if known != answers:
            return None
        observed = record(observed, plan, known)
    return None


def _answer(view: View, action: SyncAction) -> Outcome | None:
    """Return the response that the API would give, or None if it cannot be predicted."""
    if isinstance(action, AfterWave):
        return None
    live = view.cluster.get(action.ref)
    if live is None and view.cluster.unread(action.ref):
        return None
    match action:
        case ReadObject():
            return Outcome(ok=live is not None, not_found=live is None, obj=live)
        case DeleteHook() | PruneObject() if live is not None and is_terminating(live):
            return Outcome(ok=True, pending=WaitKind.DELETION)
        case ApplyObject(mode=ApplyMode.RECREATE) if live is not None and is_terminating(live):
            return Outcome(ok=True, pending=WaitKind.DELETION)
        case _:
            return None


def _running_rows(view: View, observed: AppObserved, state: Obj) -> list[Found]:
    rows = dig(state, "syncResult", "resources", default=[])
    running = [row for row in rows if row.get("hookPhase") == "Running"]
    return [_row(view, observed, row, "Running") for row in running[:MAX_ROWS]] + _failed_rows(view, observed, state)


# -- what is wrong while nothing runs --------------------------------------------------------------------------------


def _conditions(view: View, observed: AppObserved) -> Found | None:
    """Explain a broken spec or source by the conditions of the status, or by the spec itself before there are any."""
    lines = [c for c in observed.view.status.get("conditions") or [] if str(c.get("type")).endswith("Error")]
    if not lines:
        lines = [{"type": p.type, "message": p.message} for p in spec_problems(replace(observed, unread={}))]
    if not lines:
        return None
    first = lines[0]
    below = []
    if first.get("type") == "SyncError":
        below = [found.cause for found in _failed_rows(view, observed, observed.view.operation_state or {})]
    fix = "" if any(cause.next_action or cause.because for cause in below) else _fix(observed, first)
    since = time_or_none(first.get("lastTransitionTime"))
    others = tuple(Cause("condition", str(c.get("type")), one_line(str(c.get("message")))) for c in lines[1:])
    head = _head(observed, str(first["type"]), str(first.get("message")), since, *below, *others, next_action=fix)
    return Found(head, blocked=True)


def _fix(observed: AppObserved, condition: Obj) -> str:
    known = advice(str(condition.get("message")))
    return known or FIXES.get(str(condition.get("type")), "correct what the message says").format(
        name=observed.view.typed
    )


def _reading(_view: View, observed: AppObserved) -> Found | None:
    """Explain a source that takes long to read; the rest of the status is outdated meanwhile."""
    report = next((c for c in observed.view.status.get("conditions") or [] if c.get("type") == SOURCE_WAIT), None)
    if report is None:
        return None
    fix = "look whether its host answers; other Applications do not wait for it"
    since = time_or_none(report.get("lastTransitionTime"))
    return Found(_head(observed, "Waiting", str(report.get("message")), since, next_action=fix), blocked=False)


def _last_operation(view: View, observed: AppObserved) -> Found | None:
    state = observed.view.operation_state or {}
    if state.get("phase") not in ("Failed", "Error"):
        return None
    message = str(state.get("message") or "the operation failed")
    since = time_or_none(state.get("finishedAt"))
    below = _failed_rows(view, observed, state)
    known = any(f.cause.next_action or f.cause.because for f in below)
    again = f"syncline app sync {observed.view.typed}"
    fix = "" if known else advice(message)
    head = _head(
        observed,
        f"sync {state['phase']}",
        message,
        since,
        *(found.cause for found in below),
        next_action=fix or ("" if known else f"correct it in the source, then: {again}"),
    )
    return Found(head, blocked=True)


def _failed_rows(view: View, observed: AppObserved, state: Obj) -> list[Found]:
    rows = dig(state, "syncResult", "resources", default=[])
    failed = [r for r in rows if r.get("status") == "SyncFailed" or r.get("hookPhase") in ("Failed", "Error")]
    return [_row(view, observed, row, str(row.get("status") or row.get("hookPhase"))) for row in failed[:MAX_ROWS]]


def _live(view: View, observed: AppObserved, ref: ObjectRef) -> Obj | None:
    """Return the live object of a status row; None if the project forbids it: a tenant may have written the row."""
    return None if observed.reach.refuses_own(ref) else view.cluster.get(ref)


def _row(view: View, observed: AppObserved, row: Obj, state: str) -> Found:
    """Explain one result row by its live object; a refused request is explained by the row's message."""
    ref = _ref(row)
    message = str(row.get("message") or "")
    if row.get("hookPhase") in ("Failed", "Error") and row.get("status") != "SyncFailed":
        state = str(row["hookPhase"])
    cause = Cause(str(ref), state, one_line(message), next_action=advice(message))
    live = _live(view, observed, ref)
    if live is None or row.get("status") == "SyncFailed":
        return Found(_unmanaged(view, message, cause), blocked=state != "Running")
    below = explain_object(view, live)
    return Found(
        replace(
            below.cause,
            message=below.cause.message or cause.message,
            state=below.cause.state if below.blocked else state,
        ),
        blocked=below.blocked or state != "Running",
    )


def _unmanaged(view: View, message: str, cause: Cause) -> Cause:
    """Add why Kubernetes refuses the application controller: the label of the namespace, as it is now."""
    refused = refused_namespace(message)
    if refused is None:
        return cause
    ref = ObjectRef("", "Namespace", "", refused.namespace)
    namespace, unread = view.cluster.get(ref), view.cluster.unread(ref)
    manager = manager_of(namespace) if namespace is not None else ""
    if namespace is None:
        said = f"{MAY_NOT}: whether it has the label {LABEL} is not known" if unread else "is not in the cluster"
        return replace(cause, because=(Cause(str(ref), "unread" if unread else "Missing", said),))
    if manager == refused.control:
        said = f"has the label {LABEL}={manager}, and {refused.account} lacks the right all the same"
        fix = f"look what it may do there: kubectl -n {refused.namespace} get role,rolebinding; then sync again"
    elif manager:
        said = f"its label {LABEL} names another instance: {manager}"
        fix = f"if instance {manager} gives it up: {refused.command} --overwrite; then sync again"
    else:
        said = f"has no label {LABEL}"
        fix = f"{refused.command}; then: syncline app sync APP"
    below = Cause(str(ref), "managed" if manager else "not managed", said, next_action=fix)
    return replace(cause, next_action="", because=(below,))


def _ref(row: Obj) -> ObjectRef:
    return ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))


def _health(view: View, observed: AppObserved) -> Found | None:
    health = dig(observed.view.status, "health", default={})
    if health.get("status") in (None, "Healthy"):
        return None
    rows = [r for r in observed.view.status.get("resources") or [] if dig(r, "health", "status") in UNWELL]
    worst = sorted(rows, key=lambda row: UNWELL.index(dig(row, "health", "status")))
    below = [_unwell(view, observed, row) for row in worst[:MAX_ROWS]]
    text = str(health.get("message") or "") or f"{len(rows)} of its resources are not Healthy"
    found = _joined(observed, str(health["status"]), text, time_or_none(health.get("lastTransitionTime")), below)
    missing = health.get("status") == "Missing" and not found.blocked
    if not missing:
        return found
    step = f"syncline plan {observed.view.typed}, then: syncline app sync {observed.view.typed}"
    return Found(replace(found.cause, next_action=step), blocked=False)


def _unwell(view: View, observed: AppObserved, row: Obj) -> Found:
    ref, state = _ref(row), str(dig(row, "health", "status"))
    refused = observed.reach.refuses_own(ref)
    if refused:
        return Found(Cause(str(ref), state, refused), blocked=False)
    live = view.cluster.get(ref)
    if live is None:
        said = view.cluster.unread(ref)
        message = str(dig(row, "health", "message", default=""))
        text = f"{message}; {MAY_NOT}" if message else MAY_NOT
        return Found(Cause(str(ref), state, text if said else "is in the source and not in the cluster"), blocked=False)
    below = explain_object(view, live)
    said = below.cause.message or str(dig(row, "health", "message", default=""))
    return Found(
        replace(below.cause, state=state, message=one_line(said)), blocked=below.blocked or state == "Degraded"
    )


def _settled(view: View, observed: AppObserved) -> Found:
    sync = str(dig(observed.view.status, "sync", "status", default="Unknown"))
    health = str(dig(observed.view.status, "health", "status", default="Unknown"))
    ended = time_or_none(dig(observed.view.operation_state, "finishedAt"))
    since = ended or time_or_none(dig(observed.view.status, "reconciledAt"))
    differing = [r for r in observed.view.status.get("resources") or [] if r.get("status") == "OutOfSync"]
    if sync == "Synced":
        return _synced(view, observed, f"{sync}, {health}", since)
    named = ", ".join(f"{r.get('kind')}/{r.get('name')}" for r in differing[:3])
    text = f"{len(differing)} resources differ from the source" + (f": {named}" if named else "")
    step = f"syncline plan {observed.view.typed}, then: syncline app sync {observed.view.typed}"
    waits = no_automated_sync(observed, view.now)
    head = _head(observed, f"{sync}, {health}", text, since, *(found.cause for found in waits), next_action=step)
    return Found(head, blocked=any(found.blocked for found in waits))


def _synced(view: View, observed: AppObserved, state: str, since: datetime | None) -> Found:
    """Explain an Application whose objects are applied, by pools that still update: health does not cover machines."""
    if not any(dig(pool, "status", "conditions") for pool in view.cluster.objects(POOL)):
        return Found(_head(observed, state, "nothing blocks", since), blocked=False)  # no operator manages pools here
    rows = [_ref(row) for row in observed.view.status.get("resources") or [] if row.get("kind") == MACHINE_CONFIG.kind]
    lines = [
        explain_object(view, live) for ref in rows[:MAX_CONFIGS] if (live := _live(view, observed, ref)) is not None
    ]
    waiting = [found for found in lines if found.cause.state != APPLIED]
    if not waiting:
        return Found(_head(observed, state, "nothing blocks", since), blocked=False)
    first = next((found for found in waiting if found.blocked), waiting[0])
    text = "what it wants for machines is not on all of them yet"
    return Found(_head(observed, state, text, since, first.cause), blocked=first.blocked)


def _with_left_behind(observed: AppObserved, found: Found) -> Found:
    """Add pools that an ended operation of this Application left paused (DECISIONS 30)."""
    ended = observed.view.operation is None
    now_left = (
        left_paused(observed.view.obj, observed.pools, observed.latest.objects if observed.latest else ())
        if ended
        else ()
    )
    left = {one.pool: one for one in (*still_left(observed.view.obj, observed.pools), *now_left)}
    if not left:
        return found
    causes_ = tuple(
        Cause(f"MachineConfigPool {pool}", "left paused", one_line(str(one)), next_action=one.fix)
        for pool, one in sorted(left.items())
    )
    return Found(replace(found.cause, because=(*found.cause.because, *causes_)), blocked=True)
