"""Plans the next steps of a node's agent; pure. Entry point: :func:`plan_agent`.

All state is in the node's annotations, the config that its disk records and the phases of its MachineConfigNode, so a
new process continues the work. This module decides the order of the checks; updates are in
``machineconfig/agent/planning/updating.py``, their end in ``machineconfig/agent/planning/resting.py``, failures in
``machineconfig/agent/planning/undoing.py``. Order and messages: Machine Config Operator ``update`` and ``syncNode``,
reference machine-config 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from syncline.base.clock import format_time, time_or_none
from syncline.control.plan import Plan, Requeue
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.agent.files.authorities import AUTHORITIES, AuthorityError, authorities_due
from syncline.machineconfig.agent.files.script import Script, fail, say_degraded
from syncline.machineconfig.agent.files.serverauthority import ROTATED, is_rotating, rotated_flag
from syncline.machineconfig.agent.planning.due import Due, DueError, drain_is_open
from syncline.machineconfig.agent.planning.notes import (
    POST_ACTION,
    REBOOT_FROM,
    REBOOTING,
    WRITING,
    reboot_request,
)
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.playing import ansible_drift, unplayed
from syncline.machineconfig.agent.planning.resting import come_to_rest, watch
from syncline.machineconfig.agent.planning.undoing import put_back
from syncline.machineconfig.agent.planning.updating import plan_update
from syncline.machineconfig.agent.provisioning.joining import plan_joining
from syncline.machineconfig.agent.steps import (
    ReadServerAuthority,
    RebootHost,
    WriteAuthorities,
)
from syncline.machineconfig.drain.progress import Progress
from syncline.machineconfig.names import (
    CURRENT,
    DESIRED,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    FAILED_STATES,
    STATE,
)
from syncline.machineconfig.nodes.phases import Phase

REBOOT_AGAIN_S = 600.0
"""Seconds until a requested reboot that does not happen is requested again."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Time limits; the defaults are upstream's."""

    drain_limit_s: float = 3600.0
    """Seconds after which an unfinished drain makes the node Degraded; the drain continues."""
    uncordon_limit_s: float = 600.0
    """Seconds after which an unfinished uncordon makes the node Degraded."""


def plan_agent(observed: AgentObserved, now: datetime, settings: AgentSettings = AgentSettings()) -> Plan:
    """Return the plan of one reconcile."""
    have, facts, name = annotations_of(observed.node), observed.facts, name_of(observed.node)
    if not facts.up:
        return Plan(why=f"machine {name} is not up")
    joining = plan_joining(observed, now)
    if joining is not None:
        return joining
    authorities = _authorities(observed, now)
    if authorities is not None:
        return authorities
    if have.get(POST_ACTION) == REBOOTING and have.get(REBOOT_FROM):
        return _after_reboot(observed, now)
    if drain_is_open(observed.node):
        return _await_drain(observed, have[DESIRED_DRAIN], now, settings)
    until = facts.plays.under_way(now)
    if until is not None:
        left = (until - now).total_seconds()
        return Plan(outcome=Requeue(left, "a run of Ansible"), why=f"{name} runs Ansible until {format_time(until)}")
    if have.get(WRITING):
        # An interrupted reconcile is repeated from its start: nothing records how far it came.
        begun = observed.begun
        if begun is None:
            return fail(observed, _lost(observed), now)
        return put_back(observed, begun, now) if have.get(STATE) in FAILED_STATES else plan_update(observed, begun, now)
    try:
        due = observed.due
    except DueError as error:
        return fail(observed, str(error), now)
    if facts.forced and observed.desired is not None and facts.stored is not None:
        return plan_update(observed, Due(facts.stored, observed.desired, facts.image, have.get(DESIRED_IMAGE, "")), now)
    if due is not None and not due.arrived:
        return plan_update(observed, due, now)
    if facts.stored is not None and unplayed(observed):
        return plan_update(observed, Due(facts.stored, facts.stored, facts.image, facts.image), now)
    drift = ansible_drift(observed, now)
    if drift is not None:
        return drift
    return watch(observed, now) if due is None else come_to_rest(observed, due, now)


