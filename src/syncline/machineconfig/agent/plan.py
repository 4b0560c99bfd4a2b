"""What the agent of a node does next; pure.

The node's annotations, the configuration that its disk says it has, and the phases of its MachineConfigNode are all the
memory there is: a pass begun by one process is ended by the next. An update drains where it must, writes, stages, and
reboots or restarts what the policies say; then the node is uncordoned and Done. Order and words: Machine Config
Operator ``update`` and ``syncNode``, reference machine-config 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.base.action import Action as Step
from syncline.base.clock import parse_time
from syncline.control.plan import Patch, Plan, Requeue, Result, Retry, SetStatus
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.agent.actions import Action
from syncline.machineconfig.agent.authorities import AUTHORITIES, AuthorityError, authorities_due
from syncline.machineconfig.agent.beyond import beyond_reach
from syncline.machineconfig.agent.changes import changes_between, kernel_type
from syncline.machineconfig.agent.disk import Difference
from syncline.machineconfig.agent.due import Due, DueError, drain_is_open
from syncline.machineconfig.agent.imagemode import embedded, extracted
from syncline.machineconfig.agent.joining import plan_joining
from syncline.machineconfig.agent.observe import STAGED_AGAIN, WRITING, WRITING_IMAGE, AgentObserved
from syncline.machineconfig.agent.script import MAX_REASON, Script, fail, give_up, say_degraded
from syncline.machineconfig.agent.serverauthority import ROTATED, is_rotating, rotated_flag
from syncline.machineconfig.agent.steps import (
    CheckDisk,
    CompareInstalled,
    DropStaged,
    LookAtBoot,
    ReadServerAuthority,
    RebootHost,
    RunService,
    SetUsers,
    StageSystem,
    StoreConfig,
    WriteAuthorities,
    WriteFiles,
)
from syncline.machineconfig.agent.work import Irreconcilable, Work, work_of
from syncline.machineconfig.configs import ConfigError
from syncline.machineconfig.drain.progress import Progress
from syncline.machineconfig.drain.registries import RegistriesError
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    DONE,
    FAILED_STATES,
    LAST_DRAIN,
    REASON,
    STATE,
    annotation,
)
from syncline.machineconfig.phases import Phase

__all__ = [
    "POST_ACTION",
    "QUESTIONS",
    "REBOOTING",
    "REBOOT_FROM",
    "AgentSettings",
    "answered",
    "plan_agent",
    "settle_agent",
]

POST_ACTION = annotation("post-config-action")
REBOOTING = "Rebooting"
REBOOT_FROM = "syncline.dev/reboot-from"
"""Boot id at the moment a reboot was asked for: another one tells that it has happened."""
SINGLE_REPLICA = "SingleReplica"
CRIO = "crio"
_NOT_WRITING: dict[str, str | None] = {WRITING: None, WRITING_IMAGE: None}
REBOOT_AGAIN_S = 600.0
"""A reboot that was asked for and does not come is asked for again this often."""
MAX_STAGED_AGAIN = 3
"""More boots in vain have another cause, which a person has to find."""
UNDOING = "the update failed"
RUNNING = ("Working", *FAILED_STATES)
"""States of a node whose update has begun; one that failed keeps saying so until it has succeeded."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Upstream's times."""

    drain_limit_s: float = 3600.0
    """After this long a drain that has not ended makes the node Degraded; it goes on all the same."""
    uncordon_limit_s: float = 600.0
    """The same of the uncordon at the end of an update."""


def plan_agent(seen: AgentObserved, now: datetime, settings: AgentSettings = AgentSettings()) -> Plan:
    """One pass."""
    have, facts, name = annotations_of(seen.node), seen.facts, name_of(seen.node)
    if not facts.up:
        return Plan(why=f"machine {name} is not up")
    joining = plan_joining(seen, now)
    if joining is not None:
        return joining
    authorities = _authorities(seen, now)
    if authorities is not None:
        return authorities
    if have.get(POST_ACTION) == REBOOTING and have.get(REBOOT_FROM):
        return _after_reboot(seen, now)
    if drain_is_open(seen.node):
        return _await_drain(seen, have[DESIRED_DRAIN], now, settings)
    if have.get(WRITING):
        # A pass that died half way is done again from the start: neither disk nor note says how far it came.
        begun = seen.begun
        if begun is None:
            return fail(seen, _lost(seen), now)
        return _put_back(seen, begun, now) if have.get(STATE) in FAILED_STATES else _update(seen, begun, now)
    try:
        due = seen.due
    except DueError as error:
        return fail(seen, str(error), now)
    if facts.forced and seen.desired is not None and facts.stored is not None:
        return _update(seen, Due(facts.stored, seen.desired, facts.image, have.get(DESIRED_IMAGE, "")), now)
    if due is None:
        return _watch(seen, now)
    return _come_to_rest(seen, due, now) if due.arrived else _update(seen, due, now)


