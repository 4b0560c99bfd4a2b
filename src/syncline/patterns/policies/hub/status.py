"""What the status of a policy and of a PolicySet says on the hub: :func:`root_status`, :func:`set_status_of`; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from syncline.kube.objects import Obj, dig, name_of
from syncline.patterns.policies.hub.binding import Bound, Decisions, clusters_of, excluded_of
from syncline.patterns.policies.names import State

_EXCLUDED = "One or more policies were excluded. For details, see status.exclusions."


def root_status(policy: Obj, decisions: Decisions, copies: Mapping[str, Obj]) -> Obj:
    """Return the status of a root policy. ``copies``: its copies by cluster."""
    made: Obj = {}
    if decisions.placements:
        made["placement"] = list(decisions.placements)
    if dig(policy, "spec", "disabled") or not decisions.clusters:
        return made
    clusters = [_cluster(name, decisions, copies.get(name)) for name in decisions.clusters]
    made["status"] = clusters
    state = overall([str(one.get("compliant") or "") for one in clusters])
    return made | ({"compliant": str(state)} if state else {})


def _cluster(name: str, decisions: Decisions, copy: Obj | None) -> Obj:
    made: Obj = {"clustername": name, "clusternamespace": name}
    if left := decisions.remaining.get(name):
        made["remainingBindings"] = [{"placementBinding": one} for one in left]
    state = dig(copy, "status", "compliant") if copy is not None else None
    return made | ({"compliant": state} if state else {})


def overall(states: Sequence[str]) -> State:
    """Return NonCompliant before Pending before unknown before Compliant."""
    for state in (State.NON_COMPLIANT, State.PENDING):
        if state in states:
            return state
    return State.COMPLIANT if states and all(one == State.COMPLIANT for one in states) else State.UNKNOWN


# -- sets --------------------------------------------------------------------------------------------------------------


def set_status_of(policy_set: Obj, policies: Mapping[str, Obj], bound: Bound) -> Obj:
    """Return the status of a PolicySet. ``policies``: those of its namespace by name."""
    names = dig(policy_set, "spec", "policies") or []
    if not names:
        return {}
    news: dict[str, list[str]] = {"disabled": [], "unknown": [], "deleted": [], "pending": []}
    known: list[State] = []
    placed: dict[str, Obj] = {}
    for name in names:
        policy = policies.get(name)
        if policy is None:
            news["deleted"].append(name)
            continue
        for one in dig(policy, "status", "placement") or ():
            if one.get("policySet") == name_of(policy_set):
                placed[one["placementBinding"]] = {
                    key: one[key] for key in ("placement", "placementBinding", "placementRule") if key in one
                }
        if dig(policy, "spec", "disabled"):
            news["disabled"].append(name)
            continue
        state = _within(policy, _clusters(policy_set, name, placed, bound))
        if state in (State.UNKNOWN, State.PENDING):
            news["pending" if state else "unknown"].append(name)
        if state:
            known.append(state)
    exclusions = _exclusions(policy_set)
    made: Obj = {"statusMessage": _said(news, bool(exclusions))}
    if placed:
        made["placement"] = [placed[key] for key in sorted(placed)]
    if exclusions:
        made["exclusions"] = exclusions
    if known and not news["unknown"]:
        made["compliant"] = str(overall(known))
    return made


def _clusters(policy_set: Obj, policy: str, placed: Iterable[str], bound: Bound) -> set[str]:
    found: set[str] = set()
    by_name = {name_of(one): one for one in bound.bindings}
    for one in placed:
        if one in by_name:
            found.update(clusters_of(by_name[one], bound))
    return found - set(excluded_of(policy_set, policy))


def _within(policy: Obj, clusters: set[str]) -> State:
    listed = dig(policy, "status", "status") or ()
    states = [str(one.get("compliant") or "") for one in listed if one.get("clustername") in clusters]
    return overall([one for one in states if one])


def _exclusions(policy_set: Obj) -> list[Obj]:
    listed = dig(policy_set, "spec", "exclusions") or ()
    found = (
        {"policyName": one.get("policyName"), "clusters": sorted(one["clusterNames"])}
        for one in listed
        if one.get("clusterNames")
    )
    return sorted(found, key=lambda one: str(one["policyName"]))


def _said(news: Mapping[str, list[str]], excluded: bool) -> str:
    words = {
        "pending": "Policies awaiting pending dependencies",
        "disabled": "Disabled policies",
        "unknown": "No status provided while awaiting policy status",
        "deleted": "Deleted policies",
    }
    parts = [f"{text}: {', '.join(news[key])}" for key, text in words.items() if news[key]]
    return "; ".join([*(parts or ["All policies are reporting status"]), *([_EXCLUDED] if excluded else [])])
