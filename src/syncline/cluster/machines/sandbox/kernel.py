"""System calls that create a sandbox; each failure has a readable message."""

from __future__ import annotations

import ctypes
import os
import struct

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000,
    0x02000000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
SET_DEATH_SIGNAL, SET_DUMPABLE, DROP_FROM_BOUNDING_SET, AMBIENT, CLEAR_ALL = 1, 4, 24, 47, 4
SIGKILL = 9
LAST_CAPABILITY = 63
NS_GET_USERNS = 0xB701
OPENAT2 = 437
"""System call number on x86-64 and arm64."""
NO_MAGIC_LINKS, BENEATH, IN_ROOT = 0x02, 0x08, 0x10
O_PATH = 0o10000000

libc = ctypes.CDLL(None, use_errno=True)


class SandboxError(Exception):
    """The sandbox cannot be created; the message names the step."""


def check(result: int, what: str) -> None:
    if result < 0:
        raise SandboxError(f"{what}: {os.strerror(ctypes.get_errno())}")


def unshare(flags: int, what: str) -> None:
    check(libc.unshare(flags), what)


def enter_namespace(space: int, what: str) -> None:
    check(libc.setns(space, 0), f"enter the {what} namespace")


def owner_of_namespace(space: int) -> int:
    """Return an open descriptor of the user namespace that owns ``space``."""
    found: int = libc.ioctl(space, ctypes.c_ulong(NS_GET_USERNS))
    check(found, "the owner of a namespace")
    os.set_inheritable(found, False)
    return found


def map_ids(process: str, users: str, groups: str, proc: int | None = None, *, further_groups: bool = False) -> None:
    """Write the id maps of ``process``: lines of ``inside outside count``. ``proc`` is an open ``/proc`` that still
    shows it. ``further_groups`` allows several groups, which only root may."""
    denied = () if further_groups else (("setgroups", "deny"),)
    for name, text in (*denied, ("uid_map", users), ("gid_map", groups)):
        path = f"{process}/{name}" if proc is not None else f"/proc/{process}/{name}"
        try:
            file = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)
        except OSError as error:
            if name != "setgroups":
                raise SandboxError(f"user namespace: {name}: {error.strerror}") from error


def hide_from_others(hidden: bool = True) -> None:
    """Make the process untraceable and its files in ``/proc`` root's, so that no command reaches our interpreter or
    descriptors. Executing a program reverts it."""
    check(libc.prctl(SET_DUMPABLE, int(not hidden), 0, 0, 0), "hide a process")


def die_with_parent() -> None:
    check(libc.prctl(SET_DEATH_SIGNAL, SIGKILL, 0, 0, 0), "death signal")


def drop_privileges() -> None:
    """Drop all capabilities permanently."""
    for capability in range(LAST_CAPABILITY + 1):
        if libc.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) != 0:
            break
    libc.prctl(AMBIENT, CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", 0x20080522, 0)
    check(libc.capset(header, struct.pack("=IIIIII", 0, 0, 0, 0, 0, 0)), "drop capabilities")


def open_beneath(folder: int, path: str, flags: int, *, in_root: bool = False) -> int:
    """Open ``path`` below an open folder, safe against concurrent links: one that leads out is an OSError (EXDEV), or
    with ``in_root`` resolved as if the folder were ``/``."""
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, NO_MAGIC_LINKS | (IN_ROOT if in_root else BENEATH))
    found: int = libc.syscall(OPENAT2, folder, os.fsencode(path), how, len(how))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return found