def _authorities(seen: AgentObserved, now: datetime) -> Plan | None:
    """None: it has those of today, as far as there are any."""
    name, config, have = name_of(seen.node), seen.controller_config, annotations_of(seen.node)
    try:
        due = authorities_due(seen.node, config)
    except AuthorityError as error:
        return fail(seen, str(error), now)
    if due is None or config is None:
        return None
    rotating = is_rotating(seen.node, config)
    if rotating and seen.server is None:
        return Plan(((ReadServerAuthority(name, "they rotate"),),), why=f"what {name} is to know the API server by")
    notes = {AUTHORITIES: due.version}
    if not rotating or seen.server:  # those that are not there yet are asked for again
        notes |= {ROTATED: rotated_flag(config)} if rotated_flag(config) or ROTATED in have else {}
    if all(have.get(key) == value for key, value in notes.items()):
        return None
    script = Script(seen, now, f"{name} gets the authorities of today")
    due = replace(due, server=(seen.server or b"") if rotating else b"")
    script.do(WriteAuthorities(name, due, "they come past rendered configs"))
    script.annotate(notes)
    return script.plan(Requeue(0, "authorities written"))


def _lost(seen: AgentObserved) -> str:
    """A MachineConfig without which what was begun cannot be finished."""
    name = annotations_of(seen.node)[CURRENT if seen.current is None else WRITING]
    return f'machineconfig.machineconfiguration.openshift.io "{name}" not found'


def _after_reboot(seen: AgentObserved, now: datetime) -> Plan:
    have, facts, name = annotations_of(seen.node), seen.facts, name_of(seen.node)
    if have.get(REBOOT_FROM, "") == facts.boot_id:
        request = _request(have[DESIRED], facts.boot_id)
        again = Requeue(REBOOT_AGAIN_S, "its reboot", background=True)
        return Plan(((RebootHost(name, request, "its update needs it"),),), again, f"{name} has not rebooted yet")
    script = Script(seen, now, f"{name} has rebooted")
    script.annotate({POST_ACTION: "", REBOOT_FROM: None})
    script.phase(Phase("RebootedNode", "True", "RebootedNode", "Node has rebooted"))
    stored = name_of(facts.stored) if facts.stored is not None else ""
    if stored and stored != have.get(DESIRED):
        told = f"Booting node {name}, currentConfig {stored}, desiredConfig {have.get(DESIRED, '')}"
        script.event("BootResync", told)
    return script.plan()


def _request(target: str, boot_id: str) -> str:
    return f"{target}.{boot_id}"


def _await_drain(seen: AgentObserved, asked: str, now: datetime, settings: AgentSettings) -> Plan:
    """A newer target is not looked at before the drain, or its end, has been done."""
    name, verb = name_of(seen.node), asked.partition("-")[0]
    began, limit_s, limit = _asked(seen, verb, settings)
    if began is None:
        return Plan(why=f"{name} waits for {asked}")
    left = (began + timedelta(seconds=limit_s) - now).total_seconds()
    if left > 0:
        what = f"the {verb} of {name}"
        return Plan(outcome=Requeue(left, what, background=True), why=f"{name} waits for {asked}")
    if annotations_of(seen.node).get(STATE) in FAILED_STATES:
        return Plan(why=f"{name} waits for {asked}, and says so")
    text = (
        f"failed to {verb} node: {name} after {limit}. Please see machine-config-controller logs for more information"
    )
    script = Script(seen, now, text)
    script.event(f"FailedTo{verb.capitalize()}", text, warning=True)
    say_degraded(script, name, text)
    return script.plan()


