"""Plans Ansible's part of a node: checks before an update, drift at rest, and what follows from a run; pure.

Called by ``machineconfig/agent/planning/{plan,updating,resting,settling}.py``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from syncline.control.plan import Plan, Requeue, Result
from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.agent.files.script import Script, fail
from syncline.machineconfig.agent.planning.notes import POST_ACTION, REBOOT_FROM, REBOOTING, reboot_request
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.work import Work, plays_left
from syncline.machineconfig.agent.steps import CheckPlays, PlanPlays, RebootHost, RunPlays
from syncline.machineconfig.ansible.journal import DRIFTED, check_due
from syncline.machineconfig.ansible.outcome import names_of
from syncline.machineconfig.ansible.play import plays_of
from syncline.machineconfig.ansible.running import Interrupted, StillRuns, WantsReboot


def unplayed(observed: AgentObserved) -> bool:
    """Return whether the config on the disk has plays that must run, or be followed by a reboot, though nothing else
    of it is due: a run that did not end, or a machine that joined."""
    try:
        return bool(plays_left(observed.facts.stored, observed.played))
    except ValueError:
        return False  # the check of the disk reports it


def plan_first(observed: AgentObserved, new: Obj, work: Work) -> Plan | None:
    """Return the plan to check what the plays would change, before the node is disturbed; None if that is known."""
    known = observed.facts.plays.entries
    names = [play.name for play in work.plays if play.name not in known or known[play.name].plan != play.digest]
    if not names:
        return None
    name = name_of(observed.node)
    step = PlanPlays(name, new, tuple(names), "before the node is disturbed")
    return Plan(((step,),), why=f"check on {name} what AnsibleConfig {', '.join(names)} would change")


def ansible_drift(observed: AgentObserved, now: datetime) -> Plan | None:
    """Return the plan to check plays for drift, or to report it; None if there is none to be seen now."""
    config, journal, name = observed.facts.stored, observed.facts.plays, name_of(observed.node)
    if config is None or not journal.entries:
        return None
    try:
        plays = plays_of(config)
    except ValueError:
        return None
    due, _ = check_due(plays, journal, now)
    drifted = [play for play in plays if play.name in journal.entries and journal.entries[play.name].phase == DRIFTED]
    again = sorted({play.name for play in (*due, *drifted)})
    if again and not observed.looked:
        step = CheckPlays(name, config, tuple(again), "a check is due")
        return Plan(((step,),), why=f"look for drift from AnsibleConfig {', '.join(again)} on {name}")
    if not drifted:
        return None
    found = []
    for play in drifted:
        would = names_of(journal.entries[play.name].tasks)
        found.append(f"AnsibleConfig {play.name}: drift: a run would change {would}")
    return fail(observed, "; ".join(found), now, event="ConfigDriftDetected")


def next_check(observed: AgentObserved, now: datetime) -> Requeue | None:
    """Return when the next check for drift is due; None: no play has any."""
    try:
        _, left = check_due(plays_of(observed.facts.stored), observed.facts.plays, now)
    except ValueError:
        return None
    return None if left is None else Requeue(left, "a check for drift from Ansible", background=True)


def interrupted(observed: AgentObserved, failed: Result, now: datetime) -> tuple[AgentObserved, Plan | None]:
    """Return what follows from a run that did not end. ``None``: it failed, and the update is undone."""
    error = failed.error
    if not isinstance(error, Interrupted) or not isinstance(failed.action, RunPlays):
        return observed, None
    observed = replace(observed, facts=replace(observed.facts, plays=error.journal))
    if isinstance(error, StillRuns):
        left = max((error.until - now).total_seconds(), 0.0)
        return observed, Plan(outcome=Requeue(left, str(error)), why=str(error))
    if not isinstance(error, WantsReboot):
        return observed, None
    name, boot_id, target = name_of(observed.node), observed.facts.boot_id, name_of(failed.action.config)
    script = Script(observed, now, str(error), proven=True)
    script.event("Reboot", str(error))
    script.annotate({POST_ACTION: REBOOTING, REBOOT_FROM: boot_id})
    script.do(RebootHost(name, reboot_request(target, boot_id), str(error)))
    return observed, script.plan()