def _authorities(observed: AgentObserved, now: datetime) -> Plan | None:
    """Return the plan to write authorities, or None if they are current or there are none."""
    name, config, have = name_of(observed.node), observed.controller_config, annotations_of(observed.node)
    try:
        due = authorities_due(observed.node, config)
    except AuthorityError as error:
        return fail(observed, str(error), now)
    if due is None or config is None:
        return None
    rotating = is_rotating(observed.node, config)
    if rotating and observed.server is None:
        return Plan(((ReadServerAuthority(name, "they rotate"),),), why=f"what {name} is to know the API server by")
    notes = {AUTHORITIES: due.version}
    if not rotating or observed.server:  # missing ones are requested again
        notes |= {ROTATED: rotated_flag(config)} if rotated_flag(config) or ROTATED in have else {}
    if all(have.get(key) == value for key, value in notes.items()):
        return None
    script = Script(observed, now, f"{name} gets the authorities of today")
    due = replace(due, server=(observed.server or b"") if rotating else b"")
    script.do(WriteAuthorities(name, due, "they come past rendered configs"))
    script.annotate(notes)
    return script.plan(Requeue(0, "authorities written"))


def _lost(observed: AgentObserved) -> str:
    """Return the error about a missing MachineConfig that is needed to finish an update."""
    name = annotations_of(observed.node)[CURRENT if observed.current is None else WRITING]
    return f'machineconfig.machineconfiguration.openshift.io "{name}" not found'


def _after_reboot(observed: AgentObserved, now: datetime) -> Plan:
    have, facts, name = annotations_of(observed.node), observed.facts, name_of(observed.node)
    if have.get(REBOOT_FROM, "") == facts.boot_id:
        request = reboot_request(have[DESIRED], facts.boot_id)
        again = Requeue(REBOOT_AGAIN_S, "its reboot", background=True)
        return Plan(((RebootHost(name, request, "its update needs it"),),), again, f"{name} has not rebooted yet")
    script = Script(observed, now, f"{name} has rebooted")
    script.annotate({POST_ACTION: "", REBOOT_FROM: None})
    script.phase(Phase("RebootedNode", "True", "RebootedNode", "Node has rebooted"))
    stored = name_of(facts.stored) if facts.stored is not None else ""
    if stored and stored != have.get(DESIRED):
        message = f"Booting node {name}, currentConfig {stored}, desiredConfig {have.get(DESIRED, '')}"
        script.event("BootResync", message)
    return script.plan()


def _await_drain(observed: AgentObserved, asked: str, now: datetime, settings: AgentSettings) -> Plan:
    """Wait for a requested drain or uncordon; a newer target is not checked before."""
    name, verb = name_of(observed.node), asked.partition("-")[0]
    began, limit_s, limit = _asked(observed, verb, settings)
    if began is None:
        return Plan(why=f"{name} waits for {asked}")
    left = (began + timedelta(seconds=limit_s) - now).total_seconds()
    if left > 0:
        what = f"the {verb} of {name}"
        return Plan(outcome=Requeue(left, what, background=True), why=f"{name} waits for {asked}")
    if annotations_of(observed.node).get(STATE) in FAILED_STATES:
        return Plan(why=f"{name} waits for {asked}, and says so")
    text = (
        f"failed to {verb} node: {name} after {limit}. Please see machine-config-controller logs for more information"
    )
    script = Script(observed, now, text)
    script.event(f"FailedTo{verb.capitalize()}", text, warning=True)
    say_degraded(script, name, text)
    return script.plan()


def _asked(observed: AgentObserved, verb: str, settings: AgentSettings) -> tuple[datetime | None, float, str]:
    """Return since when the node waits for a drain or uncordon (None: unknown), for how many seconds at most, and that
    limit as text. The start of an uncordon is the record's condition Resumed."""
    if verb == "drain":
        progress = Progress.of(observed.node)
        return progress.began if progress is not None else None, settings.drain_limit_s, "1 hour"
    if verb != "uncordon":
        return None, 0, ""
    conditions = dig(observed.record, "status", "conditions") or ()
    resumed: Obj = next((each for each in conditions if each.get("type") == "Resumed"), {})
    since = resumed.get("lastTransitionTime") if resumed.get("status") == "True" else None
    return time_or_none(since), settings.uncordon_limit_s, "10 minutes"
