"""Previews the next reconcile of an ApplicationSet, with the controller's own functions on one snapshot.

Called by ``syncline appset generate|diff``, ``plan`` and ``explain`` with a snapshot, a set (stored or from a file) and
what answers the questions of generators. Nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from syncline.appset.deciding import Choice, Verb, decide, undecided
from syncline.appset.generation import Failure, Generated, Row
from syncline.appset.generators.generate import generate
from syncline.appset.observing.kinds import Listed
from syncline.appset.observing.observe import (
    SetObserved,
    Surroundings,
    decision_kinds,
    is_controlled,
    observe_set,
)
from syncline.appset.questions import Answer, Question
from syncline.appset.rollout.plan import Rollout
from syncline.appset.rollout.states import Entry
from syncline.appset.writing.deletion import plan_deletion
from syncline.argo.application import RESOURCES_FINALIZER
from syncline.argo.parameters import PARAMETERS_MAP, enables_namespace
from syncline.argo.rollout.strategy import Expression, steps_of
from syncline.argo.typed import typed_application
from syncline.assembly.inspection.differences import ObjectDifference
from syncline.assembly.inspection.setplan import (
    MAX_DEPTH,
    Origin,
    PlannedApplication,
    PlannedFailure,
    PlannedInStep,
    PlannedSet,
    PlannedStep,
    SetVerb,
    patched_fields,
    together,
    values_of,
)
from syncline.assembly.scripts.expressions import AnswersNow
from syncline.base.entropy import Entropy
from syncline.control.cache import Cache
from syncline.control.plan import Replace
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, dig, finalizers, is_terminating, name_of, ref_of

Ask = Callable[[Question], Answer]
"""Answers one question, blocking."""
MAX_ROUNDS = 50
"""Rounds of questions; an answer leads to new ones only where generators nest."""
MAX_SAME = 3
"""Rows that are named where several make the same name."""
_ELEMENT = re.compile(r"spec\.generators\[(\d{1,6})\]\.(\w+)")
NOT_PROGRESSIVE = (
    f"spec.strategy is not used: applicationsetcontroller.enable.progressive.syncs of {PARAMETERS_MAP} is not true"
)


def generated_set(cache: Cache, appset: Obj, control_namespace: str, ask: Ask, now: datetime) -> Generated:
    """Return the Applications of ``appset``, which is put into ``cache`` (a private one)."""
    return _generated(cache, appset, control_namespace, ask, now)[1]


def planned_set(cache: Cache, appset: Obj, control_namespace: str, ask: Ask, now: datetime) -> PlannedSet:
    """Return what the next reconcile of ``appset`` does, which is put into ``cache`` (a private one)."""
    if is_terminating(appset):
        return _going(cache, appset, control_namespace, now)
    observed, generated = _generated(cache, appset, control_namespace, ask, now)
    unworked = namespace_problem(cache, observed.ref.namespace, control_namespace)
    planned = PlannedSet(
        observed.ref,
        policy=str(observed.settings.policy_of(appset)),
        rows=len(generated.made),
        warnings=tuple(filter(None, (*generated.warnings, *_warnings(observed), unworked))),
    )
    wrong = [PlannedFailure("ErrorOccurred", text) for text in (*observed.settings.problems, *observed.unread)]
    failures = list(generated.failures)
    if not failures and (refused := undecided(observed, generated)) is not None:
        failures = [refused]
    wrong += [_failure(appset, one) for one in failures]
    if wrong:
        return replace(planned, failures=tuple(wrong))
    rows = Rows(generated)
    decision = decide(replace(observed, expressions=AnswersNow()), generated, now)
    guard = decision.guard
    held = () if guard is None or guard.confirmed else (guard.message,)
    return replace(
        planned,
        applications=tuple(_application(observed, one, rows) for one in decision.choices),
        steps=tuple(_steps(decision.rollout)) if decision.rollout is not None else (),
        unsafe=held,
    )


def _going(cache: Cache, appset: Obj, control_namespace: str, now: datetime) -> PlannedSet:
    """Return what becomes of the Applications of a set that is being deleted."""
    cache.put(APPLICATION_SET.group_kind, appset)
    observed = observe_set(cache, ref_of(appset), Surroundings(control_namespace), {})
    assert observed is not None, "a set that was put into the cache is there"
    plan = plan_deletion(observed, now)
    kept = {action.target for step in plan.steps for action in step if isinstance(action, Replace)}
    policy = observed.settings.policy_of(appset)
    found = []
    for app in observed.current:
        orphan = ref_of(app) in kept
        why = f"policy {policy} keeps it" if orphan else f"it goes with the set; {_fate(app)}"
        verb = SetVerb.ORPHAN if orphan else SetVerb.DELETE
        found.append(PlannedApplication(verb, ref_of(app), why))
    said = (f"the set is being deleted: {plan.why}",)
    return PlannedSet(observed.ref, str(policy), applications=tuple(found), warnings=said)


def failure_lines(appset: Obj, failures: Sequence[Failure]) -> list[str]:
    """Return what failed, with the fields and elements of the set; rows with the same failure are counted."""
    return [f"{one}{more}" for one, more in together(_failure(appset, each) for each in failures).items()]


def _generated(
    cache: Cache, appset: Obj, control_namespace: str, ask: Ask, now: datetime
) -> tuple[SetObserved, Generated]:
    cache.put(APPLICATION_SET.group_kind, appset)
    around = Surroundings(control_namespace)
    answers: dict[Question, Answer] = {}
    seed = Entropy().token()
    listed: Mapping[tuple[str, str], Listed] = {}

    def observed() -> SetObserved:
        found = observe_set(cache, ref_of(appset), around, answers, listed)
        assert found is not None, "a set that was put into the cache is there"
        return found

    kinds = decision_kinds(appset, observed().facts.config_maps)
    listed = {kind: _listed(cache, control_namespace, *kind, now) for kind in kinds}
    for _ in range(MAX_ROUNDS):
        seen = observed()
        found = generate(appset, replace(seen.facts, now=now, seed=seed))
        if not found.missing:
            return seen, found
        answers |= {question: ask(question) for question in found.missing}
    endless = Failure("ErrorOccurred", f"the generators need more than {MAX_ROUNDS} rounds of questions")
    return observed(), Generated(failures=(endless,))


def _listed(cache: Cache, namespace: str, version: str, plural: str, now: datetime) -> Listed:
    """Return the objects of a kind that a decision resource names."""
    info = next((one for one in cache.mapper.all() if (one.api_version, one.plural) == (version, plural)), None)
    if info is None:
        return Listed(now, error=f"the cluster serves no {plural} of {version}")
    found = tuple(cache.objects(info.group_kind, namespace))
    return Listed(now, found, cache.unread(ObjectRef(*info.group_kind, namespace, "")))


def namespace_problem(cache: Cache, namespace: str, control_namespace: str) -> str:
    """Return why sets of a namespace may not be worked on; empty if the settings enable it."""
    enabled = Surroundings(control_namespace).settings(cache).namespaces
    if enables_namespace(namespace, control_namespace, enabled):
        return ""
    return (
        f"namespace {namespace} is not in applicationsetcontroller.namespaces of {PARAMETERS_MAP}: unless a flag of "
        "the controller names it, sets in it are not worked on"
    )


def _warnings(observed: SetObserved) -> Iterator[str]:
    if steps_of(observed.obj) and not observed.settings.progressive:
        yield NOT_PROGRESSIVE
    if observed.settings.dry_run:
        yield f"applicationsetcontroller.dryrun of {PARAMETERS_MAP} is true: the controller writes no Application"


def _failure(appset: Obj, one: Failure) -> PlannedFailure:
    row = one.row
    origin = Origin(row.origin, row.number + 1, values_of(row.params)) if row is not None else None
    return PlannedFailure(one.reason, one.message, one.origin, origin, _field(appset, one))


def _field(appset: Obj, failure: Failure) -> str:
    """Return the field whose template the message of a failed row quotes; empty if it quotes none."""
    if failure.row is None:
        return ""
    spec = appset.get("spec") or {}
    element = _ELEMENT.fullmatch(failure.origin)
    listed = spec.get("generators") or []
    own = dig(listed[int(element[1])], element[2], "template") if element and int(element[1]) < len(listed) else None
    texts = {
        path: text
        for root, value in (
            ("spec.template", spec.get("template")),
            ("spec.templatePatch", spec.get("templatePatch")),
            (f"{failure.origin}.template", own),
        )
        for path, text in _texts(value, root, 0)
        if "{{" in text and text.strip() in failure.message
    }
    return max(texts, key=lambda path: len(texts[path]), default="")


def _texts(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif depth < MAX_DEPTH and isinstance(value, dict):
        for key, below in value.items():
            yield from _texts(below, f"{path}.{key}", depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list):
        for index, below in enumerate(value):
            yield from _texts(below, f"{path}[{index}]", depth + 1)


class Rows:
    """The rows of a set for people: parameters that differ among the rows of an element come first."""

    def __init__(self, generated: Generated) -> None:
        self._first: dict[str, dict[str, str]] = {}
        self._differ: dict[str, dict[str, None]] = {}
        self._made: dict[str, list[Row]] = {}
        for one in generated.made:
            values = values_of(one.row.params)
            first = self._first.setdefault(one.row.origin, values)
            differ = self._differ.setdefault(one.row.origin, {})
            differ.update(dict.fromkeys(key for key, value in values.items() if first.get(key) != value))
            self._made.setdefault(name_of(one.app), []).append(one.row)

    def origin(self, row: Row) -> Origin:
        values = values_of(row.params)
        differ = self._differ.get(row.origin, {})
        ordered = {key: values[key] for key in (*(one for one in values if one in differ), *values)}
        return Origin(row.origin, row.number + 1, ordered)

    def others(self, name: str) -> str:
        """Return which rows make an Application of this name, if several do."""
        found = self._made.get(name, [])
        shown = ", ".join(f"{row.origin} row {row.number + 1}" for row in found[:MAX_SAME])
        more = f" and {len(found) - MAX_SAME} more" if len(found) > MAX_SAME else ""
        return f" (made by {shown}{more})" if len(found) > 1 else ""


def _application(observed: SetObserved, choice: Choice, rows: Rows) -> PlannedApplication:
    ref = ObjectRef(*APPLICATION.group_kind, observed.ref.namespace, choice.name)
    verb, why = _verb(observed, choice)
    why += rows.others(choice.name) if verb is SetVerb.REFUSE else ""
    shows = verb in (SetVerb.CREATE, SetVerb.CHANGE, SetVerb.ADOPT, SetVerb.DELETE)
    live = _written(choice.live) if choice.live is not None else None
    after = None if verb is SetVerb.DELETE or choice.wanted is None else _written(choice.wanted)
    return PlannedApplication(
        verb,
        ref,
        why,
        rows.origin(choice.made.row) if choice.made is not None else None,
        patched_fields(live or {}, choice.patch) if choice.patch else (),
        ObjectDifference(ref, live, after, modified=True) if shows else None,
        choice.wanted if verb is not SetVerb.DELETE else None,
    )


def _verb(observed: SetObserved, choice: Choice) -> tuple[SetVerb, str]:
    match choice.verb:
        case Verb.CREATE:
            return SetVerb.CREATE, ""
        case Verb.CHANGE:
            owned = choice.live is not None and is_controlled(choice.live, name_of(observed.obj))
            return (
                (SetVerb.CHANGE, "") if owned else (SetVerb.ADOPT, "it is there without an owner, and is overwritten")
            )
        case Verb.DELETE:
            fate = "its cluster is gone, so its objects are left alone" if choice.orphans else _fate(choice.live or {})
            return SetVerb.DELETE, f"{choice.why}; {fate}"
        case Verb.KEEP:
            return (SetVerb.UNCHANGED, "") if choice.wanted is not None else (SetVerb.KEEP, choice.why)
        case Verb.HOLD:
            what = "it would be deleted" if choice.made is None else "it would be created"
            return SetVerb.HOLD, f"{what}, which waits for a confirmation"
        case Verb.REFUSE:
            return SetVerb.REFUSE, choice.why


def _fate(app: Obj) -> str:
    """Return what becomes of the objects of an Application that is deleted."""
    cascades = any(one.startswith(RESOURCES_FINALIZER) for one in finalizers(app))
    return "its objects are deleted with it" if cascades else "its objects stay"


def _written(app: Obj) -> Obj:
    """Return what a set writes of an Application, as upstream's types write it."""
    made = typed_application(app)
    fields = ("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences")
    metadata = {key: made["metadata"][key] for key in fields if key in made.get("metadata", {})}
    kind = {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind}
    return kind | {"metadata": metadata, "spec": made.get("spec") or {}}


