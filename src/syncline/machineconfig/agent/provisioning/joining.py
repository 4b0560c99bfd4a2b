"""Plans how a machine becomes a managed node: from a blank disk to its first annotations; pure.

A blank machine gets what the config server serves its pool; a machine installed by Ignition has that already. Its first
boot stages what differs and reboots. Then its node is annotated from the install, else from the disk, else with the
config of its pool. All state is on the disk and in the node. Source: Machine Config Operator
``RunFirstbootCompleteMachineconfig``, ``loadNodeAnnotations`` and ``checkStateOnFirstRun``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from syncline.control.plan import Plan, Requeue
from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.machineconfig.agent.files.script import Script, fail
from syncline.machineconfig.agent.planning.observe import AgentObserved, Provisioning
from syncline.machineconfig.agent.provisioning.firstboot import (
    FirstBootError,
    first_boot,
    first_boot_steps,
    interrupted_steps,
)
from syncline.machineconfig.agent.staging.beyond import beyond_reach
from syncline.machineconfig.agent.steps import (
    EndFirstBoot,
    EndJoining,
    Ignite,
    LookAtBoot,
    Provision,
    StoreConfig,
)
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    ENCAPSULATED,
    LAST_DRAIN,
    REASON,
    STATE,
)


def plan_joining(observed: AgentObserved, now: datetime) -> Plan | None:
    """Return the plan of one reconcile, or None if the node has joined and the disk records its config."""
    facts, name, have = observed.facts, name_of(observed.node), annotations_of(observed.node)
    joining = facts.joining
    if joining.damage:
        return fail(observed, joining.damage, now)
    if joining.reboot_from:
        steps = interrupted_steps(name, joining.reboot_from, facts.boot_id)
        return Plan(tuple((step,) for step in steps), Requeue(0, "the first boot"), f"the first boot of {name}")
    if joining.encapsulated is not None:
        return _missed(observed, now) if have.get(CURRENT) else _first_boot(observed, joining.encapsulated, now)
    if not have.get(CURRENT):
        return _begin(observed, now)
    if joining.annotations is not None:
        return Plan(((EndJoining(name, "its node says it"),),), Requeue(0, "joined"), f"{name} has joined")
    if not have.get(DESIRED):
        return Plan(why=f"{name} has no desired configuration yet")
    if facts.stored is None and observed.current is not None:
        step = Provision(name, observed.current, "its disk does not say what it has")
        return Plan(((step,),), Requeue(0, "provisioned"), f"{name} is taken over as it is")
    return None


def _first_boot(observed: AgentObserved, config: Obj, now: datetime) -> Plan:
    name = name_of(observed.node)
    if observed.booted is None:
        return Plan(((LookAtBoot(name, "its first boot"),),), why=f"check what {name} has booted")
    try:
        boot = first_boot(config, observed.booted)
    except FirstBootError as error:
        return fail(observed, str(error), now)
    if boot.changed and boot.refusal is not None:
        return fail(observed, f"can't reconcile config {name_of(boot.old)} with {name_of(config)}: {boot.refusal}", now)
    beyond = beyond_reach(observed.node, observed.facts.fixed, config)
    if beyond:
        return fail(observed, f"{name} cannot boot with {name_of(config)}: {beyond}", now)
    script = Script(observed, now, f"the first boot of {name} with {name_of(config)}")
    if boot.changed:
        script.event("Reboot", f"Completing firstboot provisioning to {name_of(config)}")
    for step in first_boot_steps(name, boot, observed.facts.boot_id):
        script.do(step)
    return script.plan(Requeue(0, "the first boot"))


def _missed(observed: AgentObserved, now: datetime) -> Plan:
    """Give up the first boot of a node that has joined, since it must not reboot undrained; report it."""
    name, why = name_of(observed.node), "it joined before its first boot was finished"
    script = Script(observed, now, f"{name}: {why}")
    script.event("FirstBootMissed", f"{why}; its config is kept in {ENCAPSULATED}.bak", warning=True)
    script.do(EndFirstBoot(name, "", why, kept=True))
    return script.plan(Requeue(0, "the first boot is given up"))


def _begin(observed: AgentObserved, now: datetime) -> Plan:
    name, facts, provisioning = name_of(observed.node), observed.facts, observed.provisioning
    if provisioning is None:
        return Plan(why="no pool has a config for it yet")
    if provisioning.config is None:
        return fail(observed, f'machineconfig.machineconfiguration.openshift.io "{provisioning.named}" not found', now)
    beyond = beyond_reach(observed.node, facts.fixed, provisioning.config)
    if beyond:
        return fail(observed, f"{name} cannot join with {provisioning.named}: {beyond}", now)
    script = Script(observed, now, f"{name} joins with {provisioning.named}")
    said = facts.joining.annotations
    if said is None and facts.stored is None and facts.blank:
        script.do(Ignite(name, provisioning.config, provisioning.image, provisioning.boot_image, "it joins"))
        return script.plan(Requeue(0, "ignited"))
    stored = name_of(facts.stored) if facts.stored is not None else ""
    if said is not None and (stored, facts.image) != (provisioning.named, provisioning.image):
        script.do(StoreConfig(name, provisioning.config, "it joins", provisioning.image))
    elif said is None and stored != provisioning.named:
        script.do(Provision(name, provisioning.config, "it joins"))
    asked = f"uncordon-{provisioning.named}"
    # Without a state: the first check of the disk decides it.
    script.annotate({**_first(said, provisioning), STATE: None, REASON: "", DESIRED_DRAIN: asked, LAST_DRAIN: asked})
    return script.plan()


def _first(said: Mapping[str, str] | None, provisioning: Provisioning) -> dict[str, str]:
    if said is not None:
        return {**said, DESIRED: said.get(DESIRED) or provisioning.named}
    images = {CURRENT_IMAGE: provisioning.image, DESIRED_IMAGE: provisioning.image} if provisioning.image else {}
    return {CURRENT: provisioning.named, DESIRED: provisioning.named, **images}
