"""Ends an update whose config the disk has, and checks a finished node for drift; pure.

Called by ``machineconfig/agent/planning/plan.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from syncline.control.plan import Plan
from syncline.kube.objects import annotations_of, name_of
from syncline.machineconfig.agent.files.script import Script, fail
from syncline.machineconfig.agent.planning.changes import changes_between
from syncline.machineconfig.agent.planning.due import Due
from syncline.machineconfig.agent.planning.notes import (
    STAGED_AGAIN,
    WRITING,
    WRITING_IMAGE,
)
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.playing import next_check
from syncline.machineconfig.agent.staging.imagemode import embedded
from syncline.machineconfig.agent.steps import (
    CheckDisk,
    CompareInstalled,
)
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    DONE,
    REASON,
    STATE,
)
from syncline.machineconfig.nodes.phases import Phase

MAX_STAGED_AGAIN = 3
"""Maximum restarts of an update whose system did not boot; beyond it a user must find the cause."""


def come_to_rest(observed: AgentObserved, due: Due, now: datetime) -> Plan:
    """Return the plan to finish an update: check the disk, uncordon, report Done."""
    have, name, target = annotations_of(observed.node), name_of(observed.node), name_of(due.new)
    if observed.checked is None:
        check = CheckDisk(name, due.old, True, "after an update", due.new_image, layers=True)
        return Plan(((check,), (CompareInstalled(name, due.new, "after an update"),)), why=f"check the disk of {name}")
    lost = _lost_its_boot(observed, due)
    if lost:
        return _begin_again(observed, due, lost, now)
    if observed.checked.difference:
        return fail(observed, observed.checked.difference.text, now, event="OnDiskStateValidationFailed")
    uncordon, text = f"uncordon-{target}", f"In desired config {target}. Resumed normal operations."
    resumed = Phase("Resumed", "True", "Resumed", f"{text} Applying proper annotations.")
    if have.get(DESIRED_DRAIN) != uncordon:
        script = Script(observed, now, f"{name} has {target}")
        script.phase(resumed)
        script.annotate({DESIRED_DRAIN: uncordon})
        return script.plan()
    script = Script(observed, now, f"{name} is done with {target}")
    script.phase(resumed)  # a node with an old uncordon request may not have reported it
    script.event("Uncordon", f"Update completed for config {target} and node has been uncordoned")
    script.event("NodeDone", f"Setting node {name}, currentConfig {target} to Done")
    again: dict[str, str | None] = {STAGED_AGAIN: None} if STAGED_AGAIN in have else {}
    script.annotate({CURRENT: target, STATE: DONE, REASON: "", **_images(have, due.new_image), **again})
    script.event("ConfigDriftMonitorStarted", f"Config Drift Monitor started, watching against {target}")
    script.phase(Phase("NodeDegraded", "False", "NodeDegraded", f"Node {name} upgrade succeeded"))
    script.event("RemoveSigtermProtection", "Removing SIGTERM protection")
    script.phase(Phase("Updated", "True", "Updated", f"Node {name} Updated"))
    if observed.irreconcilable is not None:
        script.report(observed.irreconcilable)
    return script.plan()


def _lost_its_boot(observed: AgentObserved, due: Due) -> str:
    """Return why the update must begin again, or an empty string; limited to a few times.

    A machine that loses power between staging and the end of its shutdown boots its old system. If its Node was deleted
    meanwhile, it joined again with the disk's config and does not know that a boot was due. Upstream's node stays
    Degraded then, if it notices.
    """
    have, checked = annotations_of(observed.node), observed.checked
    text = have.get(STAGED_AGAIN, "0")
    times = int(text) if text.isdigit() else MAX_STAGED_AGAIN
    if checked is None or observed.current is None or times >= MAX_STAGED_AGAIN:
        return ""
    joined = STATE not in have
    if checked.difference is None:
        return f"{name_of(due.new)} is staged and was never booted; it is now" if joined and checked.staged else ""
    if not checked.difference.of_system:
        return ""
    old = embedded(observed.current, have.get(CURRENT_IMAGE, ""))
    if not joined and not changes_between(old, due.embedded[1]).of_system:
        return ""  # it had all of it, and has booted another system since
    return f"{checked.difference.text}; it is staged again"


def _begin_again(observed: AgentObserved, due: Due, lost: str, now: datetime) -> Plan:
    script = Script(observed, now, f"{name_of(observed.node)} has not booted what was staged: {lost}")
    script.event("OSUpdateStagedAgain", lost, warning=True)
    image = {WRITING_IMAGE: due.new_image} if due.new_image else {}
    times = int(annotations_of(observed.node).get(STAGED_AGAIN, "0"))
    script.annotate({WRITING: name_of(due.new), STAGED_AGAIN: str(times + 1), **image})
    return script.plan()


def _images(have: Mapping[str, str], image: str) -> dict[str, str | None]:
    """Return the image annotations of a finished node; empty without images."""
    if image:
        return {CURRENT_IMAGE: image}
    return {key: None for key in (CURRENT_IMAGE, DESIRED_IMAGE) if key in have}


def watch(observed: AgentObserved, now: datetime) -> Plan:
    """Return the plan to check the disk for drift, which is reported and not repaired."""
    name, config = name_of(observed.node), observed.facts.stored or observed.desired
    assert config is not None, "it has what it is to have"
    target = name_of(config)
    if observed.checked is None and observed.facts.fresh:
        check = CheckDisk(name, config, True, "it has booted", observed.facts.image, layers=True)
        return Plan(((check,),), why=f"check what {name} has booted")
    if observed.checked is None and observed.facts.touched:
        return Plan(((CheckDisk(name, config, False, "its files were touched"),),), why=f"look for drift on {name}")
    if observed.checked is not None and observed.checked.difference:
        event = "OnDiskStateValidationFailed" if observed.facts.fresh else "ConfigDriftDetected"
        return fail(observed, observed.checked.difference.text, now, event=event)
    script = Script(observed, now, f"{name} has {target}")
    if annotations_of(observed.node).get(DESIRED_DRAIN) == f"drain-{target}":
        # A write of the update that arrived after its end, from a process that had stood still.
        script.annotate({DESIRED_DRAIN: f"uncordon-{target}"})
    script.phase(Phase("Updated", "True", "Updated", f"Node {name} Updated"))
    return script.plan(next_check(observed, now))