def _steps(rollout: Rollout) -> Iterator[PlannedStep]:
    entries = {one.application: one for one in rollout.entries}
    waits = ""
    for index, (step, names) in enumerate(zip(rollout.steps, rollout.assignment.names, strict=True)):
        selects = ", ".join(map(_selects, step.expressions)) or "every Application"
        limit = "" if step.max_update is None else str(step.max_update)
        below = tuple(_in_step(rollout, name, entries) for name in names)
        yield PlannedStep(index + 1, selects, limit, below, waits)
        late = [one.name for one in below if one.status != "Healthy"]
        if late and not waits:
            waits = f"step {index + 1}: {', '.join(late[:3])}{f' and {len(late) - 3} more' if len(late) > 3 else ''}"
    outside = sorted(name for name in entries if name not in rollout.assignment.step_of)
    if outside:
        yield PlannedStep(0, "", "", tuple(_in_step(rollout, name, entries) for name in outside))


def _in_step(rollout: Rollout, name: str, entries: Mapping[str, Entry]) -> PlannedInStep:
    entry = entries.get(name)
    return PlannedInStep(name, str(entry.status) if entry is not None else "not there", rollout.waits(name))


def _selects(one: Expression) -> str:
    return f"{one.key} {one.operator} [{', '.join(one.values)}]"
