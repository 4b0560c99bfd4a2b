"""The controller of the node agent: binds its planner to Nodes and the objects that they depend on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Plan, Result
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIGURATION
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    ref_of,
    resource_version,
)
from syncline.machineconfig.agent.hosts import Hosts
from syncline.machineconfig.agent.planning.notes import POST_ACTION, WRITING, WRITING_IMAGE
from syncline.machineconfig.agent.planning.observe import AgentObserved, observe_agent
from syncline.machineconfig.agent.planning.plan import AgentSettings, plan_agent
from syncline.machineconfig.agent.planning.settling import settle_agent
from syncline.machineconfig.drain.progress import PROGRESS
from syncline.machineconfig.names import (
    CONTROLLER_CONFIG,
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    LAST_DRAIN,
    MACHINE_CONFIG,
    MACHINE_CONFIG_NODE,
    POOL,
    REASON,
    STATE,
)

AGENT = "machine-config-agent"
"""Name of the controller, by which machines wake it."""
NODE = GroupKind("", "Node")
_NOTES = (CURRENT, DESIRED, CURRENT_IMAGE, DESIRED_IMAGE, STATE, REASON, DESIRED_DRAIN, LAST_DRAIN, POST_ACTION)
_OURS = (PROGRESS, WRITING, WRITING_IMAGE)


def _notes(node: Obj) -> tuple[Any, ...]:
    have = annotations_of(node)
    return tuple(have.get(key) for key in (*_NOTES, *_OURS))


def _unborn(pool: Obj) -> Any:
    return dig(pool, "spec", "configuration"), dig(pool, "status", "configuration"), dig(pool, "spec", "nodeSelector")


def agent_controller(hosts: Hosts, settings: AgentSettings | None = None) -> Controller[AgentObserved]:
    """Return the controller of kind Node, for nodes whose machine is in ``hosts``."""
    chosen = settings or AgentSettings()

    def settle(
        observed: AgentObserved, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[AgentObserved, Plan] | None:
        return settle_agent(observed, plan, results, now, chosen)

    return Controller(
        name=AGENT,
        kind=NODE,
        watches=(
            Watch(MACHINE_CONFIG, _waiting_for, spec_differs),
            Watch(POOL, _joining, differ(_unborn)),
            Watch(MACHINE_CONFIGURATION.group_kind, _unfinished),
            Watch(CONTROLLER_CONFIG, _everybody),
        ),
        reads=(MACHINE_CONFIG_NODE,),
        predicate=differ(_notes, labels_of),
        observe=lambda cache, ref: observe_agent(cache, ref, hosts),
        plan=lambda observed, now: plan_agent(observed, now, chosen),
        settle=settle,
        stimulus=_stimulus,
    )


def _stimulus(observed: AgentObserved) -> tuple[object, ...]:
    """Return the inputs whose change may let a failed update succeed. The agent's own notes and writes are left out, or
    an undone update would wake itself forever."""
    have, facts = annotations_of(observed.node), observed.facts
    asked = tuple(have.get(key) for key in (CURRENT, DESIRED, DESIRED_DRAIN, LAST_DRAIN))
    of_host = (
        facts.boot_id,
        facts.up,
        facts.forced,
        facts.touched,
        facts.image,
        facts.stored and name_of(facts.stored),
    )
    rest = (observed.misplaced, observed.waived, observed.desired, observed.policies)
    return asked, of_host, rest, resource_version(observed.controller_config or {})


def _waiting_for(config: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(node) for node in cache.objects(NODE) if annotations_of(node).get(DESIRED) == name_of(config))


def _everybody(_config: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(node) for node in cache.objects(NODE) if annotations_of(node).get(CURRENT))


def _joining(_pool: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(node) for node in cache.objects(NODE) if not annotations_of(node).get(CURRENT))


def _unfinished(_setting: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(node) for node in cache.objects(NODE) if annotations_of(node).get(STATE) != "Done")
