"""What is to be done with each Application of a set, as data: :func:`decide`; pure.

A plan is made of it, and ``plan`` and ``explain`` show it. Rules: reference argocd-applicationset §§2, 6 and 7.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from syncline.appset.generation import Failure, Generated, Made
from syncline.appset.observing.memory import MAX_SETS
from syncline.appset.observing.observe import SetObserved
from syncline.appset.rollout.plan import Rollout, operation_for, plan_rollout, without_automation
from syncline.appset.rollout.states import Entry, entries_of
from syncline.appset.status import Condition, failed, with_conditions
from syncline.appset.writing.applications import (
    Ignored,
    Kept,
    WriteError,
    created,
    desired,
    difference,
    owner_of,
    specs_differ,
)
from syncline.appset.writing.guarding import Report, guard_deletions
from syncline.argo.application import REFRESH
from syncline.argo.clusters import Cluster, declared_twice, resolve_destination
from syncline.argo.rollout.strategy import is_rolling, steps_of
from syncline.argo.typed import normalized_spec
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of

ROLLOUT_ERROR: Final = "ApplicationSetRolloutError"
MAX_APPLICATIONS: Final = 20_000
"""The most Applications of one set."""


class Verb(StrEnum):
    """What is done with an Application."""

    CREATE = "create"
    CHANGE = "change"
    KEEP = "keep"
    DELETE = "delete"
    HOLD = "hold"
    """It would be created or deleted, but the deletions of the set are to be confirmed."""
    REFUSE = "refuse"
    """It is invalid, or controlled by another owner: neither created nor changed nor deleted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision about one Application."""

    name: str
    verb: Verb
    why: str
    made: Made | None = field(default=None, repr=False)
    """As generated, with its row; None: it is not generated any more."""
    live: Obj | None = field(default=None, repr=False)
    wanted: Obj | None = field(default=None, repr=False)
    """The object to create, or the live one as it shall be; None: it is not written."""
    patch: Obj = field(default_factory=dict, repr=False)
    error: str = ""
    """Upstream's message, for an Application that may not be written."""
    orphans: bool = False
    """Its destination is gone: its resources finalizer is removed first, so that its objects are left alone."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about a set."""

    choices: tuple[Choice, ...]
    """By name."""
    problems: Mapping[str, str]
    """Validation errors by name."""
    guard: Report | None = None
    """The mass deletion, if it needs or has a confirmation."""
    rollout: Rollout | None = None

    def of(self, *verbs: Verb) -> tuple[Choice, ...]:
        return tuple(one for one in self.choices if one.verb in verbs)


class Unchanged:
    """Applications that were as generated, by set and name: while neither side changes they are not compared again."""

    def __init__(self) -> None:
        self._sets: OrderedDict[ObjectRef, tuple[object, dict[str, tuple[Obj, Obj, Choice]]]] = OrderedDict()

    def of(self, ref: ObjectRef, context: object) -> Mapping[str, tuple[Obj, Obj, Choice]]:
        """Return the known ones of a set. ``context``: what a comparison depends on beside the two sides."""
        before, known = self._sets.get(ref, (None, {}))
        return known if before == context else {}

    def keep(self, ref: ObjectRef, context: object, choices: Iterable[Choice]) -> None:
        self._sets.pop(ref, None)
        self._sets[ref] = (
            context,
            {
                one.name: (one.made.app, one.live, one)
                for one in choices
                if one.verb == Verb.KEEP and one.wanted is not None and one.made is not None and one.live is not None
            },
        )
        while len(self._sets) > MAX_SETS:
            self._sets.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Comparing:
    """How generated and live Applications are compared, and which are known to be equal."""

    appset: Obj
    kept: Kept
    ignored: Ignored
    known: Mapping[str, tuple[Obj, Obj, Choice]]

    def equal(self, made: Made, live: Obj | None) -> Choice | None:
        app, before, choice = self.known.get(name_of(made.app), (None, None, None))
        if choice is None or before is not live or app != made.app:
            return None
        return replace(choice, made=made)


def undecided(observed: SetObserved, generated: Generated) -> Failure | None:
    """Return why nothing may be decided, although all Applications are known; None: it may be."""
    count = len(generated.made)
    if count > MAX_APPLICATIONS:
        text = f"the generators make {count} Applications, a set may have {MAX_APPLICATIONS}; split it"
        return Failure("ApplicationGenerationFromParamsError", text)
    if observed.settings.progressive and is_rolling(observed.obj) and not steps_of(observed.obj):
        return Failure(ROLLOUT_ERROR, "No steps defined for rollout")
    return None