def _asked(seen: AgentObserved, verb: str, settings: AgentSettings) -> tuple[datetime | None, float, str]:
    """Since when a drain or its end is waited for, for how many seconds at most, and how people say that. None: nobody
    can tell. Of the end the record does, which says that the node has resumed just before it asks."""
    if verb == "drain":
        progress = Progress.of(seen.node)
        return progress.began if progress is not None else None, settings.drain_limit_s, "1 hour"
    if verb != "uncordon":
        return None, 0, ""
    conditions = dig(seen.record, "status", "conditions") or ()
    resumed: Obj = next((each for each in conditions if each.get("type") == "Resumed"), {})
    since = resumed.get("lastTransitionTime") if resumed.get("status") == "True" else None
    return parse_time(str(since)) if since else None, settings.uncordon_limit_s, "10 minutes"


# -- an update ------------------------------------------------------------------------------------------------------


def _update(seen: AgentObserved, due: Due, now: datetime) -> Plan:
    name = name_of(seen.node)
    old, new = due.embedded
    begun = bool(annotations_of(seen.node).get(WRITING))
    if seen.checked is None and not begun and not seen.facts.forced:
        check = CheckDisk(name, due.old, True, "before an update", due.old_image)
        return Plan(((check,),), why=f"look at the disk of {name} first")
    if seen.checked is not None and seen.checked.difference:
        return fail(seen, seen.checked.difference.text, now, event="PreflightConfigDriftCheckFailed")
    if seen.policies is None:
        return Plan(outcome=Retry("NodeDisruptionPolicyStatus was not ready"), why="the policies are not ready")
    try:
        changes_between(old, new)
    except ConfigError as error:
        return fail(seen, f"could not calculate config diff: {error}", now)
    if seen.misplaced:
        return _misplaced(seen, now)
    beyond = beyond_reach(seen.node, seen.facts.fixed, new)
    if beyond:
        return _refuse(seen, old, new, beyond, now)
    try:
        work = work_of(old, new, seen.policies, seen.waived, forced=seen.facts.forced, fips=seen.facts.fips)
    except Irreconcilable as error:
        return _refuse(seen, old, new, str(error), now)
    except RegistriesError as error:
        script = _begun(seen, now, str(error))
        give_up(script, name, str(error))
        return script.plan(Retry(str(error)))
    return _carry_out(seen, old, new, work, now)


def _misplaced(seen: AgentObserved, now: datetime) -> Plan:
    script = _begun(seen, now, seen.misplaced)
    script.event("RemoveSigtermProtection", "Removing SIGTERM protection")
    script.annotate({STATE: "Degraded", REASON: seen.misplaced[:MAX_REASON]})
    return script.plan(Retry(seen.misplaced))


def _refuse(seen: AgentObserved, old: Obj, new: Obj, error: str, now: datetime) -> Plan:
    text = f"can't reconcile config {name_of(old)} with {name_of(new)}: {error}"
    script = _begun(seen, now, text)
    told = (
        f"Update Failed compatibility validation. MachineConfigs {name_of(old)} and {name_of(new)} are not compatible. "
        f"Err: {error}"
    )
    script.phase(Phase("UpdatePrepared", "Unknown", "UpdatePrepared", told))
    have = annotations_of(seen.node)
    if (have.get(STATE), have.get(REASON)) != ("Unreconcilable", text[:MAX_REASON]):
        script.event("FailedToReconcile", text, warning=True)
    give_up(script, name_of(seen.node), text, state="Unreconcilable")
    return script.plan(Retry(text))


def _begun(seen: AgentObserved, now: datetime, why: str) -> Script:
    """A node that failed keeps saying so until it has succeeded."""
    script = Script(seen, now, why)
    name, state = name_of(seen.node), annotations_of(seen.node).get(STATE)
    if state not in (*FAILED_STATES, "Working"):
        script.annotate({STATE: "Working"})
        script.event("ConfigDriftMonitorStopped", "Config Drift Monitor stopped")
    script.phase(Phase("Updated", "False", "Updated", f"Node {name} needs an update"))
    script.event("AddSigtermProtection", "Adding SIGTERM protection")
    return script


