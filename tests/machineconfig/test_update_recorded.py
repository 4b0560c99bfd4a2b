"""Whole updates of a running node: the agent's plans on a host in memory, beside upstream's recorded logs."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.machineconfig.memory_host import MemoryHost
from tests.machineconfig.recordings import KNOWN, cases, judge, same_text
from tests.recorded import known

from syncline.control.plan import Emit, Outcome, Patch, Plan, Result, Retry, SetStatus
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.agent.handler import HOST_STEPS, HostHandler
from syncline.machineconfig.agent.host import Host, HostError
from syncline.machineconfig.agent.hosts import FORCE_FILE, HostFacts, Pull
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.plan import plan_agent
from syncline.machineconfig.agent.planning.settling import settle_agent
from syncline.machineconfig.agent.reboot import reboot_command
from syncline.machineconfig.agent.steps import CheckDisk, Checked
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN
from syncline.machineconfig.policies.model import effective_policies
from syncline.machineconfig.pools.membership import MembershipError, primary_pool

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OURS = "syncline.dev/"
STORED = "/etc/machine-config-daemon/currentconfig"
MOST_PASSES = 12


@dataclass
class OneHost:
    """The machine of the recording; a reboot is asked for by upstream's command."""

    machine: MemoryHost
    stored: Obj
    booted: str
    log: list[Obj]
    fips: str = ""
    in_place: bool = True
    rebooting: bool = False

    def facts(self, _node: str) -> HostFacts:
        forced, fips = self.machine.exists(FORCE_FILE), self.fips.strip()
        up, runs_so = not self.rebooting, fips == "1" if fips else None
        return HostFacts("boot-1", up=up, stored=self.stored, forced=forced, fips=runs_so)

    def host(self, _node: str) -> Host:
        return self.machine

    def provision(self, node: str, config: Obj) -> None:
        raise AssertionError("a running node is not provisioned")

    def store(self, _node: str, config: Obj, image: str = "") -> None:
        self.stored = config

    def compared(self, _node: str, *, booted: bool = False) -> None: ...

    def differs(self, _node: str) -> None: ...

    def finalize_failure(self, _node: str) -> str:
        return ""

    def pull(self, _node: str, image: str) -> Pull:
        raise AssertionError("an update pulls no images")

    def booted_image(self, _node: str) -> str:
        return self.booted

    def command_line(self, _node: str) -> str:
        return " ".join(dig(self.stored, "spec", "kernelArguments") or ())

    def reboot(self, _node: str, request: str) -> None:
        command = reboot_command(request.rpartition(".")[0])
        done = self.machine.run(command)
        if not done.ok:
            raise HostError("reboot", " ".join(command), done.output)
        self.rebooting = True


@dataclass
class Simulation:
    """The API, the drain controller and the control loop around the agent."""

    given: Obj
    log: list[Obj] = field(default_factory=list)
    error: str | None = None

    def __post_init__(self) -> None:
        given = self.given
        self.node: Obj = copy.deepcopy(given["node"])
        self.record: Obj = {
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfigNode",
            "metadata": {"name": name_of(self.node)},
            "spec": {},
            "status": {},
        }
        machine = MemoryHost.of(given)
        machine.make_directories("/etc/machine-config-daemon")
        if given.get("forceFile"):
            machine.write(FORCE_FILE, b"")
        self.before = dict(machine.tree)
        self.hosts = OneHost(machine, given["old"], given.get("bootedImage", ""), self.log, given.get("nodeFips") or "")
        self.handler = HostHandler(self.hosts)
        self.ran = 0

    def run(self) -> None:
        for _ in range(MOST_PASSES):
            observed = self._observe()
            plan = plan_agent(observed, NOW)
            results, outcome = self._carry_out(plan)
            while (more := settle_agent(observed, plan, results, NOW)) is not None:
                observed, plan = more
                results, outcome = self._carry_out(plan)
            if isinstance(outcome, Retry):
                self.error = outcome.error
                return
            if not results or self.hosts.rebooting:
                return
            asked = annotations_of(self.node).get(DESIRED_DRAIN)
            if asked != annotations_of(self.node).get(LAST_DRAIN):
                self.log.append({"drainController": asked})
                self.node["metadata"]["annotations"][LAST_DRAIN] = asked
                self.node.setdefault("spec", {})["unschedulable"] = str(asked).startswith("drain-")

    def _observe(self) -> AgentObserved:
        given = self.given
        return AgentObserved(
            self.node,
            self.hosts.facts(""),
            current=given["old"],
            desired=given["new"],
            record=self.record,
            policies=effective_policies(given.get("policy")),
            misplaced=_misplaced(self.node, given.get("pools") or ()),
        )

    def _carry_out(self, plan: Plan) -> tuple[tuple[Result, ...], Outcome]:
        results: list[Result] = []
        for stage in (*plan.steps, *((each,) for each in plan.status)):
            for action in stage:
                results.append(self._attempt(action))
            if not all(each.ok for each in results):
                break
        return tuple(results), plan.outcome

    def _attempt(self, action: Any) -> Result:
        try:
            return Result(action, ok=True, value=self._handle(action))
        except OSError as error:
            return Result(action, ok=False, error=error)

    def _handle(self, action: Any) -> Any:
        if isinstance(action, Emit):
            kind = "Warning" if action.warning else "Normal"
            self.log.append({"event": f"{kind} {action.event_reason} {action.message}"})
        elif isinstance(action, CheckDisk) and action.reason == "before an update":
            return Checked(None)  # upstream's caller looks for drift, before the call that was recorded
        elif isinstance(action, CheckDisk) and action.booted:
            return self._handle(replace(action, booted=False))  # upstream looks at what has booted after a boot only
        elif isinstance(action, HOST_STEPS):
            machine = self.hosts.machine
            work = self.handler.handle(action)
            try:
                next(work)
            except StopIteration as ended:
                return ended.value
            finally:
                self.log += [{"command": line} for line in machine.commands[self.ran :]]
                self.ran = len(machine.commands)
        elif isinstance(action, Patch | SetStatus):
            self._write(action)
        else:
            raise AssertionError(f"nobody performs {action}")
        return None

    def _write(self, action: Any) -> None:
        if isinstance(action, Patch):
            assert action.gvk.kind == "Node"
            notes = action.body["metadata"]["annotations"]
            have = self.node["metadata"].setdefault("annotations", {})
            changed = {k: v for k, v in notes.items() if have.get(k) != v and not k.startswith(OURS)}
            for key, value in notes.items():
                if value is None:
                    have.pop(key, None)
                else:
                    have[key] = value
            if changed:
                self.log.append({"annotations": changed})
            return
        old = {each["type"]: each for each in dig(self.record, "status", "conditions", default=[])}
        self.record = self.record | {"status": action.new}
        updated = next(each for each in action.new["conditions"] if each["type"] == "Updated")
        if updated["reason"] != "NotYetOccurred" and old.get("Updated", {}).get("status") != updated["status"]:
            return  # said by whoever calls for an update, and puts all others back
        for each in self.record["status"]["conditions"]:
            told = f"{each['type']}={each['status']} {each['reason']}: {each['message']}"
            was = old.get(each["type"])
            if each["reason"] != "NotYetOccurred" and (was is None or _untimed(was) != _untimed(each)):
                self.log.append({"machineConfigNode": told})


