"""Machines in memory: their state transitions, and the registry of all machines.

The kubelet, ``assembly`` and rehearsals use it. Only these functions change a machine. Boot ids derive from the
machine's name and its number of boots, so that equal runs have equal machines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from syncline.cluster.machines.machine import (
    DirectoryTree,
    Entry,
    EntryKind,
    Handshake,
    Layers,
    MachineKeeper,
    MachineSpec,
    MachineState,
    Power,
    Unit,
    checked_path,
)

MAX_MACHINES = 10_000
"""Limit of machines per registry: more than any cluster that fits on one machine."""


@dataclass(frozen=True, slots=True)
class BootTimes:
    """Durations of a simulated machine, in seconds. A virtual machine reboots in about a minute."""

    stop_s: float = 10.0
    boot_s: float = 40.0


def boot_id(name: str, boots: int) -> str:
    """Return a boot id in the format of ``/proc/sys/kernel/random/boot_id``."""
    text = hashlib.sha256(f"boot/{name}/{boots}".encode()).hexdigest()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:32]}"


# -- transitions: from a state to the next ---------------------------------------------------------------------------


def stopping(state: MachineState, now: datetime, times: BootTimes) -> MachineState:
    if state.power in (Power.OFF, Power.STOPPING):
        return state
    ends = now + timedelta(seconds=times.stop_s)
    return replace(state, power=Power.STOPPING, stopped_at=now, changes_at=ends)


def booting(state: MachineState, now: datetime, times: BootTimes) -> MachineState:
    """Start a boot, unless the machine runs or boots already."""
    if state.power in (Power.ON, Power.BOOTING):
        return state
    return replace(state, power=Power.BOOTING, changes_at=now + timedelta(seconds=times.boot_s))


def booted(state: MachineState, name: str, now: datetime) -> MachineState:
    boots = state.boots + 1
    return replace(
        state,
        power=Power.ON,
        changes_at=None,
        booted_at=now,
        boots=boots,
        boot_id=boot_id(name, boots),
        kernel_arguments=state.next_kernel_arguments,
        os_image=state.next_os_image,
        layers=state.next_layers,
        units={key: replace(unit, active=unit.enabled and not unit.masked) for key, unit in state.units.items()},
        reboot=Handshake(state.reboot.requested, state.reboot.requested),
    )


def advanced(state: MachineState, name: str, now: datetime, times: BootTimes) -> MachineState:
    """Return the state at ``now``: a stop is followed by a boot if one is requested, a boot by running."""
    while state.changes_at is not None and state.changes_at <= now:
        at = state.changes_at
        if state.power is Power.BOOTING:
            state = booted(state, name, at)
        else:
            state = replace(state, power=Power.OFF, changes_at=None)
            if state.reboot.pending:
                state = booting(state, at, times)
    return state


# -- one machine -----------------------------------------------------------------------------------------------------


class MemoryTree:
    """A root directory in memory."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def read(self, path: str) -> Entry | None:
        return self._entries.get(checked_path(path))

    def write(self, path: str, entry: Entry) -> None:
        parents = _parents(checked_path(path))
        for parent in parents:
            found = self._entries.get(parent)
            if found is not None and found.kind is not EntryKind.DIRECTORY:
                raise ValueError(f"{path}: {parent} is a {found.kind}, no directory; remove it first")
        if entry.kind is not EntryKind.DIRECTORY:
            self.remove(path)
        for parent in parents:
            self._entries.setdefault(parent, Entry(EntryKind.DIRECTORY, mode=0o755))
        self._entries[path] = entry

    def remove(self, path: str) -> bool:
        _parents(checked_path(path))
        gone = [each for each in self._entries if each == path or each.startswith(path + "/")]
        for each in gone:
            del self._entries[each]
        return bool(gone)

    def paths(self, below: str = "/") -> Iterator[str]:
        prefix = checked_path(below).rstrip("/") + "/"
        yield from sorted(each for each in self._entries if each.startswith(prefix))


class WatchedTree:
    """A tree that counts its changes and calls ``touched``, like a watch on files."""

    def __init__(self, tree: DirectoryTree) -> None:
        self._tree = tree
        self.revision = 0
        self.touched: Callable[[], None] | None = None

    def read(self, path: str) -> Entry | None:
        return self._tree.read(path)

    def write(self, path: str, entry: Entry) -> None:
        self._tree.write(path, entry)
        self._changed()

    def remove(self, path: str) -> bool:
        gone = self._tree.remove(path)
        self._changed()
        return gone

    def paths(self, below: str = "/") -> Iterator[str]:
        return self._tree.paths(below)

    def _changed(self) -> None:
        self.revision += 1
        if self.touched is not None:
            self.touched()


def _parents(path: str) -> list[str]:
    """Return the parent directories, from the top; raise ValueError for ``/``."""
    if path == "/":
        raise ValueError("/ is no entry of a tree; name a path below it")
    names = path.split("/")[1:-1]
    return ["/" + "/".join(names[: number + 1]) for number in range(len(names))]