def _carry_out(seen: AgentObserved, old: Obj, new: Obj, work: Work, now: datetime) -> Plan:
    have, name, target = annotations_of(seen.node), name_of(seen.node), name_of(new)
    drained = have.get(LAST_DRAIN) == f"drain-{target}"
    why = f"bring {name} from {name_of(old)} to {target}"
    goes_on = drained and have.get(STATE) in RUNNING and _prepared(seen)
    script = Script(seen, now, why) if goes_on else _begun(seen, now, why)
    told = f"Update Compatible. Post Cfg Actions: [] Drain Required: {str(work.drain).lower()}"
    script.phase(Phase("UpdatePrepared", "True", "UpdatePrepared", told))
    if work.drain and seen.topology == SINGLE_REPLICA:
        _not_drained(script)
        script.event("Drain", "Drain not required, skipping")
    elif work.drain and not drained:
        script.event("Cordon", "Cordoned node to apply update")
        script.event("Drain", "Draining node to update config.")
        script.annotate({DESIRED_DRAIN: f"drain-{target}"})
        return script.plan()
    elif not work.drain:
        _not_drained(script)
    _write(script, seen, old, new, work)
    _act(script, seen, target, work)
    return script.plan()


def _prepared(seen: AgentObserved) -> bool:
    """It was begun in an earlier pass, which asked for the drain; where no record of it is kept, that is assumed."""
    conditions = dig(seen.record, "status", "conditions", default=()) or ()
    found: Obj = next((one for one in conditions if one.get("type") == "UpdatePrepared"), {})
    return seen.record is None or found.get("status") == "True"


def _not_drained(script: Script) -> None:
    text = "Node Drain Not required for this update."
    script.phase(
        Phase("UpdateExecuted", "Unknown", "Drained", text),
        Phase("Drained", "False", "UpdateExecutedDrained", text),
    )


def _write(script: Script, seen: AgentObserved, old: Obj, new: Obj, work: Work) -> None:
    changes, name, why = work.changes, name_of(seen.node), f"it gets {name_of(new)}"
    system = "" if changes.os_update or changes.extensions or changes.kernel_type else "not"
    keys = "" if changes.passwd or changes.files else "not"
    executed, applied = "UpdateExecuted", "AppliedFilesAndOS"
    script.phase(
        Phase(executed, "Unknown", applied, "Updating the Files and OS on disk as a part of the in progress phase"),
        Phase(
            applied,
            "Unknown",
            executed + applied,
            f"Applying files and new OS config to node. OS will {system} need an update. "
            f"SSH Keys will {keys} need an update",
        ),
    )
    config, own = extracted(new)
    script.annotate({WRITING: name_of(new), **({WRITING_IMAGE: own} if own else {})})
    script.do(WriteFiles(name, old, new, seen.facts.forced, why, rotated=True))
    if changes.passwd:
        script.do(SetUsers(name, old, new, why))
    _stage(script, old, StageSystem(name, old, new, changes, why, again=WRITING in annotations_of(seen.node)))
    script.do(StoreConfig(name, config, why, own))
    script.phase(
        Phase(executed, "True", applied, "Updated the Files and OS on disk as a part of the in progress phase"),
        Phase(
            applied,
            "True",
            executed + applied,
            f"Applied files and new OS config to node. OS did {system} need an update. "
            f"SSH Keys did {keys} need an update",
        ),
    )


def _stage(script: Script, old: Obj, step: StageSystem) -> None:
    """A kernel that is not the image's own, and image mode, are staged with every update."""
    changes, new, kernel = step.changes, step.new, kernel_type(step.new)
    image = str(dig(new, "spec", "osImageURL") or "")
    if changes.os_update or changes.extensions or changes.kernel_type or changes.image_mode:
        script.event("InClusterUpgrade", f"Updating from oscontainer {image}")
    if not changes.os_changes and not changes.image_mode and kernel == "default":
        return
    script.event("OSUpdateStarted", changes.os_changes or f"Updating to a target config with {kernel} kernel")
    script.do(DropStaged(step.node, step.reason))
    same = image == (dig(old, "spec", "osImageURL") or "")
    if same:
        told = f"OS upgrade skipped; new MachineConfig ({name_of(new)}) has same OS image ({image}) as old"
        script.event("OSUpgradeSkipped", f"{told} MachineConfig ({name_of(old)})")
    script.do(step)
    if not same:
        told = f"OS upgrade applied; new MachineConfig ({name_of(new)}) has new OS image ({image})"
        script.event("OSUpgradeApplied", told)
    script.event("OSUpdateStaged", "Changes to OS staged")


