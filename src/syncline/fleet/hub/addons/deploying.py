"""The plan of an add-on's agent on one cluster: its registration and rights on the hub, its works, its hooks, its
health; pure. :func:`plan_agent`.

Rules: ``addon-framework`` of upstream (``registration``, ``agentdeploy``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Done, Patch, Plan, awaiting_lists, set_status
from syncline.fleet.addons import (
    CONFIGURED,
    HOOK_COMPLETED,
    HOSTING_APPLIED,
    MANIFEST_APPLIED,
    PRE_DELETE,
    REGISTRATION_APPLIED,
    hosted,
    install_namespace,
)
from syncline.fleet.conditions import condition, find_condition, is_true, with_condition
from syncline.fleet.hub.addons.agents import Agent, Health, bindings, owned_by_parent
from syncline.fleet.hub.addons.health import availability, reporting
from syncline.fleet.hub.addons.works import deploy_works, hook_name, hook_work, hooks_done
from syncline.fleet.hub.registration.leases import AVAILABLE as CLUSTER_AVAILABLE
from syncline.fleet.hub.replicasets.works import write_work
from syncline.kube.kinds.managedaddons import MANAGED_ADDON
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    finalizers,
    gvk_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
    resource_version,
    uid_of,
)


@dataclass(frozen=True, slots=True)
class Observed:
    """An add-on on a cluster, the cluster, its works, the configs of built-in kinds that it is to have (None: missing),
    and the RoleBindings of add-ons of this name. ``listed``: they are known; ``orphan``: its ClusterManagementAddOn is
    gone, so that it gets no more rights."""

    addon: Obj
    cluster: Obj | None
    works: tuple[Obj, ...] = ()
    configs: Mapping[GroupKind, Obj | None] = field(default_factory=dict)
    rights: Mapping[ObjectRef, Obj] = field(default_factory=dict)
    listed: bool = True
    orphan: bool = False


Make = Callable[[Obj, Obj, Mapping[GroupKind, Obj | None]], Agent]
"""Returns the agent for a cluster, an add-on and its configs; pure."""


def plan_agent(make: Make) -> Callable[[Observed, datetime], Plan]:
    """Return the planner of agents that ``make`` describes."""

    def plan(observed: Observed, now: datetime) -> Plan:
        addon, cluster = observed.addon, observed.cluster
        if not observed.listed:
            return Plan(*awaiting_lists(("add-ons, clusters, configs and works",)))
        if cluster is None or not owned_by_parent(addon):
            return Plan(why="the add-on has no cluster or no owner yet")
        if PRE_DELETE not in finalizers(addon) and (is_terminating(addon) or is_terminating(cluster)):
            return Plan(why="the add-on is being deleted, and its works with it")
        agent = make(cluster, addon, observed.configs)
        if agent.waits:
            return Plan(why=agent.waits, status=_status(addon, _supported(addon, agent), "the configs it supports"))
        return _planned(observed, cluster, agent, now)

    return plan


def _planned(observed: Observed, cluster: Obj, agent: Agent, now: datetime) -> Plan:
    addon = observed.addon
    draft = _Draft(_supported(addon, agent), now)
    rights = _registration(observed, agent, draft)
    if hosted(addon):
        why = f"hosted mode is not supported: remove the annotation that names hosting cluster {hosted(addon)}"
        draft.say(HOSTING_APPLIED, "False", "HostedModeNotSupported", why)
        return Plan((rights,) if rights else (), Done(), why, _status(addon, draft.status, why))
    configured = is_true(draft.status.get("conditions") or (), CONFIGURED)
    if agent.supported and not configured:
        why = "the configs of the add-on are not decided yet"
        return Plan((rights,) if rights else (), Done(), why, _status(addon, draft.status, why))
    if agent.problem:
        why = f"failed to get manifest from agent interface: {agent.problem}"
        draft.say(MANIFEST_APPLIED, "False", "ManifestWorkApplyFailed", why)
        return Plan((rights,) if rights else (), Done(), why, _status(addon, draft.status, why))
    kept = _finalizer(addon, hook_work(addon, agent.manifests), observed.works, draft)
    if kept:
        return Plan((kept,), Done(), "the hooks of the add-on")
    changes = _works(observed, agent, draft)
    _healthy(observed, cluster, agent, draft)
    steps = ((*rights, *changes),) if rights or changes else ()
    why = "the works of the add-on"
    return Plan(steps, Done(), why, _status(addon, draft.status, why))


@dataclass(slots=True)
class _Draft:
    """The status as it will be written."""

    status: Obj
    now: datetime

    def say(self, kind: str, status: str, reason: str, message: str) -> None:
        self.set(condition(kind, status, reason, message))

    def set(self, new: Obj) -> None:
        self.status = {
            **self.status,
            "conditions": with_condition(self.status.get("conditions") or (), new, self.now),
        }

    def forget(self, kind: str) -> None:
        kept = [one for one in self.status.get("conditions") or () if one.get("type") != kind]
        self.status = {**self.status, "conditions": kept}

    def fill(self, **fields: Any) -> None:
        empty = [key for key, value in fields.items() if not value]
        self.status = {key: value for key, value in (self.status | fields).items() if key not in empty}


def _supported(addon: Obj, agent: Agent) -> Obj:
    kinds = [{"group": one.group, "resource": one.resource} for one in agent.supported]
    status: Obj = addon.get("status") or {}
    return {**status, "supportedConfigs": kinds} if kinds else status


def _status(addon: Obj, status: Obj, why: str) -> tuple[Action, ...]:
    return set_status(addon, status, why)


def _registration(observed: Observed, agent: Agent, draft: _Draft) -> tuple[Action, ...]:
    """Say who the agent is on the hub, and return the writes of its rights."""
    addon, text = observed.addon, "Registration of the addon agent is configured"
    if observed.orphan:
        return ()
    if agent.registrations is None:
        draft.say(REGISTRATION_APPLIED, "True", "NilRegistration", text)
        return ()
    # Never what the status says of them: the cluster may write it, and would give rights of the hub to others.
    made = list(agent.registrations)
    asked = {**addon, "status": {}}
    draft.fill(registrations=made, namespace=agent.namespace or install_namespace(asked))
    wanted = bindings(addon, agent, made)
    if wanted is None:
        draft.say(REGISTRATION_APPLIED, "False", "PermissionConfigPending", "registration subject not ready")
        return ()
    draft.say(REGISTRATION_APPLIED, "True", "SetPermissionApplied", text)
    return tuple(action for one in wanted for action in _bound(one, observed.rights.get(ref_of(one))))


def _bound(wanted: Obj, live: Obj | None) -> tuple[Action, ...]:
    why = "the rights of the add-on's agent"
    if live is None:
        return (Create(wanted, why),)
    if live.get("roleRef") != wanted["roleRef"]:
        return (Delete.of(live, f"{why} are others; a binding keeps its role"),)  # It is created when it is gone.
    if live.get("subjects") == wanted["subjects"]:
        return ()
    body = {"metadata": {"resourceVersion": resource_version(live)}, "subjects": wanted["subjects"]}
    return (Patch(gvk_of(wanted), namespace_of(wanted), name_of(wanted), body, why),)


def _finalizer(addon: Obj, hook: Obj | None, works: tuple[Obj, ...], draft: _Draft) -> tuple[Action, ...]:
    """Return the write of the finalizer that keeps an add-on until its hooks are done."""
    has = PRE_DELETE in finalizers(addon)
    if not is_terminating(addon):
        return _kept(addon, hook is not None) if has != (hook is not None) else ()
    if hook is None:
        return _kept(addon, False) if has else ()
    live = next((one for one in works if name_of(one) == name_of(hook)), None)
    if live is None or not hooks_done(live):
        text = f"hook manifestWork {name_of(hook)} is not completed."
        draft.say(HOOK_COMPLETED, "False", "HookManifestIsNotCompleted", text)
        return ()
    return _kept(addon, False)


def _kept(addon: Obj, keep: bool) -> tuple[Action, ...]:
    rest = [one for one in finalizers(addon) if one != PRE_DELETE]
    made = [*rest, PRE_DELETE] if keep else rest
    body = {"metadata": {"uid": uid_of(addon), "resourceVersion": resource_version(addon), "finalizers": made}}
    why = "hooks run before the add-on goes" if keep else "the add-on has no hooks that must still run"
    return (Patch(MANAGED_ADDON, namespace_of(addon), name_of(addon), body, why),)


def _works(observed: Observed, agent: Agent, draft: _Draft) -> tuple[Action, ...]:
    """Return the writes of the works, and say how the agent of the cluster applied them."""
    addon = {**observed.addon, "status": draft.status}
    configs = reporting(agent.manifests, agent.configs) if agent.health is Health.WORKLOADS else list(agent.configs)
    own = [one for one in observed.works if namespace_of(one) == namespace_of(addon)]
    wanted, left = deploy_works(addon, agent.manifests, configs, own)
    if is_terminating(addon):
        hook = hook_work(addon, agent.manifests)
        wanted += [hook] if hook else []
    live = {name_of(one): one for one in own}
    changes: list[Action] = [Delete.of(one, "the add-on has no manifest in it any more") for one in left]
    for one in wanted:
        write = write_work(_over(one, live.get(name_of(one))), live.get(name_of(one)), "the manifests of the add-on")
        changes += [write] if write else []
    deployed = [one for one in wanted if name_of(one) != hook_name(name_of(addon))]
    _applied([live.get(name_of(one)) for one in deployed], draft)
    return tuple(changes)


def _over(wanted: Obj, live: Obj | None) -> Obj:
    """Keep the labels and annotations that others gave a work."""
    if live is None:
        return wanted
    metadata = dict(wanted["metadata"])
    metadata["labels"] = {**labels_of(live), **labels_of(wanted)}
    notes = {**annotations_of(live), **annotations_of(wanted)}
    return {**wanted, "metadata": metadata | ({"annotations": notes} if notes else {})}


def _applied(works: list[Obj | None], draft: _Draft) -> None:
    said = [find_condition(dig(one or {}, "status", "conditions") or (), "Applied") for one in works]
    if not works:
        draft.say(MANIFEST_APPLIED, "True", "AddonManifestApplied", "no manifest need to apply")
    elif any(one is not None and one.get("status") != "True" for one in said):
        draft.say(MANIFEST_APPLIED, "False", "AddonManifestAppliedFailed", "failed to apply the manifests of addon")
    elif all(one is not None for one in said):
        text = "manifests of addon are applied successfully"
        draft.say(MANIFEST_APPLIED, "True", "AddonManifestApplied", text)
    else:
        live = find_condition(draft.status.get("conditions") or (), MANIFEST_APPLIED)
        if live is not None and live.get("status") == "False":
            draft.forget(MANIFEST_APPLIED)  # What it says is of before; the agent has not answered yet.


def _healthy(observed: Observed, cluster: Obj, agent: Agent, draft: _Draft) -> None:
    """Say whether the add-on runs, where its works tell. Of a lost cluster another controller speaks."""
    draft.fill(healthCheck={"mode": agent.health.value})
    conditions = draft.status.get("conditions") or ()
    said = find_condition(dig(cluster, "status", "conditions") or (), CLUSTER_AVAILABLE) or {}
    applied = find_condition(conditions, MANIFEST_APPLIED) is not None
    if agent.health is Health.WORKLOADS and applied and said.get("status") != "Unknown":
        draft.set(availability(observed.addon, agent.manifests, observed.works))
