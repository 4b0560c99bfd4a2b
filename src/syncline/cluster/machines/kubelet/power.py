"""Control the power of machines through annotations of their Nodes.

``syncline node reboot|fail|recover`` writes the annotations; so may any user that can patch Nodes. A reboot is
requested with an id of the caller's choice and executed once per id, also across restarts of this process; an
annotation reports its completion. ``off`` cuts the power at once, ``on`` restores it. Machines without these
annotations are unaffected.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias, assert_never

from syncline.base.action import Action
from syncline.base.clock import Clock
from syncline.cluster.machines.machine import MachineState, Power
from syncline.cluster.machines.simulated import Machines
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Patch, Plan
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, annotations_of

POWER_KEEPER = "machine-power"
"""Name of the controller."""

NODE = GroupKind("", "Node")
POWER = "syncline.dev/power"
"""``on`` or ``off``; other values are ignored."""
REBOOT, REBOOT_DONE = "syncline.dev/reboot", "syncline.dev/reboot-done"
"""Ids of the requested reboot, and of the last completed one."""


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ChangePower(Action):
    name: str
    switch: Switch
    reason: str

    def describe(self) -> str:
        return f"turn machine {self.name} {self.switch}"


@dataclass(frozen=True, slots=True)
class RebootMachine(Action):
    name: str
    request: str
    reason: str

    def describe(self) -> str:
        return f"reboot machine {self.name}"


PowerAction: TypeAlias = ChangePower | RebootMachine


@dataclass(frozen=True, slots=True)
class ObservedPower:
    node: Obj
    state: MachineState


def _plan(observed: ObservedPower, now: datetime) -> Plan:
    return plan_power(observed, str(observed.node["metadata"]["name"]))


def power_controller(machines: Machines) -> Controller[ObservedPower]:

    def observe(cache: Snapshot, ref: ObjectRef) -> ObservedPower | None:
        """Return None for Nodes without a simulated machine."""
        node, machine = cache.get(ref), machines.get(ref.name)
        return None if node is None or machine is None else ObservedPower(node, machine.state)

    return Controller(
        name=POWER_KEEPER,
        kind=NODE,
        observe=observe,
        plan=_plan,
    )


def plan_power(observed: ObservedPower, name: str) -> Plan:
    """Plan the power of one machine; ``off`` takes precedence over all other requests. Pure."""
    asked, state = annotations_of(observed.node), observed.state
    if asked.get(POWER) == Switch.OFF:
        if state.power is Power.OFF:
            return Plan(why="it is off, as asked")
        return Plan(((ChangePower(name, Switch.OFF, f"{POWER} is off"),),), why="power off")
    reboot = asked.get(REBOOT, "")
    if reboot and reboot != asked.get(REBOOT_DONE):
        return _reboot(name, reboot, state)
    if asked.get(POWER) == Switch.ON and state.power is Power.OFF:
        return Plan(((ChangePower(name, Switch.ON, f"{POWER} is on"),),), why="power on")
    return Plan(why="nothing is asked for")


def _reboot(name: str, request: str, state: MachineState) -> Plan:
    if state.reboot.requested != request:
        return Plan(((RebootMachine(name, request, f"{REBOOT} asks for it"),),), why="reboot")
    if state.reboot.pending or state.power is not Power.ON:
        return Plan(why="the reboot is under way")
    body: Obj = {"metadata": {"annotations": {REBOOT_DONE: request}}}
    return Plan(((Patch(GVK("", "v1", "Node"), "", name, body, "the reboot has ended"),),), why="tell that it is done")


class PowerHandler:
    def __init__(self, machines: Machines, clock: Clock) -> None:
        self._machines = machines
        self._clock = clock

    def handle(self, action: PowerAction) -> Generator[Any, Any, Any]:
        yield from ()
        machine = self._machines.get(action.name)
        if machine is None:
            return
        now = self._clock.now()
        match action:
            case ChangePower(switch=switch):
                change = machine.power_on if switch is Switch.ON else machine.fail
                change(now)
            case RebootMachine(request=request):
                machine.request_reboot(request, now)
            case _ as never:
                assert_never(never)
