"""The planner of ApplicationSets: :func:`plan_set` decides the next step, :func:`settle_set` continues; pure.

A reconcile asks what generation lacks, writes Applications, deletes others, and writes one status at its end. With an
error, or while an answer is awaited, no Application is written. Rules: ``Reconcile`` of upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from syncline.apply.asking import Ask
from syncline.apply.asking import Asking as Evaluating
from syncline.apply.diff.jq import Unknown
from syncline.appset.asking import Asking, AskRows
from syncline.appset.deciding import ROLLOUT_ERROR, Choice, Decision, Unchanged, Verb, decide, invalid, undecided
from syncline.appset.generation import Generated
from syncline.appset.observing.kinds import REUSED_S, Listed, ListKind
from syncline.appset.observing.observe import REFRESH, SetObserved, decision_kinds, is_controlled
from syncline.appset.questions import Answer, Facts, Question
from syncline.appset.rollout.plan import cleared, entries_patch
from syncline.appset.status import Condition, failed, succeeded, with_conditions, with_resources, with_wait
from syncline.appset.writing.applications import MARK
from syncline.appset.writing.deletion import plan_deletion, with_finalizer
from syncline.appset.writing.events import deleted, orphaned, warned, written
from syncline.argo.application import RESOURCES_FINALIZER
from syncline.argo.rollout.strategy import is_reversed
from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import (
    Create,
    Delete,
    Done,
    Outcome,
    Patch,
    Plan,
    Requeue,
    Result,
    Retry,
    awaiting_lists,
    set_status,
)
from syncline.kube.errors import AlreadyExists, Conflict, NotFound
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    finalizers,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

RETRY_S: Final = 180.0
"""Most seconds until a set with an error is looked at again, as upstream; a generator that says less is asked earlier,
since what it finds none of may be about to come."""
WAIT_S: Final = 30.0
"""Seconds between reconciles while an answer is awaited; the end of the read wakes the set."""
SHARED_LOOK: Final = 0.25
"""Part of a polling interval for which all sets share one read of a Git host."""
LOOK_AGAIN_S: Final = 1.0
"""Seconds until an Application is asked for its health after a sync has ended (strict evidence)."""
GUARD_REASON: Final = "DeleteApplicationError"

Generate = Callable[[Obj, Facts], Generated]


class Stage(StrEnum):
    """How far a reconcile is."""

    ASK = "ask"
    PREPARE = "prepare"
    WRITE = "write"
    FREE = "free"
    DELETE = "delete"
    STATUS = "status"
    END = "end"


@dataclass(frozen=True, slots=True)
class SetPlan(Plan):
    """A plan, and what its continuation needs."""

    stage: Stage = Stage.END
    generated: Generated | None = None
    decision: Decision | None = None
    results: tuple[Result, ...] = ()
    """Of the stages before."""
    asked: frozenset[Question] = field(default_factory=frozenset)
    """Questions that this reconcile asked; none is asked twice."""


@dataclass(frozen=True, slots=True)
class Means:
    """What planning uses: the generators, perhaps with a memory, and what is known to be as generated."""

    generate: Generate
    unchanged: Unchanged | None = None
    seed: str = field(default="", repr=False)
    """What templates of all sets draw from; each set draws other values."""


def plan_set(observed: SetObserved, now: datetime, means: Means) -> SetPlan:
    """Plan one reconcile of a set."""
    return _plan(observed, now, means, frozenset())


def _plan(observed: SetObserved, now: datetime, means: Means, asked: frozenset[Question]) -> SetPlan:
    appset = observed.obj
    if observed.unlisted:
        return SetPlan(*awaiting_lists(observed.unlisted))
    broken = (*observed.settings.problems, *observed.unread)
    if broken:
        return _failed(observed, "ErrorOccurred", "; ".join(broken), now, generated=False)
    if is_terminating(appset):
        if observed.settings.dry_run:
            return SetPlan(why="dry run: the set is not let go")
        plan = plan_deletion(observed, now)
        return SetPlan(plan.steps, plan.outcome, plan.why, plan.status)
    if observed.settings.progressive and is_reversed(appset) and not observed.settings.dry_run:
        guard = with_finalizer(appset)
        if guard is not None:
            return SetPlan(((guard,),), Requeue(0, guard.reason), guard.reason, stage=Stage.PREPARE, asked=asked)
    kinds = _kinds_to_list(observed, now, asked)
    if kinds:
        why = "kinds of decisions are listed"
        return SetPlan((kinds,), Requeue(0, why), why, stage=Stage.ASK, asked=asked)
    seed = f"{means.seed}/{uid_of(appset)}" if means.seed else ""
    generated = means.generate(appset, replace(observed.facts, now=now, seed=seed))
    questions = _to_ask(observed, generated, now, asked)
    if questions:
        why = f"{len(questions)} questions of generators are asked"
        more = asked | {one.question for one in questions}
        return SetPlan((questions,), Requeue(0, why), why, stage=Stage.ASK, generated=generated, asked=more)
    if generated.missing or _refreshes(observed, generated):
        return _awaiting(observed, generated, now)
    if generated.failures:
        first = generated.failures[0]
        again_s = min(generated.requeue_s or RETRY_S, RETRY_S)
        return _failed(observed, first.reason, first.message, now, generated=False, again_s=again_s)
    refused = undecided(observed, generated)
    if refused is not None:
        return _failed(observed, refused.reason, refused.message, now, generated=refused.reason == ROLLOUT_ERROR)
    return _plan_applications(observed, generated, now, means, asked)


# -- asking ----------------------------------------------------------------------------------------------------


def _kinds_to_list(observed: SetObserved, now: datetime, asked: frozenset[Question]) -> tuple[ListKind, ...]:
    found = []
    for version, plural in decision_kinds(observed.obj, observed.facts.config_maps):
        known = observed.listed.get((version, plural))
        if known is None or (now - known.at >= timedelta(seconds=REUSED_S) and not asked):
            namespace = observed.facts.control_namespace
            found.append(ListKind(version, plural, namespace, "a generator makes rows of its objects"))
    return tuple(found)


def _to_ask(
    observed: SetObserved, generated: Generated, now: datetime, asked: frozenset[Question]
) -> tuple[AskRows, ...]:
    """Return the questions to ask: those without an answer, old ones, and all for a refresh."""
    missing, request = set(generated.missing), observed.refresh_request
    found: list[AskRows] = []
    for question, every_s in generated.asked:
        if question in asked:
            continue
        answer = observed.facts.answers.get(question)
        fresh = request if request and (answer is None or request not in answer.answers) else ""
        if question in missing or answer is None:
            why = "there is no answer yet"
        elif fresh:
            why = f"the annotation {REFRESH} asks for a new answer"
        elif _is_old(answer, every_s, now, failing=bool(request or generated.failures)):
            why = f"the answer is of {format_time(answer.at)}"
        else:
            continue
        project = str(getattr(question, "project", "") or observed.project)
        found.append(AskRows(observed.ref, question, why, fresh, project, every_s * SHARED_LOOK))
    return tuple(found)


def _is_old(answer: Answer, every_s: float, now: datetime, *, failing: bool) -> bool:
    """Return whether a question is due again: after its interval, but with an error soon, as upstream."""
    if answer.retry_at is not None and now < answer.retry_at:
        return False
    if failing or answer.error:
        every_s = min(every_s or RETRY_S, RETRY_S)
    return every_s > 0 and now - answer.at >= timedelta(seconds=every_s)


def _refreshes(observed: SetObserved, generated: Generated) -> bool:
    """Return whether a requested refresh is not answered yet."""
    request, answers = observed.refresh_request, observed.facts.answers
    return bool(request) and any(
        question not in answers or request not in answers[question].answers for question, _ in generated.asked
    )


def _awaiting(observed: SetObserved, generated: Generated, now: datetime) -> SetPlan:
    text = f"waiting for answers to {len(generated.missing) or len(generated.asked)} questions of generators"
    return SetPlan((), Requeue(WAIT_S, text, background=True), text, stage=Stage.END, generated=generated)


def _waiting(observed: SetObserved, text: str, now: datetime) -> SetPlan:
    """Report what is waited for; nothing else of the status changes."""
    status = with_wait(observed.obj.get("status") or {}, text, now)
    report = () if observed.settings.dry_run else set_status(observed.obj, status, text)
    return SetPlan((), Requeue(WAIT_S, text, background=True), text, report)


def _failed(
    observed: SetObserved, reason: str, message: str, now: datetime, *, generated: bool, again_s: float = RETRY_S
) -> SetPlan:
    status = with_conditions(
        observed.obj, observed.obj.get("status") or {}, [failed(reason, message)], now, generated=generated
    )
    report = () if observed.settings.dry_run else set_status(observed.obj, status, message)
    return SetPlan((), Requeue(again_s, message, background=True), message, report)


# -- writing ---------------------------------------------------------------------------------------------------


def _plan_applications(
    observed: SetObserved, generated: Generated, now: datetime, means: Means, asked: frozenset[Question]
) -> SetPlan:
    try:
        decision = decide(observed, generated, now, means.unchanged)
    except Unknown as unknown:
        if observed.evaluating is not None:
            return _waiting(observed, observed.evaluating.text, now)
        why = "expressions of ignoreApplicationDifferences are evaluated beside the controller"
        ask = Ask(observed.ref, observed.project, unknown.questions, why)
        return SetPlan(((ask,),), Requeue(0, why), why, stage=Stage.ASK, asked=asked)
    writes = tuple(_write(one, dry_run=observed.settings.dry_run) for one in decision.of(Verb.CREATE, Verb.CHANGE))
    why = _why(decision)
    return SetPlan(
        (writes,) if writes else (),
        Requeue(0, why),
        why,
        together=observed.settings.at_once > 1,
        stage=Stage.WRITE,
        generated=generated,
        decision=decision,
        asked=asked,
    )


def _why(decision: Decision) -> str:
    verbs = ((verb, len(decision.of(verb))) for verb in Verb)
    return ", ".join(f"{verb} {count}" for verb, count in verbs if count) or "there are no Applications"


def _write(choice: Choice, *, dry_run: bool) -> Action:
    assert choice.wanted is not None, "only an Application that is written has a desired object"
    if choice.verb == Verb.CREATE:
        return Create(choice.wanted, choice.why, dry_run=dry_run)
    body = choice.patch
    lists = {"finalizers", "ownerReferences"} & set(body.get("metadata") or {})
    if lists and choice.live is not None:
        # A list is replaced whole: a finalizer or an owner that came meanwhile must not get lost.
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": resource_version(choice.live)}}
    return Patch(APPLICATION, namespace_of(choice.wanted), choice.name, body, choice.why, dry_run=dry_run)


def settle_set(
    observed: SetObserved, plan: Plan, results: tuple[Result, ...], now: datetime, means: Means
) -> tuple[SetObserved, SetPlan] | None:
    """Continue a reconcile from the results of its last stage; None: it ends."""
    if not isinstance(plan, SetPlan) or any(map(_is_lost, results)):
        return None  # something changed meanwhile: the set is planned again
    match plan.stage:
        case Stage.ASK:
            return _settle_asked(observed, plan, results, now, means)
        case Stage.PREPARE:
            made = results[0].value if results and results[0].ok else None
            if not isinstance(made, dict):
                return None
            observed = replace(observed, obj=made)
            return observed, _plan(observed, now, means, plan.asked)
        case Stage.WRITE:
            return observed, _plan_deletes(observed, replace(plan, results=results), now)
        case Stage.FREE:
            return observed, _delete(replace(plan, results=(*plan.results, *results)))
        case Stage.DELETE:
            return observed, _plan_end(observed, replace(plan, results=(*plan.results, *results)), now)
        case Stage.STATUS:
            return _settle_status(observed, plan, results)
        case _:
            return None


def _settle_asked(
    observed: SetObserved, plan: SetPlan, results: tuple[Result, ...], now: datetime, means: Means
) -> tuple[SetObserved, SetPlan] | None:
    answers: dict[Question, Answer] = {}
    listed: dict[tuple[str, str], Listed] = {}
    waits: list[str] = []
    for one in results:
        match one.action, one.value:
            case AskRows() as action, Answer() as answer:
                answers[action.question] = answer
            case AskRows(), Asking() as asking:
                waits.append(asking.text)
            case ListKind() as action, Listed() as found:
                listed[action.api_version, action.plural] = found
            case Ask(), Evaluating() as evaluating:
                observed = replace(observed, evaluating=evaluating)
            case Ask(), dict() as known if one.ok:
                observed = replace(observed, expressions=observed.expressions.with_more(known), evaluating=None)
            case _:
                return None  # the failure is retried with its back-off
    facts = observed.facts
    if answers:
        facts = replace(facts, answers=MappingProxyType({**facts.answers, **answers}))
    if listed:
        facts = with_lists(facts, listed)
        observed = replace(observed, listed=MappingProxyType({**observed.listed, **listed}))
    observed = replace(observed, facts=facts)
    further = _plan(observed, now, means, plan.asked)
    if waits and further.stage == Stage.END and further.generated is not None:
        further = _waiting(observed, _several(waits), now)
    return observed, further


def with_lists(facts: Facts, listed: Mapping[tuple[str, str], Listed]) -> Facts:
    """Return facts with the objects of decision resources, and why some cannot be read."""
    good = {key: one.objects for key, one in listed.items() if not one.error}
    bad = {f"{version}/{plural}": one.error for (version, plural), one in listed.items() if one.error}
    decisions = {**{key: one for key, one in facts.decisions.items() if key not in listed}, **good}
    named = {f"{version}/{plural}" for version, plural in listed}
    unread = {**{key: why for key, why in facts.unread.items() if key not in named}, **bad}
    return replace(facts, decisions=MappingProxyType(decisions), unread=MappingProxyType(unread))


def _several(texts: Iterable[str]) -> str:
    found = list(dict.fromkeys(texts))
    return found[0] if len(found) == 1 else f"{found[0]} (and {len(found) - 1} more)"


def _plan_deletes(observed: SetObserved, plan: SetPlan, now: datetime) -> SetPlan:
    """Delete what no row makes, unless a write failed: first the marks and finalizers, then the objects."""
    assert plan.decision is not None, "the stage before decided"
    doomed = plan.decision.of(Verb.DELETE)
    if not doomed or observed.settings.dry_run or _failure(plan.results) or _refusal(plan.decision):
        return _plan_end(observed, plan, now)
    marks = tuple(_marks(plan.decision, doomed))
    frees = tuple(one for choice in doomed if (one := _freed(choice)) is not None)
    if not marks and not frees:
        return _delete(plan)
    return replace(plan, steps=tuple(step for step in (marks, frees) if step), stage=Stage.FREE)


def _delete(plan: SetPlan) -> SetPlan:
    """Delete the Applications whose finalizer could be removed where it had to be."""
    assert plan.decision is not None, "a stage before decided"
    bad = {_target(one) for one in plan.results if not one.ok}
    doomed = [one for one in plan.decision.of(Verb.DELETE) if one.live is not None and one.name not in bad]
    deletes = tuple(Delete.of(one.live, one.why) for one in doomed if one.live is not None)
    return replace(plan, steps=(deletes,) if deletes else (), stage=Stage.DELETE)


def _marks(decision: Decision, doomed: Iterable[Choice]) -> Iterable[Patch]:
    """Yield the marks of a confirmed mass deletion: with them, what is left of it after an interruption goes on."""
    if decision.guard is None:
        return
    digest = decision.guard.found.digest
    for one in doomed:
        if one.live is not None and annotations_of(one.live).get(MARK) != digest:
            body = {"metadata": {"annotations": {MARK: digest}}}
            why = "its deletion is confirmed"
            yield Patch(APPLICATION, namespace_of(one.live), one.name, body, why)


def _freed(choice: Choice) -> Patch | None:
    live = choice.live
    if live is None or not choice.orphans or RESOURCES_FINALIZER not in finalizers(live):
        return None
    left = [one for one in finalizers(live) if one != RESOURCES_FINALIZER]
    body = {"metadata": {"finalizers": left or None}}
    return Patch(APPLICATION, namespace_of(live), choice.name, body, "its destination is gone: its objects are left")


def _is_lost(result: Result) -> bool:
    gone = isinstance(result.error, NotFound) and isinstance(result.action, Patch)
    return gone or isinstance(result.error, Conflict | AlreadyExists)


def _failure(results: Iterable[Result]) -> Result | None:
    """Return the failed write of the first Application by name."""
    bad = [one for one in results if not one.ok]
    return min(bad, key=_target, default=None)


def _target(result: Result) -> str:
    action = result.action
    return name_of(action.obj) if isinstance(action, Create) else str(getattr(action, "name", ""))


# -- the end ---------------------------------------------------------------------------------------------------


def _plan_end(observed: SetObserved, plan: SetPlan, now: datetime) -> SetPlan:
    decision, generated = plan.decision, plan.generated
    assert decision is not None and generated is not None, "the stages before decided"
    events = () if observed.settings.dry_run else tuple(_events(observed, decision, plan.results))
    refused = _refusal(decision)
    doomed = frozenset(one.name for one in decision.of(Verb.DELETE))
    bad = _failure(one for one in plan.results if _target(one) not in doomed)
    failure = _first(refused, bad)
    reason = "UpdateApplicationError" if observed.settings.policy_of(observed.obj).updates else "CreateApplicationError"
    if not failure and (lost := _failure(plan.results)) is not None:
        freed = "error updating finalizers: " if isinstance(lost.action, Patch) else ""
        failure, reason = f"{freed}{lost.error}", "DeleteApplicationError"
    status = _status(observed, decision, now)
    outcome: Outcome
    if failure:
        status = with_conditions(observed.obj, status, [failed(reason, failure)], now, generated=True)
        outcome = Retry(failure)
    else:
        status = with_resources(status, _current(observed, plan.results), observed.settings.max_resources)
        status = _concluded(observed, decision, status, now)
        outcome = _next(observed, generated, decision, now)
    report = () if observed.settings.dry_run else set_status(observed.obj, status, plan.why)
    refreshed = not failure and REFRESH in annotations_of(observed.obj) and not observed.settings.dry_run
    if refreshed and not report:
        events = (*events, _refreshed(observed.obj))
    stage = Stage.STATUS if refreshed and report else Stage.END
    return SetPlan(
        (events,) if events else (), outcome, plan.why, report, stage=stage, generated=generated, decision=decision
    )


def _refusal(decision: Decision) -> tuple[str, str] | None:
    """Return name and message of the first Application that another owner controls, or that cannot be compared."""
    found = [one for one in decision.of(Verb.REFUSE) if one.name not in decision.problems]
    return (found[0].name, found[0].error) if found else None


def _first(refused: tuple[str, str] | None, bad: Result | None) -> str:
    found = [refused] if refused is not None else []
    found += [(_target(bad), str(bad.error))] if bad is not None else []
    return min(found)[1] if found else ""


def _status(observed: SetObserved, decision: Decision, now: datetime) -> Obj:
    """Return the status with the rollout and the validation errors."""
    status: Obj = observed.obj.get("status") or {}
    if decision.rollout is not None:
        status = entries_patch(status, decision.rollout)
        status = with_conditions(observed.obj, status, decision.rollout.conditions, now, generated=True)
    elif status.get("applicationStatus"):
        status = cleared(status)
    if decision.problems:
        status = with_conditions(observed.obj, status, [invalid(decision.problems)], now, generated=True)
    return status


def _concluded(observed: SetObserved, decision: Decision, status: Obj, now: datetime) -> Obj:
    guard = decision.guard
    conditions: list[Condition] = []
    if guard is not None and not guard.confirmed:
        conditions = [failed(GUARD_REASON, guard.message)]
    elif not decision.problems:
        conditions = [succeeded()]
    return with_conditions(observed.obj, status, conditions, now, generated=True) if conditions else status


def _next(observed: SetObserved, generated: Generated, decision: Decision, now: datetime) -> Outcome:
    waits = [generated.requeue_s] if generated.requeue_s else []
    for question, every_s in generated.asked:
        answer = observed.facts.answers.get(question)
        if answer is None or every_s <= 0:
            continue
        due = max(answer.at + timedelta(seconds=every_s), answer.retry_at or now)
        waits.append(max((due - now).total_seconds(), 1.0))
    if not waits and (decision.problems or decision.guard is not None):
        waits = [RETRY_S]
    if decision.rollout is not None and decision.rollout.look_again:
        return Requeue(LOOK_AGAIN_S, "the health after a sync is looked at")
    return Requeue(min(waits), "the generators are due again", background=True) if waits else Done()


def _events(observed: SetObserved, decision: Decision, results: Iterable[Result]) -> Iterable[Action]:
    appset = observed.obj
    doomed = frozenset(one.name for one in decision.of(Verb.DELETE))
    for one in results:
        if not one.ok:
            continue
        match one.action:
            case Create(obj=obj):
                yield written(appset, "created", name_of(obj))
            case Patch(name=name) if name not in doomed:
                yield written(appset, "updated", name)
            case Patch(name=name, body=body) if "finalizers" in body["metadata"]:
                yield orphaned(appset, name)
            case Delete(name=name):
                yield deleted(appset, name)
            case _:
                pass
    guard = decision.guard
    if guard is not None and not guard.confirmed and _is_news(appset, guard.message):
        yield warned(appset, "DeletionHeld", guard.message)


def _is_news(appset: Obj, message: str) -> bool:
    found = dig(appset, "status", "conditions", default=[]) or []
    return all(one.get("message") != message for one in found if isinstance(one, dict))


def _current(observed: SetObserved, results: Iterable[Result]) -> list[Obj]:
    """Return the Applications of the set after the writes."""
    apps: dict[str, Any] = {name_of(app): app for app in observed.current}
    for one in results:
        if not one.ok:
            continue
        if isinstance(one.action, Create | Patch) and isinstance(one.value, dict):
            apps.pop(name_of(one.value), None)
            ended = is_terminating(one.value) and not finalizers(one.value)
            if not ended and is_controlled(one.value, name_of(observed.obj)):  # a rule may ignore the owner, too
                apps[name_of(one.value)] = one.value
        elif isinstance(one.action, Delete) and not _remains(one.value):
            apps.pop(one.action.name, None)
    return list(apps.values())


def _remains(value: Any) -> bool:
    """Return whether the answer to a deletion is an object that its finalizers keep."""
    return isinstance(value, dict) and bool(finalizers(value))


def _refreshed(appset: Obj) -> Patch:
    body = {"metadata": {"annotations": {REFRESH: None}, "resourceVersion": resource_version(appset)}}
    return Patch(APPLICATION_SET, namespace_of(appset), name_of(appset), body, "the refresh is done")


def _settle_status(
    observed: SetObserved, plan: SetPlan, results: tuple[Result, ...]
) -> tuple[SetObserved, SetPlan] | None:
    """Remove the refresh annotation of the object that the status write left, so that a newer request stays."""
    made = results[-1].value if results and results[-1].ok else None
    if not isinstance(made, dict):
        return None
    return observed, replace(plan, steps=((_refreshed(made),),), status=(), stage=Stage.END)
