"""Which configs each add-on is to have, and when: by the Placement that chose its cluster, at the pace of its rollout;
pure. :func:`configure`.

Rules: ``pkg/addon/controllers/addonconfiguration`` of upstream. The defaults hold for all; the configs of a Placement
replace those of the same kind; the ones in the add-on itself replace both. A cluster that two Placements chose belongs
to the later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.fleet.addons import (
    CONFIGURED,
    PROGRESSING,
    Config,
    ConfigKind,
    ConfigName,
    config_kind,
    config_name,
    config_of,
    desired_of,
)
from syncline.fleet.conditions import condition, find_condition, with_condition
from syncline.fleet.hub.addons.progressions import Hashes
from syncline.fleet.hub.budgets.reserve import Reserving
from syncline.fleet.hub.rollout.decide import decide
from syncline.fleet.hub.rollout.model import ClusterState, Decision, DecisionGroup, RolloutError, State, clusters_of
from syncline.fleet.hub.rollout.strategy import strategy_of
from syncline.kube.objects import Obj, dig, namespace_of

Desired = Mapping[ConfigKind, tuple[Config, ...]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A Placement of the install strategy: its entry there and in the status, itself, and its groups of clusters."""

    strategy: Obj
    progression: Obj
    placement: Obj
    groups: tuple[DecisionGroup, ...]


@dataclass(frozen=True, slots=True)
class Configured:
    """The new status of each add-on, by cluster; the progressions with what the rollouts say; when to look again;
    strategies that cannot be followed."""

    statuses: Mapping[str, Obj]
    progressions: tuple[Obj, ...]
    recheck: timedelta | None = None
    errors: tuple[str, ...] = ()


@dataclass(slots=True)
class _Member:
    """One add-on of a node, with what it is to have."""

    addon: Obj
    desired: dict[ConfigKind, tuple[Config, ...]]
    state: ClusterState


@dataclass(slots=True)
class _Node:
    """The add-ons that one Placement configures; without a Placement: all others."""

    desired: dict[ConfigKind, tuple[Config, ...]]
    chosen: Chosen | None = None
    members: dict[str, _Member] = field(default_factory=dict)
    configured: set[str] = field(default_factory=set)
    """Clusters of the Placement that no later one chose."""
    decision: Decision = field(default_factory=Decision)
    turn: set[str] = field(default_factory=set)
    """Clusters whose add-on gets, or keeps, what it is to have."""

    def add(self, addon: Obj) -> None:
        desired = _with_own(self.desired, addon)
        self.members[namespace_of(addon)] = _Member(addon, desired, rollout_state(addon, desired))


def configure(
    defaults: Iterable[Config],
    chosen: Sequence[Chosen],
    addons: Iterable[Obj],
    hashes: Hashes,
    reserving: Reserving,
    now: datetime,
) -> Configured:
    """Decide for the add-ons of one ClusterManagementAddOn. ``defaults``: with their hashes; ``reserving``: the places
    of its roll-outs in disruption budgets."""
    default = _Node(_by_kind(defaults))
    live = {namespace_of(one): one for one in addons}
    nodes: list[_Node] = []
    for one in chosen:
        references = [desired_of(entry) for entry in one.progression.get("configReferences") or ()]
        own = [config for config in references if config is not None]
        nodes.append(_Node(_overridden(default.desired, own), one, configured=set(clusters_of(one.groups))))
    owners = {cluster: node for node in nodes for cluster in node.configured}
    for node in nodes:
        node.configured = {cluster for cluster in node.configured if owners[cluster] is node}
    for cluster, addon in live.items():
        owners.get(cluster, default).add(_refreshed(addon, hashes))
    errors = tuple(filter(None, (_decide(node, reserving, now) for node in nodes)))
    default.decision = Decision(
        tuple(one.state for one in default.members.values() if one.state.state is not State.SUCCEEDED)
    )
    for node in (*nodes, default):
        node.turn = {
            one.cluster
            for one in sorted(node.decision.to_roll_out, key=lambda one: one.cluster)
            if one.cluster in node.members
            and (one.state is not State.TO_APPLY or reserving.take(one.cluster, _why(node, one)))
        }
    waits = {cluster: one.why for one in reserving.waits() for cluster in one.clusters}
    every = (*nodes, default)
    statuses = {cluster: status for node in every for cluster, status in _statuses(node, hashes, waits, now)}
    times = (reserving.recheck(), *(node.decision.recheck for node in nodes))
    rechecks = [one for one in times if one is not None]
    made = tuple(_progressed(node, now) for node in nodes)
    return Configured(statuses, made, min(rechecks, default=None), errors)


