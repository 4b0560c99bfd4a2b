"""The machine as the agent touches it: files below a root, and commands.

A simulated machine is one, Linux below a root directory another. Every operation is whole when it returns and may be
done again; what could not be done is a :class:`HostError` in the operating system's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["MAX_FILE", "Done", "Host", "HostError", "Stat"]

MAX_FILE = 64 << 20
"""Bytes of a file: larger ones are not read, so that none is to be written."""


class HostError(OSError):
    """An operation failed. ``reason`` is the operating system's: ``no such file or directory``."""

    def __init__(self, operation: str, path: str, reason: str) -> None:
        super().__init__(f"{operation} {path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Stat:
    """``kind``: ``file``, ``dir`` or ``symlink``; ``target`` of a link. ``mode``: permission bits; setuid, setgid,
    sticky and what is neither file nor directory nor link by the bits of Go's ``FileMode``."""

    kind: str
    mode: int
    uid: int = 0
    gid: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command ended with; ``output`` is both of its streams."""

    code: int
    output: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 0


class Host(Protocol):
    """Paths are absolute. ``os``: ``rhcos``, ``fcos``, ``rhel`` … (``ID`` of os-release)."""

    @property
    def os(self) -> str: ...

    @property
    def keeps_all(self) -> bool:
        """Whether everything that stands somewhere before a configuration's file counts as the system's own: there are
        packages, and they are not rpm's."""
        ...

    def stat(self, path: str) -> Stat | None:
        """Of the entry itself, links not followed; None if there is none. Raises HostError where a parent is a file."""
        ...

    def exists(self, path: str) -> bool:
        """Whether something is there, links followed. Raises HostError where a parent is a file."""
        ...

    def read(self, path: str) -> bytes:
        """Of a file, links followed. Raises HostError."""
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
        """Replace a file at once: a client that reads finds the old or the new content. Missing parents are made."""
        ...

    def copy(self, source: str, target: str) -> None:
        """``cp -a``: an entry with owner and mode; links stay links. Missing parents of the target are made."""
        ...

    def link(self, path: str, target: str) -> None:
        """Replace by a symbolic link; the parent must be there."""
        ...

    def remove(self, path: str) -> None:
        """An entry; of folders only empty ones. Raises HostError, also where nothing is there."""
        ...

    def remove_all(self, path: str) -> None:
        """With everything below; nothing there is fine."""
        ...

    def make_directories(self, path: str, mode: int = 0o755) -> None: ...

    def run(self, command: Sequence[str]) -> Done: ...

    def names(self, path: str) -> list[str]:
        """Of the entries of a directory, sorted; none where there is no directory."""
        ...

    def user_id(self, name: str) -> int | None: ...

    def group_id(self, name: str) -> int | None: ...

    def user_name(self, uid: int) -> str | None: ...

    def note(self, text: str) -> None:
        """Something is left out that a configuration asks for: for people, once."""
        ...

    def has_program(self, name: str) -> bool: ...

    def unit_files(self) -> frozenset[str]:
        """Names of the unit files that systemd knows."""
        ...