class SimulatedMachine:
    """Implements :class:`~syncline.cluster.machines.machine.Machine`. ``changed`` is called after every change."""

    def __init__(
        self, spec: MachineSpec, times: BootTimes, changed: Callable[[str], None], root: DirectoryTree | None = None
    ) -> None:
        self._spec = spec
        self._times = times
        self._changed = changed
        self._root = WatchedTree(root or MemoryTree())
        self._state = MachineState(boot_id(spec.name, 1))
        self.registered_boot = ""
        """The boot in which the kubelet created its Node, once per boot."""
        self.node_uid = ""
        """Uid of its Node, once known: the machine is deleted with it, in any state."""
        self.cut_off_at: datetime | None = None
        """Since when nothing that runs on it reaches the API; None: it does."""
        self.disk_full = False

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def spec(self) -> MachineSpec:
        return self._spec

    @property
    def state(self) -> MachineState:
        return self._state

    @property
    def root(self) -> WatchedTree:
        return self._root

    def resume(self, state: MachineState) -> None:
        """Restore the saved state of a machine."""
        self._state = state

    def restore(self, boots: int) -> None:
        """Continue the boot count of an earlier machine."""
        self._state = replace(self._state, boots=boots, boot_id=boot_id(self.name, boots))

    def set_unit(self, unit: Unit) -> None:
        self._become(replace(self._state, units={**self._state.units, unit.name: unit}))

    def set_kernel_arguments(self, arguments: tuple[str, ...]) -> None:
        self._become(replace(self._state, next_kernel_arguments=arguments))

    def set_os_image(self, image: str) -> None:
        self._become(replace(self._state, next_os_image=image))

    def set_layers(self, layers: Layers) -> None:
        self._become(replace(self._state, next_layers=layers))

    def request_reboot(self, request: str, now: datetime) -> None:
        state = self.at(now)
        if state.reboot.requested == request:
            return
        asked = replace(state, reboot=Handshake(request, state.reboot.done))
        off = asked.power is Power.OFF
        self._become(booting(asked, now, self._times) if off else stopping(asked, now, self._times))

    def power_off(self, now: datetime) -> None:
        """Power off in an orderly way; a requested reboot is dropped."""
        state = self.at(now)
        given_up = replace(state, reboot=Handshake(state.reboot.requested, state.reboot.requested))
        self._become(stopping(given_up, now, self._times))

    def fail(self, now: datetime) -> None:
        """Cut the power at once. A requested reboot is dropped, and so are changes staged for the next boot, which only
        an orderly stop would apply."""
        state = self.at(now)
        if state.power in (Power.ON, Power.STOPPING):
            state = replace(
                state,
                next_os_image=state.os_image,
                next_kernel_arguments=state.kernel_arguments,
                next_layers=state.layers,
            )
        given_up = Handshake(state.reboot.requested, state.reboot.requested)
        stopped = state.stopped_at if state.power is Power.OFF else now
        self._become(replace(state, power=Power.OFF, reboot=given_up, stopped_at=stopped, changes_at=None))

    def power_on(self, now: datetime) -> None:
        self._become(booting(self.at(now), now, self._times))

    def at(self, now: datetime) -> MachineState:
        """Advance to ``now`` and return the state."""
        state = advanced(self._state, self.name, now, self._times)
        self._become(state)
        return state

    def cut_off(self, since: datetime | None) -> None:
        """Cut it off from the API, or, with None, connect it again."""
        self.cut_off_at = since
        self._changed(self.name)

    def fill_disk(self, full: bool) -> None:
        """Fill its disk, or make room again."""
        self.disk_full = full
        self._changed(self.name)

    def last_heartbeat(self, now: datetime) -> datetime | None:
        """Return when it last gave a sign of life: ``now`` if it runs and reaches the API, else just before the moment
        at which it stopped or was cut off."""
        state = self.at(now)
        if self.cut_off_at is not None and (state.stopped_at is None or state.stopped_at > self.cut_off_at):
            return self.cut_off_at - timedelta(microseconds=1)
        if state.power is Power.ON:
            return now
        return None if state.stopped_at is None else state.stopped_at - timedelta(microseconds=1)

    def _become(self, state: MachineState) -> None:
        if state == self._state:
            return
        self._state = state
        self._changed(self.name)


# -- all machines ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Machines:
    """Machines by node name. ``listeners`` get the name of a changed machine, after ``keeper``."""

    times: BootTimes = field(default_factory=BootTimes)
    keeper: MachineKeeper | None = None
    listeners: list[Callable[[str], None]] = field(default_factory=list)
    _machines: dict[str, SimulatedMachine] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, spec: MachineSpec, *, boots: int = 1) -> SimulatedMachine:
        """Return the machine of that name, created if needed. ``boots`` continues an earlier count, unless the keeper
        has one."""
        known = self._machines.get(spec.name)
        if known is not None:
            return known
        if len(self._machines) >= MAX_MACHINES:
            raise ValueError(f"machine {spec.name}: there are {MAX_MACHINES} machines already; no more are simulated")
        root = self.keeper.root(spec.name) if self.keeper is not None else None
        machine = SimulatedMachine(spec, self.times, self._tell, root)
        kept = self.keeper.state(spec.name) if self.keeper is not None else None
        if kept is not None:
            machine.resume(kept)
        if kept is None or kept.boots < boots:
            machine.restore(boots)
        self._machines[spec.name] = machine
        used = set(self._numbers.values())
        self._numbers[spec.name] = next(number for number in range(len(used) + 1) if number not in used)
        self._tell(spec.name)
        return machine

    def remove(self, name: str) -> None:
        if self._machines.pop(name, None) is not None:
            del self._numbers[name]
            if self.keeper is not None:
                self.keeper.forget(name)
            self._tell(name)

    def get(self, name: str) -> SimulatedMachine | None:
        return self._machines.get(name)

    def number(self, name: str) -> int:
        """Return a machine's unique small number, from which addresses derive."""
        return self._numbers[name]

    def names(self) -> list[str]:
        return sorted(self._machines)

    def heartbeat(self, name: str, now: datetime) -> datetime | None:
        """Return a machine's last heartbeat; None for an unknown node."""
        machine = self._machines.get(name)
        return None if machine is None else machine.last_heartbeat(now)

    def _tell(self, name: str) -> None:
        machine = self._machines.get(name)
        if self.keeper is not None and machine is not None:
            self.keeper.keep(name, machine.state)
        for listener in self.listeners:
            listener(name)
