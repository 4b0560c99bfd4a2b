"""Why a policy is not compliant, from its bindings down to the message of a cluster: :func:`policy_cause`; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of, ref_of
from syncline.kube.selectors import selector_from_labels
from syncline.patterns.policies.hub.binding import Bound, Decisions, decide, decided_clusters, names_policy
from syncline.patterns.policies.hub.observe import BINDINGS, DECISIONS, PLACEMENT_LABEL, PLACEMENTS, POLICIES, SETS
from syncline.patterns.policies.hub.replicating import full_name
from syncline.patterns.policies.names import ROOT_LABEL, State, is_enforced

MOST_SHOWN = 5
"""Clusters and templates that an explanation shows."""


@dataclass(frozen=True, slots=True)
class Explained:
    cause: Cause
    blocked: bool


def explain_root(cache: Snapshot, policy: Obj, away: Callable[[str], Cause | None]) -> Explained:
    """Explain a policy of people. ``away``: why a cluster does not answer, None if it does."""
    if ROOT_LABEL in labels_of(policy):
        return explain_copy(policy)
    state = str(dig(policy, "status", "compliant") or "")
    if dig(policy, "spec", "disabled"):
        return Explained(_cause(policy, "Disabled", "spec.disabled is true: no cluster has it"), blocked=False)
    bound = _bound(cache, namespace_of(policy))
    decisions = decide(policy, bound)
    problems = _unbound(cache, policy, bound, decisions)
    if not decisions.clusters:
        text = "no cluster gets it"
        return Explained(_cause(policy, "NotPlaced", text, *problems), blocked=True)
    below = [*problems, *_clusters(cache, policy, decisions, away)]
    good = sum(one.get("compliant") == State.COMPLIANT for one in dig(policy, "status", "status") or ())
    text = f"{good} of {len(decisions.clusters)} clusters comply"
    return Explained(_cause(policy, state or "Waiting", text, *below), blocked=state != State.COMPLIANT)


def _bound(cache: Snapshot, namespace: str) -> Bound:
    bindings = tuple(cache.objects(BINDINGS, namespace))
    names = {str(dig(one, "placementRef", "name")) for one in bindings}
    exist = frozenset(name_of(one) for one in cache.objects(PLACEMENTS, namespace)) & names
    decided = {
        one: decided_clusters(
            [
                each
                for each in cache.objects(DECISIONS, namespace)
                if selector_from_labels({PLACEMENT_LABEL: one}).matches(labels_of(each))
            ]
        )
        for one in exist
    }
    return Bound(bindings, {name_of(one): one for one in cache.objects(SETS, namespace)}, decided, exist)


def _unbound(cache: Snapshot, policy: Obj, bound: Bound, decisions: Decisions) -> list[Cause]:
    """Return why bindings choose no cluster."""
    mine = [one for one in bound.bindings if names_policy(one, name_of(policy), bound.sets.values())]
    if not mine:
        fix = "create a PlacementBinding whose subjects name it, or a PolicySet that has it"
        where = f"namespace {namespace_of(policy)}"
        return [Cause("PlacementBinding", "missing", f"none in {where} names the policy", next_action=fix)]
    found = []
    for one in mine:
        kind, name = (str(dig(one, "placementRef", key)) for key in ("kind", "name"))
        subject = f"PlacementBinding {name_of(one)}"
        if kind == "PlacementRule":
            text = f"PlacementRule {name} is not supported here: nothing decides it"
            found.append(Cause(subject, "unsupported", text, next_action="bind a Placement instead"))
        elif name not in bound.placements:
            text = f"Placement {name} does not exist"
            found.append(Cause(subject, "dangling", text, next_action=f"create Placement {name}"))
        elif not bound.decided.get(name) and not decisions.clusters:
            fix = f"syncline placement explain {name} -n {namespace_of(policy)}"
            found.append(Cause(subject, "empty", f"Placement {name} selects no cluster", next_action=fix))
    return found


def _clusters(cache: Snapshot, policy: Obj, decisions: Decisions, away: Callable[[str], Cause | None]) -> list[Cause]:
    found: list[Cause] = []
    bad = [
        one
        for one in dig(policy, "status", "status") or ()
        if one.get("compliant") != State.COMPLIANT and one.get("clustername") in decisions.clusters
    ]
    known = {one.get("clustername") for one in dig(policy, "status", "status") or ()}
    bad += [{"clustername": one} for one in decisions.clusters if one not in known]
    for one in bad[:MOST_SHOWN]:
        cluster = str(one["clustername"])
        copies = cache.objects(POLICIES, cluster)
        copy = next((each for each in copies if name_of(each) == full_name(policy)), None)
        gone = away(cluster)
        below = [*([gone] if gone is not None else []), *(_templates(copy) if copy is not None else [])]
        said = str(one.get("compliant") or "")
        if copy is None:
            text = "its copy is not there yet: does the role policies run on the hub?"
        else:
            text = "" if said else "its agent has reported nothing yet"
        found.append(Cause(f"cluster {cluster}", said or "unknown", text, because=tuple(below)))
    if len(bad) > MOST_SHOWN:
        found.append(Cause(f"{len(bad) - MOST_SHOWN} more clusters", "NonCompliant", "or not reported yet"))
    return found


def explain_copy(policy: Obj) -> Explained:
    """Explain the copy of a policy in the namespace of a cluster, or on the cluster."""
    state = str(dig(policy, "status", "compliant") or "Waiting")
    below = _templates(policy)
    text = f"copy of {labels_of(policy).get(ROOT_LABEL)}" + ("" if below else ": its agent has reported nothing else")
    return Explained(_cause(policy, state, text, *below), blocked=state != State.COMPLIANT)


def _templates(policy: Obj) -> list[Cause]:
    made = []
    for one in dig(policy, "status", "details") or ():
        history = one.get("history") or ()
        if one.get("compliant") == State.COMPLIANT or not history:
            continue
        message = str(history[0].get("message"))
        since = _since(history)
        name, state = str(dig(one, "templateMeta", "name")), message.partition("; ")[0]
        tries = is_enforced(dig(policy, "spec", "remediationAction") or _own_action(policy, name))
        made.append(Cause(f"template {name}", state, violations(message), since, next_action=_advice(message, tries)))
    return made[:MOST_SHOWN]


def _own_action(policy: Obj, name: str) -> str:
    """Return the remediation action of a template itself."""
    for one in dig(policy, "spec", "policy-templates") or ():
        if dig(one, "objectDefinition", "metadata", "name") == name:
            return str(dig(one, "objectDefinition", "spec", "remediationAction") or "")
    return ""


def violations(message: str) -> str:
    """Return what is wrong by a message of a template: without its state, and without what is as it should be."""
    _, _, text = message.partition("; ")
    bad = [one for one in text.split("; ") if one.startswith(_VIOLATION)]
    return "; ".join(one.removeprefix(_VIOLATION) for one in bad) or text or message


def _since(history: list[Obj]) -> datetime | None:
    """Return since when the last message holds."""
    same = list(takewhile(lambda one: one.get("message") == history[0].get("message"), history))
    return time_or_none(same[-1].get("lastTimestamp"))


_VIOLATION = "violation - "
_ADVICE = (
    ("please check if you have CRD deployed", "install the definition on the cluster, or take the template out"),
    ("cannot be created, reason: `", "see the reason: a namespace, a right or a field is missing on the cluster"),
    ("recreateOption", "set recreateOption on the object template, or change the object on the cluster"),
    ("Dependencies were not satisfied", "see the policies that it depends on"),
    ("template-error", "change the template of the policy on the hub"),
    (_VIOLATION, "set remediationAction: enforce, or change the cluster"),
)
_TRIES = "it is enforced, and the agent tries again: see what refuses it on the cluster"


def _advice(text: str, tries: bool) -> str:
    found = next((advice for part, advice in _ADVICE if part in text), "")
    return _TRIES if tries and found == _ADVICE[-1][1] else found


def _cause(policy: Obj, state: str, message: str, *because: Cause) -> Cause:
    """Return the cause with the time of its first reason; of a policy that nothing was said of, when it was made."""
    known = [one.since for each in because for one in (each, *each.because) if one.since is not None]
    made = time_or_none(dig(policy, "metadata", "creationTimestamp"))
    since = min(known, default=None) if state in (State.COMPLIANT, State.NON_COMPLIANT) else made
    return Cause(str(ref_of(policy)), state, message, since, because=because)


def explain_local(policy: Obj) -> Explained:
    """Explain a ConfigurationPolicy or an OperatorPolicy of a cluster."""
    state = str(dig(policy, "status", "compliant") or "Waiting")
    history = dig(policy, "status", "history") or ()
    message = str(history[0].get("message")) if history else ""
    text = violations(message) if history else "it was not evaluated yet"
    tries = is_enforced(dig(policy, "spec", "remediationAction"))
    cause = _cause(policy, state, text)
    blocked = state != State.COMPLIANT
    fixed = Cause(
        cause.subject, state, text, _since(history) if history else cause.since, next_action=_advice(message, tries)
    )
    return Explained(fixed if blocked else cause, blocked)
