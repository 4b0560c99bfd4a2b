"""Plans an update of a node, from the check of its disk to the reboot or the service restarts; pure.

It drains if necessary, writes files, stages the system, and reboots or restarts services as the policies say. Called by
``machineconfig/agent/planning/plan.py``.
"""

from __future__ import annotations

from datetime import datetime

from syncline.control.plan import Plan, Retry
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.agent.actions import Action
from syncline.machineconfig.agent.files.script import MAX_REASON, Script, fail, give_up
from syncline.machineconfig.agent.planning.changes import changes_between, kernel_type
from syncline.machineconfig.agent.planning.due import Due
from syncline.machineconfig.agent.planning.notes import (
    NOT_WRITING,
    POST_ACTION,
    REBOOT_FROM,
    REBOOTING,
    STAGED_AGAIN,
    WRITING,
    WRITING_IMAGE,
    reboot_request,
)
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.playing import plan_first
from syncline.machineconfig.agent.planning.work import Irreconcilable, Work, work_of
from syncline.machineconfig.agent.staging.beyond import beyond_reach
from syncline.machineconfig.agent.staging.imagemode import extracted
from syncline.machineconfig.agent.steps import (
    CheckDisk,
    DropStaged,
    RebootHost,
    RunPlays,
    RunService,
    SetUsers,
    StageSystem,
    StoreConfig,
    WriteFiles,
)
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.drain.registries import RegistriesError
from syncline.machineconfig.names import (
    DESIRED_DRAIN,
    FAILED_STATES,
    LAST_DRAIN,
    REASON,
    STATE,
)
from syncline.machineconfig.nodes.phases import Phase

SINGLE_REPLICA = "SingleReplica"
CRIO = "crio"
RUNNING = ("Working", *FAILED_STATES)
"""States of a node whose update has begun; a failed node keeps its state until it succeeds."""


def plan_update(observed: AgentObserved, due: Due, now: datetime) -> Plan:
    name = name_of(observed.node)
    old, new = due.embedded
    begun = bool(annotations_of(observed.node).get(WRITING))
    if observed.checked is None and not begun and not observed.facts.forced:
        check = CheckDisk(name, due.old, True, "before an update", due.old_image)
        return Plan(((check,),), why=f"check the disk of {name} first")
    if observed.checked is not None and observed.checked.difference:
        return fail(observed, observed.checked.difference.text, now, event="PreflightConfigDriftCheckFailed")
    if observed.policies is None:
        return Plan(outcome=Retry("NodeDisruptionPolicyStatus was not ready"), why="the policies are not ready")
    try:
        changes_between(old, new)
    except ConfigError as error:
        return fail(observed, f"could not calculate config diff: {error}", now)
    if observed.misplaced:
        return _misplaced(observed, now)
    beyond = beyond_reach(observed.node, observed.facts.fixed, new)
    if beyond:
        return _refuse(observed, old, new, beyond, now)
    have = annotations_of(observed.node)
    again = STAGED_AGAIN in have or STATE not in have
    fresh = begun and due.arrived and again  # nothing changes: the node has not booted its first config
    try:
        work = work_of(
            old,
            new,
            observed.policies,
            observed.waived,
            forced=observed.facts.forced or fresh,
            fips=observed.facts.fips,
            played=observed.played,
        )
    except Irreconcilable as error:
        return _refuse(observed, old, new, str(error), now)
    except RegistriesError as error:
        script = _begun(observed, now, str(error))
        give_up(script, name, str(error))
        return script.plan(Retry(str(error)))
    first = None if begun else plan_first(observed, new, work)
    return first or _carry_out(observed, old, new, work, now)


def _misplaced(observed: AgentObserved, now: datetime) -> Plan:
    script = _begun(observed, now, observed.misplaced)
    script.event("RemoveSigtermProtection", "Removing SIGTERM protection")
    script.annotate({STATE: "Degraded", REASON: observed.misplaced[:MAX_REASON]})
    return script.plan(Retry(observed.misplaced))


def _refuse(observed: AgentObserved, old: Obj, new: Obj, error: str, now: datetime) -> Plan:
    text = f"can't reconcile config {name_of(old)} with {name_of(new)}: {error}"
    script = _begun(observed, now, text)
    message = (
        f"Update Failed compatibility validation. MachineConfigs {name_of(old)} and {name_of(new)} are not compatible. "
        f"Err: {error}"
    )
    script.phase(Phase("UpdatePrepared", "Unknown", "UpdatePrepared", message))
    have = annotations_of(observed.node)
    if (have.get(STATE), have.get(REASON)) != ("Unreconcilable", text[:MAX_REASON]):
        script.event("FailedToReconcile", text, warning=True)
    give_up(script, name_of(observed.node), text, state="Unreconcilable")
    return script.plan(Retry(text))


def _begun(observed: AgentObserved, now: datetime, why: str) -> Script:
    """Return a script that reports the start of an update; a failed node keeps its state until it succeeds."""
    script = Script(observed, now, why)
    name, state = name_of(observed.node), annotations_of(observed.node).get(STATE)
    if state not in (*FAILED_STATES, "Working"):
        script.annotate({STATE: "Working"})
        script.event("ConfigDriftMonitorStopped", "Config Drift Monitor stopped")
    script.phase(Phase("Updated", "False", "Updated", f"Node {name} needs an update"))
    script.event("AddSigtermProtection", "Adding SIGTERM protection")
    return script


