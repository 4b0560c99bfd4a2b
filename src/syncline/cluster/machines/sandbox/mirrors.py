"""Create mount points in read-only folders of the machine: an in-memory copy shows the folder's entries and the new
one.
"""

from __future__ import annotations

import os
import stat

from syncline.cluster.machines.sandbox.kernel import O_PATH, SandboxError, open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Mount = Callable[[int, int], None]
    """Shows an open entry, with all mounts below it, at another one, read-only."""

MOST_ENTRIES = 20_000
"""Limit of a folder's entries: each costs a mount."""


class Mirrors:
    """``made`` is a hidden in-memory folder; ``mount`` shows one entry at another."""

    def __init__(self, base: int, made: str, mount: Mount) -> None:
        self._base, self._made, self._mount = base, made, mount
        self._known: dict[str, str] = {}

    def add(self, parent: str, name: str, *, folder: bool) -> None:
        """Add an entry ``name`` to ``parent``, a read-only folder of the new root."""
        place = self._known.get(parent) or self._mirror(parent)
        path = f"{place}/{name}"
        if folder:
            os.mkdir(path, 0o755)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))

    def _mirror(self, parent: str) -> str:
        old = open_beneath(self._base, parent, os.O_RDONLY | os.O_DIRECTORY, in_root=True)
        place = f"{self._made}/{len(self._known)}"
        os.mkdir(place, 0o755)
        try:
            names = os.listdir(old)
            if len(names) > MOST_ENTRIES:
                raise SandboxError(
                    f"/{parent} has more than {MOST_ENTRIES} entries: nothing can be mounted beside them"
                )
            for name in names:
                self._show(old, name, f"{place}/{name}")
            top = os.open(place, O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self._mount(top, old)
            os.close(top)
        finally:
            os.close(old)
        self._known[parent] = place
        return place

    def _show(self, old: int, name: str, place: str) -> None:
        found = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=old)
        try:
            mode = os.fstat(found).st_mode
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(name, dir_fd=old), place)
                return
            if stat.S_ISDIR(mode):
                os.mkdir(place, 0o755)
            else:
                os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
            at = os.open(place, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._mount(found, at)
            os.close(at)
        finally:
            os.close(found)
