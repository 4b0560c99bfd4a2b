"""The interface of a machine for the kubelet and the machine-config agent.

A :class:`Machine` has a boot id, power, a root directory tree, units, kernel arguments and an installed OS image.
Changes that must survive a crash are requested by a :class:`Handshake`: a request has an id, and the machine reports
the last id it executed; repeating an id has no effect. Callers give the time.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol


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
    """One path of a root tree. ``content`` is a file's bytes or a link's target; ``mode`` is permission bits only."""

    kind: EntryKind = EntryKind.FILE
    content: bytes = b""
    mode: int = 0o644
    user: str = "root"
    group: str = "root"


def checked_path(path: str) -> str:
    """Return the path; raise ValueError unless it is absolute and normalised."""
    if not path.startswith("/") or posixpath.normpath(path) != path or path.startswith("//") or "\0" in path:
        raise ValueError(f"{path!r} is not an absolute, normalised path such as /etc/motd")
    return path


class DirectoryTree(Protocol):
    """A root directory. Paths are absolute and normalised: ``/etc/motd``; others raise ValueError.

    Links are plain entries and never followed; ``/`` is not an entry.
    """

    def read(self, path: str) -> Entry | None: ...

    def write(self, path: str, entry: Entry) -> None:
        """Create or replace an entry; missing parents are created (0755 root).

        Replacing a directory deletes its content. Raises ValueError for ``/``, and for a path below a file or link.
        """
        ...

    def remove(self, path: str) -> bool:
        """Delete an entry and its content; return False if it does not exist."""
        ...

    def paths(self, below: str = "/") -> Iterator[str]:
        """Yield every path below a directory, sorted."""
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit of a machine."""

    name: str
    enabled: bool = False
    active: bool = False
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Handshake:
    """The id of the last request, and the last executed id."""

    requested: str = ""
    done: str = ""

    @property
    def pending(self) -> bool:
        return self.requested != self.done


@dataclass(frozen=True, slots=True)
class Layers:
    """Differences of a system to its image: added ``packages`` and removed ones (``removals``)."""

    packages: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """Specification of a machine. ``cpu`` and ``memory`` are Kubernetes quantities."""

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
    """State of a machine without its files. ``changes_at`` is when a stop or boot in progress ends.

    Requested kernel arguments, image and layers are in ``next_…`` until the next boot applies them.
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
    """Persists machines across restarts of this process."""

    def state(self, name: str) -> MachineState | None:
        """Return the last saved state; None for an unknown machine."""
        ...

    def keep(self, name: str, state: MachineState) -> None: ...

    def root(self, name: str) -> DirectoryTree: ...

    def forget(self, name: str) -> None:
        """Delete a machine with its files."""
        ...
