"""The controller that brings the policies of a cluster from its hub, keeps the objects of their templates, and reports
their compliance. Its keys are replicated policies in the cluster's namespace on the hub; while the hub is away the
copies and their objects stay as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Apply, Create, Delete, Done, Emit, Outcome, Plan, Replace, Requeue, Result, set_status
from syncline.kube.kinds.governance import CERTIFICATE_POLICY, CONFIGURATION_POLICY, GROUP, OPERATOR_POLICY, POLICY
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    gvk_of,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
    uid_of,
)
from syncline.patterns.policies.cluster.details import (
    compliance,
    detail,
    entry,
    found_in,
    history_of,
    latest_message,
)
from syncline.patterns.policies.cluster.link import PolicyLink
from syncline.patterns.policies.cluster.templating import UNIQUE, Dependency, Entry, Judged, judge
from syncline.patterns.policies.names import CLUSTER_NAME, CLUSTER_NAMESPACE, KEY_SECRET, PARENT, ROOT_LABEL, State

CONTROLLER: Final = "policy-sync"
POLICIES: Final = POLICY.group_kind
SECRETS: Final = GroupKind("", "Secret")
NAMESPACES: Final = GroupKind("", "Namespace")
TEMPLATES: Final = tuple(one.group_kind for one in (CERTIFICATE_POLICY, CONFIGURATION_POLICY, OPERATOR_POLICY))
MANAGER: Final = "governance-policy-framework"
MAPPING_S: Final = 10.0
"""Seconds until a template whose kind is not served is looked at again."""


@dataclass(frozen=True, slots=True)
class PolicyObserved:
    """``policy``: as the hub has it, None: it is gone there; ``copy``: as the cluster has it; ``leftovers``: objects of
    templates that it does not have any more; ``here``: hub and cluster are one; ``problem``: why nothing can be said.
    ``placed``: the namespace of its copy exists; ``ended``: everything is planned."""

    name: str
    cluster: str
    policy: Obj | None = field(default=None, repr=False)
    copy: Obj | None = field(default=None, repr=False)
    entries: tuple[Entry, ...] = ()
    leftovers: tuple[Obj, ...] = ()
    here: bool = False
    problem: str = ""
    placed: bool = True
    ended: bool = False


# -- the plan ----------------------------------------------------------------------------------------------------------


def plan_policy(observed: PolicyObserved, spoke: str, now: datetime) -> Plan:
    """Plan one policy. ``spoke``: name of the agent's own cluster in its loop."""
    if observed.problem:
        return Plan(why=observed.problem)
    policy, copy = observed.policy, observed.copy
    if policy is None:
        return _plan_gone(observed, spoke)
    if is_terminating(policy):
        return Plan(why="the policy is being deleted on the hub")
    if copy is None or is_terminating(copy):
        if copy is not None:
            return Plan(why="its copy is being deleted; a new one follows")
        return Plan(_first(observed, policy, spoke), why="the cluster does not have it yet")
    if not observed.here and not _is_copy(policy, copy):
        changed = {**copy, "spec": policy.get("spec") or {}}
        changed["metadata"] = {**meta(copy), "annotations": annotations_of(policy), "labels": _labels(observed, policy)}
        step = (_there(Replace(changed, "it has changed on the hub"), spoke),)
        return Plan((step,), why="it has changed on the hub")
    return _plan_templates(observed, policy, copy, spoke, now)


def _plan_gone(observed: PolicyObserved, spoke: str) -> Plan:
    copy = observed.copy
    why = "the hub does not have it any more"
    if copy is None or is_terminating(copy):
        return Plan(why=why)
    return Plan(((_there(Delete.of(copy, why), spoke),),), why=why)