def decide(observed: SetObserved, generated: Generated, now: datetime, unchanged: Unchanged | None = None) -> Decision:
    """Decide about every Application of a set that was generated without an error. Raises
    :class:`~syncline.apply.diff.jq.Unknown` if expressions are to be evaluated first. ``unchanged`` saves comparisons
    and changes no result."""
    appset, settings = observed.obj, observed.settings
    current = {name_of(app): app for app in observed.current}
    problems = validate(appset, generated.made, observed.facts.projects, observed.clusters)
    rolls = settings.progressive and bool(steps_of(appset))
    kept, ignored = Kept.of(appset, settings.preserved), Ignored.of(appset, observed.expressions)
    context = owner_of(appset), kept, ignored.rules, rolls
    known = {} if unchanged is None else unchanged.of(observed.ref, context)
    comparing = _Comparing(appset, kept, ignored, known)
    rollout = _rollout(observed, generated, current, comparing, now) if rolls else None
    started = None if rollout is None else _Started(rollout, _statuses(observed, rollout, problems, now), now)
    policy = settings.policy_of(appset)
    choices: list[Choice] = []
    for made in sorted(generated.made, key=lambda one: name_of(one.app)):
        name = name_of(made.app)
        live = observed.apps.get(name)
        if name in problems:
            if not choices or choices[-1].name != name:
                choices.append(Choice(name, Verb.REFUSE, problems[name], made, live, error=problems[name]))
        elif name in current and not policy.updates:
            choices.append(Choice(name, Verb.KEEP, f"policy {policy} does not update", made, live))
        else:
            choices.append(_written(comparing, made, live, started))
    if unchanged is not None:
        unchanged.keep(observed.ref, context, choices)
    names = {name_of(made.app) for made in generated.made}
    gone = [app for name, app in current.items() if name not in names]
    choices += [
        Choice(
            name_of(app),
            Verb.DELETE if policy.deletes else Verb.KEEP,
            "no row makes it" + ("" if policy.deletes else f"; policy {policy} does not delete"),
            live=app,
            orphans=policy.deletes and is_gone(app, observed.clusters),
        )
        for app in gone
    ]
    choices.sort(key=lambda one: one.name)
    return _guarded(observed, generated, Decision(tuple(choices), MappingProxyType(problems), None, rollout))


def _rollout(
    observed: SetObserved, generated: Generated, current: Mapping[str, Obj], comparing: _Comparing, now: datetime
) -> Rollout:
    made = {name_of(one.app): one for one in generated.made}

    def wanted(name: str) -> Obj | None:
        return _rolled(made[name].app.get("spec") or {}) if name in made else None

    def differs(app: Obj) -> bool:
        one = made[name_of(app)]
        if comparing.equal(one, app) is not None:
            return False
        return specs_differ(app, _rolled(one.app.get("spec") or {}), comparing.ignored)

    apps = [one.app for one in generated.made]
    return plan_rollout(observed.obj, tuple(current.values()), wanted, apps, differs, now)


def _rolled(spec: Obj) -> Obj:
    return without_automation(normalized_spec(spec))


@dataclass(frozen=True, slots=True)
class _Started:
    """A rollout, and the statuses by which syncs are started."""

    rollout: Rollout
    entries: Mapping[str, Entry]
    now: datetime


def _statuses(
    observed: SetObserved, rollout: Rollout, problems: Mapping[str, str], now: datetime
) -> Mapping[str, Entry]:
    """Return the statuses by which syncs are started: those at the start of the reconcile. Where validation errors are
    news, upstream reads the set again to report them, and goes on with what it has just decided."""
    before = observed.obj.get("status") or {}
    reported = before
    if problems:
        reported = with_conditions(observed.obj, before, [invalid(problems)], now, generated=True)
    return {one.application: one for one in (entries_of(before) if reported is before else rollout.entries)}