def _by_kind(configs: Iterable[Config]) -> dict[ConfigKind, tuple[Config, ...]]:
    found: dict[ConfigKind, dict[ConfigName, Config]] = {}
    for one in configs:
        found.setdefault(one.kind, {}).setdefault(one.at, one)
    return {kind: tuple(ones.values()) for kind, ones in found.items()}


def _overridden(desired: Desired, own: Iterable[Config]) -> dict[ConfigKind, tuple[Config, ...]]:
    return {**desired, **_by_kind(own)}


def _with_own(desired: Desired, addon: Obj) -> dict[ConfigKind, tuple[Config, ...]]:
    """Return what an add-on is to have. The hash of its own configs is the one that its status has: a change of their
    content waits for no rollout."""
    live = [desired_of(one) for one in dig(addon, "status", "configReferences") or ()]
    known = {(one.kind, one.at): one for one in live if one is not None}
    own = [config_of(one) for one in dig(addon, "spec", "configs") or ()]
    return _overridden(desired, [known.get((one.kind, one.at), one) for one in own])


def _refreshed(addon: Obj, hashes: Hashes) -> Obj:
    """Return the add-on with the current generations of its configs in its status, and the hashes of its own ones."""
    references = dig(addon, "status", "configReferences") or ()
    if not references:
        return addon
    own = {config_of(one) for one in dig(addon, "spec", "configs") or ()}
    made = []
    for entry in references:
        desired = desired_of(entry)
        bare = None if desired is None else replace(desired, spec_hash="")
        content = hashes.get(bare) if bare is not None else None
        if bare is not None and content is not None and content.spec_hash:
            entry = {**entry, "lastObservedGeneration": content.generation}
            if bare in own:
                entry["desiredConfig"] = replace(bare, spec_hash=content.spec_hash).hashed
        made.append(entry)
    return {**addon, "status": {**addon["status"], "configReferences": made}}


def rollout_state(addon: Obj, desired: Desired) -> ClusterState:
    """Return how far an add-on is with the configs that it is to have."""
    cluster = namespace_of(addon)
    references = dig(addon, "status", "configReferences") or ()
    wanted = {(one.kind, one.at): one for ones in desired.values() for one in ones}
    if len(references) != len(wanted):
        return ClusterState(cluster, State.TO_APPLY)
    said = find_condition(dig(addon, "status", "conditions") or (), PROGRESSING) or {}
    since = time_or_none(said.get("lastTransitionTime"))
    for entry in references:
        actual = desired_of(entry)
        if actual is None or wanted.get((actual.kind, actual.at)) != actual:
            return ClusterState(cluster, State.TO_APPLY)
        if entry.get("lastAppliedConfig") != entry.get("desiredConfig"):
            known = {"Failed": State.FAILED, "Progressing": State.PROGRESSING}
            state = known.get(str(said.get("reason")))
            return ClusterState(cluster, state or State.PROGRESSING, since=since if state else None)
    return ClusterState(cluster, State.SUCCEEDED, since=since if said.get("reason") == "Completed" else None)


def _why(node: _Node, state: ClusterState) -> str:
    progression = {} if node.chosen is None else node.chosen.progression
    at = f"Placement {progression.get('namespace')}/{progression.get('name')}: " if progression else ""
    return f"{at}the add-on's configuration changes (decision group {state.group.index})"


def unsettled(addon: Obj) -> bool:
    """Return whether an add-on has not yet been seen with the configs that it was given."""
    references = dig(addon, "status", "configReferences") or ()
    return any(one.get("lastAppliedConfig") != one.get("desiredConfig") for one in references)


def _decide(node: _Node, reserving: Reserving, now: datetime) -> str:
    """Let the rollout of a Placement decide; return why it cannot. Clusters for which a budget has no place take none
    of those that the rollout has."""
    assert node.chosen is not None
    states = sorted((one.state for one in node.members.values()), key=lambda one: one.cluster)
    waiting = {one.cluster for one in states if one.state is State.TO_APPLY}
    try:
        strategy = strategy_of(_strategy(node.chosen))
        node.decision = decide(strategy, node.chosen.groups, states, now)
        begin = [one.cluster for one in node.decision.to_roll_out if one.cluster in waiting]
        if reserving.refused(begin):
            shut = reserving.shut(waiting)
            states = [one for one in states if one.cluster not in shut]
            node.decision = decide(strategy, node.chosen.groups, states, now, shut)
    except RolloutError as error:
        at = f"{node.chosen.progression.get('namespace')}/{node.chosen.progression.get('name')}"
        return f"the rollout strategy of placement {at} cannot be followed: {error}"
    return ""


