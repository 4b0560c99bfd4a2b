"""What the agent sees: its node, its machine, the two configurations, and what the cluster says about disruption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.control.cache import Snapshot
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIGURATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig
from syncline.machineconfig.agent.hosts import HostFacts, Hosts
from syncline.machineconfig.names import CURRENT, DESIRED, MACHINE_CONFIG, MACHINE_CONFIG_NODE, POOL, TOPOLOGY
from syncline.machineconfig.policy import effective_policies
from syncline.machineconfig.pools.membership import MembershipError, primary_pool
from syncline.machineconfig.server.world import served_config

__all__ = ["WRITING", "AgentObserved", "Checked", "observe_agent"]

WRITING = "syncline.dev/writing"
"""Of a node: the MachineConfig whose files are being written. It is finished before another one is begun."""

_CLUSTER = ObjectRef(MACHINE_CONFIGURATION.group, MACHINE_CONFIGURATION.kind, "", "cluster")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a comparison of the disk found; None: nothing differs."""

    difference: str | None


@dataclass(frozen=True)
class AgentObserved:
    """``current`` and ``desired``: MachineConfigs that the annotations name. ``birth``: what the pool serves to a
    machine that joins. ``policies``: effective ones, None while the cluster has not caught up. ``misplaced``: why
    no pool can be told for it. ``checked``: what this pass found on the disk."""

    node: Obj
    facts: HostFacts
    current: Obj | None = None
    desired: Obj | None = None
    birth: Obj | None = None
    record: Obj | None = None
    policies: Obj | None = None
    misplaced: str = ""
    waived: tuple[str, ...] = ()
    checked: Checked | None = None

    @property
    def topology(self) -> str:
        return annotations_of(self.node).get(TOPOLOGY, "")


def observe_agent(cache: Snapshot, ref: ObjectRef, hosts: Hosts) -> AgentObserved | None:
    """None for nodes without a machine of ours, and until everything was listed once."""
    node, facts = cache.get(ref), hosts.facts(ref.name)
    if node is None or facts is None:
        return None
    if not all(cache.has_synced(kind) for kind in (MACHINE_CONFIG, POOL, MACHINE_CONFIG_NODE)):
        return None
    have = annotations_of(node)

    def config(name: str) -> Obj | None:
        return cache.get(ObjectRef(*MACHINE_CONFIG, "", name)) if name else None

    setting = cache.get(_CLUSTER)
    try:
        primary_pool(node, cache.objects(POOL))
        misplaced = ""
    except MembershipError as error:
        misplaced = str(error)
    return AgentObserved(
        node,
        facts,
        current=config(have.get(CURRENT, "")),
        desired=config(have.get(WRITING) or have.get(DESIRED, "")),
        birth=None if have.get(CURRENT) else config(_served(node, cache)),
        record=cache.get(ObjectRef(*MACHINE_CONFIG_NODE, "", ref.name)),
        policies=_policies(setting),
        misplaced=misplaced,
        waived=tuple(dig(setting, "spec", "irreconcilableValidationOverrides", "storage", default=()) or ()),
    )


def _served(node: Obj, cache: Snapshot) -> str:
    """What the config server gives to the node's pool; the new config where none is proven, since a simulated machine
    does not come from there."""
    try:
        pool = primary_pool(node, cache.objects(POOL))
    except MembershipError:
        return ""
    if pool is None:
        return ""
    return served_config(pool) or str(dig(pool, "spec", "configuration", "name", default="") or "")


def _policies(setting: Mapping[str, object] | None) -> Obj | None:
    """From the status of MachineConfiguration ``cluster``; without the object upstream's own."""
    if setting is None:
        return effective_policies(None)
    if dig(setting, "status", "observedGeneration", default=0) != dig(setting, "metadata", "generation", default=0):
        return None
    found: Obj | None = dig(setting, "status", "nodeDisruptionPolicyStatus", "clusterPolicies")
    return found if found is not None else effective_policies(dig(setting, "spec", "nodeDisruptionPolicy"))
