"""The machine's users and groups for a sandbox's commands, and their files."""

from __future__ import annotations

import os

FIRST = 0x70000000
"""First id, in a range that no system assigns to users, services or containers (systemd's UIDS-GIDS)."""
WIDTH = 16
"""Users and groups per pod."""
SLOTS = 1 << 24
SETGID, SETUID = 6, 7
"""Capabilities."""


def identity(slot: int) -> int | None:
    """Return the first of a pod's :data:`WIDTH` users and groups if root starts its commands; None if ids cannot be
    chosen: commands then run as our user. The same slot returns the same users."""
    if os.geteuid() != 0 or not _may_choose():
        return None
    largest = max(_extents("/proc/self/uid_map"), key=lambda each: each[1], default=(0, 0))
    if _extents("/proc/self/gid_map") != _extents("/proc/self/uid_map"):
        return None
    first, count = largest
    if first <= FIRST and first + count >= FIRST + SLOTS * WIDTH:
        return FIRST + slot % SLOTS * WIDTH
    # In a container with a mapped range of ids: use its upper half.
    places = count // 2 // WIDTH
    return first + count // 2 + slot % places * WIDTH if places else None


def _may_choose() -> bool:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("CapEff:"):
                rights = int(line.split()[1], 16)
                return bool(rights >> SETUID & 1 and rights >> SETGID & 1)
    return False


def _extents(path: str) -> list[tuple[int, int]]:
    """Return first id and count of each range of mapped ids."""
    with open(path) as file:
        return [(int(line.split()[0]), int(line.split()[2])) for line in file]


def give(path: str, user: int, *, whole: bool) -> None:
    """Change the owner of ``path``, with ``whole`` also of its contents; only if no other user can write there. Links
    are changed themselves, not followed."""
    os.chown(path, user, user, follow_symlinks=False)
    if not whole or not os.path.isdir(path) or os.path.islink(path):
        return
    for _, folders, files, here in os.fwalk(path, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, user, user, dir_fd=here, follow_symlinks=False)
