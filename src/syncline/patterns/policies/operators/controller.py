"""The controller of the OperatorPolicies of a cluster, and of its CertificatePolicies. As with ConfigurationPolicies,
only those in the namespace that has the name of the ManagedCluster are carried out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.informer import CRDS
from syncline.control.plan import Done, Outcome, Plan, Requeue, Result, set_status
from syncline.kube.kinds.governance import OPERATOR_POLICY
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    is_terminating,
    labels_of,
    ref_of,
    uid_of,
)
from syncline.patterns.policies.cluster.actions import FollowKinds
from syncline.patterns.policies.cluster.link import PolicyLink
from syncline.patterns.policies.cluster.memory import Memory
from syncline.patterns.policies.cluster.telling import events_of
from syncline.patterns.policies.operators.evaluating import Operate, Operated

CONTROLLER: Final = "operator-policy"
KIND: Final = OPERATOR_POLICY.group_kind
POLL_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class OperatorObserved:
    """``turn``: when the policy may be evaluated next, None: now; ``wanted``, ``asked``: kinds to watch for all
    policies, and those that are; ``ended``: everything is planned."""

    policy: Obj = field(repr=False)
    turn: datetime | None = None
    wanted: frozenset[GroupKind] = frozenset()
    asked: frozenset[GroupKind] = frozenset()
    ended: bool = False
    look: type[Operate] = Operate


def plan_operator(observed: OperatorObserved, now: datetime) -> Plan:
    """Plan the next look at a policy."""
    policy = observed.policy
    if is_terminating(policy):
        return Plan(why="it is being deleted")
    if observed.turn is not None and observed.turn > now:
        wait = Requeue(max((observed.turn - now).total_seconds(), 0.05), "it may be evaluated again", background=True)
        return Plan(outcome=wait, why="it was evaluated three times within ten seconds")
    return Plan(((observed.look(policy, now, "see what is there"),),), why="it is due")


def settle_operator(observed: OperatorObserved, results: tuple[Result, ...]) -> tuple[OperatorObserved, Plan] | None:
    """Return the report, or None at the end."""
    found = next((one.value for one in results if isinstance(one.action, Operate) and one.ok), None)
    if observed.ended or not isinstance(found, Operated):
        return None
    policy = observed.policy
    steps: tuple[tuple[FollowKinds, ...], ...] = ()
    if observed.wanted != observed.asked:
        steps = ((FollowKinds(observed.wanted, "watch what policies look at"),),)
    report = (*set_status(policy, found.status, "report what was found"), *events_of(policy, found.news))
    why = found.error or (found.news[-1].message if found.news else "nothing has changed")
    return replace(observed, ended=True), Plan(steps, _outcome(observed, found), why, report)


def _outcome(observed: OperatorObserved, found: Operated) -> Outcome:
    if found.again_s:
        return Requeue(found.again_s, found.error or found.waits, background=True)
    if any(one.kind not in observed.wanted for one in found.tracked):
        return Requeue(POLL_S, "it looks at what is not watched", background=True)
    return Done()


def _claim(policy: Obj | None) -> tuple[Any, ...]:
    """Return what of a policy concerns others: which operator it installs, and whether it is enforced."""
    return tuple(
        dig(policy or {}, *path)
        for path in (("status", "resolvedSubscriptionLabel"), ("spec", "remediationAction"), ("metadata", "uid"))
    )


def operator_controller(
    link: PolicyLink, memory: Memory, name: str = CONTROLLER, kind: GroupKind = KIND, look: type[Operate] = Operate
) -> Controller[OperatorObserved]:
    """Return the controller; ``memory``: what it and that of ConfigurationPolicies remember; ``look``: the action that
    evaluates a policy of ``kind``."""

    def observe(spoke: Snapshot, ref: ObjectRef) -> OperatorObserved | None:
        policy = spoke.get(ref)
        if policy is None or ref.namespace != link.cluster:
            memory.forget(ref)
            return None
        return OperatorObserved(policy, memory.next_turn(ref), memory.kinds(), memory.asked, look=look)

    def settle(
        observed: OperatorObserved, _plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[OperatorObserved, Plan] | None:
        for one in results:
            if isinstance(one.action, FollowKinds) and one.ok:
                memory.asked = one.action.kinds
            if isinstance(one.action, Operate) and one.ok:
                memory.keep(ref_of(observed.policy), one.value.tracked, now)
                observed = replace(observed, wanted=memory.kinds())
        return settle_operator(observed, results)

    def looking(obj: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        return memory.policies_of(obj, kind)

    def defined(definition: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        return memory.policies_of_definition(definition, kind)

    def matters(old: Obj | None, new: Obj | None) -> bool:
        known = new if new is not None else old
        if known is None or not memory.tracks(ref_of(known)):
            return False
        return ref_of(known).group_kind != kind or _claim(old) != _claim(new)

    return Controller(
        name=name,
        kind=kind,
        cluster=link.spoke_name,
        predicate=differ(
            generation,
            uid_of,
            is_terminating,
            annotations_of,
            labels_of,
            lambda one: bool(dig(one, "status", "compliant")),
        ),
        watches=(
            Watch(None, looking, matters, cluster=link.spoke_name, wanted=False, gather_s=0.5),
            Watch(CRDS, defined, differ(uid_of), cluster=link.spoke_name, gather_s=0.5),
        ),
        observe=observe,
        plan=plan_operator,
        settle=settle,
    )
