"""The controller of the ConfigurationPolicies of a cluster. Its keys are objects of the agent's own cluster, in the
namespace that has the name of the ManagedCluster: no other policies are carried out with the rights of the agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.informer import CRDS
from syncline.control.plan import Done, Outcome, Patch, Plan, Requeue, Result, SetStatus, set_status
from syncline.kube.kinds.governance import CONFIGURATION_POLICY
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    finalizers,
    generation,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
    resource_version,
    uid_of,
)
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.patterns.policies.cluster.actions import Evaluate, Evaluated, FollowKinds, Prune, Pruned
from syncline.patterns.policies.cluster.concluding import News, concluded, terminating
from syncline.patterns.policies.cluster.link import PolicyLink
from syncline.patterns.policies.cluster.memory import Memory
from syncline.patterns.policies.cluster.relating import dropped
from syncline.patterns.policies.cluster.telling import events_of
from syncline.patterns.policies.names import PRUNE_FINALIZER, State, is_enforced

CONTROLLER: Final = "configuration-policy"
KIND: Final = CONFIGURATION_POLICY.group_kind
POLL_S: Final = 60.0
"""Seconds between two looks at what is not watched."""
PRUNE_RETRY_S: Final = 5.0
WATCH, NEVER = "watch", "never"


@dataclass(frozen=True, slots=True)
class ConfigurationObserved:
    """``turn``: when the policy may be evaluated next, None: now; ``fresh``: it was not evaluated since the start.
    ``wanted``, ``asked``: kinds to watch for all policies, and those that are. ``unfollowed``: it looks at something
    that is not watched. ``after``: what became of the evaluation; ``ended``: everything is planned."""

    policy: Obj = field(repr=False)
    turn: datetime | None = None
    fresh: bool = True
    wanted: frozenset[GroupKind] = frozenset()
    asked: frozenset[GroupKind] = frozenset()
    unfollowed: bool = False
    after: Evaluated | None = None
    ended: bool = False

    @property
    def prunes(self) -> bool:
        return dig(self.policy, "spec", "pruneObjectBehavior") in ("DeleteAll", "DeleteIfCreated")

    @property
    def makes(self) -> bool:
        """Return whether the policy must know later what it has made."""
        return self.prunes and is_enforced(dig(self.policy, "spec", "remediationAction"))


def plan_configuration(observed: ConfigurationObserved, now: datetime) -> Plan:
    """Plan the next look at a policy."""
    policy = observed.policy
    if is_terminating(policy):
        return _plan_removal(observed)
    finalizing = _finalizer(observed)
    due = _due(observed, now)
    if due is not None:
        steps = (finalizing,) if finalizing else ()
        if isinstance(due, bool):
            return Plan(steps, Done(), "it is not to be looked at again (evaluationInterval: never)")
        return Plan(steps, _later(due, now), "it is to be looked at later")
    if observed.turn is not None and observed.turn > now:
        return Plan(outcome=_later(observed.turn, now), why="it was evaluated three times within ten seconds")
    look = Evaluate(policy, now, "see whether the cluster complies", hold=observed.makes)
    return Plan(tuple(step for step in (finalizing, (look,)) if step), why="it is due")


def _later(when: datetime, now: datetime) -> Outcome:
    return Requeue(max((when - now).total_seconds(), 0.05), "its evaluation interval ends", background=True)


def _finalizer(observed: ConfigurationObserved) -> tuple[Patch, ...]:
    policy = observed.policy
    has = PRUNE_FINALIZER in finalizers(policy)
    if has == observed.prunes:
        return ()
    kept = [one for one in finalizers(policy) if one != PRUNE_FINALIZER]
    wanted = [*kept, PRUNE_FINALIZER] if observed.prunes else kept
    return (_finalizers(policy, wanted, "its objects go with it" if observed.prunes else "its objects stay"),)


def _finalizers(policy: Obj, wanted: list[str], why: str) -> Patch:
    metadata = {"uid": uid_of(policy), "resourceVersion": resource_version(policy), "finalizers": wanted}
    return Patch(CONFIGURATION_POLICY, namespace_of(policy), name_of(policy), {"metadata": metadata}, why)


def _due(observed: ConfigurationObserved, now: datetime) -> datetime | bool | None:
    """Return None if the policy is due, else when it is (False: never, by its evaluation interval)."""
    policy = observed.policy
    status = policy.get("status") or {}
    last = time_or_none(status.get("lastEvaluated"))
    if last is None or status.get("lastEvaluatedGeneration") != generation(policy):
        return None
    state = status.get("compliant")
    if state not in (State.COMPLIANT, State.NON_COMPLIANT):
        return None
    interval = interval_of(policy, state == State.COMPLIANT)
    if interval in (WATCH, NEVER):
        return False if interval == NEVER else None
    assert isinstance(interval, timedelta), "an interval is a word or a duration"
    return last + interval if last + interval > now else None


def interval_of(policy: Obj, compliant: bool) -> timedelta | str:
    """Return when a policy in this state is evaluated again: ``watch``, ``never``, or after a time."""
    given = dig(policy, "spec", "evaluationInterval", "compliant" if compliant else "noncompliant") or WATCH
    if given in (WATCH, NEVER):
        return str(given)
    try:
        return parse_duration(str(given))
    except DurationError:
        return WATCH


def _plan_removal(observed: ConfigurationObserved) -> Plan:
    policy = observed.policy
    if PRUNE_FINALIZER not in finalizers(policy):
        return Plan(why="it is being deleted")
    entries = tuple(dig(policy, "status", "relatedObjects") or ())
    if not (observed.prunes and is_enforced(dig(policy, "spec", "remediationAction"))):
        entries = ()
    return Plan(((_prune(policy, entries, "its policy is deleted"),),), why="its objects are deleted first")


def _prune(policy: Obj, entries: tuple[Obj, ...], why: str) -> Prune:
    return Prune(entries, dig(policy, "spec", "pruneObjectBehavior") == "DeleteAll", why)


# -- after the look ----------------------------------------------------------------------------------------------------


def settle_configuration(
    observed: ConfigurationObserved, results: tuple[Result, ...], now: datetime
) -> tuple[ConfigurationObserved, Plan] | None:
    """Return the report, or None at the end."""
    if observed.ended or not all(one.ok for one in results):
        return None
    patched = next((one.value for one in results if isinstance(one.action, Patch)), None)
    policy = {**patched, "status": observed.policy.get("status") or {}} if patched else observed.policy
    observed = replace(observed, policy=policy)
    pruned = next((one.value for one in results if isinstance(one.action, Prune)), None)
    if is_terminating(policy):
        return _settle_removal(observed, pruned, now) if pruned is not None else None
    noted = next((one.value for one in results if isinstance(one.action, SetStatus)), None)
    if noted is not None:
        look = Evaluate(noted, now, "make what is missing")
        return replace(observed, policy=noted), Plan(((look,),), why="it is noted what is to be made")
    found = next((one.value for one in results if isinstance(one.action, Evaluate)), observed.after)
    if not isinstance(found, Evaluated):
        return None
    if found.held:
        known = dig(policy, "status", "relatedObjects") or ()
        entries = [*(found.related or ()), *dropped(known, found.related or ())]
        status = {**(policy.get("status") or {}), "relatedObjects": entries}
        note = set_status(policy, status, "note what is about to be made")
        look = Evaluate(policy, now, "make what is missing")
        return observed, Plan((note or (look,),), why="objects are missing")
    before = dig(policy, "status", "relatedObjects") or ()
    gone = dropped(before, found.related) if found.related is not None and found.settled else ()
    if gone and observed.makes and pruned is None:
        prune = _prune(policy, gone, "the policy does not name it any more")
        return replace(observed, after=found), Plan(((prune,),), why="objects are not named any more")
    return _settled(observed, found, pruned, now)


def _settled(
    observed: ConfigurationObserved, found: Evaluated, pruned: Pruned | None, now: datetime
) -> tuple[ConfigurationObserved, Plan]:
    """Return the report. What could not be pruned stays in the status, and is tried again."""
    left = pruned.entries if pruned is not None else ()
    if left:
        found = replace(found, related=(*(found.related or ()), *left), again_s=PRUNE_RETRY_S)
    status, news = concluded(observed.policy, found, now)
    steps: list[tuple[Any, ...]] = []
    if observed.wanted != observed.asked:
        steps.append((FollowKinds(observed.wanted, "watch what policies look at"),))
    report = _report(observed.policy, observed, status, news)
    outcome = _outcome(observed, status, found, now)
    why = news[-1].message if news else "nothing has changed"
    return replace(observed, after=found, ended=True), Plan(tuple(steps), outcome, why, report)


def _report(policy: Obj, observed: ConfigurationObserved, status: Obj, news: tuple[News, ...]) -> tuple[Any, ...]:
    """Return the status, if it says something else (or its policy is evaluated at intervals), and Events."""
    before = observed.policy.get("status") or {}
    plain = [{key: value for key, value in one.items() if key != "lastEvaluated"} for one in (before, status)]
    timed = any(interval_of(policy, one) not in (WATCH, NEVER) for one in (True, False))
    if plain[0] == plain[1] and not timed:
        return ()
    actions = set_status({**policy, "status": before}, status, "report what was found")
    return (*actions, *events_of(policy, news))


def _outcome(observed: ConfigurationObserved, status: Obj, found: Evaluated, now: datetime) -> Outcome:
    if found.lasts:
        return Done()
    interval = interval_of(observed.policy, status.get("compliant") == State.COMPLIANT)
    if isinstance(interval, timedelta):
        return Requeue(max(interval.total_seconds(), 0.05), "its evaluation interval ends", background=True)
    if interval == NEVER:
        return Done()
    if found.again_s:
        return Requeue(found.again_s, "something of it failed", background=True)
    if any(one.kind not in observed.wanted for one in found.tracked):
        return Requeue(POLL_S, "it looks at what is not watched", background=True)
    return Done()


def _settle_removal(
    observed: ConfigurationObserved, pruned: Pruned, now: datetime
) -> tuple[ConfigurationObserved, Plan]:
    policy = observed.policy
    if not pruned.left:
        kept = [one for one in finalizers(policy) if one != PRUNE_FINALIZER]
        last = _finalizers(policy, kept, "its objects are deleted")
        return replace(observed, ended=True), Plan(((last,),), why="its objects are deleted")
    status, news = terminating(policy, pruned.left, now)
    why = f"objects are left: {', '.join(pruned.left)}"
    report = _report(policy, observed, status, news)
    return replace(observed, ended=True), Plan((), Requeue(PRUNE_RETRY_S, why), why, report)


# -- the controller ----------------------------------------------------------------------------------------------------


def configuration_controller(link: PolicyLink, memory: Memory) -> Controller[ConfigurationObserved]:
    """Return the controller; ``memory``: what it remembers."""

    def observe(spoke: Snapshot, ref: ObjectRef) -> ConfigurationObserved | None:
        policy = spoke.get(ref)
        if policy is None or ref.namespace != link.cluster:
            memory.forget(ref)
            return None
        wanted = memory.kinds()
        return ConfigurationObserved(
            policy, memory.next_turn(ref), memory.is_new(ref), wanted, memory.asked, memory.unfollowed(ref)
        )

    def settle(
        observed: ConfigurationObserved, _plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[ConfigurationObserved, Plan] | None:
        ref = ref_of(observed.policy)
        for one in results:
            if isinstance(one.action, FollowKinds) and one.ok:
                memory.asked = one.action.kinds
            if isinstance(one.action, Evaluate) and one.ok:
                memory.keep(ref, one.value.tracked, now)
                observed = replace(observed, wanted=memory.kinds())
        return settle_configuration(observed, results, now)

    def looking(obj: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        return memory.policies_of(obj, KIND)

    def defined(definition: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        return memory.policies_of_definition(definition, KIND)

    def matters(old: Obj | None, new: Obj | None) -> bool:
        known = new if new is not None else old
        return known is not None and memory.tracks(ref_of(known))

    return Controller(
        name=CONTROLLER,
        kind=KIND,
        cluster=link.spoke_name,
        predicate=differ(
            generation,
            uid_of,
            is_terminating,
            finalizers,
            annotations_of,
            lambda one: bool(dig(one, "status", "compliant")),
        ),
        watches=(
            Watch(None, looking, matters, cluster=link.spoke_name, wanted=False, gather_s=0.5),
            Watch(CRDS, defined, differ(uid_of), cluster=link.spoke_name, gather_s=0.5),
        ),
        observe=observe,
        plan=plan_configuration,
        settle=settle,
    )