def _act(script: Script, seen: AgentObserved, target: str, work: Work) -> None:
    """What brings it into force; without a reboot the next pass finds a disk that has its target."""
    name = name_of(seen.node)
    for action in work.actions:
        match action.type:
            case "Reboot":
                script.phase(Phase("RebootedNode", "Unknown", "RebootedNode", "Upgrade requires a reboot."))
                script.event("RemoveSigtermProtection", "Removing SIGTERM protection")
                script.event("Reboot", f"Node will reboot into config {target}")
                script.annotate({POST_ACTION: REBOOTING, REBOOT_FROM: seen.facts.boot_id, **_NOT_WRITING})
                script.do(RebootHost(name, _request(target, seen.facts.boot_id), f"it gets {target}"))
                script.phase(Phase("NodeDegraded", "False", "NodeDegraded", f"Node {name} upgrade succeeded"))
            case "None":
                script.event("SkipReboot", "Config changes do not require reboot.")
                done = "Changes do not require a reboot"
                script.phase(Phase("UpdatePostActionComplete", "True", "None", done))
            case "Restart":
                script.do(RunService(name, "restart", action.service, f"it gets {target}"))
                text = f"Config changes do not require reboot. Service {action.service} was restarted."
                script.event("ServiceRestart", text)
            case "Reload" | "Special" | "DaemonReload":
                _reload(script, name, target, action)
    if not any(action.type == "Reboot" for action in work.actions):
        script.annotate(_NOT_WRITING)


def _reload(script: Script, name: str, target: str, action: Action) -> None:
    verb = "daemon-reload" if action.type == "DaemonReload" else "reload"
    service = {"DaemonReload": "", "Special": CRIO}.get(action.type, action.service)
    script.do(RunService(name, verb, service, f"it gets {target}"))
    shown = service or verb
    kind = "UpdatePostActionComplete"
    script.phase(Phase(kind, "True", kind, f"Node has reloaded service {shown}"))
    script.event("ServiceReload", f"Config changes do not require reboot. Service {shown} was reloaded.")


# -- the end of an update -------------------------------------------------------------------------------------------


def _come_to_rest(seen: AgentObserved, due: Due, now: datetime) -> Plan:
    """The disk has it: the machine has booted into it, or needed no boot."""
    have, name, target = annotations_of(seen.node), name_of(seen.node), name_of(due.new)
    if seen.checked is None:
        check = CheckDisk(name, due.old, True, "after an update", due.new_image, layers=True)
        return Plan(
            ((check,), (CompareInstalled(name, due.new, "after an update"),)), why=f"look at the disk of {name}"
        )
    if seen.checked.difference:
        anew = _stage_again(seen, due, seen.checked.difference, now)
        return anew or fail(seen, seen.checked.difference.text, now, event="OnDiskStateValidationFailed")
    uncordon, text = f"uncordon-{target}", f"In desired config {target}. Resumed normal operations."
    resumed = Phase("Resumed", "True", "Resumed", f"{text} Applying proper annotations.")
    if have.get(DESIRED_DRAIN) != uncordon:
        script = Script(seen, now, f"{name} has {target}")
        script.phase(resumed)
        script.annotate({DESIRED_DRAIN: uncordon})
        return script.plan()
    script = Script(seen, now, f"{name} is done with {target}")
    script.phase(resumed)  # a node of which this uncordon was asked long ago has not said so
    script.event("Uncordon", f"Update completed for config {target} and node has been uncordoned")
    script.event("NodeDone", f"Setting node {name}, currentConfig {target} to Done")
    again: dict[str, str | None] = {STAGED_AGAIN: None} if STAGED_AGAIN in have else {}
    script.annotate({CURRENT: target, STATE: DONE, REASON: "", **_images(have, due.new_image), **again})
    script.event("ConfigDriftMonitorStarted", f"Config Drift Monitor started, watching against {target}")
    script.phase(Phase("NodeDegraded", "False", "NodeDegraded", f"Node {name} upgrade succeeded"))
    script.event("RemoveSigtermProtection", "Removing SIGTERM protection")
    script.phase(Phase("Updated", "True", "Updated", f"Node {name} Updated"))
    if seen.irreconcilable is not None:
        script.report(seen.irreconcilable)
    return script.plan()