def _strategy(chosen: Chosen) -> Obj:
    """Return the strategy; without a number of clusters at once it is that of the Placement's decision groups."""
    given = chosen.strategy.get("rolloutStrategy") or {"type": "All"}
    if given.get("type") != "Progressive" or dig(given, "progressive", "maxConcurrency"):
        return dict(given)
    size = dig(chosen.placement, "spec", "decisionStrategy", "groupStrategy", "clustersPerDecisionGroup")
    return {**given, "progressive": {**(given.get("progressive") or {}), "maxConcurrency": size or "100%"}}


def _statuses(node: _Node, hashes: Hashes, waits: Mapping[str, str], now: datetime) -> Iterable[tuple[str, Obj]]:
    """Yield the status of each add-on: with its configs where it is their turn, else what the condition says.
    ``waits``: why clusters wait for a budget."""
    turn = node.turn
    for cluster, member in node.members.items():
        status: Obj = member.addon.get("status") or {}
        if cluster in turn:
            references = _merged(status.get("configReferences") or (), member.desired)
            status = {**status, "configReferences": references} if references else _without_references(status)
            status = _refreshed({**member.addon, "status": status}, hashes)["status"]
        if cluster in turn or member.state.state is State.SUCCEEDED:
            new = condition(CONFIGURED, "True", "ConfigurationsConfigured", "Configurations configured")
        elif member.state.state is State.TO_APPLY:
            text = "Configurations updated and not configured yet"
            text += f": {waits[cluster]}" if cluster in waits else ""
            new = condition(CONFIGURED, "False", "ConfigurationsNotConfigured", text)
        else:
            yield cluster, status
            continue
        yield cluster, {**status, "conditions": with_condition(status.get("conditions") or (), new, now)}


def _without_references(status: Obj) -> Obj:
    return {key: value for key, value in status.items() if key != "configReferences"}


def _merged(live: Iterable[Obj], desired: Desired) -> list[Obj]:
    """Return the config references: those that stay keep what was applied last; by kind, in order of kinds."""
    wanted = {(one.kind, one.at): one for ones in desired.values() for one in ones}
    kinds: dict[ConfigKind, list[Obj]] = {}
    for entry in live:
        config = wanted.pop((config_kind(entry), config_name(entry.get("desiredConfig") or {})), None)
        if config is not None:
            kinds.setdefault(config.kind, []).append({**entry, "desiredConfig": config.hashed})
    for config in wanted.values():
        kinds.setdefault(config.kind, []).append(_reference(config))
    return [entry for kind in sorted(kinds) for entry in kinds[kind]]


def _reference(config: Config) -> Obj:
    namespace = {"namespace": config.at.namespace} if config.at.namespace else {}
    kind = {"group": config.kind.group, "resource": config.kind.resource}
    return {**kind, "name": config.at.name, **namespace, "desiredConfig": config.hashed}


def _progressed(node: _Node, now: datetime) -> Obj:
    """Return the progression of a Placement with its condition; when all is done, with what was applied."""
    assert node.chosen is not None
    progression, turn = node.chosen.progression, node.turn
    upgrading = sum(cluster in turn for cluster in node.members)
    resting = [one for cluster, one in node.members.items() if cluster not in turn and _inherits(one, node.desired)]
    done, failed = (sum(one.state.state is state for one in resting) for state in (State.SUCCEEDED, State.FAILED))
    selected, total = len(clusters_of(node.chosen.groups)), len(node.configured)
    ended = f"{failed} failed {len(node.decision.timed_out)} timeout."
    if done != total or (total == 0 and done == 0):
        text = f"selected clusters {selected}. configured addons {upgrading + done}/{total} progressing..., {ended}"
        new = condition(PROGRESSING, "True", "Progressing", text)
    else:
        text = f"selected clusters {selected}. configured addons {done}/{total} completed with no errors, {ended}"
        new = condition(PROGRESSING, "False", "Completed", text)
        applied = [
            {**one, "lastAppliedConfig": one["desiredConfig"], "lastKnownGoodConfig": one["desiredConfig"]}
            for one in progression.get("configReferences") or ()
        ]
        progression = progression | ({"configReferences": applied} if applied else {})
    return {**progression, "conditions": with_condition(progression.get("conditions") or (), new, now)}


def _inherits(member: _Member, desired: Desired) -> bool:
    """Return whether the add-on has what its Placement wants, but for the kinds that it configures itself."""
    own = {config_kind(one) for one in dig(member.addon, "spec", "configs") or ()}
    here = {kind: configs for kind, configs in member.desired.items() if kind not in own}
    return here == {kind: configs for kind, configs in desired.items() if kind not in own}