def _untimed(condition: Obj) -> Obj:
    return {key: value for key, value in condition.items() if key != "lastTransitionTime"}


def _misplaced(node: Obj, pools: Sequence[Obj]) -> str:
    try:
        primary_pool(node, pools)
    except MembershipError as error:
        return str(error)
    return ""


def _comparable(log: Sequence[Obj]) -> list[Obj]:
    """Around the update itself the recording leaves out what its caller says: that the node needs it, or has it. That
    drift is looked for is an event of ours, not a monitor that starts."""
    found = []
    for entry in log:
        kind = next(iter(entry))
        if kind in ("note", "driftMonitor") or str(entry.get("event")).startswith("Normal ConfigDriftMonitor"):
            continue
        found.append(entry)
    return found


def _staged_in_vain(log: Sequence[Obj]) -> list[Obj]:
    """Upstream's log with our undoing of a system that was staged, see ``known.json``: what was staged is dropped, and
    nothing is staged on top of what runs."""
    events = [str(entry.get("event", "")) for entry in log]
    starts = [at for at, event in enumerate(events) if event.startswith("Normal OSUpdateStarted ")]
    if len(starts) < 2:
        return list(log)
    first = starts[1] - (events[starts[1] - 1].startswith("Normal InClusterUpgrade "))
    staged = (at for at, event in enumerate(events) if at > first and event.startswith("Normal OSUpdateStaged "))
    dropped = [entry for entry in log[first:] if entry.get("command") == "rpm-ostree cleanup -p"]
    return [*log[:first], *dropped[:1], *log[next(staged, first - 1) + 1 :]]


def _same(expected: Any, got: Any) -> bool:
    if isinstance(expected, str) and isinstance(got, str):
        return same_text(expected, got)
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(_same(expected[key], got[key]) for key in expected)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(_same, expected, got))
    return bool(expected == got)


@pytest.mark.parametrize("case", cases("update"), ids=lambda case: case["id"])
def test_a_whole_update_goes_as_upstreams(case: Obj) -> None:
    sim = Simulation(case["input"])
    sim.run()
    machine = sim.hosts.machine
    got: Obj = {
        "log": _comparable(sim.log),
        "annotations": {k: v for k, v in annotations_of(sim.node).items() if not k.startswith(OURS)},
        "unschedulable": bool(dig(sim.node, "spec", "unschedulable", default=False)),
        "changed": machine.changed(sim.before),
        "removed": machine.removed(sim.before),
        "configOnDisk": name_of(sim.hosts.stored),
        "rebootQueued": sim.hosts.rebooting,
        "error": sim.error,
    }
    expected = case["expect"] | {"log": _comparable(case["expect"]["log"])}
    expected.pop("errorWithoutPositions", None)
    undone = expected | {"log": _staged_in_vain(expected["log"])}
    if undone != expected and _same(undone, got):
        pytest.xfail(known(KNOWN)["update"]["a system that was staged in vain"])
    judge(case, _same(expected, got), json.dumps(got))
