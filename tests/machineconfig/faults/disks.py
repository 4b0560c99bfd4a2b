"""What a disk must hold when its node says Done: our own reading of a MachineConfig, independent of the agent's."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from syncline.cluster.machines.machine import Entry, EntryKind, Power
from syncline.cluster.machines.simulated import SimulatedMachine
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.files.authorities import FILES

SYSTEMD = "/etc/systemd/system"
CURRENT_CONFIG = "/etc/machine-config-daemon/currentconfig"
KEYS = "/home/core/.ssh/authorized_keys.d/ignition"
SHADOW = "/etc/shadow"
BOOKS = "/etc/machine-config-daemon/"
"""What the agent keeps for itself."""
PLAYS = "/var/lib/syncline/ansible/"
"""What it keeps of Ansible, and what a simulated run leaves."""
PROVISIONING = ("/etc/ignition-machine-config-encapsulated.json", "/etc/mcs-machine-config-content.json")
"""What the machine joined with; also under other names, as upstream."""
AUTHORITIES = tuple(FILES.values())
"""Written past configs, whenever the ControllerConfig changes; also the folders they stand in."""
KEPT = "/etc/machine-config-daemon/orig{}.mcdorig"


@dataclass
class Disk:
    """``links``: targets by path; ``units``: enabled or not, None where nobody says."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    units: dict[str, bool | None] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    image: str = ""
    packages: tuple[str, ...] = ()
    keys: str | None = None
    password: str | None = None


def wanted(config: Obj) -> Disk:
    """Of a MachineConfig of Ignition 3, as the tests write them."""
    spec = config["spec"]
    ignition: dict[str, Any] = spec.get("config") or {}
    disk = Disk(arguments=tuple(spec.get("kernelArguments") or ()), image=str(spec.get("osImageURL") or ""))
    disk.packages = tuple(spec.get("extensions") or ())  # those of the tests are one package each, of that name
    for file in (ignition.get("storage") or {}).get("files") or ():
        mode = file.get("mode")
        disk.files[file["path"]] = (_content(file), 0o644 if mode is None else mode)
    for unit in (ignition.get("systemd") or {}).get("units") or ():
        path = f"{SYSTEMD}/{unit['name']}"
        for dropin in unit.get("dropins") or ():
            disk.files[f"{path}.d/{dropin['name']}"] = (dropin["contents"].encode(), 0o644)
        if unit.get("mask"):
            disk.links[path] = "/dev/null"
        elif unit.get("contents"):
            disk.files[path] = (unit["contents"].encode(), 0o644)
            disk.units[unit["name"]] = unit.get("enabled")
    users = (ignition.get("passwd") or {}).get("users") or ()
    if users:
        disk.keys = "".join(f"{key}\n" for user in users for key in user.get("sshAuthorizedKeys") or ())
        disk.password = next((user["passwordHash"] for user in users if user.get("passwordHash")), None)
    return disk


def _content(file: Obj) -> bytes:
    head, _, data = str((file.get("contents") or {}).get("source") or "data:,").partition(",")
    return base64.b64decode(data) if head.endswith(";base64") else unquote_to_bytes(data)


def differences(machine: SimulatedMachine, config: Obj, own: dict[str, Entry]) -> Iterator[str]:
    """``own``: what was on the machine before any config; it is there wherever no config is."""
    disk, state = wanted(config), machine.state
    if state.power is not Power.ON or state.reboot.pending:
        yield "the machine is not up"
    for path, (content, mode) in disk.files.items():
        found = machine.root.read(path)
        if found is None or found.kind is not EntryKind.FILE or (found.content, found.mode) != (content, mode):
            yield f"{path} is {_shown(found)} instead of {content!r} {mode:o}"
    for path, target in disk.links.items():
        found = machine.root.read(path)
        if found is None or found.kind is not EntryKind.SYMLINK or found.content.decode() != target:
            yield f"{path} is {_shown(found)} instead of a link to {target}"
    for name, enabled in disk.units.items():
        unit = state.units.get(name)
        if enabled is not None and (unit is not None and unit.enabled) != enabled:
            yield f"unit {name} is {'not ' if enabled else ''}enabled"
    for name, unit in state.units.items():
        if unit.enabled and not disk.units.get(name) and name not in own:
            yield f"unit {name} is enabled, and no config says so"
    if state.kernel_arguments != disk.arguments:
        yield f"the kernel runs with {state.kernel_arguments} instead of {disk.arguments}"
    if state.os_image != disk.image:
        yield f"image {state.os_image} runs instead of {disk.image}"
    if state.layers.packages != disk.packages:
        yield f"packages {state.layers.packages} are there instead of {disk.packages}"
    yield from _users(machine, disk)
    yield from _others(machine, disk, own)
    stored = machine.root.read(CURRENT_CONFIG)
    kept = json.loads(stored.content) if stored is not None else {"metadata": {"name": "nothing"}, "spec": {}}
    if kept["metadata"]["name"] != config["metadata"]["name"] or kept["spec"] != config["spec"]:
        yield f"the disk says that it has {kept['metadata']['name']}"


def _users(machine: SimulatedMachine, disk: Disk) -> Iterator[str]:
    keys = machine.root.read(KEYS)
    if disk.keys is not None and (keys is None or keys.content.decode() != disk.keys):
        yield f"keys of core are {_shown(keys)}"
    if disk.keys is None and keys is not None and keys.content:
        yield f"keys of core are left: {keys.content!r}"
    shadow = machine.root.read(SHADOW)
    if disk.password is not None and (shadow is None or f"core:{disk.password}\n" not in shadow.content.decode()):
        yield "the password of core is another one"


def _others(machine: SimulatedMachine, disk: Disk, own: dict[str, Entry]) -> Iterator[str]:
    for path in machine.root.paths("/"):
        found = machine.root.read(path)
        if found is None or found.kind is EntryKind.DIRECTORY or path in disk.files or path in disk.links:
            continue
        if path in own:
            if found != own[path]:
                yield f"{path} of the machine is {_shown(found)} instead of {_shown(own[path])}"
        elif not path.startswith((BOOKS, PLAYS, *PROVISIONING)) and path not in (KEYS, SHADOW, *AUTHORITIES):
            yield f"{path} is left: {_shown(found)}"
        elif path.startswith((f"{BOOKS}orig", f"{BOOKS}noorig")) and not _belongs(path, disk):
            yield f"{path} is kept for nobody"
    for path in own:
        if path not in disk.files and path not in disk.links and machine.root.read(path) is None:
            yield f"{path} of the machine is gone"


def _belongs(path: str, disk: Disk) -> bool:
    inner = path.removeprefix(f"{BOOKS}orig").removeprefix(f"{BOOKS}noorig")
    inner = inner.removesuffix(".mcdorig").removesuffix(".mcdnoorig")
    return inner in disk.files or inner in disk.links


def lost(machine: SimulatedMachine, own: dict[str, Entry]) -> Iterator[str]:
    """What was the machine's own and is to be found nowhere."""
    for path, entry in own.items():
        for place in (path, KEPT.format(path)):
            found = machine.root.read(place)
            if found is not None and (found.content, found.mode) == (entry.content, entry.mode):
                break
        else:
            yield f"{path}: {_shown(entry)}"


def _shown(entry: Entry | None) -> str:
    return "missing" if entry is None else f"{entry.kind} {entry.content[:60]!r} {entry.mode:o}"