def _stage_again(seen: AgentObserved, due: Due, difference: Difference, now: datetime) -> Plan | None:
    """A machine that lost its power between staging and the end of its shutdown boots what it had. Upstream's node
    stays Degraded then; ours begins the update again, a few times."""
    have, name = annotations_of(seen.node), name_of(seen.node)
    text = have.get(STAGED_AGAIN, "0")
    times = int(text) if text.isdigit() else MAX_STAGED_AGAIN
    if not difference.of_system or seen.current is None or times >= MAX_STAGED_AGAIN:
        return None
    old = embedded(seen.current, have.get(CURRENT_IMAGE, ""))
    if not changes_between(old, due.embedded[1]).of_system:
        return None
    script = Script(seen, now, f"{name} has not booted what was staged: {difference.text}")
    script.event("OSUpdateStagedAgain", f"{difference.text}; it is staged again", warning=True)
    image = {WRITING_IMAGE: due.new_image} if due.new_image else {}
    script.annotate({WRITING: name_of(due.new), STAGED_AGAIN: str(times + 1), **image})
    return script.plan()


def _images(have: Mapping[str, str], image: str) -> dict[str, str | None]:
    """What a node says of its image once it is done; nothing is said of none."""
    if image:
        return {CURRENT_IMAGE: image}
    return {key: None for key in (CURRENT_IMAGE, DESIRED_IMAGE) if key in have}


def _watch(seen: AgentObserved, now: datetime) -> Plan:
    """Drift is told, never repaired."""
    name, config = name_of(seen.node), seen.facts.stored or seen.desired
    assert config is not None, "it has what it is to have"
    target = name_of(config)
    if seen.checked is None and seen.facts.fresh:
        check = CheckDisk(name, config, True, "it has booted", seen.facts.image, layers=True)
        return Plan(((check,),), why=f"look at what {name} has booted")
    if seen.checked is None and seen.facts.touched:
        return Plan(((CheckDisk(name, config, False, "its files were touched"),),), why=f"look for drift on {name}")
    if seen.checked is not None and seen.checked.difference:
        event = "OnDiskStateValidationFailed" if seen.facts.fresh else "ConfigDriftDetected"
        return fail(seen, seen.checked.difference.text, now, event=event)
    script = Script(seen, now, f"{name} has {target}")
    script.phase(Phase("Updated", "True", "Updated", f"Node {name} Updated"))
    return script.plan()


# -- failures -------------------------------------------------------------------------------------------------------


def settle_agent(
    seen: AgentObserved, made: Plan, results: Sequence[Result], now: datetime, settings: AgentSettings = AgentSettings()
) -> tuple[AgentObserved, Plan] | None:
    """Go on from what the host answered: a comparison decides, a failure is undone and told."""
    for result in results:  # the next write of each is conditional on the last one
        if result.ok and isinstance(result.value, dict):
            if isinstance(result.action, SetStatus):
                seen = replace(seen, record=result.value)
            elif isinstance(result.action, Patch):
                seen = replace(seen, node=result.value)
    answers = [result for result in results if result.ok and isinstance(result.action, QUESTIONS)]
    if answers:
        for result in answers:
            seen = answered(seen, result.action, result.value)
        return seen, plan_agent(seen, now, settings)
    unwritten = next((r for r in results if not r.ok and isinstance(r.action, WriteAuthorities)), None)
    if unwritten is not None:
        return seen, fail(seen, str(unwritten.error), now)
    failed = next((r for r in results if not r.ok and isinstance(r.action, _UNDONE)), None)
    if failed is None:
        return None
    if failed.action.reason == UNDOING:
        script = Script(seen, now, str(failed.error), proven=True)
        say_degraded(script, name_of(seen.node), str(failed.error))
        return seen, script.plan(Retry(str(failed.error)))
    return seen, _undo(seen, [r.action for r in results if r.ok], failed, now)


