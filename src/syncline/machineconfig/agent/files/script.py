"""Collects the steps of one agent reconcile: host steps, node annotations and record updates, in order; pure.

Used by the planners of ``machineconfig/agent``. Entry point: :class:`Script`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from syncline.base.action import Action as Step
from syncline.control.plan import Emit, Outcome, Patch, Plan, Retry, set_status
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_POOL
from syncline.kube.objects import GVK, Obj, annotations_of, name_of, resource_version
from syncline.machineconfig.agent.planning.notes import FINALIZE_FAILURE, UNSUPPORTED
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.ansible.journal import REPORT, report_text
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_IMAGE,
    FAILED_STATES,
    MASTER,
    REASON,
    STATE,
)
from syncline.machineconfig.nodes.phases import Phase, advance

NODE = GVK("", "v1", "Node")
COMPONENT = "machineconfigdaemon"
MAX_REASON = 2000
REPORTED_OF_MASTERS = (CURRENT, DESIRED, STATE, REASON, CURRENT_IMAGE, DESIRED_IMAGE)
CHANGES = "irreconcilableChanges"


class Script:
    """Collects steps in order and accumulates the phases of the MachineConfigNode.

    The first annotation write is conditional on the node as it was observed: if it fails, no later step runs, since a
    stale view would drain, write or reboot for an outdated target. Later writes build on it. ``proven``: a step was
    already executed, so the first write is unconditional.
    """

    def __init__(self, observed: AgentObserved, now: datetime, why: str, *, proven: bool = False) -> None:
        self.steps: list[tuple[Step, ...]] = []
        self._observed, self._now, self._why = observed, now, why
        self._record, self._node, self._proven = observed.record, observed.node, proven
        self._unreported: dict[str, str | None] = {**self._finalization(), **self._packages(), **self._plays()}

    def annotate(self, notes: Mapping[str, str | None]) -> None:
        notes = {**self._unreported, **notes}
        self._unreported = {}
        metadata: Obj = {"annotations": notes}
        if not self._proven and resource_version(self._node):
            metadata["resourceVersion"] = resource_version(self._node)
        self._proven = True
        body = {"metadata": metadata}
        have = {key: value for key, value in {**annotations_of(self._node), **notes}.items() if value is not None}
        self._node = self._node | {"metadata": self._node["metadata"] | {"annotations": have}}
        self.do(Patch(NODE, "", name_of(self._observed.node), body, self._why))
        self._tell_masters(notes)

    def _tell_masters(self, notes: Mapping[str, str | None]) -> None:
        """Emit an Event on the pool for each changed annotation of a control-plane node."""
        name, pool = name_of(self._observed.node), self._observed.pool
        if pool is None or name_of(pool) != MASTER:
            return
        have = annotations_of(self._observed.node)
        for key in REPORTED_OF_MASTERS:
            if key in notes and (notes[key] or "") != have.get(key, ""):
                message = f"now has {key}={notes[key]}" if notes[key] is not None else f"no longer has {key}"
                typed = {"apiVersion": MACHINE_CONFIG_POOL.api_version, "kind": MACHINE_CONFIG_POOL.kind} | pool
                self.do(Emit(typed, "AnnotationChange", f"Node {name} {message}", COMPONENT))

    def _finalization(self) -> dict[str, str]:
        """Return the note about the previous boot failing to finalize what was staged, if it changed; emit an Event."""
        failure = self._observed.checked.finalize_failure if self._observed.checked is not None else None
        if failure is None or failure == annotations_of(self._node).get(FINALIZE_FAILURE, ""):
            return {}
        if failure:
            self.event("FailedFinalization", failure, warning=True)
        return {FINALIZE_FAILURE: failure}

    def _packages(self) -> dict[str, str]:
        found = self._observed.checked.unsupported if self._observed.checked is not None else None
        if found is None or annotations_of(self._node).get(UNSUPPORTED, "0") == str(found):
            return {}
        return {UNSUPPORTED: str(found)}

    def _plays(self) -> dict[str, str | None]:
        """Return the report of plays, if it changed; None removes it."""
        text, have = report_text(self._observed.facts.plays), annotations_of(self._node)
        return {} if text == have.get(REPORT, "") else {REPORT: text or None}

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.do(Emit(self._observed.node, reason, message, COMPONENT, warning=warning))

    def phase(self, parent: Phase, child: Phase | None = None) -> None:
        record = self._record
        status = advance(record, self._node, parent, child, self._now) if record is not None else None
        if record is None or status is None:
            return
        self._note(record, status, f"node {name_of(self._observed.node)}: {(child or parent).type}")

    def _note(self, record: Obj, status: Obj, why: str) -> None:
        """Write the record's status: first on condition of its resourceVersion, which proves that the drain
        controller's last write was seen; then unconditionally, since only the agent writes while it works."""
        first = record is self._observed.record
        for write in set_status(record, status, why):
            self.do(write if first else replace(write, resource_version=""))
        self._record = record | {"status": status}

    def report(self, changes: Sequence[Obj]) -> None:
        """Record which parts of its config the node will never have; remove the report if there are none."""
        record = self._record
        if record is None:
            return
        status = {key: value for key, value in (record.get("status") or {}).items() if key != CHANGES}
        status |= {CHANGES: list(changes)} if changes else {}
        if status == (record.get("status") or {}):
            return
        self._note(record, status, f"node {name_of(self._observed.node)}: {len(changes)} fields do not hold")

    def do(self, step: Step) -> None:
        self.steps.append((step,))

    def plan(self, outcome: Outcome | None = None) -> Plan:
        if self._unreported:
            self.annotate({})
        return (
            Plan(tuple(self.steps), outcome, self._why)
            if outcome is not None
            else Plan(tuple(self.steps), why=self._why)
        )


def fail(observed: AgentObserved, text: str, now: datetime, *, event: str = "") -> Plan:
    script = Script(observed, now, text)
    have = annotations_of(observed.node)
    known = have.get(STATE) in FAILED_STATES and have.get(REASON) == text[:MAX_REASON]
    if event and not known:
        script.event(event, text, warning=True)
    if not known:
        say_degraded(script, name_of(observed.node), text)
    return script.plan(Retry(text))


def say_degraded(script: Script, name: str, text: str, *, state: str = "Degraded") -> None:
    script.annotate({STATE: state, REASON: text[:MAX_REASON]})
    script.phase(Phase("NodeDegraded", "True", "NodeDegraded", f"Node {name} upgrade failure. {text}"))


def give_up(script: Script, name: str, text: str, *, state: str = "Degraded", protected: bool = True) -> None:
    script.phase(Phase("NodeDegraded", "True", "NodeDegraded", f"Node {name} upgrade failure. {text}"))
    if protected:
        script.event("RemoveSigtermProtection", "Removing SIGTERM protection")
    script.annotate({STATE: state, REASON: text[:MAX_REASON]})