def _carry_out(observed: AgentObserved, old: Obj, new: Obj, work: Work, now: datetime) -> Plan:
    have, name, target = annotations_of(observed.node), name_of(observed.node), name_of(new)
    drained = have.get(LAST_DRAIN) == f"drain-{target}"
    why = f"bring {name} from {name_of(old)} to {target}"
    goes_on = drained and have.get(STATE) in RUNNING and _prepared(observed)
    script = Script(observed, now, why) if goes_on else _begun(observed, now, why)
    message = f"Update Compatible. Post Cfg Actions: [] Drain Required: {str(work.drain).lower()}"
    script.phase(Phase("UpdatePrepared", "True", "UpdatePrepared", message))
    if work.drain and observed.topology == SINGLE_REPLICA:
        _not_drained(script)
        script.event("Drain", "Drain not required, skipping")
    elif work.drain and not drained:
        script.event("Cordon", "Cordoned node to apply update")
        script.event("Drain", "Draining node to update config.")
        script.annotate({DESIRED_DRAIN: f"drain-{target}"})
        return script.plan()
    elif not work.drain:
        _not_drained(script)
    _write(script, observed, old, new, work)
    _act(script, observed, target, work)
    return script.plan()


def _prepared(observed: AgentObserved) -> bool:
    """Return whether an earlier reconcile began the update and requested the drain (assumed without a record). A record
    that was recreated with its Node has only the cordon, which a new start would undo."""
    conditions = dig(observed.record, "status", "conditions", default=()) or ()
    so = {one.get("type") for one in conditions if one.get("status") == "True"}
    return observed.record is None or bool(so & {"UpdatePrepared", "Cordoned"})


def _not_drained(script: Script) -> None:
    text = "Node Drain Not required for this update."
    script.phase(
        Phase("UpdateExecuted", "Unknown", "Drained", text),
        Phase("Drained", "False", "UpdateExecutedDrained", text),
    )


def _write(script: Script, observed: AgentObserved, old: Obj, new: Obj, work: Work) -> None:
    changes, name, why = work.changes, name_of(observed.node), f"it gets {name_of(new)}"
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
    script.do(WriteFiles(name, old, new, observed.facts.forced, why, rotated=True))
    if changes.passwd:
        script.do(SetUsers(name, old, new, why))
    _stage(script, old, StageSystem(name, old, new, changes, why, again=WRITING in annotations_of(observed.node)))
    if work.plays:
        script.do(RunPlays(name, new, tuple(play.name for play in work.plays), why))
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
    """Stage the system. A kernel other than the image's, and image mode, are staged with every update."""
    changes, new, kernel = step.changes, step.new, kernel_type(step.new)
    image = str(dig(new, "spec", "osImageURL") or "")
    if changes.os_update or changes.extensions or changes.kernel_type or changes.image_mode:
        script.event("InClusterUpgrade", f"Updating from oscontainer {image}")
    if not changes.os_changes and not changes.image_mode and kernel == "default":
        return
    script.event("OSUpdateStarted", changes.os_changes or f"Updating to a target config with {kernel} kernel")
    script.do(DropStaged(step.node, step.reason, sparing=new if step.arrived else None))
    same = image == (dig(old, "spec", "osImageURL") or "")
    if same:
        message = f"OS upgrade skipped; new MachineConfig ({name_of(new)}) has same OS image ({image}) as old"
        script.event("OSUpgradeSkipped", f"{message} MachineConfig ({name_of(old)})")
    script.do(step)
    if not same:
        message = f"OS upgrade applied; new MachineConfig ({name_of(new)}) has new OS image ({image})"
        script.event("OSUpgradeApplied", message)
    script.event("OSUpdateStaged", "Changes to OS staged")


def _act(script: Script, observed: AgentObserved, target: str, work: Work) -> None:
    """Apply the actions; without a reboot the next reconcile finds the target on the disk."""
    name = name_of(observed.node)
    for action in work.actions:
        match action.type:
            case "Reboot":
                script.phase(Phase("RebootedNode", "Unknown", "RebootedNode", "Upgrade requires a reboot."))
                script.event("RemoveSigtermProtection", "Removing SIGTERM protection")
                script.event("Reboot", f"Node will reboot into config {target}")
                script.annotate({POST_ACTION: REBOOTING, REBOOT_FROM: observed.facts.boot_id, **NOT_WRITING})
                script.do(RebootHost(name, reboot_request(target, observed.facts.boot_id), f"it gets {target}"))
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
        script.annotate(NOT_WRITING)


def _reload(script: Script, name: str, target: str, action: Action) -> None:
    verb = "daemon-reload" if action.type == "DaemonReload" else "reload"
    service = {"DaemonReload": "", "Special": CRIO}.get(action.type, action.service)
    script.do(RunService(name, verb, service, f"it gets {target}"))
    shown = service or verb
    kind = "UpdatePostActionComplete"
    script.phase(Phase(kind, "True", kind, f"Node has reloaded service {shown}"))
    script.event("ServiceReload", f"Config changes do not require reboot. Service {shown} was reloaded.")