def _first(observed: PolicyObserved, policy: Obj, spoke: str) -> tuple[tuple[Action, ...], ...]:
    why = "the hub has it for this cluster"
    made: Obj = {
        "apiVersion": policy.get("apiVersion"),
        "kind": policy.get("kind"),
        "metadata": {
            "name": observed.name,
            "namespace": observed.cluster,
            "labels": _labels(observed, policy),
            "annotations": annotations_of(policy),
        },
        "spec": policy.get("spec") or {},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": observed.cluster}}
    steps: list[tuple[Action, ...]] = []
    if not observed.placed:
        steps.append((_there(Create(namespace, "policies of the cluster live in it"), spoke),))
    return (*steps, (_there(Create(made, why), spoke),))


def _labels(observed: PolicyObserved, policy: Obj) -> dict[str, str]:
    return {**labels_of(policy), CLUSTER_NAMESPACE: observed.cluster}


def _is_copy(policy: Obj, copy: Obj) -> bool:
    return policy.get("spec") == copy.get("spec") and annotations_of(policy) == annotations_of(copy)


def _there(action: Any, spoke: str) -> Action:
    made: Action = replace(action, cluster=spoke)
    return made


def _plan_templates(observed: PolicyObserved, policy: Obj, copy: Obj, spoke: str, now: datetime) -> Plan:
    before: list[Obj] = dig(copy, "status", "details") or dig(policy, "status", "details") or []
    names = [one.name for one in observed.entries]
    duplicate = len(set(names)) < len(names)
    judged: list[Judged] = []
    for one in observed.entries:
        if duplicate:
            judged.append(Judged(said=f"NonCompliant; template-error; {UNIQUE}"))
        else:
            judged.append(judge(copy, one, before, observed.cluster))
    writes = [_there(action, spoke) for one in judged for action in one.writes]
    writes += [_there(Delete.of(one, "its policy does not have it any more"), spoke) for one in observed.leftovers]
    details, news = _details(observed, judged, before, now)
    state = compliance(details, State(str(dig(copy, "status", "compliant") or "")))
    status: Obj = {"details": details} | ({"compliant": str(state)} if state else {})
    reports: list[Action] = [*news] if not news else [_there(one, spoke) for one in news]
    if not observed.here:
        reports += set_status(policy, {**_others(policy), **status}, "report to the hub")
    reports += (_there(one, spoke) for one in set_status(copy, {**_others(copy), **status}, "as on the hub"))
    waits = any(not one.mapped for one in observed.entries)
    outcome: Outcome = Requeue(MAPPING_S, "a kind is not served yet", background=True) if waits else Done()
    why = f"the cluster is {state or 'not judged yet'}"
    return Plan((tuple(writes),) if writes else (), outcome, why, tuple(reports))


def _others(policy: Obj) -> Obj:
    """Return what a status has beside the report of a cluster: of a policy that is its own root, too."""
    return {key: one for key, one in (policy.get("status") or {}).items() if key not in ("compliant", "details")}


def _details(
    observed: PolicyObserved, judged: list[Judged], before: list[Obj], now: datetime
) -> tuple[list[Obj], list[Emit]]:
    made, news = [], []
    for one, verdict in zip(observed.entries, judged, strict=True):
        known = None if verdict.foreign else found_in(before, one.name)
        entries = [] if verdict.foreign or not _ours(one.live, observed.name) else history_of(one.live, observed.name)
        if verdict.said and verdict.said not in latest_message([known] if known else [], 0):
            entries = [*entries, entry(observed.name, now, verdict.said)]
            news.append(_event(observed, one, verdict.said))
        made.append(detail(one.name, entries, known))
    return made, news


def _ours(live: Obj | None, policy: str) -> bool:
    if live is None:
        return False
    named = next((one.get("name") for one in owner_references(live) if one.get("kind") == POLICY.kind), None)
    return (named or labels_of(live).get(PARENT)) == policy


def _event(observed: PolicyObserved, template: Entry, message: str) -> Emit:
    assert observed.copy is not None, "only copies are judged"
    reason = f"policy: {observed.cluster}/{template.name}"[:128]
    bad = not message.startswith(State.COMPLIANT)
    return Emit(observed.copy, reason, message[:1024], "policy-template-sync", warning=bad, limited=True)


# -- observing ---------------------------------------------------------------------------------------------------------


def observe_policy(hub: Snapshot, ref: ObjectRef, link: PolicyLink) -> PolicyObserved | None:
    """Return what is known of a policy of this cluster; None: it concerns another one."""
    if ref.namespace != link.cluster:
        return None
    observed = PolicyObserved(ref.name, link.cluster)
    problem = hub.unread(ref) or ("" if hub.has_synced(POLICIES) else "policies of the hub are not listed yet")
    spoke = link.spoke()
    if problem or spoke is None or not spoke.has_synced(POLICIES):
        there = link.problem() or "policies of the cluster are not listed yet"
        return replace(observed, problem=f"policies of the hub cannot be read: {problem}" if problem else there)
    policy, copy = hub.get(ref), spoke.get(ObjectRef(*POLICIES, link.cluster, ref.name))
    if policy is None and (copy is None or not _is_of_hub(copy, link.cluster)):
        return None
    placed = spoke.get(ObjectRef(*NAMESPACES, "", link.cluster)) is not None
    observed = replace(observed, policy=policy, copy=copy, placed=placed)
    if policy is None or copy is None:
        return observed
    entries = _entries(policy, spoke, link)
    named = {(gvk_of(one.definition).kind, name_of(one.definition)) for one in entries}
    left = tuple(
        one
        for kind in TEMPLATES
        for one in spoke.objects(kind, link.cluster)
        if labels_of(one).get(PARENT) == ref.name and (kind.kind, name_of(one)) not in named and not is_terminating(one)
    )
    return replace(observed, entries=entries, leftovers=left, here=uid_of(policy) == uid_of(copy))


def _is_of_hub(copy: Obj, cluster: str) -> bool:
    """Return whether a policy on the cluster is a copy from a hub, and not one of people there."""
    labels = labels_of(copy)
    return ROOT_LABEL in labels and labels.get(CLUSTER_NAME) == cluster


def _entries(policy: Obj, spoke: Snapshot, link: PolicyLink) -> tuple[Entry, ...]:
    top, conflict = _dependencies(dig(policy, "spec", "dependencies") or (), {})
    made = []
    for index, raw in enumerate(dig(policy, "spec", "policy-templates") or ()):
        raw = raw if isinstance(raw, dict) else {}
        needs, conflict = _dependencies(raw.get("extraDependencies") or (), top)
        one = Entry(index, raw, conflict=conflict)
        gvk = gvk_of(one.definition)
        info = spoke.mapper.find(gvk)
        live = spoke.get(ObjectRef(gvk.group, gvk.kind, link.cluster, name_of(one.definition)))
        states = tuple(_dependency(key, wanted, spoke, link.cluster) for key, wanted in needs.items())
        made.append(replace(one, live=live, mapped=info is not None, needs=states))
    return tuple(made)


_Key = tuple[str, str, str, str]


def _dependencies(listed: Iterable[Any], known: dict[_Key, str]) -> tuple[dict[_Key, str], str]:
    """Return dependencies by (apiVersion, kind, namespace, name), and the name of one in two states."""
    made, conflict = dict(known), ""
    for one in listed:
        if not isinstance(one, dict):
            continue
        parts = [str(one.get(key) or "") for key in ("apiVersion", "kind", "namespace", "name")]
        key: _Key = (parts[0], parts[1], parts[2], parts[3])
        wanted = str(one.get("compliance") or "")
        if made.get(key, wanted) != wanted:
            conflict = key[3]
            continue
        made[key] = wanted
    return made, conflict


def _dependency(key: _Key, wanted: str, spoke: Snapshot, cluster: str) -> Dependency:
    """Return a dependency with its state. Those of policies are looked for in the cluster's namespace, as upstream
    does; of other kinds none is read: they are not there."""
    api_version, kind, namespace, name = key
    group = api_version.partition("/")[0]
    place = cluster if group == GROUP and kind.endswith("Policy") else namespace
    found = spoke.get(ObjectRef(group, kind, place, name))
    state = dig(found, "status", "compliant") if found is not None else None
    return Dependency(kind, name, wanted, str(state) if state else None)


# -- the controllers ---------------------------------------------------------------------------------------------------


def policy_controller(link: PolicyLink) -> Controller[PolicyObserved]:
    """Return the controller of the policies that a hub has for its cluster."""

    def observe(hub: Snapshot, ref: ObjectRef) -> PolicyObserved | None:
        return observe_policy(hub, ref, link)

    def plan(observed: PolicyObserved, now: datetime) -> Plan:
        return plan_policy(observed, link.spoke_name, now)

    def settle(
        observed: PolicyObserved, _plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[PolicyObserved, Plan] | None:
        """Go on from a copy that was just written."""
        written = [one.value for one in results if isinstance(one.action, Create | Replace) and one.ok]
        copy = next((one for one in written if isinstance(one, dict) and one.get("kind") == POLICY.kind), None)
        if copy is None or observed.ended or observed.policy is None or not all(one.ok for one in results):
            return None
        spoke = link.spoke()
        entries = _entries(observed.policy, spoke, link) if spoke is not None else ()
        after = replace(observed, copy=copy, entries=entries, ended=True)
        return after, plan(after, now)

    def all_of(cluster: str, hub: Snapshot) -> Iterable[ObjectRef]:
        spoke = link.spoke()
        if cluster != link.spoke_name or spoke is None:
            return ()
        both = (*hub.objects(POLICIES, link.cluster), *spoke.objects(POLICIES, link.cluster))
        return {ObjectRef(*POLICIES, link.cluster, name_of(one)) for one in both}

    def same(obj: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        """Return the policy with this name, and those that depend on it."""
        if namespace_of(obj) == link.cluster:
            yield ObjectRef(*POLICIES, link.cluster, name_of(obj))
            yield from depending(obj, _spoke)

    def of_template(obj: Obj, spoke: Snapshot) -> Iterable[ObjectRef]:
        if namespace_of(obj) == link.cluster:
            owner = labels_of(obj).get(PARENT)
            if owner:
                yield ObjectRef(*POLICIES, link.cluster, owner)
            yield from depending(obj, spoke)

    def depending(obj: Obj, _spoke: Snapshot) -> Iterable[ObjectRef]:
        spoke = link.spoke()
        for one in spoke.objects(POLICIES, link.cluster) if spoke is not None else ():
            if _names(one, ref_of(obj).kind, name_of(obj)):
                yield ObjectRef(*POLICIES, link.cluster, name_of(one))

    changed = differ(generation, uid_of, is_terminating, labels_of, owner_references, lambda one: one.get("status"))
    return Controller(
        name=CONTROLLER,
        kind=POLICIES,
        predicate=differ(generation, uid_of, is_terminating, annotations_of, lambda one: one.get("status")),
        watches=(
            Watch(POLICIES, same, changed, cluster=link.spoke_name),
            *(Watch(kind, of_template, changed, cluster=link.spoke_name) for kind in TEMPLATES),
            Watch(NAMESPACES, lambda _obj, _cache: (), comes_or_goes, cluster=link.spoke_name),
        ),
        observe=observe,
        plan=plan,
        settle=settle,
        reaches=all_of,
    )


def _names(policy: Obj, kind: str, name: str) -> bool:
    """Return whether a policy depends on an object."""
    listed = [*(dig(policy, "spec", "dependencies") or ())]
    for one in dig(policy, "spec", "policy-templates") or ():
        listed += (one.get("extraDependencies") or ()) if isinstance(one, dict) else ()
    return any(isinstance(one, dict) and (one.get("kind"), one.get("name")) == (kind, name) for one in listed)


def key_controller(link: PolicyLink) -> Controller[Obj]:
    """Return the controller that brings the key of encrypted values from the hub."""

    def observe(hub: Snapshot, ref: ObjectRef) -> Obj | None:
        secret = hub.get(ref)
        mine = ref.namespace == link.cluster and ref.name == KEY_SECRET
        spoke = link.spoke()
        if secret is None or not mine or spoke is None:
            return None
        return secret if spoke.get(ObjectRef(*NAMESPACES, "", link.cluster)) is not None else None

    def plan(secret: Obj, _now: datetime) -> Plan:
        metadata = {"name": KEY_SECRET, "namespace": link.cluster}
        wanted = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": secret.get("data") or {}}
        why = "policies of this cluster hold values that are encrypted with it"
        return Plan(((Apply(wanted, MANAGER, why, force=True, cluster=link.spoke_name),),), why=why)

    def always(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*SECRETS, link.cluster, KEY_SECRET),)

    return Controller(
        name="policy-key",
        kind=SECRETS,
        predicate=differ(lambda one: one.get("data")),
        watches=(Watch(NAMESPACES, always, comes_or_goes, cluster=link.spoke_name),),
        observe=observe,
        plan=plan,
        reaches=lambda _cluster, _hub: (ObjectRef(*SECRETS, link.cluster, KEY_SECRET),),
    )
