"""Explains ManifestWorks: from the manifest on the hub to the object and the refusal on the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from syncline.base.cause import OR, Cause
from syncline.base.clock import time_or_none
from syncline.explain.fleet.clusters import cluster_cause
from syncline.explain.view import Found, View, one_line
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.works.explaining import APPLIED, Advice, ManifestState, advice_for, manifest_states
from syncline.fleet.spoke.work.status import SHARED
from syncline.kube.kinds.manifestworks import MANIFEST_WORK, WORK_FINALIZER
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    finalizers,
    generation,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
)

MAX_SHOWN = 6
"""Manifests that a chain names; ``work explain`` lists all."""
SILENT = ("Unreachable", "Unavailable", "Leaving")
"""States of a cluster that had joined; what its agent said before is still the last that is known."""
WORKS = MANIFEST_WORK.group_kind


def explain_work(view: View, work: Obj) -> Found:
    """Explain a ManifestWork: deletion, its cluster, the agent, then the manifests that failed or go on."""
    away = cluster_cause(view, namespace_of(work))
    if is_terminating(work):
        return _leaving(work, away)
    states = manifest_states(work)
    failed = [one for one in states if one.failed is not None]
    below = tuple(manifest_cause(work, one, view.now) for one in failed[:MAX_SHOWN])
    if away is not None:
        silent = away.state in SILENT
        why = "its cluster does not answer, so what follows is as of then" if silent else "its cluster has not joined"
        text = f"{why}; {_counts(states)}"
        state = "Unreachable" if silent else "Waiting"
        return Found(_cause(work, state, text, away, *below, since=away.since), blocked=True)
    unseen = _unseen(work)
    if unseen:
        fix = f"see what its agent does: syncline explain managedcluster/{namespace_of(work)}"
        return Found(_cause(work, "Waiting", unseen, *below, fix=fix), blocked=True)
    if failed:
        since = min((one.since for one in below if one.since), default=None)
        return Found(_cause(work, _state(failed), _counts(states), *below, since=since), blocked=True)
    going = [one for one in states if one.status("Progressing") == "True"]
    if going:
        also = tuple(_progressing(one) for one in going[:MAX_SHOWN])
        return Found(_cause(work, "Progressing", _counts(states), *also), blocked=False)
    applied = find_condition(dig(work, "status", "conditions") or (), APPLIED) or {}
    since = time_or_none(applied.get("lastTransitionTime"))
    return Found(_cause(work, "Applied", _counts(states), since=since), blocked=False)


def explain_parts(view: View, work: Obj, parts: Iterable[Obj]) -> Found:
    """Explain a work with its further parts as one: a part that is blocked stands below it, under its own name."""
    found = explain_work(view, work)
    bad = [one.cause for one in (explain_work(view, part) for part in parts) if one.blocked]
    if not bad or found.cause.state == "Unreachable":
        return found
    state = found.cause.state if found.blocked else bad[0].state
    message = one_line(f"{found.cause.message}; not so {', '.join(ObjectRef.parse(one.subject).name for one in bad)}")
    cause = replace(found.cause, state=state, message=message, because=(*bad, *found.cause.because))
    return Found(cause, blocked=True)


def _cause(work: Obj, state: str, message: str, *because: Cause, since: datetime | None = None, fix: str = "") -> Cause:
    begun = since or time_or_none(dig(work, "metadata", "creationTimestamp"))
    return Cause(str(ref_of(work)), state, one_line(message), begun, next_action=fix, because=because)


def _state(failed: list[ManifestState]) -> str:
    kinds = {str((one.failed or {}).get("type")) for one in failed}
    words = ((APPLIED, "NotApplied"), ("Available", "NotAvailable"), ("Degraded", "Degraded"), (SHARED, "Shared"))
    return next((word for kind, word in words if kind in kinds), "Unclear")


def _counts(states: list[ManifestState]) -> str:
    counts = [
        f"{sum(one.status(kind) == 'True' for one in states)} of {len(states)} {kind.lower()}"
        for kind in (APPLIED, "Available")
    ]
    return ", ".join(counts)


def _unseen(work: Obj) -> str:
    """Return what the agent has not done yet with this generation; empty if it has."""
    if WORK_FINALIZER not in finalizers(work):
        return "its agent has not seen it yet"
    applied = find_condition(dig(work, "status", "conditions") or (), APPLIED)
    if applied is None:
        return "its agent has not applied it yet"
    seen = applied.get("observedGeneration")
    if seen not in (None, generation(work)):
        return f"its agent has applied generation {seen}, and not yet {generation(work)}"
    return ""


def manifest_cause(work: Obj, state: ManifestState, now: datetime) -> Cause:
    """Return why a manifest failed: what the agent says, and what helps."""
    said = state.failed or {}
    advice = advice_for(work, state, now) if said.get("type") == APPLIED else Advice(_without_refusal(said))
    return Cause(
        f"manifest {state.ordinal} {state.title}",
        str(said.get("reason") or said.get("type") or "Waiting"),
        one_line(str(said.get("message") or "")),
        time_or_none(said.get("lastTransitionTime")),
        advice.until,
        "the agent tries again" if advice.until else "",
        advice.text,
        (("condition", str(said.get("type") or "")),),
    )


def _without_refusal(said: Obj) -> str:
    if said.get("type") == "Available":
        return "it was deleted on the cluster; the agent makes it again at its next look (4 to 6 minutes)"
    if said.get("type") == "StatusFeedbackSynced":
        return "correct the feedbackRules of the work"
    if said.get("type") == SHARED:
        return "leave the manifest in one work, take it out of the others"
    return ""


def _progressing(state: ManifestState) -> Cause:
    said = state.conditions["Progressing"]
    message = one_line(str(said.get("message") or ""))
    since = time_or_none(said.get("lastTransitionTime"))
    return Cause(f"manifest {state.ordinal} {state.title}", "Progressing", message, since)


def _leaving(work: Obj, away: Cause | None) -> Found:
    since = time_or_none(dig(work, "metadata", "deletionTimestamp"))
    held = finalizers(work)
    if away is None:
        text = f"its agent deletes what it made; finalizers left: {', '.join(held) or 'none'}"
        return Found(_cause(work, "Terminating", text, since=since), blocked=False)
    fix = (
        f"start the agent of cluster {namespace_of(work)}{OR}if the cluster is gone for ever, remove the finalizer: "
        f"kubectl patch manifestwork {name_of(work)} -n {namespace_of(work)} --type merge "
        '-p \'{"metadata":{"finalizers":null}}\''
    )
    text = "waits for its agent to delete what it made"
    return Found(_cause(work, "Terminating", text, away, since=since, fix=fix), blocked=True)
