"""Formats what the next reconcile of an ApplicationSet does. Values in, text out; no requests, no colours."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.assembly.inspection.preview import Verdict
from syncline.assembly.inspection.setplan import (
    FieldChange,
    PlannedApplication,
    PlannedSet,
    PlannedStep,
    SetVerb,
    together,
)
from syncline.cli.views.diff import describe_difference
from syncline.cli.views.plan import describe_plan

MARKS = {
    SetVerb.CREATE: "+",
    SetVerb.CHANGE: "~",
    SetVerb.ADOPT: "~",
    SetVerb.ORPHAN: "○",
    SetVerb.DELETE: "-",
    SetVerb.KEEP: "=",
    SetVerb.HOLD: "!",
    SetVerb.REFUSE: "✘",
    SetVerb.UNCHANGED: " ",
}
FIELDS = 5
"""Changed fields that are shown for an Application; the others are counted."""


def describe_set_plan(plan: PlannedSet, *, everything: bool = False, differences: bool = False) -> str:
    """Return header, Applications, steps, notes and verdict. ``everything``: unchanged ones and all fields too;
    ``differences``: changes line by line."""
    shown = [one for one in plan.applications if everything or one.verb is not SetVerb.UNCHANGED]
    lines = _header(plan)
    lines += ["", *(line for one in shown for line in _application(one, shown, everything))] if shown else []
    unchanged = plan.count(SetVerb.UNCHANGED)
    lines += [f"    {unchanged} unchanged"] if unchanged and not everything else []
    for step in plan.steps:
        lines += ["", *_step(step)]
    if differences:
        found = [one.difference for one in plan.applications if one.difference is not None]
        lines += [line for one in found for line in ("", describe_difference(one))]
    for one in plan.applications:
        lines += ["", describe_plan(one.own, everything=everything, differences=differences)] if one.own else []
    for label, texts in (
        ("warning", plan.warnings),
        ("blocked", [f"{one}{more}" for one, more in together(plan.failures).items()]),
        ("unsafe", plan.unsafe),
    ):
        lines += ["", *(f"{label}: {text}".replace("\n", "\n  ") for text in texts)] if texts else []
    return "\n".join([*lines, "", _summary(plan)])


def _header(plan: PlannedSet) -> list[str]:
    made = sum(one.origin is not None for one in plan.applications)
    counts = "" if plan.failures else f": {_counted(plan.rows, 'row')}, {_counted(made, 'Application')}"
    policy = "" if plan.policy == "sync" else f", policy {plan.policy}"
    return [f"ApplicationSet {plan.ref.namespace}/{plan.ref.name}{counts}{policy}"]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _application(one: PlannedApplication, shown: Sequence[PlannedApplication], everything: bool) -> list[str]:
    verbs = max(len(each.verb) for each in shown)
    names = max(len(each.ref.name) for each in shown)
    what = one.why if one.origin is None else str(one.origin) + (f"; {one.why}" if one.why else "")
    lines = [f"  {MARKS[one.verb]} {one.verb:<{verbs}}  {one.ref.name:<{names}}  {what}"]
    fields = one.fields if everything else one.fields[:FIELDS]
    lines += [f"      {_field(each)}" for each in fields]
    left = len(one.fields) - len(fields)
    return lines + ([f"      … and {_counted(left, 'more field')} (--all shows them)"] if left else [])


def _field(one: FieldChange) -> str:
    if not one.before:
        return f"{one.path}: {one.after} (new)"
    return f"{one.path}: {one.before} → {one.after or '(removed)'}"


def _step(step: PlannedStep) -> list[str]:
    limit = f", at most {step.max_update} at once" if step.max_update else ""
    name = f"step {step.number}" if step.number else "in no step (never synced by the rollout)"
    lines = [f"{name}: {step.selects}{limit}" if step.selects else f"{name}{limit}"]
    lines += [f"  first waits for {step.waits}"] if step.waits else []
    names = max((len(one.name) for one in step.applications), default=0)
    width = max((len(one.status) for one in step.applications), default=0)
    for one in step.applications:
        lines.append(f"    {one.name:<{names}}  {one.status:<{width}}  {one.waits}".rstrip())
    return lines if step.applications else [*lines, "    no Application"]


def _summary(plan: PlannedSet) -> str:
    counts = [f"{plan.count(verb)} to {verb}" for verb in SetVerb if verb is not SetVerb.UNCHANGED and plan.count(verb)]
    unchanged = plan.count(SetVerb.UNCHANGED)
    what = "; ".join([*counts, *([f"{unchanged} unchanged"] if unchanged else [])]) or "no Applications"
    below = [one.own.verdict for one in plan.applications if one.own is not None]
    bad = [f"{below.count(each)} {each}" for each in (Verdict.BLOCKED, Verdict.UNSAFE) if each in below]
    what += f"; plans of Applications: {', '.join(bad)}" if bad else ""
    head = "Plan of the set" if below else "Plan"
    if plan.failures:
        return f"{head}: blocked; nothing would be created, changed or deleted"
    match plan.verdict:
        case Verdict.NOTHING:
            return f"{head}: nothing to do ({what})"
        case Verdict.CHANGES:
            return f"{head}: {what}"
        case Verdict.BLOCKED:
            return f"{head}: blocked in part ({what})"
        case Verdict.UNSAFE:
            return f"{head}: unsafe as it stands ({what})"
