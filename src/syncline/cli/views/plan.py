"""Formats a planned sync. Values in, text out; no requests, no colours."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.apply.causes.advice import advice
from syncline.apply.outcome import WaitKind
from syncline.assembly.inspection.preview import PlannedChange, PlannedGroup, PlannedSync, Verb, Verdict
from syncline.cli.views.diff import describe_difference
from syncline.kube.objects import ObjectRef
from syncline.views.applications import short_revision

MARKS = {
    Verb.CREATE: "+",
    Verb.CONFIGURE: "~",
    Verb.REPLACE: "~",
    Verb.RECREATE: "±",
    Verb.REFUSE: "✘",
    Verb.PRUNE: "-",
    Verb.RUN_HOOK: "▸",
    Verb.DELETE_HOOK: "-",
    Verb.UNREAD: "?",
    Verb.UNCHANGED: " ",
}
GATE_NAMES = 3
"""Objects of a gate that a line names; the others are counted."""
WORDS = {
    WaitKind.HOOK: "completion of",
    WaitKind.HEALTH: "healthy state of",
    WaitKind.DELETION: "deletion of",
    WaitKind.CONFIRMATION: "confirmation of pruning",
    WaitKind.DEFINITION: "the definition of the kind of",
    WaitKind.ACCOUNT: "the default service account for",
    WaitKind.CONDITION: "the condition of",
    WaitKind.RESULTS: "the results of",
}


def short_ref(ref: ObjectRef) -> str:
    """Return ``Deployment shop/web``: kind, namespace and name, without the group."""
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"


def describe_plan(plan: PlannedSync, *, everything: bool = False, differences: bool = False) -> str:
    """Return header, waves, notes and verdict. ``everything``: list unchanged objects too; ``differences``: add the
    changes line by line, values of Secrets masked."""
    lines = _header(plan)
    for group in plan.groups:
        lines += ["", *_group(group, everything)]
    if differences:
        changes = [change.difference for group in plan.groups for change in group.changes]
        lines += [line for one in changes if one is not None for line in ("", describe_difference(one))]
    lines += _listed("nodes", [pool.sentence() for pool in plan.machines if not pool.refused])
    lines += _listed("left out", plan.left_out)
    lines += _listed("warning", plan.warnings) + _listed("blocked", plan.problems) + _listed("unsafe", plan.unsafe)
    steps = dict.fromkeys(step for text in (*plan.problems, *plan.unsafe) if (step := advice(text)))
    return "\n".join([*lines, *(f"next: {step}" for step in steps), "", _summary(plan)])


def _header(plan: PlannedSync) -> list[str]:
    revisions = ", ".join(short_revision(revision) for revision in plan.revisions)
    at = f" at {revisions}" if revisions else ""
    lines = [f"Application {plan.application.namespace}/{plan.application.name}{at}: {plan.sync}, {plan.health}"]
    lines += [f"next sync by: {plan.by}"] if plan.by else []
    return lines + [f"first waits for {text}" for text in plan.first]


def _group(group: PlannedGroup, everything: bool) -> list[str]:
    unchanged = sum(change.verb is Verb.UNCHANGED for change in group.changes)
    shown = [change for change in group.changes if everything or change.verb is not Verb.UNCHANGED]
    only = "  (only if the sync fails)" if group.phase == "SyncFail" else ""
    lines = [f"{group.phase}, wave {group.wave}{only}"]
    lines += [f"  first waits for {text}" for text in group.needs]
    if group.holds:
        lines.append(f"  takes a Hold on {'pool' if len(group.holds) == 1 else 'pools'} {', '.join(group.holds)}")
    lines += _changes(shown)
    if unchanged and not everything:
        lines.append(f"    {unchanged} unchanged")
    for wait in group.waits:
        lines.append(f"  then waits for {WORDS[wait.kind]} {_names(wait.refs)}")
    lines += [f"  waits for {limit}" for limit in group.limits]
    return lines + [f"  ! {warning}".replace("\n", "\n    ") for warning in group.warnings]


def _changes(changes: Sequence[PlannedChange]) -> list[str]:
    verbs = max((len(change.verb) for change in changes), default=0)
    names = max((len(short_ref(change.ref)) for change in changes), default=0)
    return [
        f"  {MARKS[change.verb]} {change.verb:<{verbs}}  {short_ref(change.ref):<{names}}  {change.why}"
        for change in changes
    ]


def _names(refs: Sequence[ObjectRef]) -> str:
    more = f" and {len(refs) - GATE_NAMES} more" if len(refs) > GATE_NAMES else ""
    return ", ".join(short_ref(ref) for ref in refs[:GATE_NAMES]) + more


def _listed(label: str, texts: Sequence[str]) -> list[str]:
    return ["", *(f"{label}: {text}".replace("\n", "\n  ") for text in texts)] if texts else []


def _summary(plan: PlannedSync) -> str:
    states = (Verb.UNREAD, Verb.UNCHANGED)
    counts = [f"{plan.count(verb)} to {verb}" for verb in Verb if verb not in states and plan.count(verb)]
    counts += [f"{plan.count(verb)} {verb}" for verb in states if plan.count(verb)]
    what = "; ".join(counts) or "no objects"
    match plan.verdict:
        case Verdict.NOTHING:
            return f"Plan: nothing to do ({what})"
        case Verdict.CHANGES:
            return f"Plan: {what}"
        case Verdict.BLOCKED:
            return "Plan: blocked; nothing would be applied"
        case Verdict.UNSAFE:
            return f"Plan: unsafe as it stands ({what})"
