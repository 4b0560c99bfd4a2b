"""Which clusters a policy is for: :func:`decide`; pure. Rules of upstream's propagator.

A PlacementBinding names a Placement and policies, or PolicySets. One with ``subFilter: restricted`` only changes how
clusters that others choose get the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from syncline.kube.kinds.governance import GROUP
from syncline.kube.objects import Obj, dig, name_of
from syncline.patterns.policies.names import is_enforced

RESTRICTED: Final = "restricted"
PLACEMENT_GROUP: Final = "cluster.open-cluster-management.io"
RULE_GROUP: Final = "apps.open-cluster-management.io"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a namespace has about its policies. ``decided``: for each Placement, the clusters of its decisions;
    ``placements``: the names of those that exist."""

    bindings: tuple[Obj, ...] = field(default=(), repr=False)
    sets: Mapping[str, Obj] = field(default_factory=dict, repr=False)
    decided: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    placements: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Decisions:
    """``clusters``: for each cluster that gets the policy the remediation action that a binding gives it there, or "";
    ``placements``: ``status.placement``; ``remaining``: bindings of a cluster that a set's exclusion leaves;
    ``rules``: PlacementRules that are named: nothing here decides them."""

    clusters: Mapping[str, str] = field(default_factory=dict)
    placements: tuple[Obj, ...] = ()
    remaining: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


def decide(policy: Obj, bound: Bound) -> Decisions:
    """Return the clusters of a policy, and how its status names them."""
    disabled = bool(dig(policy, "spec", "disabled"))
    chosen: dict[str, str] = {}
    by_cluster: dict[str, set[str]] = {}
    placements: list[Obj] = []
    rules: set[str] = set()
    for one in sorted(bound.bindings, key=lambda each: each.get("subFilter") == RESTRICTED):
        restricted = one.get("subFilter") == RESTRICTED
        entries, direct, out = _entries(name_of(policy), one, bound)
        if not entries:
            continue
        if _is_rule(one):
            rules.add(str(dig(one, "placementRef", "name")))
        kept = [] if disabled else [each for each in clusters_of(one, bound) if direct or each not in out]
        if restricted:
            kept = [each for each in kept if each in chosen]
        if kept or not restricted:
            placements += entries
        given = str(dig(one, "bindingOverrides", "remediationAction") or "")
        for each in kept:
            by_cluster.setdefault(each, set()).add(name_of(one))
            chosen[each] = chosen.get(each) or (given if is_enforced(given) else "")
    remaining = _remaining(placements, by_cluster)
    ordered = tuple(sorted(placements, key=_order))
    return Decisions(dict(sorted(chosen.items())), ordered, remaining, tuple(sorted(rules)))


def _remaining(placements: Iterable[Obj], by_cluster: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """Return the bindings by which a cluster gets the policy although another one leaves it out."""
    excluding: dict[str, set[str]] = {}
    for one in placements:
        for each in one.get("exclusions") or ():
            excluding.setdefault(str(each["clusterName"]), set()).add(str(one["placementBinding"]))
    found = {each: by_cluster[each] - without for each, without in excluding.items() if each in by_cluster}
    return {each: tuple(sorted(left)) for each, left in sorted(found.items()) if left}


def _entries(policy: str, binding: Obj, bound: Bound) -> tuple[list[Obj], bool, frozenset[str]]:
    """Return the entries of a binding in ``status.placement``, whether it names the policy itself, and the clusters
    that its sets leave out."""
    found: list[Obj] = []
    direct = False
    out: set[str] | None = None
    seen: set[tuple[str, str]] = set()
    for one in binding.get("subjects") or ():
        kind, name = str(one.get("kind")), str(one.get("name"))
        if one.get("apiGroup") != GROUP or (kind, name) in seen:
            continue
        seen.add((kind, name))
        if kind == "Policy" and name == policy:
            direct = True
            found.append({"placementBinding": name_of(binding), **_placed(binding, bound)})
        elif kind == "PolicySet" and policy in (dig(bound.sets.get(name), "spec", "policies") or ()):
            exclusions = excluded_of(bound.sets[name], policy)
            out = set(exclusions) if out is None else out & set(exclusions)
            entry: Obj = {"placementBinding": name_of(binding), "policySet": name, **_placed(binding, bound)}
            if exclusions:
                entry["exclusions"] = [{"clusterName": each} for each in exclusions]
            found.append(entry)
    if not _is_valid(binding):
        return [], False, frozenset()
    return found, direct, frozenset(out or ())


def excluded_of(policy_set: Obj, policy: str) -> list[str]:
    """Return the clusters that a set leaves out for a policy, in order."""
    listed = dig(policy_set, "spec", "exclusions") or ()
    return sorted({str(each) for one in listed if one.get("policyName") == policy for each in one["clusterNames"]})


def _placed(binding: Obj, bound: Bound) -> Obj:
    name = str(dig(binding, "placementRef", "name"))
    if _is_rule(binding):
        return {"placementRule": name}
    return {"placement": name} if name in bound.placements else {}


def _is_rule(binding: Obj) -> bool:
    return bool(dig(binding, "placementRef", "kind") == "PlacementRule")


def _is_valid(binding: Obj) -> bool:
    group = RULE_GROUP if _is_rule(binding) else PLACEMENT_GROUP
    return bool(dig(binding, "placementRef", "apiGroup") == group)


def clusters_of(binding: Obj, bound: Bound) -> tuple[str, ...]:
    """Return the clusters that a binding's Placement chooses; a PlacementRule chooses none here."""
    if _is_rule(binding) or not _is_valid(binding):
        return ()
    return bound.decided.get(str(dig(binding, "placementRef", "name")), ())


def names_policy(binding: Obj, policy: str, sets: Iterable[Obj]) -> bool:
    """Return whether a binding concerns a policy, itself or through one of ``sets``."""
    within = {name_of(one) for one in sets if policy in (dig(one, "spec", "policies") or ())}
    wanted = {("Policy", policy), *(("PolicySet", one) for one in within)}
    return any((one.get("kind"), one.get("name")) in wanted for one in binding.get("subjects") or ())


def _order(entry: Obj) -> str:
    return " ".join(
        str(entry.get(key) or "") for key in ("placementBinding", "placement", "placementRule", "policySet")
    )


def decided_clusters(decisions: Sequence[Obj]) -> tuple[str, ...]:
    """Return the clusters of the PlacementDecisions of one Placement."""
    found = (str(each.get("clusterName")) for one in decisions for each in dig(one, "status", "decisions") or ())
    return tuple(dict.fromkeys(found))
