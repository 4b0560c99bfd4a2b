"""The interface between the agent and a machine: files below a root, and commands. Entry point: :class:`Host`.

Simulated machines and Linux implement it. Every operation is atomic and repeatable; a failure is a :class:`HostError`
with the operating system's message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MAX_FILE = 64 << 20
"""Maximum bytes of a file to read or write."""


class HostError(OSError):
    """An operation failed. ``reason`` is the operating system's: ``no such file or directory``."""

    def __init__(self, operation: str, path: str, reason: str) -> None:
        super().__init__(f"{operation} {path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Stat:
    """An entry. ``kind``: ``file``, ``dir`` or ``symlink``; ``target`` of a link. ``mode``: permission bits; setuid,
    setgid, sticky and special files as bits of Go's ``FileMode``."""

    kind: str
    mode: int
    uid: int = 0
    gid: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command; ``output`` has both of its streams."""

    code: int
    output: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 0


class Host(Protocol):
    """A machine. Paths are absolute. ``os``: ``rhcos``, ``fcos``, ``rhel`` … (``ID`` of os-release)."""

    @property
    def os(self) -> str: ...

    @property
    def keeps_all(self) -> bool:
        """Return whether every file that predates the configuration counts as the system's: it has packages other than
        rpm's."""
        ...

    def stat(self, path: str) -> Stat | None:
        """Return the entry without following links, or None. Raises HostError if a parent is a file."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether something exists there, following links. Raises HostError if a parent is a file."""
        ...

    def read(self, path: str) -> bytes:
        """Return a file's content, following links. Raises HostError."""
        ...

    def write(
        self,
        path: str,
        content: bytes,
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
        parents: int = 0o755,
    ) -> None:
        """Replace a file atomically: a reader sees the old or the new content. Creates missing parents."""
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy an entry as ``cp -a``: with owner and mode, links as links. Creates missing parents of the target."""
        ...

    def link(self, path: str, target: str) -> None:
        """Replace an entry by a symbolic link; the parent must exist."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or an empty folder. Raises HostError, also if it does not exist."""
        ...

    def remove_all(self, path: str) -> None:
        """Remove an entry and everything below it, if it exists."""
        ...

    def make_directories(self, path: str, mode: int = 0o755) -> None: ...

    def run(self, command: Sequence[str]) -> Done: ...

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; empty if there is no directory."""
        ...

    def user_id(self, name: str) -> int | None: ...

    def group_id(self, name: str) -> int | None: ...

    def user_name(self, uid: int) -> str | None: ...

    def note(self, text: str) -> None:
        """Report once that a requested setting was left out."""
        ...

    def has_program(self, name: str) -> bool: ...

    def unit_files(self) -> frozenset[str]:
        """Return the names of the unit files that systemd knows."""
        ...
