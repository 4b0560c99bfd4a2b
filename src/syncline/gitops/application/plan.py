"""The planner of Applications: :func:`plan_application` decides the next step; pure.

It tries sub-plans in order; the first with a result decides. They are in the modules for deletion, operation,
comparison and automated sync.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from syncline.apply.asking import Ask, Asking, Question
from syncline.apply.diff import DiffSettings, Unknown
from syncline.apply.diff.memo import Verdicts
from syncline.apply.predicting import Missing, answers, missing
from syncline.argo.application import AppView
from syncline.argo.conditions import Condition, merge_conditions
from syncline.argo.guard import mass_deletion
from syncline.argo.project import window_problem
from syncline.control.plan import Emit, Plan, Requeue, Result
from syncline.gitops.application.compared import Comparisons
from syncline.gitops.application.deletion import plan_deletion, wanted_finalizers
from syncline.gitops.application.manifests import Join, Manifests, Reading, Render
from syncline.gitops.application.observing.observe import AppObserved
from syncline.gitops.application.operating.autosync import AutoSync, SelfHealBackoff, decide
from syncline.gitops.application.operating.holds import UNHELD, released, unheld_warning
from syncline.gitops.application.operating.operation import COMPONENT, Compare, plan_operation, running_operation
from syncline.gitops.application.operating.pools import left_notes, resume_left
from syncline.gitops.application.problems import spec_problems
from syncline.gitops.application.status import (
    EVALUATION_WAIT,
    SOURCE_WAIT,
    app_patch,
    compared_status,
    failed_status,
    waiting_status,
    without_new_commit,
)
from syncline.gitops.comparison.compare import Comparison, ComparisonInput, asked_pairs
from syncline.gitops.comparison.compare import compare as compare_all
from syncline.kube.objects import Obj, dig, resource_version, uid_of

AUTO_SYNC_CONDITION = "SyncError"
NOTED_S = 1.0
"""Seconds until the note of a resumed pool is checked again: pool changes no longer wake the application."""
MAX_WARNINGS = 10
"""Warnings about the source that are shown as conditions; a repository may have thousands."""
SHARED_LOOK = 0.25
"""Part of the polling period for which all applications share one read of a remote."""
LOOK_BESIDE_S = 30.0
"""Seconds between reconciles while a source is read; the end of the read wakes the application."""
MAX_JITTER = 0.5
"""Part of the polling period over which the polls of applications are spread."""


def plan_application(observed: AppObserved, now: datetime, compare: Compare | None = None) -> Plan:
    """Plan one reconcile of an Application. Pools that an ended operation left paused are resumed last, so that a
    refusal there stops nothing. ``compare``: :func:`compare_application`, with caches."""
    answers = observed.system.answers.at(now)
    if answers is not observed.system.answers:
        observed = replace(observed, system=replace(observed.system, answers=answers))
    unjudged = observed.unjudged if observed.asking is None else ()
    if unjudged:
        return _plan_asking(observed, unjudged)
    try:
        plan = _plan(observed, now, compare or compare_application)
    except Unknown as unknown:
        return _plan_evaluated(observed, unknown, now)
    if observed.view.operation is not None or observed.view.skipped:
        return plan
    resumed = resume_left(observed.view.obj, observed.pools)
    if not resumed:
        return plan
    patches, events = resumed
    soon = min(plan.outcome.after_s, NOTED_S) if isinstance(plan.outcome, Requeue) else NOTED_S
    outcome = Requeue(soon, "pools are resumed; the note of them goes next")
    return replace(plan, steps=(*plan.steps, *observed.at_cluster((patches,)), events), outcome=outcome)


def settle_asked(
    observed: AppObserved, result: Result, now: datetime, compare: Compare | None = None
) -> tuple[AppObserved, Plan] | None:
    """Plan again with the results of an evaluation; None: there are none, and the reconcile ends."""
    match result.value:
        case Asking() as asking:
            observed = replace(observed, asking=asking)
        case dict() as answers if result.ok:
            system = observed.system
            observed = replace(observed, asking=None, system=replace(system, answers=system.answers.with_more(answers)))
        case _:
            return None
    return observed, plan_application(observed, now, compare)


def _plan_asking(observed: AppObserved, questions: tuple[Question, ...]) -> Plan:
    why = "scripts and expressions of users are evaluated beside the controller"
    asked = Ask(observed.view.ref, observed.view.project, questions, why)
    return Plan(steps=((asked,),), outcome=Requeue(0, why), why=why)


def _plan_evaluated(observed: AppObserved, unknown: Unknown, now: datetime) -> Plan:
    """Start the evaluation of user expressions, or wait for the one that is running and report it in the status."""
    view, asking = observed.view, observed.asking
    if asking is None:
        return _plan_asking(observed, unknown.questions)
    state = view.operation_state
    status = waiting_status(view, asking.text, now, EVALUATION_WAIT)
    if state is not None and running_operation(view):
        status = {**view.current, "operationState": {**state, "message": asking.text}}
    patch = app_patch(view, status, asking.text, processed=False)
    return Plan(status=patch, outcome=Requeue(LOOK_BESIDE_S, asking.text, background=True), why=asking.text)


def _plan(observed: AppObserved, now: datetime, compare: Compare) -> Plan:
    view = observed.view
    if view.skipped:
        return Plan(why=f"{view.ref}: annotation skip-reconcile is set")
    given_back = released(observed, running_operation(view))
    if given_back is not None:
        return given_back
    if view.terminating and view.operation is None:
        return plan_deletion(observed, now)
    problems = spec_problems(observed)
    texts = tuple(f"{problem.type}: {problem.message}" for problem in problems)
    if view.operation is not None:
        return _plan_operated(observed, now, texts, compare)
    if problems:
        status = failed_status(view, problems, now)
        reason = "; ".join(texts)
        return Plan(status=app_patch(view, status, reason), outcome=_poll(observed), why=reason)
    return _plan_refresh(observed, now, compare)


def _plan_operated(observed: AppObserved, now: datetime, problems: tuple[str, ...], compare: Compare) -> Plan:
    """Plan the next round of the operation, and keep the status current: sources are read first, and the operation's
    writes build on the comparison of this reconcile."""
    remembered: dict[int, Comparison] = {}

    def compared(observed: AppObserved, manifests: Manifests) -> Comparison:
        if id(manifests) not in remembered:
            remembered[id(manifests)] = compare(observed, manifests)
        return remembered[id(manifests)]

    request = refresh_request(observed.view)
    if (
        not problems
        and observed.reading is None
        and running_operation(observed.view)
        and _is_due(observed, request, now)
    ):
        return _look(observed, request)
    answered = not request or (
        observed.latest is not None and (observed.latest.local or request in observed.latest.answers)
    )
    renders = (observed.latest, observed.pinned)
    predicting = (
        _asking(observed, _unanswered(observed, renders, now)) if not problems and _is_running(observed.view) else None
    )
    if predicting is not None:
        return predicting
    beside = None if problems or not answered else _status_beside(observed, now, compared)
    observed = replace(observed, view=replace(observed.view, beside=beside, answered=answered))
    operation = plan_operation(observed, now, compared, problems)
    assert operation is not None, "an operation is requested"
    return operation


def _is_running(view: AppView) -> bool:
    """Return whether the operation is running; a terminating one waits for no result."""
    return running_operation(view) is not None and dig(view.operation_state, "phase") == "Running"


def _asking(observed: AppObserved, found: Missing) -> Plan | None:
    """Return the dry runs that the comparison needs from the API server; None if all results are known."""
    if found.asked:
        why = f"the API server is asked what an apply of {len(found.asked)} objects would make (ServerSideDiff=true)"
        return Plan(steps=observed.at_destination((found.asked,)), outcome=Requeue(0, "it has answered"), why=why)
    return Plan(outcome=Requeue(NOTED_S, found.waits), why=found.waits) if found.waits else None


def _predicted(observed: AppObserved, latest: Manifests, now: datetime, compare: Compare) -> Plan:
    """Plan the comparison with the API server's predictions, or the requests for them. A pair compared by an old
    prediction is checked again later."""
    found = _unanswered(observed, (latest,), now)
    plan = _asking(observed, found) or _plan_compared(observed, latest, now, compare)
    later_s = found.later_s
    if later_s is None or not isinstance(plan.outcome, Requeue) or plan.outcome.after_s <= later_s:
        return plan
    return replace(plan, outcome=Requeue(max(later_s, NOTED_S), "ask the API server again", background=True))


def _unanswered(observed: AppObserved, renders: tuple[Manifests | None, ...], now: datetime) -> Missing:
    """Return the dry runs without a prediction."""
    if observed.predictions is None or not observed.asks_server:
        return Missing()
    pairs = [
        (pair.target, pair.live)
        for manifests in renders
        if manifests is not None and not manifests.error
        for pair in asked_pairs(comparison_input(observed, manifests))
        if pair.target is not None and pair.live is not None
    ]
    return missing(observed.predictions, pairs, _asked_by(observed), now)


def _asked_by(observed: AppObserved) -> str:
    """Return the scope of a prediction: destination, user, and the refresh request of this Application."""
    mine = f"{uid_of(observed.view.obj)}/"
    requests = [one for one in (observed.latest.answers if observed.latest else ()) if one.startswith(mine)]
    return "\n".join((observed.remote, observed.account, *requests[-1:]))


def _status_beside(observed: AppObserved, now: datetime, compared: Compare) -> Obj | None:
    """Return the status by the known manifests; None if there is nothing to compare with."""
    latest = observed.latest
    if latest is None or (latest.error and _in_grace(observed, latest, now)):
        return None
    if latest.error:
        return _unread_status(observed, latest, now)
    return _compared_status(observed, compared(observed, latest), latest, now)


def _unread_status(observed: AppObserved, latest: Manifests, now: datetime) -> Obj:
    """Return the status of an unreadable source: an error condition, and the health of the live objects."""
    problem = Condition("ComparisonError", f"Failed to load target state: {latest.error}")
    alone = compare_application(observed, replace(latest, objects=()))
    return failed_status(observed.view, [problem], now, health=alone.health)


def compare_application(
    observed: AppObserved,
    manifests: Manifests,
    verdicts: Verdicts | None = None,
    comparisons: Comparisons | None = None,
) -> Comparison:
    """Compare the manifests with the live objects; ``verdicts`` and ``comparisons`` are caches."""
    given = comparison_input(observed, manifests, verdicts)
    asks = given.predicted is not None or observed.system.settings.health or observed.system.answers.known
    given = replace(given, fresh=bool(asks))  # it depends on inputs that the cache does not hold
    more = observed.remote, observed.all_holds, observed.schemas
    found = compare_all(given) if comparisons is None else comparisons.of(given, more, compare_all)
    unheld = unheld_warning(observed, manifests.objects)
    return replace(found, conditions=(*found.conditions, Condition(UNHELD, unheld))) if unheld else found


def comparison_input(observed: AppObserved, manifests: Manifests, verdicts: Verdicts | None = None) -> ComparisonInput:
    """Return all inputs of the comparison."""
    system = observed.system.settings
    return ComparisonInput(
        app=observed.view.obj,
        targets=manifests.objects,
        live=observed.live,
        project=observed.project or {},
        kinds=observed.kinds,
        tracking=observed.settings.tracking,
        overrides=system.overrides,
        excluded=system.excluded,
        diff=DiffSettings(
            schema_of=observed.schemas.find,
            ignore_aggregated_roles=system.ignore_aggregated_roles,
            jq=observed.system.answers,
        ),
        verdicts=verdicts,
        health=observed.shown_health,
        control_namespace=observed.settings.control_namespace,
        project_clusters=observed.project_clusters,
        server=observed.cluster.server,
        cluster_name=observed.cluster.name,
        destination=observed.cluster,
        predicted=answers(observed.predictions, _asked_by(observed))
        if observed.predictions and observed.asks_server
        else None,
    )


def _plan_refresh(observed: AppObserved, now: datetime, compare: Compare) -> Plan:
    view = observed.view
    latest = observed.latest
    request = refresh_request(view)
    if observed.reading is not None:
        return _plan_beside(observed, observed.reading, now, compare)
    if _is_due(observed, request, now):
        return _look(observed, request)
    assert latest is not None, "it is due when there is nothing"
    if latest.error and _in_grace(observed, latest, now):
        why = f"the source cannot be read for a moment: {latest.error}"
        return Plan(status=app_patch(view, waiting_status(view, "", now), why), outcome=_poll(observed, now), why=why)
    if latest.error:
        why = f"Failed to load target state: {latest.error}"
        status = _unread_status(observed, latest, now)
        return Plan(status=app_patch(view, status, why), outcome=_poll(observed, now), why=why)
    return _predicted(observed, latest, now, compare)


def _is_due(observed: AppObserved, request: str, now: datetime) -> bool:
    """Return whether to read the source now: it is unknown, a refresh is requested, or its poll is due."""
    latest = observed.latest
    if latest is None or latest.local:
        return latest is None
    return _is_asked(latest, request) or now >= latest.resolved_at + _period(observed, latest)


def _is_asked(latest: Manifests | None, request: str) -> bool:
    return bool(request) and (latest is None or request not in latest.answers)


def _look(observed: AppObserved, request: str) -> Plan:
    latest, asked = observed.latest, _is_asked(observed.latest, request)
    reason = "no manifests yet" if latest is None else ("a refresh was asked for" if asked else "time to look again")
    render = replace(
        _render(observed, reason),
        answers=request,
        asked=asked,
        may_be_old_s=0.0 if asked or latest is None else SHARED_LOOK * observed.settings.poll_s,
    )
    return Plan(steps=((render,),), outcome=Requeue(0, "rendered"), why=reason)


def _render(observed: AppObserved, reason: str) -> Render:
    view = observed.view
    return Render(view.name, view.sources, view.revisions_wanted, reason, context=observed.context)


def _plan_beside(observed: AppObserved, reading: Reading, now: datetime, compare: Compare) -> Plan:
    """While the source is read, continue with the known manifests unless a refresh is requested. The refresh request
    stays until its result is there."""
    view, latest, request = observed.view, observed.latest, refresh_request(observed.view)
    if latest is not None and not latest.error and not request:
        return _predicted(observed, latest, now, compare)
    joins = bool(request) and bool(reading.answers) and request not in reading.answers
    join = ((Join(replace(_render(observed, reading.text), answers=request), reading.text),),) if joins else ()
    patch = app_patch(view, waiting_status(view, reading.text, now), reading.text, processed=False)
    return Plan(steps=join, status=patch, outcome=_poll(observed, now), why=reading.text)


def _in_grace(observed: AppObserved, latest: Manifests, now: datetime) -> bool:
    """Return whether a failed source is within its grace period: known state stays, unless a refresh is requested
    (behaviours 54 and 87)."""
    known = dig(observed.view.status, "sync", "status") not in (None, "", "Unknown")
    since = latest.failing_since
    return (
        known
        and since is not None
        and not latest.asked
        and now < since + timedelta(seconds=observed.settings.repo_grace_s)
    )


def refresh_request(view: AppView) -> str:
    """Return an id of the requested refresh, or "": by annotation, by a source other than the compared one, or by the
    end of a manual operation.

    Neither the annotation nor a spec change has a time, so the id contains the resourceVersion; a write in between
    costs one more render. The status write removes the annotation.
    """
    compared = dig(view.status, "sync", "comparedTo", default={})
    before = tuple(compared.get("sources") or ((compared["source"],) if compared.get("source") else ()))
    if view.refresh or (before and before != view.sources):
        return f"{uid_of(view.obj)}/{resource_version(view.obj)}"
    state = view.operation_state or {}
    sync = dig(state, "operation", "sync")
    by_hand = (
        isinstance(sync, dict) and not sync.get("dryRun") and not dig(state, "operation", "initiatedBy", "automated")
    )
    ended = state.get("phase") in ("Succeeded", "Failed", "Error") and state.get("finishedAt")
    return f"{uid_of(view.obj)}/ended/{state.get('startedAt')}/{ended}" if by_hand and ended else ""


def _plan_compared(observed: AppObserved, latest: Manifests, now: datetime, compare: Compare) -> Plan:
    view = observed.view
    comparison = compare(observed, latest)
    decision = _automated(observed, comparison, latest, now)
    notes = left_notes(view.obj, observed.pools)
    status = _with_auto(_compared_status(observed, comparison, latest, now), decision, now)
    finalizers = wanted_finalizers(
        view.obj, pre_delete=comparison.has_pre_delete_hooks, post_delete=comparison.has_post_delete_hooks
    )
    why = f"{comparison.status} at {', '.join(latest.revisions) or '-'}, {comparison.health.status}; {decision.why}"
    if decision.operation is None:
        wait = decision.requeue_after_s
        outcome = _poll(observed, now) if wait is None else Requeue(wait, decision.why)
        return Plan(
            status=app_patch(view, status, why, finalizers=finalizers, annotations=notes),
            outcome=outcome,
            why=why,
        )
    status.pop("operationState", None)
    revision = ", ".join(latest.revisions)
    event = Emit(view.obj, "OperationStarted", f"Initiated automated sync to '{revision}'", COMPONENT)
    patch = app_patch(view, status, decision.why, operation=decision.operation, finalizers=finalizers)
    return Plan(status=(*patch, event), outcome=Requeue(0, "the operation begins"), why=why)


def _compared_status(observed: AppObserved, comparison: Comparison, latest: Manifests, now: datetime) -> Obj:
    """Return the status after a comparison, with the conditions from observation."""
    conditions = (
        *comparison.conditions,
        *(
            [Condition("OrphanedResourceWarning", f"Application has {observed.orphans} orphaned resources")]
            if observed.orphans
            else []
        ),
        *(Condition("SourceWarning", text) for text in latest.warnings[:MAX_WARNINGS]),
        *([Condition(SOURCE_WAIT, observed.reading.text)] if observed.reading is not None else []),
    )
    status = compared_status(observed.view, comparison, latest, conditions, now)
    known = observed.compared is not None and observed.compared.content == latest.content
    if latest.content and not observed.view.refresh and known:
        return without_new_commit(observed.view, status)
    return status


def _automated(observed: AppObserved, comparison: Comparison, latest: Manifests, now: datetime) -> AutoSync:
    """Decide about an automated sync; a closed window reports nothing, as upstream."""
    app = observed.view.obj
    closed = window_problem(observed.project, app, now, manual=False)
    if closed:
        return AutoSync(f"no automated sync: {closed}")
    backoff = SelfHealBackoff()
    found = decide(app, comparison.status, latest.revisions, comparison.resources, now, backoff=backoff)
    if not dig(found.operation, "sync", "prune"):
        return found
    guarded = mass_deletion(app, [row for row in comparison.resources if not row.get("hook")])
    if not guarded:
        return found
    text = f"Skipping sync attempt to [{', '.join(latest.revisions)}]: {guarded}"
    return AutoSync("the deletions are to be confirmed", condition=Condition(AUTO_SYNC_CONDITION, text))


def _with_auto(status: Obj, decision: AutoSync, now: datetime) -> Obj:
    found = [decision.condition] if decision.condition is not None else []
    merged = merge_conditions(status.get("conditions") or [], (AUTO_SYNC_CONDITION,), found, now)
    rest = {key: value for key, value in status.items() if key != "conditions"}
    return rest | ({"conditions": merged} if merged else {})


def _period(observed: AppObserved, latest: Manifests) -> timedelta:
    """Return the polling period with a jitter that depends on the name only."""
    base = observed.settings.error_poll_s if latest.error else observed.settings.poll_s
    digest = hashlib.sha256(str(observed.view.ref).encode()).digest()
    return timedelta(seconds=base * (1 + MAX_JITTER * digest[0] / 255))


def _poll(observed: AppObserved, now: datetime | None = None) -> Requeue:
    latest = observed.latest
    if observed.reading is not None:
        return Requeue(LOOK_BESIDE_S, observed.reading.text, background=True)
    if latest is None or now is None or latest.local:
        return Requeue(observed.settings.error_poll_s, "look again", background=True)
    wait = (latest.resolved_at + _period(observed, latest) - now).total_seconds()
    return Requeue(max(wait, 0.1), "read the repository again", background=True)