QUESTIONS = (CheckDisk, CompareInstalled, LookAtBoot, ReadServerAuthority)
"""Steps whose values decide what comes next."""


def answered(seen: AgentObserved, question: Step, value: Any) -> AgentObserved:
    """What is seen once a step of :data:`QUESTIONS` has its value."""
    match question:
        case LookAtBoot():
            return replace(seen, booted=value)
        case ReadServerAuthority():
            return replace(seen, server=value)
        case CompareInstalled():
            return replace(seen, irreconcilable=value)
    return replace(seen, checked=value)


_UNDONE = (WriteFiles, SetUsers, DropStaged, StageSystem, StoreConfig, RunService, RebootHost)


def _put_back(seen: AgentObserved, begun: Due, now: datetime) -> Plan:
    """After a failure: everything is as before the update, or the look at the disk before the next one would find what
    was done half way, for ever. Then that target, or another one, is tried."""
    old, new = begun.embedded
    name = name_of(seen.node)
    try:
        changes = changes_between(new, old)
    except ConfigError as error:
        return Plan(outcome=Retry(str(error)), why=str(error))
    script = Script(seen, now, f"put {name} back to {name_of(begun.old)}")
    script.annotate({WRITING: name_of(begun.new)})  # it says so already: nothing is written by an old view
    script.do(WriteFiles(name, new, old, False, UNDOING, sparing=True, rotated=True))
    if changes.passwd:
        script.do(SetUsers(name, new, old, UNDOING))
    if changes.os_changes:
        script.do(DropStaged(name, UNDOING))
    script.do(StoreConfig(name, begun.old, UNDOING, begun.old_image))
    script.annotate(_NOT_WRITING)
    if annotations_of(seen.node).get(DESIRED) != name_of(begun.new):
        return script.plan(Requeue(0, "then the new target is tried"))
    # The failure counts on: forgiven here, an update that always fails would be tried and undone without a pause.
    return script.plan(Retry(f"{name} is put back; then {name_of(begun.new)} is tried again"))


def _undo(seen: AgentObserved, done: Sequence[Step], failed: Result, now: datetime) -> Plan:
    """What was done is done the other way round, in reverse; what failed half way stays, as upstream, until the next
    pass puts it back."""
    text = str(failed.error)
    name = name_of(seen.node)
    script = Script(seen, now, text, proven=True)
    action = failed.action
    if isinstance(action, RunService):
        verb = "Restart" if action.verb == "restart" else "Reload"
        shown = action.service or action.verb
        cause = text.partition("Error: ")[2]
        told = f"Restarting {shown} service failed" if verb == "Restart" else f"Reloading service {shown} failed"
        script.event(f"FailedService{verb}", f"{told}. Error: {cause}", warning=True)
    if isinstance(action, RebootHost):
        written = next((step for step in done if isinstance(step, WriteFiles)), None)
        if written is None:
            give_up(script, name, text, protected=False)
            return script.plan(Retry(text))  # an earlier pass wrote everything: only the reboot is to be tried again
        script.annotate({WRITING: name_of(written.new), REBOOT_FROM: None})
    if isinstance(action, StageSystem):
        script.do(DropStaged(name, UNDOING))  # of the many commands that it is, some were done
    for step in reversed(done):
        match step:
            case StoreConfig() if seen.facts.stored is not None:
                script.do(StoreConfig(name, seen.facts.stored, UNDOING, seen.facts.image))
            case StageSystem():
                script.do(DropStaged(name, UNDOING))  # what runs is what the old config asked for
            case SetUsers(old=old, new=new) if old is not None:
                script.do(SetUsers(name, new, old, UNDOING))
            case WriteFiles(old=old, new=new) if old is not None:
                script.do(WriteFiles(name, new, old, False, UNDOING, rotated=True))
    script.annotate({REBOOT_FROM: None, **(_NOT_WRITING if isinstance(action, RunService | RebootHost) else {})})
    give_up(script, name, text, protected=not isinstance(action, RebootHost))
    return script.plan(Retry(text))
