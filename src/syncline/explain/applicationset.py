"""Explains an ApplicationSet: why an Application of it is missing, stuck or not updated, down to the generator row, the
line of a template, the guard, or the step of a rollout and the Application that holds it. Pure.

``syncline explain`` calls it with the plan that the controller would make now (``assembly/inspection/sets.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from syncline.apply.causes.masking import masked_found
from syncline.apply.causes.pods import condition
from syncline.appset.status import ERROR, PROGRESSING, UP_TO_DATE
from syncline.appset.status import SOURCE_WAIT as WAITING
from syncline.argo.application import typed_name
from syncline.assembly.inspection.setplan import (
    PlannedApplication,
    PlannedFailure,
    PlannedInStep,
    PlannedSet,
    PlannedStep,
    SetVerb,
    together,
)
from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.explain.deletion import explain_deletion
from syncline.explain.fleet.applications import URGENT, ApplicationState, Standing
from syncline.explain.fleet.carried import unwell
from syncline.explain.view import Found, View, one_line
from syncline.kube.objects import Obj, dig, is_terminating, name_of, namespace_of

MAX_SHOWN = 5
"""Applications or failures that are explained; the plan names all."""
HEALTHY = "Healthy"
Explained = Callable[[str], Found | None]
"""The explanation of an Application of the set by its name; None where it is not there or may not be read."""
_POSITION = re.compile(r"template: [^:]*:(\d+)(?::(\d+))?")


def explain_set(
    view: View, found: Obj, plan: PlannedSet, application: Explained, carried: Sequence[ApplicationState] = ()
) -> Found:
    """Return the chain of causes whose head is the ApplicationSet. ``carried``: how its Applications fare in the
    clusters that pull them."""
    if is_terminating(found):
        below = explain_deletion(view, found)
        why = "; ".join((below.cause.message, *plan.warnings))
        return masked_found(view, replace(below, cause=replace(below.cause, message=one_line(why))))
    for part in (_failed, _guarded, _left_out, _awaited, _reported, _rollout, _pending):
        cause = part(found, plan, application)
        if cause is not None:
            return masked_found(view, cause)
        if part is _rollout and (cause := _in_clusters(found, plan, carried)) is not None:
            return cause
    counts = f"{len(plan.applications)} Application{'' if len(plan.applications) == 1 else 's'}, all as they should be"
    outside = [one.name for step in plan.steps if not step.number for one in step.applications]
    if outside:
        names = f"{', '.join(outside[:MAX_SHOWN])}{', …' if len(outside) > MAX_SHOWN else ''}"
        counts += f"; in no step of the rollout, so it never syncs them: {names}"
    return masked_found(view, Found(_head(found, plan, "up to date", counts, _since(found, UP_TO_DATE)), blocked=False))


def made_by(plan: PlannedSet, name: str) -> Cause:
    """Return from which row an Application of the set comes, and what it waits for in a rollout."""
    subject = f"ApplicationSet {plan.ref.namespace}/{plan.ref.name}"
    one = next((each for each in plan.applications if each.ref.name == name), None)
    step = next((each for each in plan.steps for below in each.applications if below.name == name), None)
    entry = next((each for each in step.applications if each.name == name), None) if step is not None else None
    waits = ""
    if step is not None and entry is not None and entry.waits:
        waits = f"; step {step.number} of its rollout: {entry.status}, {entry.waits}"
    if one is not None and one.origin is not None:
        held = bool(waits) and entry is not None and entry.status == "Waiting"
        fix = (
            f"syncline explain appset/{typed_name(plan.ref.name, plan.ref.namespace)} says what holds its rollout"
            if held
            else ""
        )
        return Cause(subject, "makes it", one_line(f"from {one.origin}{waits}"), next_action=fix)
    if plan.failures:
        return Cause(subject, "controls it", one_line(f"its rows cannot be known: {plan.failures[0]}"))
    return Cause(subject, "controls it", one_line(one.why if one is not None else "no row makes it any more"))


def _failed(found: Obj, plan: PlannedSet, _application: Explained) -> Found | None:
    if not plan.failures:
        return None
    below = tuple(_failure(found, one, more) for one, more in list(together(plan.failures).items())[:MAX_SHOWN])
    text = "its Applications cannot be known, so none is created, changed or deleted"
    return Found(_head(found, plan, plan.failures[0].reason, text, _since(found, ERROR), *below), blocked=True)


def _failure(found: Obj, one: PlannedFailure, more: str) -> Cause:
    place = str(one.origin) if one.origin is not None else one.place or "spec"
    position = _POSITION.search(one.message)
    where = ""
    if position is not None:
        where = f"line {position[1]}" + (f", character {position[2]}" if position[2] else "")
        where += f" of {one.field or 'the template'}: "
    step = f"correct it; try it with: syncline appset generate FILE, or: syncline plan appset/{_typed(found)}"
    return Cause(f"{place}{more}", "failed", one_line(f"{where}{one.message}"), next_action=step)


def _guarded(found: Obj, plan: PlannedSet, _application: Explained) -> Found | None:
    if not plan.unsafe:
        return None
    held = [one for one in plan.applications if one.verb is SetVerb.HOLD][:MAX_SHOWN]
    below = tuple(Cause(str(one.ref), "held", one_line(one.why)) for one in held)
    confirm = re.search(r"annotation (\S+): (\w+)", plan.unsafe[0])
    space = f" -n {namespace_of(found)}" if namespace_of(found) else ""
    step = "correct the set"
    if confirm is not None:
        step += f"; or confirm: kubectl annotate appset {name_of(found)}{space} {confirm[1]}={confirm[2]} --overwrite"
    head = _head(found, plan, "Guarded", plan.unsafe[0], _since(found, ERROR), *below, next_action=step)
    return Found(head, blocked=True)


def _left_out(found: Obj, plan: PlannedSet, _application: Explained) -> Found | None:
    wrong = [one for one in plan.applications if one.verb is SetVerb.REFUSE]
    if not wrong:
        return None
    below = tuple(_invalid(one) for one in wrong[:MAX_SHOWN])
    text = f"{len(wrong)} of {len(plan.applications)} Applications are not written: they are not valid"
    return Found(_head(found, plan, "ApplicationValidationError", text, _since(found, ERROR), *below), blocked=True)


def _invalid(one: PlannedApplication) -> Cause:
    row = f" (from {one.origin})" if one.origin is not None else ""
    return Cause(str(one.ref), "refused", one_line(f"{one.why}{row}"), next_action="correct the template or the row")


def _awaited(found: Obj, plan: PlannedSet, _application: Explained) -> Found | None:
    """Explain an answer that the controller reads in the background: which, since when, until when."""
    waits = condition(found, WAITING)
    if waits.get("status") != "True":
        return None
    fix = "look whether its host answers; other sets do not wait for it"
    text = str(waits.get("message"))
    return Found(_head(found, plan, "Waiting", text, _since(found, WAITING), next_action=fix), blocked=False)


def _reported(found: Obj, plan: PlannedSet, _application: Explained) -> Found | None:
    """Explain an error that the controller reports and that the same plan does not show here."""
    error = condition(found, ERROR)
    if error.get("status") != "True":
        return None
    text = str(error.get("message") or error.get("reason"))
    step = f"it is tried again by itself; what it finds now: syncline plan appset/{_typed(found)}"
    head = _head(found, plan, str(error.get("reason") or ERROR), text, _since(found, ERROR), next_action=step)
    return Found(head, blocked=True)


def _rollout(found: Obj, plan: PlannedSet, application: Explained) -> Found | None:
    """Explain the step that holds the rollout, by the Applications in it that are not healthy yet."""
    step = next(
        (one for one in plan.steps if one.number and any(each.status != HEALTHY for each in one.applications)), None
    )
    if step is None:
        return None
    late = [one for one in step.applications if one.status != HEALTHY]
    shown = [_in_step(found, plan, step, one, application(one.name)) for one in late[:MAX_SHOWN]]
    done = len(step.applications) - len(late)
    steps = sum(one.number > 0 for one in plan.steps)
    text = f"step {step.number} of {steps}: {done} of {len(step.applications)} are Healthy"
    text += f"; waits for {step.waits}" if step.waits else ""
    head = _head(found, plan, "Rolling", text, _since(found, PROGRESSING), *(one.cause for one in shown))
    return Found(head, blocked=any(one.blocked for one in shown))


def _in_clusters(found: Obj, plan: PlannedSet, carried: Sequence[ApplicationState]) -> Found | None:
    """Explain Applications that are not well in the clusters that pull them. The texts are those of the clusters, which
    mask them."""
    urgent = [one for one in carried if one.standing in URGENT]
    shown = unwell(urgent or carried)[:MAX_SHOWN]
    if not shown:
        return None
    count = len(urgent) or sum(one.standing is not Standing.WELL for one in carried)
    text = f"{count} of {len(carried)} Applications {'need attention' if urgent else 'are not done'}"
    text += " in their clusters" + (f"; syncline report {_typed(found)} shows all" if count > MAX_SHOWN else "")
    since = min((one.cause.since for one in shown if one.cause.since), default=None)
    state = "Failing" if urgent else "Progressing"
    return Found(_head(found, plan, state, text, since, *(one.cause for one in shown)), blocked=bool(urgent))


def _in_step(found: Obj, plan: PlannedSet, step: PlannedStep, one: PlannedInStep, own: Found | None) -> Found:
    """Explain an Application that holds a step: by its own causes, if it is there."""
    cause = Cause(
        f"argoproj.io/Application/{plan.ref.namespace}/{one.name}",
        f"{one.status} in step {step.number}",
        one_line(one.waits),
        _status_since(found, one.name),
    )
    if own is None:
        return Found(cause, blocked=False)
    below = own.cause
    state = "" if below.state == one.status else f"{below.state}: "
    said = one_line(f"{state}{below.message}") if below.because or own.blocked else cause.message
    return Found(replace(cause, message=said, next_action=below.next_action, because=below.because), own.blocked)


def _pending(found: Obj, plan: PlannedSet, _application: Explained) -> Found | None:
    """Explain Applications that the next reconcile writes, and those that a policy keeps as they are."""
    quiet = (SetVerb.UNCHANGED, SetVerb.KEEP)
    ahead = [one for one in plan.applications if one.verb not in quiet]
    if ahead:
        below = tuple(Cause(str(one.ref), f"to {one.verb}", _because(one)) for one in ahead[:MAX_SHOWN])
        text = f"the next reconcile writes {len(ahead)} of {len(plan.applications)} Applications"
        unseen = not dig(found, "status", "conditions")
        step = "is the controller running? syncline up runs one" if unseen else ""
        if unseen and plan.warnings:
            text += f"; {'; '.join(plan.warnings)}"
        return Found(_head(found, plan, "Pending", text, None, *below, next_action=step), blocked=False)
    kept = [one for one in plan.applications if one.verb is SetVerb.KEEP]
    if not kept:
        return None
    below = tuple(Cause(str(one.ref), "kept", _because(one)) for one in kept[:MAX_SHOWN])
    text = f"policy {plan.policy} keeps {len(kept)} of {len(plan.applications)} Applications as they are"
    return Found(_head(found, plan, "up to date", text, _since(found, UP_TO_DATE), *below), blocked=False)


def _because(one: PlannedApplication) -> str:
    fields = ", ".join(each.path for each in one.fields[:3])
    more = f" and {len(one.fields) - 3} more" if len(one.fields) > 3 else ""
    parts = (one.why, f"differs in {fields}{more}" if fields else "", str(one.origin) if one.origin else "")
    return one_line("; ".join(part for part in parts if part))


def _head(
    found: Obj,
    plan: PlannedSet,
    state: str,
    message: str,
    since: datetime | None,
    *because: Cause,
    next_action: str = "",
) -> Cause:
    evidence = {
        "policy": plan.policy,
        "rows": str(plan.rows),
        "applications": str(len(plan.applications)),
        "resourceVersion": str(dig(found, "metadata", "resourceVersion", default="")),
    }
    return Cause(
        subject=f"ApplicationSet {namespace_of(found)}/{name_of(found)}",
        state=state,
        message=one_line(message),
        since=since,
        next_action=next_action,
        evidence=tuple((key, value) for key, value in evidence.items() if value),
        because=because,
    )


def _since(found: Obj, kind: str) -> datetime | None:
    return time_or_none(condition(found, kind).get("lastTransitionTime"))


def _status_since(found: Obj, name: str) -> datetime | None:
    entries = dig(found, "status", "applicationStatus", default=[]) or []
    entry: Obj = next((one for one in entries if one.get("application") == name), {})
    return time_or_none(entry.get("lastTransitionTime"))


def _typed(appset: Obj) -> str:
    return typed_name(name_of(appset), namespace_of(appset))
