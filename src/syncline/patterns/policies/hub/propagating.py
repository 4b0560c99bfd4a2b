"""The controllers of policies on a hub: copies for clusters, status of policies and of sets, keys and rights."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ, spec_differs
from syncline.control.plan import (
    Create,
    Delete,
    Done,
    Emit,
    Outcome,
    Plan,
    Replace,
    Requeue,
    Result,
    awaiting_lists,
    set_status,
)
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from syncline.patterns.policies.cluster.memory import Memory
from syncline.patterns.policies.hub.binding import Bound, Decisions, decide
from syncline.patterns.policies.hub.observe import (
    BINDINGS,
    CLUSTERS,
    COPIES,
    DECISIONS,
    PLACEMENTS,
    POLICIES,
    SETS,
    bound_of,
    copies_index,
    copies_of,
    is_root,
    policies_of_binding,
    policies_of_cluster,
    policies_of_placement,
    policies_of_set,
    root_of_copy,
    sets_of_namespace,
    sets_of_policy,
    unlisted,
)
from syncline.patterns.policies.hub.replicating import replicated, same, templated, updated
from syncline.patterns.policies.hub.resolving import ResolvedHub, ResolveHub
from syncline.patterns.policies.hub.status import root_status, set_status_of
from syncline.patterns.policies.names import IV, KEY_SECRET
from syncline.patterns.policies.templates.text import HUB, uses_encryption

COMPONENT: Final = "policy-propagator"
CONFIG_MAPS: Final = GroupKind("", "ConfigMap")
SECRETS: Final = GroupKind("", "Secret")
POLL_S: Final = 60.0
"""Seconds between two looks at what hub templates read and nothing announces."""
FAILED_S: Final = 30.0
DEBOUNCE_S: Final = 0.2
_BACKUP: Final = {"cluster.open-cluster-management.io/backup": "policy"}
_ROTATED: Final = "policy.open-cluster-management.io/last-rotated"


@dataclass(frozen=True, slots=True)
class RootObserved:
    """``policy`` None: it is gone; ``copies``: by cluster; ``sets``: all PolicySets by namespace and name; ``keyed``:
    clusters that have a key; ``fresh``: random bytes for each other cluster; ``vector``: random bytes; ``ended``:
    everything is planned."""

    ref: ObjectRef
    policy: Obj | None = field(default=None, repr=False)
    decisions: Decisions = field(default_factory=Decisions)
    copies: Mapping[str, Obj] = field(default_factory=dict, repr=False)
    sets: Mapping[tuple[str, str], Obj] = field(default_factory=dict, repr=False)
    keyed: frozenset[str] = frozenset()
    fresh: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    vector: bytes = b""
    unlisted: tuple[str, ...] = ()
    ended: bool = False


# -- copies ------------------------------------------------------------------------------------------------------------


def plan_root(observed: RootObserved, now: datetime) -> Plan:
    """Plan the copies of a policy: those without templates of the hub at once, the others when these are resolved."""
    if observed.unlisted:
        return Plan(*awaiting_lists(observed.unlisted))
    policy = observed.policy
    chosen = observed.decisions.clusters if policy is not None and not is_terminating(policy) else {}
    if policy is None or is_terminating(policy):
        why = "the policy is gone"
    else:
        why = "the policy is disabled" if dig(policy, "spec", "disabled") else "no binding chooses the cluster"
    gone = tuple(Delete.of(one, why) for cluster, one in observed.copies.items() if cluster not in chosen)
    if policy is None:
        return Plan((gone,) if gone else (), why=why)
    wanted = {cluster: _wanted(observed, policy, cluster) for cluster in chosen}
    with_hub = [cluster for cluster, one in wanted.items() if templated(one)]
    writes = tuple(_written(observed, policy, one) for cluster, one in wanted.items() if cluster not in with_hub)
    steps: list[tuple[Action, ...]] = [gone, tuple(each for one in writes for each in one)]
    steps.append(tuple(_key(observed, one) for one in with_hub if _needs_key(wanted[one], observed, one)))
    why = f"it is for {len(chosen)} clusters"
    steps.append(tuple(ResolveHub(policy, wanted[one], now, "its templates read the hub") for one in with_hub))
    return Plan(tuple(step for step in steps if step), why=why)


def _wanted(observed: RootObserved, policy: Obj, cluster: str) -> Obj:
    made = replicated(policy, cluster, observed.decisions.clusters[cluster], observed.sets)
    live = observed.copies.get(cluster)
    vector = annotations_of(live).get(IV) if live is not None else None
    if _encrypts(made):
        made["metadata"]["annotations"][IV] = vector or base64.b64encode(observed.vector).decode()
    elif vector:
        made["metadata"]["annotations"][IV] = vector
    return made


def _encrypts(policy: Obj) -> bool:
    listed = dig(policy, "spec", "policy-templates") or ()
    return any(uses_encryption(_texts(listed[at].get("objectDefinition")), HUB) for at in templated(policy))


def _texts(value: Any) -> str:
    """Return all texts of an object, one a line."""
    if isinstance(value, dict):
        return "\n".join(map(_texts, value.values()))
    if isinstance(value, list):
        return "\n".join(map(_texts, value))
    return value if isinstance(value, str) else ""


def _needs_key(wanted: Obj, observed: RootObserved, cluster: str) -> bool:
    return cluster not in observed.keyed and _encrypts(wanted)


def _key(observed: RootObserved, cluster: str) -> Create:
    data = {"key": base64.b64encode(observed.fresh[cluster]).decode()}
    metadata = {"name": KEY_SECRET, "namespace": cluster, "labels": dict(_BACKUP)}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
    return Create(secret, "hub templates encrypt values for this cluster")


def _written(observed: RootObserved, policy: Obj, wanted: Obj) -> tuple[Action, ...]:
    """Return the write of one copy, and an Event about it; nothing if it is right."""
    cluster = namespace_of(wanted)
    live = observed.copies.get(cluster)
    name = f"{namespace_of(policy)}/{name_of(policy)}"
    if live is None:
        return Create(wanted, "a binding chooses the cluster"), _event(
            policy, f"Policy {name} was propagated to cluster {cluster}"
        )
    if same(wanted, live):
        return ()
    return Replace(updated(wanted, live), "the policy has changed"), _event(
        policy, f"Policy {name} was updated for cluster {cluster}"
    )


def _event(policy: Obj, message: str, *, warning: bool = False) -> Emit:
    return Emit(policy, "PolicyPropagation", message[:1024], COMPONENT, warning=warning, limited=True)


def settle_root(
    observed: RootObserved, results: tuple[Result, ...], resolved: bool
) -> tuple[RootObserved, Plan] | None:
    """Write the copies whose templates were resolved. ``resolved``: nothing that is read changes unannounced."""
    policy = observed.policy
    found = [one.value for one in results if isinstance(one.action, ResolveHub) and one.ok]
    if observed.ended or policy is None or not found:
        return None
    actions: list[Action] = []
    for one in found:
        assert isinstance(one, ResolvedHub), "that is what the action gives"
        actions += _written(observed, policy, one.wanted)
        if one.error:
            text = f"Failed to resolve templates for cluster {namespace_of(one.wanted)}: {one.error}"
            actions.append(_event(policy, text, warning=True))
    again = any(one.again for one in found)
    outcome: Outcome = Done() if resolved else Requeue(POLL_S, "hub templates read what is not watched", True)
    if again:
        outcome = Requeue(FAILED_S, "hub templates cannot be resolved", background=True)
    plan = Plan((tuple(actions),) if actions else (), outcome, f"resolved for {len(found)} clusters")
    return replace(observed, ended=True), plan


class Propagation:
    """The controllers of a hub, and what they remember: which objects hub templates have read. ``draw`` gives 32 random
    bytes."""

    def __init__(self, draw: Callable[[], bytes]) -> None:
        self._draw = draw
        self.memory = Memory()

    def controllers(self) -> tuple[Controller[Any], ...]:
        return self._copies(), status_controller(), set_controller()

    def _observe(self, cache: Snapshot, ref: ObjectRef) -> RootObserved | None:
        policy = cache.get(ref)
        missing = unlisted(cache)
        if missing:
            return RootObserved(ref, policy, unlisted=missing)
        if policy is not None and not is_root(policy, cache):
            return None
        copies = copies_of(cache, ref.namespace, ref.name)
        if policy is None:
            self.memory.forget(ref)
            return RootObserved(ref, None, copies=copies) if copies else None
        decisions = decide(policy, bound_of(cache, ref.namespace))
        keyed = frozenset(
            one for one in decisions.clusters if cache.get(ObjectRef(*SECRETS, one, KEY_SECRET)) is not None
        )
        exist = {one: each for one, each in decisions.clusters.items() if cache.get(ObjectRef(*CLUSTERS, "", one))}
        sets = {(namespace_of(one), name_of(one)): one for one in cache.objects(SETS)}
        fresh = {one: self._draw() for one in exist if one not in keyed}
        decisions = replace(decisions, clusters=exist)
        return RootObserved(ref, policy, decisions, copies, sets, keyed, fresh, self._draw()[:16])

    def _copies(self) -> Controller[RootObserved]:
        def settle(
            observed: RootObserved, _plan: Plan, results: tuple[Result, ...], now: datetime
        ) -> tuple[RootObserved, Plan] | None:
            read = [one.value.tracked for one in results if isinstance(one.action, ResolveHub) and one.ok]
            watched = frozenset((CONFIG_MAPS, SECRETS, CLUSTERS))
            tracked = frozenset().union(*read)
            if read:
                self.memory.keep(observed.ref, tracked, now)
            return settle_root(observed, results, all(one.kind in watched for one in tracked))

        def reading(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
            return self.memory.policies_of(obj, POLICIES)

        mine = differ(generation, uid_of, is_terminating, labels_of, annotations_of)
        copied = differ(generation, uid_of, labels_of, annotations_of)
        return Controller(
            name="policy-propagation",
            kind=POLICIES,
            predicate=mine,
            watches=(
                Watch(POLICIES, root_of_copy, copied),
                Watch(BINDINGS, policies_of_binding, spec_or_binding),
                Watch(SETS, policies_of_set, spec_differs),
                Watch(PLACEMENTS, policies_of_placement, comes_or_goes),
                Watch(DECISIONS, policies_of_placement, differ(labels_of, lambda one: one.get("status"))),
                Watch(CLUSTERS, policies_of_cluster, comes_or_goes),
                Watch(CLUSTERS, reading, differ(labels_of)),
                Watch(CONFIG_MAPS, reading),
                Watch(SECRETS, reading),
            ),
            indices={COPIES: copies_index},
            observe=self._observe,
            plan=plan_root,
            settle=settle,
            debounce_s=DEBOUNCE_S,
        )


spec_or_binding: Final = differ(
    *(lambda one, key=key: one.get(key) for key in ("placementRef", "subjects", "subFilter", "bindingOverrides"))
)


# -- status ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusObserved:
    policy: Obj = field(repr=False)
    decisions: Decisions = field(default_factory=Decisions)
    copies: Mapping[str, Obj] = field(default_factory=dict, repr=False)
    unlisted: tuple[str, ...] = ()


def plan_status(observed: StatusObserved, _now: datetime) -> Plan:
    """Plan the status of a root policy."""
    if observed.unlisted:
        return Plan(*awaiting_lists(observed.unlisted))
    status = root_status(observed.policy, observed.decisions, observed.copies)
    why = f"{status.get('compliant') or 'not judged'} on {len(observed.decisions.clusters)} clusters"
    return Plan(why=why, status=set_status(observed.policy, status, why))


def status_controller() -> Controller[StatusObserved]:
    """Return the controller that gathers what clusters report of a policy."""

    def observe(cache: Snapshot, ref: ObjectRef) -> StatusObserved | None:
        policy = cache.get(ref)
        if policy is None or is_terminating(policy):
            return None
        missing = unlisted(cache)
        if missing:
            return StatusObserved(policy, unlisted=missing)
        if not is_root(policy, cache):
            return None
        decisions = decide(policy, bound_of(cache, ref.namespace))
        return StatusObserved(policy, decisions, copies_of(cache, ref.namespace, ref.name))

    reported = differ(labels_of, lambda one: dig(one, "status", "compliant"))
    return Controller(
        name="policy-status",
        kind=POLICIES,
        predicate=differ(generation, uid_of),
        watches=(
            Watch(POLICIES, root_of_copy, reported),
            Watch(BINDINGS, policies_of_binding, spec_or_binding),
            Watch(SETS, policies_of_set, spec_differs),
            Watch(PLACEMENTS, policies_of_placement, comes_or_goes),
            Watch(DECISIONS, policies_of_placement, differ(labels_of, lambda one: one.get("status"))),
        ),
        observe=observe,
        plan=plan_status,
        debounce_s=DEBOUNCE_S,
    )


@dataclass(frozen=True, slots=True)
class SetObserved:
    policy_set: Obj = field(repr=False)
    policies: Mapping[str, Obj] = field(default_factory=dict, repr=False)
    bound: Bound = field(default_factory=Bound)
    unlisted: tuple[str, ...] = ()


def plan_set(observed: SetObserved, _now: datetime) -> Plan:
    """Plan the status of a PolicySet."""
    if observed.unlisted:
        return Plan(*awaiting_lists(observed.unlisted))
    status = set_status_of(observed.policy_set, observed.policies, observed.bound)
    why = str(status.get("statusMessage") or "it has no policies")
    return Plan(why=why, status=set_status(observed.policy_set, status, why))


def set_controller() -> Controller[SetObserved]:
    """Return the controller of PolicySets: their status."""

    def observe(cache: Snapshot, ref: ObjectRef) -> SetObserved | None:
        found = cache.get(ref)
        if found is None or is_terminating(found):
            return None
        if missing := unlisted(cache):
            return SetObserved(found, unlisted=missing)
        policies = {name_of(one): one for one in cache.objects(POLICIES, ref.namespace)}
        return SetObserved(found, policies, bound_of(cache, ref.namespace))

    return Controller(
        name="policy-set",
        kind=SETS,
        predicate=differ(generation, uid_of),
        watches=(
            Watch(POLICIES, sets_of_policy, differ(generation, uid_of, lambda one: one.get("status"))),
            Watch(BINDINGS, sets_of_namespace, spec_or_binding),
            Watch(DECISIONS, sets_of_namespace, differ(labels_of, lambda one: one.get("status"))),
        ),
        observe=observe,
        plan=plan_set,
        debounce_s=DEBOUNCE_S,
    )
