"""One sync operation, from request to result; pure.

The request is ``.operation``, the state is ``.status.operationState``; there is no other memory. A reconcile plans with
``gitops/sync/plan.py``, records the outcomes, plans again, and ends by writing the state. After a crash at any point
the next process continues from the objects. Rules: ``processRequestedAppOperation`` and ``SyncAppState`` of Argo CD.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.apply.outcome import Outcome, WaitKind
from syncline.argo.application import RELEASE, AppView
from syncline.argo.conditions import Condition, merge_conditions
from syncline.argo.dependencies import dependency_problem, not_ready
from syncline.argo.guard import guard_asked, mass_deletion
from syncline.argo.project import window_problem
from syncline.base.action import Action
from syncline.base.clock import format_time, time_or_none
from syncline.control.plan import Emit, Plan, Requeue, Result
from syncline.gitops.application.manifests import Manifests, Render
from syncline.gitops.application.observing.observe import (
    LOCAL_UNSIGNED,
    AppObserved,
    local_texts,
    operation_sources,
    pinned_revisions,
    placing,
    signed_only,
    wanted_revisions,
)
from syncline.gitops.application.operating.holds import give_back_for_gate, renewed, taken
from syncline.gitops.application.operating.hooks import hooks_to_run, noted_hooks
from syncline.gitops.application.operating.pools import LeftPaused, begin_notes, end_notes, leaves_paused, left_paused
from syncline.gitops.application.operating.rules import ObservedRules
from syncline.gitops.application.status import app_patch
from syncline.gitops.comparison.compare import Comparison
from syncline.gitops.sync.conditions import JUDGED_AGAIN, rests_until
from syncline.gitops.sync.messages import augment_message
from syncline.gitops.sync.model import OperationPhase, SelectedResource, SyncObserved, SyncOptions, SyncPlan
from syncline.gitops.sync.plan import plan_sync, plan_termination, record
from syncline.gitops.sync.results import rows_from_status, rows_to_status
from syncline.gitops.sync.retry import RetryError, retry_after, retry_limit
from syncline.kube.errors import Unanswered
from syncline.kube.objects import Obj, annotations_of, dig, meta, uid_of

COMPONENT = "syncline-application-controller"
PASS_INTERVAL_S = 30.0
"""Seconds after which a waiting operation is reconciled even without an event (upstream's requeue interval)."""
UNTRACKED = (WaitKind.ACCOUNT, WaitKind.DEFINITION, WaitKind.CONDITION)
"""Waits that no event ends: their objects do not belong to the application."""
UNTRACKED_INTERVAL_S, UNTRACKED_LATER_S = 0.5, 3.0
SOON = timedelta(seconds=30)
LEAST_PAUSE = timedelta(seconds=1)
"""Shortest wait between two attempts of an operation."""
SHA_LENGTH = 40
NEEDED = "the operation needs its manifests"
FAIL_ON_SHARED = "FailOnSharedResource=true"
STARTED = "syncline.dev/operation-started"
"""Annotation that distinguishes operations of one second: the second, and a number from the next one on."""
STARTED_FORM = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?", re.ASCII)
OVERTAKE = "syncline.dev/overtake"
OVERDUE = "GateOverdueWarning"
"""Condition of an Application whose gate waits beyond its deadline."""
TIMED_OUT = "operation is terminating due to timeout"


@dataclass(frozen=True)
class OperationPlan(Plan):
    """The plan of one round, with the state needed to continue from its outcomes or, in the last round, its result."""

    observed: SyncObserved | None = None
    sync: SyncPlan | None = None
    pinned: Manifests | None = field(default=None)
    view: AppView | None = field(default=None)
    """The Application with the status of this reconcile's comparison."""


Compare = Callable[[AppObserved, Manifests], Comparison]


def plan_operation(observed: AppObserved, now: datetime, compare: Compare, problems: tuple[str, ...]) -> Plan | None:
    """Return the next round of the operation; None without a request. ``problems``: spec errors, ``Type: message``."""
    view = observed.view
    if view.operation is None:
        return None
    state = view.operation_state
    if state is None or _over(state):
        return _begin(observed, now, problems)
    if (
        observed.remote_problem
        and state.get("phase") == OperationPhase.RUNNING
        and dig(state, "syncResult", "resources")
    ):
        # A cluster that is unreachable for a moment fails nothing.
        why = f"waiting for the destination: {observed.remote_problem}"
        return Plan(outcome=Requeue(PASS_INTERVAL_S, why), why=why)
    if problems:
        return _finish(observed, OperationPhase.ERROR, ";".join(problems), None, None, now)
    kept = renewed(observed, running_operation(view), now)
    if kept is not None:
        return kept
    if _timed_out(observed, state, now):
        return _terminate(view, state)
    overtaken = _overtaken(observed, state, now)
    if overtaken is not None:
        return overtaken
    if state.get("phase") == OperationPhase.RUNNING and state.get("finishedAt"):
        waiting = _wait_for_retry(observed, state, now)
        if waiting is not None:
            return waiting
    invalid = _invalid(observed, view.operation)
    if invalid:
        return _finish(observed, OperationPhase.ERROR, invalid, None, None, now)
    missing = _being_read(observed, state) or _render_first(observed)
    if missing is not None:
        return missing
    pinned = observed.pinned
    assert pinned is not None, "an operation goes on with its manifests only"
    if pinned.error:
        message = f"ComparisonError: Failed to load target state: {pinned.error}"
        return _finish(observed, OperationPhase.ERROR, message, None, pinned, now)
    waiting = (
        _blocked_by_window(observed, state, now)
        or _wait_for_applications(observed, state)
        or _record_first(observed, state, pinned)
    )
    if waiting is not None:
        return waiting
    comparison = compare(observed, pinned)
    refused = _refused(observed, comparison)
    if refused is not None and state.get("phase") == OperationPhase.RUNNING:
        return _finish(observed, *refused, None, pinned, now)
    return _round(observed, sync_observed(observed, pinned, comparison), pinned, now)


def _invalid(observed: AppObserved, operation: Obj) -> str:
    """Return why the request is invalid; empty if it is valid."""
    if operation.get("sync") is None:
        return "Invalid operation request: no operation specified"
    sources, asked = operation_sources(observed.view), _asked(observed.view)
    if local_texts(observed.view) and signed_only(observed.project, sources):
        return LOCAL_UNSIGNED
    if len(asked) != len(sources):
        return f"Invalid operation request: {len(asked)} revisions for {len(sources)} sources; give one for each"
    return ""


def _asked(view: AppView) -> tuple[str, ...]:
    """Return the operation's revisions: the resolved commits, or the requested ones before that."""
    return pinned_revisions(view) or wanted_revisions(view)


def _being_read(observed: AppObserved, state: Obj) -> Plan | None:
    """Wait while the operation's source is read; results from before the operation do not replace it."""
    terminating = state.get("phase") == OperationPhase.TERMINATING
    if observed.pinned_reading is None or (terminating and observed.pinned is not None):
        return None
    why = observed.pinned_reading.text
    status = {**observed.view.current, "operationState": {**state, "message": why}}
    return Plan(status=app_patch(observed.view, status, why), outcome=Requeue(PASS_INTERVAL_S, why), why=why)


def _record_first(observed: AppObserved, state: Obj, pinned: Manifests) -> Plan | None:
    """Record the commit of a branch before the first write: after a crash the branch may name another one."""
    settled = all(len(revision) == SHA_LENGTH for revision in _asked(observed.view)) or local_texts(observed.view)
    if settled or state.get("syncResult") or state.get("phase") != OperationPhase.RUNNING:
        return None
    why, result = f"the operation settles on {', '.join(pinned.revisions)}", _settled_on(observed, pinned)
    patch = app_patch(observed.view, {**observed.view.current, "operationState": {**state, "syncResult": result}}, why)
    return Plan(status=patch, outcome=Requeue(0, why), why=why)


def _wait_for_applications(observed: AppObserved, state: Obj) -> Plan | None:
    """Wait for the Applications that this one depends on, unless applying has begun."""
    if state.get("phase") != OperationPhase.RUNNING or dig(state, "syncResult", "resources"):
        return None
    problem = not_ready(observed.view.obj, observed.before, observed.reach_of_applications)
    if not problem:
        return None
    status = {**observed.view.current, "operationState": {**state, "message": problem}}
    return Plan(
        status=app_patch(observed.view, status, problem), outcome=Requeue(PASS_INTERVAL_S, problem), why=problem
    )


def _over(state: Obj) -> bool:
    """Return whether no operation is running; an unknown phase counts as none."""
    phase = state.get("phase") or ""
    return phase not in list(OperationPhase) or OperationPhase(phase).completed


def _refused(observed: AppObserved, comparison: Comparison) -> tuple[OperationPhase, str] | None:
    """Return the phase and message if the comparison forbids the sync (reference 1.5, step 8; behaviour 76)."""
    view = observed.view
    circle = dependency_problem(view.obj, observed.before)
    if observed.account_problem or circle:
        return OperationPhase.ERROR, observed.account_problem or circle
    if guard_asked(view.obj) and dig(view.operation, "sync", "prune"):
        rows = [row for row in comparison.resources if not row.get("hook")]
        guarded = mass_deletion(view.obj, rows)
        if guarded:
            return OperationPhase.ERROR, guarded
    shared = [c.message for c in comparison.conditions if c.type == "SharedResourceWarning"]
    if shared and FAIL_ON_SHARED in _listed_options(view):
        return OperationPhase.FAILED, f"Shared resource found: {shared[0]}"
    errors = [
        f"{c.type}: {c.message}" for c in comparison.conditions if c.type in ("ComparisonError", "InvalidSpecError")
    ]
    return (OperationPhase.ERROR, ";".join(errors)) if errors else None


def _listed_options(view: AppView) -> tuple[str, ...]:
    """Return the sync options of the request, or those of the spec if it has none (reference 1.2)."""
    return tuple(dig(view.operation, "sync", "syncOptions", default=())) or view.sync_options


def _timed_out(observed: AppObserved, state: Obj, now: datetime) -> bool:
    """Return whether the operation has run longer than allowed, attempts and waits included (behaviour 18)."""
    left = _time_left(observed, state, now)
    return state.get("phase") == OperationPhase.RUNNING and left is not None and left <= 0


def _time_left(observed: AppObserved, state: Obj, now: datetime) -> float | None:
    """Return the seconds until the operation is terminated; None: no limit."""
    started, allowed = time_or_none(state.get("startedAt")), observed.settings.sync_timeout_s
    return None if started is None or allowed <= 0 else allowed - (now - started).total_seconds()


def _in_time(observed: AppObserved, state: Obj, wait: float, now: datetime) -> float:
    """Shorten a wait so that it ends no later than the operation's time limit."""
    left = _time_left(observed, state, now)
    return wait if left is None else max(min(wait, left), 0.0)


def _terminate(view: AppView, state: Obj) -> Plan:
    """Record the termination; the next reconcile ends the hooks, also after a restart."""
    ending = {key: value for key, value in state.items() if key != "finishedAt"}
    ending |= {"phase": str(OperationPhase.TERMINATING), "message": TIMED_OUT}
    patch = app_patch(view, {**view.current, "operationState": ending}, TIMED_OUT)
    return Plan(steps=(patch,), outcome=Requeue(0, TIMED_OUT), why=TIMED_OUT)


def _overtaken(observed: AppObserved, state: Obj, now: datetime) -> Plan | None:
    """With ``syncline.dev/overtake: "true"`` a newer commit ends an automated operation that still waits for an older
    one, so that a fix need not wait for what it repairs. The next sync takes the newer commit."""
    view, latest = observed.view, observed.latest
    wanted = annotations_of(view.obj).get(OVERTAKE) == "true" and state.get("phase") == OperationPhase.RUNNING
    if not wanted or not dig(view.operation, "initiatedBy", "automated") or not state.get("syncResult"):
        return None
    if observed.reading is not None:
        return None
    if latest is None or now >= latest.resolved_at + timedelta(seconds=observed.settings.poll_s) or view.refresh:
        why = "look whether a newer commit repairs what the operation waits for"
        render = Render(view.name, view.sources, view.revisions_wanted, why, context=observed.context)
        patch = app_patch(view, dict(view.current), why)
        return Plan(steps=((render,),), status=patch, outcome=Requeue(0, "rendered"), why=why)
    if latest.error or latest.revisions == pinned_revisions(view):
        return None
    text = f"overtaken by {', '.join(latest.revisions)}"
    ending = {key: value for key, value in state.items() if key != "finishedAt"}
    ending |= {"phase": str(OperationPhase.TERMINATING), "message": text}
    patch = app_patch(view, {**view.current, "operationState": ending}, text)
    return Plan(steps=(patch,), outcome=Requeue(0, text), why=text)


def _blocked_by_window(observed: AppObserved, state: Obj, now: datetime) -> Plan | None:
    """Hold a running operation while a sync window is closed. A termination is never held."""
    view = observed.view
    if state.get("phase") != OperationPhase.RUNNING:
        return None
    manual = not dig(view.operation, "initiatedBy", "automated", default=False)
    started = time_or_none(state.get("startedAt"))
    problem = window_problem(observed.project, view.obj, now, manual=manual, operation_started=started)
    if not problem:
        return None
    message = f"Sync operation {problem}"
    status = {**view.current, "operationState": {**state, "message": message}}
    return Plan(
        status=app_patch(view, status, message), outcome=Requeue(PASS_INTERVAL_S, message, background=True), why=message
    )


def settle_operation(
    seen: AppObserved, plan: OperationPlan, results: tuple[Result, ...], now: datetime
) -> tuple[AppObserved, Plan] | None:
    """Record the outcomes of a round and plan the next one; None once the state is written."""
    if plan.observed is None or plan.sync is None or plan.sync.ended:
        return None
    unanswered = any(isinstance(result.error, Unanswered) for result in results)
    if unanswered or len(results) < sum(len(step) for step in plan.sync.steps):
        return None  # the connection broke: give up this reconcile, the next one resumes
    observed = record(plan.observed, plan.sync, _answers(plan.sync, results))
    assert plan.pinned is not None, "a round has its manifests"
    seen = seen if plan.view is None else replace(seen, view=plan.view)
    return seen, _round(seen, observed, plan.pinned, now)


def _answers(sync: SyncPlan, results: tuple[Result, ...]) -> tuple[tuple[Outcome, ...], ...]:
    flat = [_outcome(result) for result in results]
    shaped: list[tuple[Outcome, ...]] = []
    at = 0
    for step in sync.steps:
        shaped.append(tuple(flat[at : at + len(step)]))
        at += len(step)
    return tuple(shaped)


def _outcome(result: Result) -> Outcome:
    if isinstance(result.value, Outcome):
        return result.value
    return Outcome(ok=result.ok, message=str(result.error or ""))


def _round(seen: AppObserved, observed: SyncObserved, pinned: Manifests, now: datetime) -> Plan:
    terminating = observed.phase is OperationPhase.TERMINATING
    sync = plan_termination(observed, now) if terminating else plan_sync(observed, now)
    if sync.ended:
        full = not (observed.options.skip_hooks or observed.options.dry_run)
        noted = noted_hooks(observed.all_hooks, observed.pairs) if full else {}
        end = _finish(seen, sync.phase, sync.message, sync, pinned, now, noted)
        return replace(end, observed=observed, sync=sync) if isinstance(end, OperationPlan) else end
    held = None if terminating else taken(seen, observed, sync, now)
    return held or OperationPlan(
        steps=seen.at_destination(sync.steps),
        why=sync.why,
        together=True,
        observed=observed,
        sync=sync,
        pinned=pinned,
        view=seen.view,
    )


def begun(app: Obj, operation: Obj, now: datetime) -> Obj:
    """Return the Application with this operation started; used by previews and by the write that starts it."""
    view = AppView(app)
    state: Obj = {"operation": operation, "phase": str(OperationPhase.RUNNING), "startedAt": format_time(now)}
    metadata = {**meta(app), "annotations": annotations_of(app) | {STARTED: _start_named(view, now)}}
    return {**app, "metadata": metadata, "operation": operation, "status": {**view.status, "operationState": state}}


def _begin(observed: AppObserved, now: datetime, problems: tuple[str, ...]) -> Plan:
    """Persist the start and which pools are paused before any write to the cluster (behaviour 2). Sources that the
    project does not permit are not even read; the next reconcile ends the operation."""
    view = observed.view
    before = dig(view.operation_state or {}, "startedAt")
    if before == format_time(now) and RELEASE in annotations_of(view.obj):
        why = "its last operation began in this second, and the hub that rolls it out tells operations apart by it"
        return Plan(outcome=Requeue(1.0, why), why=why)
    begins = begun(view.obj, view.operation or {}, now)
    status: Obj = {**view.current, "operationState": begins["status"]["operationState"]}
    reason = "a sync was requested"
    notes = begin_notes(view.obj, observed.pools) | {STARTED: annotations_of(begins)[STARTED]}
    patch = app_patch(view, status, reason, annotations=notes)
    renders = () if problems else _resolve_now(observed, view)
    return Plan(steps=(patch, renders), outcome=Requeue(0, reason), why=reason)


def _start_named(view: AppView, now: datetime) -> str:
    """Return the second of this start, distinct from earlier operations in the same second."""
    second = str(int(now.timestamp()))
    last, _, number = _noted_start(view).partition(".")
    return f"{second}.{int(number or 0) + 1}" if last == second else second


def _noted_start(view: AppView) -> str:
    """Return the annotation, or empty if its form is not ours, as it becomes part of names."""
    noted = annotations_of(view.obj).get(STARTED, "")
    return noted if STARTED_FORM.fullmatch(noted) else ""


def _attempt(view: AppView, started: datetime, attempt: int) -> str:
    """Return the unique name of this attempt; the objects that it creates carry it."""
    second = str(int(started.timestamp()))
    noted = _noted_start(view)
    named = noted if noted.partition(".")[0] == second else second
    return f"{uid_of(view.obj)[:8]}-{named}-{attempt}"


def running_operation(view: AppView) -> str:
    """Return the name of the running attempt; empty if none runs."""
    state = view.operation_state
    started = time_or_none((state or {}).get("startedAt"))
    if view.operation is None or state is None or _over(state) or started is None:
        return ""
    return _attempt(view, started, int(state.get("retryCount") or 0))


def _resolve_now(observed: AppObserved, view: AppView) -> tuple[Render, ...]:
    """Resolve branches and tags after the operation began, whatever was read earlier; commits are already final.
    Reading as part of the start proves the order, which times in whole seconds could not."""
    asked = wanted_revisions(view)
    if len(asked) != len(operation_sources(view)) or local_texts(view):
        return ()
    if observed.pinned is not None and all(len(revision) == SHA_LENGTH for revision in asked):
        return ()
    return (Render(view.name, operation_sources(view), asked, NEEDED, context=observed.context, asked=True),)


def _render_first(observed: AppObserved) -> Plan | None:
    """After a restart, render the resolved or requested revisions again, as the cache is lost."""
    view = observed.view
    if observed.pinned is not None:
        return None
    asked = pinned_revisions(view) or wanted_revisions(view)
    action = Render(view.name, operation_sources(view), asked, NEEDED, context=observed.context, asked=True)
    return Plan(steps=((action,),), outcome=Requeue(0, "rendered"), why="resolve and render the operation's revision")


def _wait_for_retry(observed: AppObserved, state: Obj, now: datetime) -> Plan | None:
    view = observed.view
    finished = time_or_none(state.get("finishedAt")) or now
    attempt = int(state.get("retryCount") or 0)
    try:
        at = finished + _pause(dig(state, "operation", "retry", default={}), attempt)
    except RetryError as error:
        message = f"{state.get('message') or ''} (failed to retry: {error})"
        return _completed(view, state | {"phase": "Error", "message": message}, OperationPhase.ERROR, None, (), now)
    if now < at:
        wait = _in_time(observed, state, (at - now).total_seconds(), now)
        return Plan(outcome=Requeue(wait, f"retry #{attempt} at {format_time(at)}"), why="waiting for the next attempt")
    status = dict(view.current)
    again = {k: v for k, v in state.items() if k not in ("finishedAt", "syncResult")}
    again["message"] = f"Retrying operation. Attempt #{attempt}"
    status["operationState"] = again
    operation: Any = ...
    render: tuple[Render, ...] = ()
    if dig(state, "operation", "retry", "refresh"):
        again["message"] = f"Retrying operation with latest revisions. Attempt #{attempt}"
        operation = again["operation"] = _with_revisions(view.operation or {}, ())
        reason = "the retry takes the newest commit"
        tried = AppView({**view.obj, "operation": operation, "status": {"operationState": again}})
        sources, asked = operation_sources(tried), wanted_revisions(tried)
        render = (Render(view.name, sources, asked, reason, context=observed.context, asked=True),)
    patch = app_patch(view, status, "the next attempt begins", operation=operation)
    return Plan(steps=(patch, render), outcome=Requeue(0, "next attempt"), why=again["message"])


def _pause(policy: Any, attempts: int) -> timedelta:
    """Return the wait of the policy, but at least a second, so that attempts leave time for other work."""
    return max(retry_after(policy, attempts), LEAST_PAUSE)


def _with_revisions(operation: Obj, revisions: tuple[str, ...]) -> Obj:
    """Return the request with exactly these commits; if empty, it uses the revisions of the spec."""
    sync = {k: v for k, v in (operation.get("sync") or {}).items() if k not in ("revision", "revisions")}
    if len(revisions) == 1:
        sync["revision"] = revisions[0]
    elif revisions:
        sync["revisions"] = list(revisions)
    return operation | {"sync": sync}


# -- what the engine reads -----------------------------------------------------------------------------------


def sync_observed(observed: AppObserved, pinned: Manifests, comparison: Comparison) -> SyncObserved:
    """Return the sync engine's input for this reconcile."""
    view = observed.view
    state = view.operation_state or {}
    started = time_or_none(state.get("startedAt"))
    assert started is not None, "an operation in progress has a start time"
    attempt = int(state.get("retryCount") or 0)
    options = sync_options(view, started)
    targets = (pair.placed(view.destination_namespace) for pair in comparison.pairs if pair.target is not None)
    waiting = () if options.skip_hooks else comparison.hooks
    gates, replaced = placing(view, observed.kinds, observed.reach).gates(targets, waiting)
    hooks = tuple(hook for hook in comparison.hooks if id(hook) not in replaced)
    return SyncObserved(
        namespace=view.destination_namespace,
        revision=pinned.revision,
        started_at=started,
        pairs=comparison.pairs,
        hooks=hooks_to_run(view.obj, hooks, comparison.pairs),
        all_hooks=hooks,
        kinds=observed.kinds,
        options=options,
        gates=gates,
        phase=OperationPhase(state.get("phase") or ""),
        message=str(state.get("message") or ""),
        results=rows_from_status(dig(state, "syncResult", "resources", default=[])),
        in_sync=comparison.in_sync,
        rules=ObservedRules(observed),
        namespace_live=observed.namespace_live,
        operation=_attempt(view, started, attempt),
    )


def sync_options(view: AppView, started: datetime) -> SyncOptions:
    """Return the options of the sync engine: the listed sync options and the fields of the request."""
    sync = dig(view.operation, "sync", default={})
    strategy = sync.get("syncStrategy") or {}
    selected = tuple(
        SelectedResource(
            str(r.get("group") or ""), str(r.get("kind") or ""), str(r.get("name") or ""), str(r.get("namespace") or "")
        )
        for r in sync.get("resources") or ()
    )
    approved = time_or_none(dig(view.obj, "metadata", "annotations", "argocd.argoproj.io/deletion-approved"))
    force = any(bool((strategy.get(name) or {}).get("force")) for name in ("apply", "hook"))
    return SyncOptions.parse(
        _listed_options(view),
        dry_run=bool(sync.get("dryRun")),
        prune=bool(sync.get("prune")),
        force=force,
        skip_hooks="apply" in strategy or bool(selected),
        resources=selected,
        prune_confirmed=approved is not None and approved >= started,
        managed_namespace_metadata=view.policy.get("managedNamespaceMetadata"),
    )


# -- the end of a reconcile ------------------------------------------------------------------------------------------


def _finish(
    observed: AppObserved,
    phase: OperationPhase,
    message: str,
    sync: SyncPlan | None,
    pinned: Manifests | None,
    now: datetime,
    noted: dict[str, str | None] | None = None,
) -> Plan:
    view = observed.view
    state = dict(view.operation_state or {})
    terminated = state.get("phase") == OperationPhase.TERMINATING
    if terminated and state.get("message") == TIMED_OUT:
        message = f"{message}, triggered by controller sync timeout" if phase.completed else TIMED_OUT
    state |= {"phase": str(phase), "message": message}
    if sync is not None and pinned is not None:
        state["syncResult"] = _sync_result(observed, sync, pinned)
    state.pop("finishedAt", None)
    if not phase.completed:
        return _running(observed, state, sync, now)
    state["finishedAt"] = format_time(now)
    if phase is not OperationPhase.SUCCEEDED and not terminated:
        try:
            retried = _retry(view, state, pinned, now)
        except RetryError as error:
            phase = OperationPhase.ERROR
            state |= {"phase": str(phase), "message": f"{message} (failed to retry: {error})"}
            retried = None
        if retried is not None:
            return retried
    notes = noted if phase is OperationPhase.SUCCEEDED and noted else {}
    hooks = pinned.objects if pinned is not None else ()
    return _completed(view, state, phase, pinned, left_paused(view.obj, observed.pools, hooks, state), now, notes)


def _sync_result(observed: AppObserved, sync: SyncPlan, pinned: Manifests) -> Obj:
    view, kinds = observed.view, list(observed.kinds.served.values())
    rows = [replace(row, message=augment_message(row.message, row.ref, row.version, kinds)) for row in sync.results]
    result: Obj = {"resources": rows_to_status(rows)} | _settled_on(observed, pinned)
    metadata = view.policy.get("managedNamespaceMetadata")
    return result | ({"managedNamespaceMetadata": metadata} if metadata else {})


def _settled_on(observed: AppObserved, pinned: Manifests) -> Obj:
    sources = operation_sources(observed.view)
    if observed.view.multi_source or len(sources) > 1:
        return {"revision": "", "revisions": list(pinned.revisions), "sources": list(sources)}
    return {"revision": pinned.revision, "source": dict(sources[0])}


def _running(observed: AppObserved, state: Obj, sync: SyncPlan | None, now: datetime) -> Plan:
    view = observed.view
    why = state["message"] or (sync.why if sync else "")
    wait = PASS_INTERVAL_S
    if sync is not None and sync.again:
        wait = 0.0
    elif sync is not None and sync.wait is not None and sync.wait.kind in UNTRACKED:
        wait = PASS_INTERVAL_S if rests_until(why) is not None else _untracked_interval(sync, now)
    wait = _in_time(observed, state, wait, now)
    status = dict(view.current) | {"operationState": state}
    overdue = _overdue(view, sync, now)
    merged = merge_conditions(status.get("conditions") or [], (OVERDUE,), overdue, now)
    status = {key: value for key, value in status.items() if key != "conditions"}
    status |= {"conditions": merged} if merged else {}
    known = any(one.get("type") == OVERDUE for one in view.status.get("conditions") or ())
    events = (
        () if known else tuple(Emit(view.obj, "GateOverdue", one.message, COMPONENT, warning=True) for one in overdue)
    )
    patch: tuple[Action, ...] = (*app_patch(view, status, why), *events, *_exhausted(view, why))
    back = give_back_for_gate(observed, running_operation(view), sync, now) if sync is not None else None
    steps = back.steps if back is not None else ()
    return OperationPlan(steps=steps, status=patch, outcome=Requeue(wait, why), why=why)


def _untracked_interval(sync: SyncPlan, now: datetime) -> float:
    """Return the seconds until something is looked at again that no event reports: seldom after a while, as each look
    compares the whole application."""
    since = sync.wait.since if sync.wait is not None else None
    long = since is not None and now >= since + SOON
    return UNTRACKED_LATER_S if long else UNTRACKED_INTERVAL_S


def _exhausted(view: AppView, why: str) -> tuple[Emit, ...]:
    """Emit an Event when a condition exceeded its budget, once for all repeated evaluations."""
    said, before = (
        text.partition(JUDGED_AGAIN)[0] for text in (why, (view.operation_state or {}).get("message") or "")
    )
    if rests_until(why) is None or said == before:
        return ()
    return (Emit(view.obj, "ConditionExhausted", said, COMPONENT, warning=True),)


def _overdue(view: AppView, sync: SyncPlan | None, now: datetime) -> list[Condition]:
    """Report a gate that waits beyond its deadline; the operation continues to wait (DECISIONS 6)."""
    if sync is None or sync.wait is None or sync.wait.until is None or now < sync.wait.until:
        return []
    since = "" if sync.wait.since is None else f" since {format_time(sync.wait.since)}"
    return [Condition(OVERDUE, f"overdue: {sync.message}{since}; see `syncline explain {view.name}`")]


def _retry(view: AppView, state: Obj, pinned: Manifests | None, now: datetime) -> Plan | None:
    """Retry a failed attempt at the same commit (behaviour 13), unless the limit is reached."""
    policy = dig(state, "operation", "retry", default={})
    count = int(state.get("retryCount") or 0)
    limit = retry_limit(policy)
    if limit >= 0 and count >= limit:
        if limit > 0:
            state["message"] = f"{state['message']} (retried {count} times)."
        return None
    at = now + _pause(policy, count)
    clock = f"{at.hour % 12 or 12}:{at.minute:02d}{'AM' if at.hour < 12 else 'PM'}"
    state |= {
        "phase": str(OperationPhase.RUNNING),
        "message": f"{state['message']}. Retrying attempt #{count + 1} at {clock}.",
        "retryCount": count + 1,
    }
    operation = _with_revisions(view.operation or {}, pinned.revisions) if pinned is not None else view.operation
    state["operation"] = operation
    status = dict(view.current) | {"operationState": state}
    patch = app_patch(view, status, "a failed attempt is tried again", operation=operation)
    return OperationPlan(status=patch, outcome=Requeue(0, "retry scheduled"), why=state["message"])


def _completed(
    view: AppView,
    state: Obj,
    phase: OperationPhase,
    pinned: Manifests | None,
    left: tuple[LeftPaused, ...],
    now: datetime,
    notes: dict[str, str | None] | None = None,
) -> Plan:
    """End the operation: one patch removes ``.operation`` and writes the end; history and Events follow from it."""
    status = dict(view.current) | {"operationState": state}
    status.pop("conditions", None)
    kept = [one for one in view.current.get("conditions") or () if one.get("type") != OVERDUE]
    status |= {"conditions": kept} if kept else {}
    sync = dig(view.operation, "sync", default={})
    full = not sync.get("resources") and not sync.get("dryRun")
    if phase is OperationPhase.SUCCEEDED and full and pinned is not None:
        status["history"] = _history(view, state, pinned, now)
    revision = ", ".join(pinned.revisions) if pinned else ""
    verdict = "succeeded" if phase is OperationPhase.SUCCEEDED else f"failed: {state['message']}"
    kind = "Sync operation" if full else "Partial sync operation"
    event = Emit(
        view.obj,
        "OperationCompleted",
        f"{kind} to {revision} {verdict}",
        COMPONENT,
        warning=phase is not OperationPhase.SUCCEEDED,
    )
    stays = leaves_paused(view.obj)
    behind = tuple(Emit(view.obj, "LeftBehind", str(one), COMPONENT, warning=True) for one in left if stays)
    why = f"the operation ended: {phase}: {state['message']}"
    patch = app_patch(view, status, why, operation=None, annotations=end_notes(left) | (notes or {}))
    return OperationPlan(status=(*patch, event, *behind), outcome=Requeue(0, "compare again"), why=why)


def _history(view: AppView, state: Obj, pinned: Manifests, now: datetime) -> list[Obj]:
    before = list(view.status.get("history") or [])
    entry: Obj = {
        "id": int(before[-1].get("id") or 0) + 1 if before else 0,
        "deployStartedAt": state.get("startedAt"),
        "deployedAt": format_time(now),
        "initiatedBy": dig(state, "operation", "initiatedBy", default={}),
    }
    sources = operation_sources(view)
    if view.multi_source or len(sources) > 1:
        entry |= {"revisions": list(pinned.revisions), "sources": list(sources)}
    else:
        entry |= {"revision": pinned.revision, "source": dict(sources[0])}
    limit = view.history_limit
    return [*before, entry][-limit:] if limit > 0 else []