def _written(comparing: _Comparing, made: Made, live: Obj | None, started: _Started | None) -> Choice:
    appset, app, name = comparing.appset, made.app, name_of(made.app)
    operation, refreshes = None, False
    if started is not None:
        spec, rollout = app.get("spec") or {}, started.rollout
        operation = operation_for(appset, spec, started.entries.get(name), rollout, live, started.now)
        refreshes = name in rollout.to_refresh and REFRESH not in annotations_of(live or {})
        app = {**app, "spec": without_automation(spec)}
    if live is None:
        return Choice(name, Verb.CREATE, "a row makes it", made, None, created(app, appset, operation))
    equal = comparing.equal(made, live) if operation is None and not refreshes else None
    if equal is not None:
        return equal
    try:
        wanted = desired(app, live, appset, comparing.kept, operation)
        if refreshes:
            marked = {**wanted["metadata"], "annotations": {**annotations_of(wanted), REFRESH: "normal"}}
            wanted = {**wanted, "metadata": marked}
        patch = difference(live, wanted, comparing.ignored)
    except WriteError as error:
        return Choice(name, Verb.REFUSE, str(error), made, live, error=str(error))
    if not patch:
        return Choice(name, Verb.KEEP, "it is as generated", made, live, wanted)
    return Choice(name, Verb.CHANGE, "it differs from what is generated", made, live, wanted, patch)


def validate(
    appset: Obj, made: Iterable[Made], projects: frozenset[str], clusters: tuple[Cluster, ...]
) -> dict[str, str]:
    """Return upstream's validation errors by name of the Application; one of two with the same name counts for both."""
    errors: dict[str, str] = {}
    seen: set[str] = set()
    judged: dict[tuple[str, str], str] = {}
    for one in made:
        name, set_name = name_of(one.app), name_of(appset)
        spec = one.app.get("spec") or {}
        project, destination = str(spec.get("project") or ""), spec.get("destination") or {}
        place = str(destination.get("server") or ""), str(destination.get("name") or "")
        if not name:
            errors[name] = (
                f"ApplicationSet {set_name} contains an application with no name; a name must be set in the template's "
                "metadata.name or via a templatePatch (generateName is not supported)"
            )
        elif name in seen:
            errors[name] = f"ApplicationSet {set_name} contains applications with duplicate name: {name}"
        elif project not in projects:
            errors[name] = f"application references project {project} which does not exist"
        else:
            if place not in judged:
                judged[place] = _unresolved(destination, clusters)
            if judged[place]:
                errors[name] = f"application destination spec is invalid: {judged[place]}"
        seen.add(name)
    return errors


def _unresolved(destination: Obj, clusters: tuple[Cluster, ...]) -> str:
    """Return why a destination is none, in the words of upstream's controller of sets; empty if it is one."""
    found = resolve_destination(destination, clusters)
    said = found if isinstance(found, str) else ""
    return said.replace('": cluster "', '": rpc error: code = NotFound desc = cluster "')


def invalid(problems: Mapping[str, str]) -> Condition:
    """Return upstream's condition about validation errors: the last one by name, and the count of the others."""
    last = problems[max(problems)]
    text = last if len(problems) == 1 else f"{last} (and {len(problems) - 1} more)"
    return failed("ApplicationValidationError", text)


def is_gone(app: Obj, clusters: tuple[Cluster, ...]) -> bool:
    """Return whether the destination of an Application is none any more. One that two Secrets declare is there."""
    destination = dig(app, "spec", "destination", default={}) or {}
    server = str(destination.get("server") or "").rstrip("/")
    if server in declared_twice(clusters) and not destination.get("name"):
        return False
    return isinstance(resolve_destination(destination, clusters), str)


def _guarded(observed: SetObserved, generated: Generated, decision: Decision) -> Decision:
    """Hold deletions that need a confirmation and, if they are renames, the creation of what replaces them."""
    going = [one.live for one in decision.of(Verb.DELETE) if one.live is not None]
    coming = [one.wanted for one in decision.of(Verb.CREATE) if one.wanted is not None]
    report = guard_deletions(observed, generated, going, coming)
    if report is None or report.confirmed:
        return replace(decision, guard=report)
    held = {name_of(app) for app in going} | set(report.renamed.values())
    choices = tuple(
        replace(one, verb=Verb.HOLD, why="the deletions of the set are to be confirmed")
        if one.name in held and one.verb in (Verb.DELETE, Verb.CREATE)
        else one
        for one in decision.choices
    )
    return replace(decision, choices=choices, guard=report)
