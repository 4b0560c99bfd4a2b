"""The input of the agent's planner: its node, its machine, two configurations and the disruption policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.control.cache import Snapshot
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIGURATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of
from syncline.machineconfig.agent.hosts import HostFacts, Hosts
from syncline.machineconfig.agent.planning.due import Due, OnDisk, reported_by, update_due
from syncline.machineconfig.agent.planning.notes import WRITING, WRITING_IMAGE
from syncline.machineconfig.agent.planning.work import Played
from syncline.machineconfig.agent.provisioning.firstboot import Booted
from syncline.machineconfig.agent.steps import Checked
from syncline.machineconfig.names import (
    CONTROLLER_CONFIG,
    CONTROLLER_CONFIG_NAME,
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    MACHINE_CONFIG,
    MACHINE_CONFIG_NODE,
    POOL,
    STATE,
    TOPOLOGY,
)
from syncline.machineconfig.policies.model import effective_policies
from syncline.machineconfig.pools.membership import MembershipError, primary_pool
from syncline.machineconfig.server.world import image_for_new_machine, served_config, world_of

CLUSTER = ObjectRef(MACHINE_CONFIGURATION.group, MACHINE_CONFIGURATION.kind, "", "cluster")
"""The MachineConfiguration that holds for all nodes."""


@dataclass(frozen=True, slots=True)
class Provisioning:
    """The first config of a machine. ``config`` is None if ``named`` does not exist. ``image``: of image mode, else
    empty; ``boot_image``: what a blank machine boots first, if possible the release's own image."""

    named: str
    config: Obj | None
    image: str = ""
    boot_image: str = ""


@dataclass(frozen=True)
class AgentObserved:
    """The input of the planner. ``current`` and ``desired``: MachineConfigs that the annotations name; while files are
    written, ``desired`` is the config being written. ``provisioning``: the first config of a machine without
    annotations. ``policies``: the effective ones, None while the status is outdated. ``misplaced``: why no pool can be
    determined. ``checked``, ``booted``, ``irreconcilable``, ``server``: results of this reconcile (disk, running
    system, settings it will never have, the API server's certificates), None until read. ``pool``: the owner.
    ``looked``: this reconcile checked the plays for drift."""

    node: Obj
    facts: HostFacts
    current: Obj | None = None
    desired: Obj | None = None
    provisioning: Provisioning | None = None
    record: Obj | None = None
    policies: Obj | None = None
    misplaced: str = ""
    waived: tuple[str, ...] = ()
    checked: Checked | None = None
    booted: Booted | None = None
    irreconcilable: list[Obj] | None = None
    controller_config: Obj | None = None
    pool: Obj | None = None
    server: bytes | None = None
    looked: bool = False

    @property
    def played(self) -> Played:
        return Played(self.facts.plays, self.facts.boot_id)

    @property
    def topology(self) -> str:
        return annotations_of(self.node).get(TOPOLOGY, "")

    @property
    def due(self) -> Due | None:
        """See :func:`~syncline.machineconfig.agent.planning.due.update_due`; without a state the node has just joined.
        Raises DueError."""
        configs = {name_of(one): one for one in (self.current, self.desired) if one is not None}
        disk = OnDisk(self.facts.stored, self.facts.image) if self.facts.stored is not None else None
        if STATE in annotations_of(self.node):
            return update_due(self.node, configs, disk)
        report = reported_by(self.node, configs)
        there = disk or OnDisk(report.current, report.current_image)
        return Due(there.config, report.desired, there.image, report.desired_image)

    @property
    def begun(self) -> Due | None:
        """The update whose files are being written, from the node's current config; None if there is none, or a config
        of it is gone."""
        have = annotations_of(self.node)
        if not have.get(WRITING) or self.current is None or self.desired is None:
            return None
        return Due(self.current, self.desired, have.get(CURRENT_IMAGE, ""), have.get(WRITING_IMAGE, ""))


def observe_agent(cache: Snapshot, ref: ObjectRef, hosts: Hosts) -> AgentObserved | None:
    """Return the input, or None for a node without a machine here and until all kinds were listed."""
    node, facts = cache.get(ref), hosts.facts(ref.name)
    if node is None or facts is None:
        return None
    if not all(cache.has_synced(kind) for kind in (MACHINE_CONFIG, POOL, MACHINE_CONFIG_NODE)):
        return None
    have = annotations_of(node)

    def config(name: str) -> Obj | None:
        return cache.get(ObjectRef(*MACHINE_CONFIG, "", name)) if name else None

    setting, pool, misplaced = cache.get(CLUSTER), None, ""
    try:
        pool = primary_pool(node, cache.objects(POOL))
    except MembershipError as error:
        misplaced = str(error)
    return AgentObserved(
        node,
        facts,
        current=config(have.get(CURRENT, "")),
        desired=config(have.get(WRITING) or have.get(DESIRED, "")),
        provisioning=None if have.get(CURRENT) else _provisioning(node, facts, cache),
        record=cache.get(ObjectRef(*MACHINE_CONFIG_NODE, "", ref.name)),
        policies=policies_in_force(setting),
        misplaced=misplaced,
        controller_config=cache.get(ObjectRef(*CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME)),
        waived=waived_sections(setting),
        pool=pool,
    )


def _provisioning(node: Obj, facts: HostFacts, cache: Snapshot) -> Provisioning | None:
    """Return the first config: that of the install, else of the disk, else of the node's pool as the config server
    gives it, else the pool's newest. None: not known yet."""

    def config(name: str) -> Obj | None:
        return cache.get(ObjectRef(*MACHINE_CONFIG, "", name))

    said, stored = facts.joining.annotations, facts.stored
    if said is not None:
        return Provisioning(said.get(CURRENT, ""), config(said.get(CURRENT, "")), said.get(CURRENT_IMAGE, ""))
    if stored is not None and config(name_of(stored)) is not None:
        return Provisioning(name_of(stored), config(name_of(stored)), facts.image)
    try:
        pool = primary_pool(node, cache.objects(POOL))
    except MembershipError:
        return None
    name = "" if pool is None else served_config(pool) or str(dig(pool, "spec", "configuration", "name") or "")
    found = config(name) if name else None
    if pool is None or found is None:
        return None
    world = world_of(cache, "")
    base = str(dig(world.controller_config, "spec", "baseOSContainerImage") or dig(found, "spec", "osImageURL") or "")
    return Provisioning(name, found, image_for_new_machine(pool, world), base)


def waived_sections(setting: Mapping[str, object] | None) -> tuple[str, ...]:
    """Return the storage sections in which nodes may differ, from MachineConfiguration ``cluster``."""
    return tuple(dig(setting, "spec", "irreconcilableValidationOverrides", "storage", default=()) or ())


def policies_in_force(setting: Mapping[str, object] | None) -> Obj | None:
    """Return the effective policies of the object's status, or upstream's; None while the status is outdated."""
    if setting is None:
        return effective_policies(None)
    if dig(setting, "status", "observedGeneration", default=0) != dig(setting, "metadata", "generation", default=0):
        return None
    found: Obj | None = dig(setting, "status", "nodeDisruptionPolicyStatus", "clusterPolicies")
    return found if found is not None else effective_policies(dig(setting, "spec", "nodeDisruptionPolicy"))
