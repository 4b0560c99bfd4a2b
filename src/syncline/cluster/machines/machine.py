"""What a machine is to those who work on it: the kubelet now, the machine-config agent later.

A :class:`Machine` has a boot id, power, a root directory tree, units, kernel arguments and an installed OS image. The
one that changes it asks for what outlives a crash by a :class:`Handshake`: a request has an id, and the machine says
which id it has carried out; asking again with the same id does nothing. Time is passed in.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

__all__ = [
    "DirectoryTree",
    "Entry",
    "EntryKind",
    "Handshake",
    "Layers",
    "MachineKeeper",
    "MachineSpec",
    "MachineState",
    "Power",
    "Unit",
    "checked_path",
]


class Power(StrEnum):
    ON = "On"
    STOPPING = "Stopping"
    BOOTING = "Booting"
    OFF = "Off"


class EntryKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a root tree. ``content`` is a file's bytes or a link's target; ``mode`` has permission bits only."""

    kind: EntryKind = EntryKind.FILE
    content: bytes = b""
    mode: int = 0o644
    user: str = "root"
    group: str = "root"


def checked_path(path: str) -> str:
    """The path again; raises ValueError unless it is absolute and normalised."""
    if not path.startswith("/") or posixpath.normpath(path) != path or path.startswith("//") or "\0" in path:
        raise ValueError(f"{path!r} is not an absolute, normalised path such as /etc/motd")
    return path


class DirectoryTree(Protocol):
    """A root directory. Paths are absolute and normalised: ``/etc/motd``; anything else raises ValueError.

    Links are entries like others and never followed; ``/`` itself is no entry.
    """

    def read(self, path: str) -> Entry | None: ...

    def write(self, path: str, entry: Entry) -> None:
        """Put an entry in place of what is there; missing parents are made (0755 root).

        A directory that becomes something else loses what is below it. Raises ValueError for ``/``, and for a path
        below what is no directory.
        """
        ...

    def remove(self, path: str) -> bool:
        """Remove an entry and what is below it; False if there was nothing."""
        ...

    def paths(self, below: str = "/") -> Iterator[str]:
        """Every path below a directory, sorted."""
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit as a machine has it."""

    name: str
    enabled: bool = False
    active: bool = False
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Handshake:
    """Two fields: the id last asked for, and the id last carried out."""

    requested: str = ""
    done: str = ""

    @property
    def pending(self) -> bool:
        return self.requested != self.done


@dataclass(frozen=True, slots=True)
class Layers:
    """How a system differs from its image: ``packages`` asked for on top of it, and ``removals`` of its own ones."""

    packages: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """What a machine is made of. ``cpu`` and ``memory`` are Kubernetes quantities."""

    name: str
    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 250
    arch: str = "amd64"
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MachineState:
    """All of a machine but its files. ``changes_at`` is when a stop or boot under way ends.

    Kernel arguments, image and layers asked for lie in ``next_…`` until the boot that makes them real.
    """

    boot_id: str
    boots: int = 1
    power: Power = Power.ON
    changes_at: datetime | None = None
    booted_at: datetime | None = None
    stopped_at: datetime | None = None
    reboot: Handshake = Handshake()
    units: Mapping[str, Unit] = field(default_factory=dict)
    kernel_arguments: tuple[str, ...] = ()
    next_kernel_arguments: tuple[str, ...] = ()
    os_image: str = ""
    next_os_image: str = ""
    layers: Layers = Layers()
    next_layers: Layers = Layers()


class MachineKeeper(Protocol):
    """Keeps machines over restarts of this process."""

    def state(self, name: str) -> MachineState | None:
        """As it was last kept; None for a machine never seen."""
        ...

    def keep(self, name: str, state: MachineState) -> None: ...

    def root(self, name: str) -> DirectoryTree: ...

    def forget(self, name: str) -> None:
        """The machine is gone, with its files."""
        ...
