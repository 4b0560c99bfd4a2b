"""Simulated machines for the machine-config agent: files in their tree, and the few commands that it runs.

Nothing is executed: ``systemctl``, ``rpm-ostree`` and similar commands change the state of a machine as the real ones
would.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from syncline.assembly.machines.simulatedplays import SimulatedPlays
from syncline.base.clock import Clock, format_time, parse_time
from syncline.cluster.machines.machine import Entry, EntryKind, Layers, MachineState, Power, Unit
from syncline.cluster.machines.simulated import Machines, SimulatedMachine
from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.agent.host import Done, HostError, Stat
from syncline.machineconfig.agent.hosts import (
    CURRENT_CONFIG,
    CURRENT_IMAGE_FILE,
    FORCE_FILE,
    HostFacts,
    Joining,
    Pull,
    stored_config,
)
from syncline.machineconfig.agent.provisioning.firstboot import FIPS_ENABLED, joining_of, kernel_fips
from syncline.machineconfig.agent.staging.kernel import parsed_arguments
from syncline.machineconfig.agent.staging.staging import born_with
from syncline.machineconfig.ansible.journal import EMPTY, JOURNAL, Journal, read_journal

SHADOW = "/etc/shadow"
KINDS = {EntryKind.FILE: "file", EntryKind.DIRECTORY: "dir", EntryKind.SYMLINK: "symlink"}
USERS = {"root": 0, "core": 1000}
MISSING = "no such file or directory"
FULL = "no space left on device"
MAX_LINKS = 40
IMAGE = "ostree-unverified-registry:"
IMAGES = "/var/lib/containers/syncline-images.json"
"""File with the time at which each image is available."""
MAX_IMAGES = 2000
PULL_S, PULLS_AT_ONCE = 10.0, 5
NOWHERE = ".invalid"


@dataclass(frozen=True, slots=True)
class SimulatedHost:
    """One machine. Known users and groups are root, core and numeric ids."""

    machine: SimulatedMachine
    os: str = "rhcos"
    keeps_all: bool = False

    def stat(self, path: str) -> Stat | None:
        folder = self._real("lstat", posixpath.dirname(path)) or ""
        found = self._entry("lstat", posixpath.join(folder, posixpath.basename(path)))
        if found is None:
            return None
        target = found.content.decode("utf-8", "replace") if found.kind is EntryKind.SYMLINK else ""
        return Stat(KINDS[found.kind], found.mode, _number(found.user), _number(found.group), target)

    def exists(self, path: str) -> bool:
        if path == "/dev/null":
            return True
        real = self._real("stat", path)
        return real is not None and (real == "/" or self._entry("stat", real) is not None)

    def read(self, path: str) -> bytes:
        real = self._real("open", path)
        found = self._entry("open", real) if real is not None else None
        if found is None:
            raise HostError("open", path, MISSING)
        if found.kind is EntryKind.DIRECTORY:
            raise HostError("read", path, "is a directory")
        return found.content

    def write(
        self,
        path: str,
        content: bytes,
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
        parents: int = 0o755,
    ) -> None:
        self._need_room("write", path)
        self.make_directories(posixpath.dirname(path), parents)
        there = self._entry("open", path)
        if there is not None and there.kind is EntryKind.DIRECTORY:
            raise HostError("rename", path, "file exists")
        uid, gid = owner or (0, 0)
        self.machine.root.write(path, Entry(EntryKind.FILE, content, mode, _name(uid), _name(gid)))

    def copy(self, source: str, target: str) -> None:
        found = self._entry("cp", source)
        if found is None:
            raise HostError("cp", source, MISSING)
        self._need_room("cp", target)
        self.make_directories(posixpath.dirname(target))
        self.machine.root.write(target, found)

    def _need_room(self, what: str, path: str) -> None:
        if self.machine.disk_full:
            raise HostError(what, path, FULL)

    def link(self, path: str, target: str) -> None:
        if self._entry("symlink", posixpath.dirname(path)) is None:
            raise HostError(f"symlink {target}", path, MISSING)
        self.machine.root.write(path, Entry(EntryKind.SYMLINK, target.encode(), 0o777))

    def remove(self, path: str) -> None:
        if self._entry("remove", path) is None:
            raise HostError("remove", path, MISSING)
        if next(iter(self.machine.root.paths(path)), None) is not None:
            raise HostError("remove", path, "directory not empty")
        self.machine.root.remove(path)

    def remove_all(self, path: str) -> None:
        self.machine.root.remove(path)

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        missing: list[str] = []
        while path != "/" and (found := self._entry("mkdir", path)) is None:
            missing.append(path)
            path = posixpath.dirname(path)
        if path != "/" and found is not None and found.kind is EntryKind.FILE:
            raise HostError("mkdir", path, "not a directory")
        for each in reversed(missing):
            self.machine.root.write(each, Entry(EntryKind.DIRECTORY, mode=mode))

    def names(self, path: str) -> list[str]:
        below = f"{path.rstrip('/')}/"
        return sorted({each[len(below) :].partition("/")[0] for each in self.machine.root.paths(path)})

    def user_id(self, name: str) -> int | None:
        return USERS.get(name)

    def group_id(self, name: str) -> int | None:
        return USERS.get(name)

    def user_name(self, uid: int) -> str | None:
        return next((name for name, number in USERS.items() if number == uid), None)

    def note(self, text: str) -> None:
        """Discard the text: a simulated machine has no reader."""

    def has_program(self, name: str) -> bool:
        return name == "rpm"

    def unit_files(self) -> frozenset[str]:
        return frozenset(self.machine.state.units)

    def run(self, command: Sequence[str]) -> Done:
        match list(command):
            case ["rpm", "-qf", path]:
                return Done(1, f"file {path} is not owned by any package")
            case ["rpm", "-q", package]:
                there = package in self.machine.state.layers.packages
                return Done(0, package) if there else Done(1, f"package {package} is not installed")
            case ["systemctl", verb, *names]:
                return self._systemctl(verb, names)
            case ["rpm-ostree", verb, *words]:
                return self._rpm_ostree(verb, words)
            case ["runuser", "-u", user, "--", "mkdir", "-m", _, "-p", path]:
                self.machine.root.write(path, Entry(EntryKind.DIRECTORY, b"", 0o700, user, user))
                return Done(0)
            case ["getent", "shadow", name]:
                return Done(0, f"{name}:{self._hashes().get(name, '*')}:::::::") if name in USERS else Done(2)
            case ["usermod", "-p", hashed, name]:
                kept = self._hashes() | {name: hashed}
                text = "".join(f"{user}:{value}\n" for user, value in sorted(kept.items()))
                self.machine.root.write(SHADOW, Entry(EntryKind.FILE, text.encode(), 0))
                return Done(0)
        return Done(127, f"{command[0]}: command not found")

    def _hashes(self) -> dict[str, str]:
        found = self.machine.root.read(SHADOW)
        lines = found.content.decode().splitlines() if found is not None else []
        return {name: value for name, _, value in (line.partition(":") for line in lines)}

    def _systemctl(self, verb: str, names: Sequence[str]) -> Done:
        units = self.machine.state.units
        for name in names:
            unit = units.get(name, Unit(name))
            match verb:
                case "is-enabled":
                    return Done(0, "enabled") if unit.enabled else Done(1, "disabled")
                case "enable" | "disable":
                    self.machine.set_unit(replace(unit, enabled=verb == "enable"))
                case "preset" if name in units:
                    self.machine.set_unit(replace(unit, enabled=False))  # as CoreOS' last preset: disable *
                case "restart" | "reload" if unit.masked:
                    return Done(1, f"Failed to {verb} {name}: Unit {name} is masked.")
                case "restart" | "reload" if not unit.active:
                    self.machine.set_unit(replace(unit, active=True))
        return Done(0)

    def _rpm_ostree(self, verb: str, words: Sequence[str]) -> Done:
        state = self.machine.state
        match verb:
            case "status":
                return Done(0, json.dumps({"deployments": _deployments(state)}))
            case "cleanup":
                self.machine.set_os_image(state.os_image)
                self.machine.set_kernel_arguments(state.kernel_arguments)
                self.machine.set_layers(state.layers)
            case "rebase":
                self.machine.set_os_image(words[-1].removeprefix(IMAGE))
            case "kargs":
                there = list(state.next_kernel_arguments)
                for word in words:
                    flag, _, argument = word.partition("=")
                    if flag == "--append":
                        there.append(argument)
                    elif argument in there:
                        there.remove(argument)
                self.machine.set_kernel_arguments(tuple(there))
            case "update" | "override":
                self.machine.set_layers(_layered(state.next_layers, words))
        return Done(0)

    def _entry(self, operation: str, path: str) -> Entry | None:
        if path == "/":
            return Entry(EntryKind.DIRECTORY, mode=0o755)
        found = self._there(operation, path)
        if found is None:
            self._check_parents(operation, path)
        return found

    def _there(self, operation: str, path: str) -> Entry | None:
        try:
            return self.machine.root.read(path)
        except ValueError as error:
            raise HostError(operation, path, str(error)) from error

    def _check_parents(self, operation: str, path: str) -> None:
        above = posixpath.dirname(path)
        while above != "/":
            found = self._there(operation, above)
            if found is not None and found.kind is EntryKind.FILE:
                raise HostError(operation, path, "not a directory")
            above = posixpath.dirname(above)

    def _real(self, operation: str, path: str) -> str | None:
        """Resolve links, also in parent directories."""
        for _ in range(MAX_LINKS):
            parts = [part for part in path.split("/") if part]
            for at in range(len(parts)):
                head = "/" + "/".join(parts[: at + 1])
                found = self._there(operation, head)
                if found is not None and found.kind is EntryKind.SYMLINK:
                    target = found.content.decode("utf-8", "replace")
                    path = posixpath.normpath(posixpath.join(posixpath.dirname(head), target, *parts[at + 1 :]))
                    break
            else:
                return path
        return None


def _layered(layers: Layers, words: Sequence[str]) -> Layers:
    """Apply ``override remove|reset BASE…`` and ``update``, with packages after ``--install`` and ``--uninstall``."""
    packages, removals, flag = list(layers.packages), list(layers.removals), ""
    for word in words:
        if word.startswith("--") or word in ("remove", "reset"):
            flag = word
            continue
        kept = packages if flag.startswith("--") else removals
        if flag in ("--install", "remove") and word not in kept:
            kept.append(word)
        elif flag in ("--uninstall", "reset") and word in kept:
            kept.remove(word)
    return Layers(tuple(packages), tuple(removals))


def _deployments(state: MachineState) -> list[Obj]:
    """Return the deployments like ``rpm-ostree status``, the staged one first."""
    booted = (state.os_image, state.kernel_arguments, state.layers)
    staged = (state.next_os_image, state.next_kernel_arguments, state.next_layers)
    return [
        {
            "booted": there is booted,
            "staged": there is staged,
            "container-image-reference": f"{IMAGE}{there[0]}",
            "requested-packages": list(there[2].packages),
            "requested-base-removals": list(there[2].removals),
        }
        for there in ([staged] if staged != booted else []) + [booted]
    ]


def _content(machine: SimulatedMachine, path: str) -> bytes | None:
    entry = machine.root.read(path)
    return None if entry is None or entry.kind is not EntryKind.FILE else entry.content


def _number(name: str) -> int:
    return USERS.get(name, int(name) if name.isdigit() else 0)


def _name(number: int) -> str:
    return next((name for name, known in USERS.items() if known == number), str(number))


class SimulatedHosts:
    """All machines of a cluster by node name."""

    in_place = True  # the state of machines belongs to the event loop

    def __init__(self, machines: Machines, clock: Clock) -> None:
        self._machines = machines
        self._clock = clock
        self._stored: dict[str, tuple[bytes, Obj]] = {}
        self._observed: dict[str, int] = {}
        self._looked: dict[str, str] = {}
        self.player = SimulatedPlays(self.host, clock)
        self._journals: dict[str, tuple[bytes, Journal]] = {}

    def follow(self, wake: Callable[[str], None]) -> Callable[[], None]:
        """Call ``wake`` with the name of each machine that changed, or whose files did; returns the function that stops
        it."""

        def changed(name: str) -> None:
            machine = self._machines.get(name)
            if machine is not None:
                machine.root.touched = lambda: wake(name)
            wake(name)

        self._machines.listeners.append(changed)
        for name in self._machines.names():
            changed(name)
        return lambda: self._machines.listeners.remove(changed)

    def facts(self, node: str) -> HostFacts | None:
        machine = self._machines.get(node)
        if machine is None:
            return None
        state = machine.state
        reachable = machine.cut_off_at is None
        up = state.power is Power.ON and not state.reboot.pending and reachable
        stored, joining = None, joining_of(lambda path: _content(machine, path))
        try:
            stored = self._stored_config(machine)
        except HostError as error:
            joining = replace(joining, damage=str(error))
        fips = _content(machine, FIPS_ENABLED)
        return HostFacts(
            state.boot_id,
            up=up,
            stored=stored,
            image=(_content(machine, CURRENT_IMAGE_FILE) or b"").decode("utf-8", "replace").strip(),
            forced=machine.root.read(FORCE_FILE) is not None,
            fips=None if fips is None else kernel_fips(fips.decode("utf-8", "replace")),
            touched=self._observed.get(node) != machine.root.revision,
            fresh=self._looked.get(node) != state.boot_id,
            blank=stored is None and joining == Joining(),
            joining=joining,
            plays=self._journal(machine),
        )

    def host(self, node: str) -> SimulatedHost:
        machine = self._machines.get(node)
        if machine is None:
            raise KeyError(node)
        return SimulatedHost(machine)

    def provision(self, node: str, config: Obj) -> None:
        machine = self.host(node).machine
        image = str(dig(config, "spec", "osImageURL") or "")
        arguments = tuple(parsed_arguments(dig(config, "spec", "kernelArguments")))
        layers = Layers()
        for _, _, *words in born_with(config):
            layers = _layered(layers, words)
        machine.resume(
            replace(
                machine.state,
                os_image=image,
                next_os_image=image,
                kernel_arguments=arguments,
                next_kernel_arguments=arguments,
                layers=layers,
                next_layers=layers,
            )
        )

    def store(self, node: str, config: Obj, image: str = "") -> None:
        kept = {"metadata": {"name": name_of(config)}, "spec": config.get("spec") or {}}
        host = self.host(node)
        host.write(CURRENT_IMAGE_FILE, image.encode())  # first: the config marks an update
        host.write(CURRENT_CONFIG, json.dumps(kept, separators=(",", ":")).encode())
        self.compared(node)

    def compared(self, node: str, *, booted: bool = False) -> None:
        machine = self.host(node).machine
        self._observed[node] = machine.root.revision
        if booted:
            self._looked[node] = machine.state.boot_id

    def differs(self, node: str) -> None:
        self._observed.pop(node, None)
        self._looked.pop(node, None)

    def pull(self, node: str, image: str) -> Pull:
        """Pull an image; a few at a time. Registries of the domain that never resolves are unreachable."""
        host, now = self.host(node), self._clock.now()
        known: dict[str, str] = json.loads(_content(host.machine, IMAGES) or b"{}")
        if image in known:
            until = parse_time(known[image])
            return Pull() if until <= now else Pull(until)
        registry = image.partition("/")[0].partition(":")[0]
        if registry.endswith(NOWHERE):
            return Pull(error=f"pinging container registry {registry}: dial tcp: lookup {registry}: no such host")
        pulling = sum(parse_time(each) > now for each in known.values())
        until = now + timedelta(seconds=PULL_S * (1 + pulling // PULLS_AT_ONCE))
        kept = dict(list(known.items())[1 - MAX_IMAGES :]) | {image: format_time(until)}
        host.write(IMAGES, json.dumps(kept).encode())
        return Pull(parse_time(kept[image]))

    def booted_image(self, node: str) -> str:
        return self.host(node).machine.state.os_image

    def command_line(self, node: str) -> str:
        return " ".join(self.host(node).machine.state.kernel_arguments)

    def finalize_failure(self, node: str) -> str:
        return ""

    def reboot(self, node: str, request: str) -> None:
        self.host(node).machine.request_reboot(request, self._clock.now())

    def _journal(self, machine: SimulatedMachine) -> Journal:
        entry = machine.root.read(JOURNAL)
        if entry is None:
            return EMPTY
        known = self._journals.get(machine.name)
        if known is None or known[0] is not entry.content:
            known = self._journals[machine.name] = (entry.content, read_journal(entry.content))
        return known[1]

    def _stored_config(self, machine: SimulatedMachine) -> Obj | None:
        entry = machine.root.read(CURRENT_CONFIG)
        if entry is None:
            return None
        known = self._stored.get(machine.name)
        if known is None or known[0] is not entry.content:
            known = self._stored[machine.name] = (entry.content, stored_config(entry.content))
        return known[1]
