"""Undoes a failed update: at once as far as it was done, or in the next reconcile if undoing failed too; pure.

Called by ``machineconfig/agent/planning/plan.py`` and ``machineconfig/agent/planning/settling.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from syncline.base.action import Action as Step
from syncline.control.plan import Plan, Requeue, Result, Retry
from syncline.kube.objects import annotations_of, name_of
from syncline.machineconfig.agent.files.script import Script, give_up
from syncline.machineconfig.agent.planning.changes import changes_between
from syncline.machineconfig.agent.planning.due import Due
from syncline.machineconfig.agent.planning.notes import (
    NOT_WRITING,
    REBOOT_FROM,
    WRITING,
)
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.steps import (
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
from syncline.machineconfig.names import (
    DESIRED,
)

UNDOING = "the update failed"


def put_back(observed: AgentObserved, begun: Due, now: datetime) -> Plan:
    """Return the plan to restore the state before a failed update, which the next disk check would otherwise report as
    drift forever. Then that target, or a newer one, is tried."""
    old, new = begun.embedded
    name = name_of(observed.node)
    try:
        changes = changes_between(new, old)
    except ConfigError as error:
        return Plan(outcome=Retry(str(error)), why=str(error))
    script = Script(observed, now, f"put {name} back to {name_of(begun.old)}")
    script.annotate({WRITING: name_of(begun.new)})  # the note exists already; this write fails if the node has changed
    script.do(WriteFiles(name, new, old, False, UNDOING, sparing=True, rotated=True))
    if changes.passwd:
        script.do(SetUsers(name, new, old, UNDOING))
    if changes.os_changes:
        script.do(DropStaged(name, UNDOING))
    script.do(StoreConfig(name, begun.old, UNDOING, begun.old_image))
    script.annotate(NOT_WRITING)
    if annotations_of(observed.node).get(DESIRED) != name_of(begun.new):
        return script.plan(Requeue(0, "then the new target is tried"))
    # The failure still counts, or an update that always fails would be repeated without a pause.
    return script.plan(Retry(f"{name} is put back; then {name_of(begun.new)} is tried again"))


def undo(observed: AgentObserved, done: Sequence[Step], failed: Result, now: datetime) -> Plan:
    """Return the plan to undo the completed steps in reverse order; a step that failed halfway stays, as upstream,
    until the next reconcile restores it."""
    text = str(failed.error)
    name = name_of(observed.node)
    script = Script(observed, now, text, proven=True)
    action = failed.action
    if isinstance(action, RunService):
        verb = "Restart" if action.verb == "restart" else "Reload"
        shown = action.service or action.verb
        cause = text.partition("Error: ")[2]
        message = f"Restarting {shown} service failed" if verb == "Restart" else f"Reloading service {shown} failed"
        script.event(f"FailedService{verb}", f"{message}. Error: {cause}", warning=True)
    if isinstance(action, RebootHost):
        written = next((step for step in done if isinstance(step, WriteFiles)), None)
        if written is None:
            give_up(script, name, text, protected=False)
            return script.plan(Retry(text))  # an earlier reconcile wrote everything: only the reboot is retried
        script.annotate({WRITING: name_of(written.new), REBOOT_FROM: None})
    if isinstance(action, StageSystem):
        script.do(DropStaged(name, UNDOING))  # some of its many commands were executed
    for step in reversed(done):
        match step:
            case StoreConfig() if observed.facts.stored is not None:
                script.do(StoreConfig(name, observed.facts.stored, UNDOING, observed.facts.image))
            case StageSystem():
                script.do(DropStaged(name, UNDOING))  # the running system is the old config's
            case SetUsers(old=old, new=new) if old is not None:
                script.do(SetUsers(name, new, old, UNDOING))
            case WriteFiles(old=old, new=new) if old is not None:
                script.do(WriteFiles(name, new, old, False, UNDOING, rotated=True))
    whole = isinstance(action, RunService | RebootHost | RunPlays)  # no step is half done
    script.annotate({REBOOT_FROM: None, **(NOT_WRITING if whole else {})})
    give_up(script, name, text, protected=not isinstance(action, RebootHost))
    return script.plan(Retry(text))
