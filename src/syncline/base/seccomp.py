"""Restricts the system calls of a process by a seccomp filter: :func:`restrict`.

The launcher of sandboxed commands (``cluster/machines/sandbox/launch.py``) and the render workers
(``sources/workers/main.py``) call it. It refuses the calls that Docker's default profile refuses a container without
capabilities, tracing, and memory that is not charged to a process. Calls newer than this list return ENOSYS, so that
programs fall back to older ones. Imports only ``struct``, ``ctypes`` and ``os``: it is loaded for every command.
"""

from __future__ import annotations

import ctypes
import os
import struct

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""``AUDIT_ARCH_*`` by the machine's name; both are little-endian."""
_COLUMN = {"x86_64": 0, "aarch64": 1}

LAST_KNOWN = 469
"""``file_setattr`` of Linux 6.17, equal on both architectures; higher numbers return ENOSYS."""
X32 = 0x40000000
"""Numbers from here on are the x32 interface of x86-64 kernels, which is unused."""

REFUSED = {
    # the machine itself
    "acct": (163, 89),
    "clock_settime": (227, 112),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "get_kernel_syms": (177, None),
    "init_module": (175, 105),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    # other processes, and the kernel's view of them
    "bpf": (321, 280),
    "fanotify_init": (300, 262),
    "kcmp": (312, 272),
    "lookup_dcookie": (212, 18),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "userfaultfd": (323, 282),
    # namespaces do not separate keys
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "request_key": (249, 218),
    # mounts, namespaces, files behind the tree
    "chroot": (161, 51),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "listmount": (458, 458),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "pivot_root": (155, 41),
    "setns": (308, 268),
    "statmount": (457, 457),
    "umount2": (166, 39),
    # where memory lies
    "get_mempolicy": (239, 236),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    # obsolete calls
    "_sysctl": (156, None),
    "afs_syscall": (183, None),
    "getpmsg": (181, None),
    "modify_ldt": (154, None),
    "nfsservctl": (180, 42),
    "putpmsg": (182, None),
    "security": (185, None),
    "sysfs": (139, None),
    "tuxcall": (184, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "vserver": (236, None),
}
"""Calls that return EPERM; numbers on x86-64 and on arm64."""
ABSENT = {
    "clone3": (435, 435),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "lsm_list_modules": (461, 461),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}
"""Calls that return ENOSYS; programs have fallbacks. A filter cannot read the flags of ``clone3`` nor the requests of
``io_uring``, and no process is charged for a file in memory."""

CLONE, UNSHARE = (56, 220), (272, 97)
SOCKET, SOCKETPAIR, PERSONALITY, IOCTL = (41, 198), (53, 199), (135, 92), (16, 29)
NEW_NAMESPACES = 0x7E020080
"""Mount, cgroup, host name, IPC, user, process, network and time namespaces."""
NEW_BY_CLONE = NEW_NAMESPACES & ~0x80
"""The lowest byte of ``clone``'s flags is the signal."""
FAMILIES = (0, 1, 2, 10, 16)
"""Unspecified, Unix, IPv4, IPv6, netlink. Others leave the network namespace (vsock) or use rarely tested code."""
PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
"""Injecting input into a user's terminal."""

# Classic BPF (linux/bpf_common.h) on struct seccomp_data.
_LOAD, _EQUAL, _AT_LEAST, _ABOVE, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x25, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_Step = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""


def assemble(machine: str, families: tuple[int, ...] = FAMILIES) -> bytes:
    """Return the filter in the kernel's format, eight bytes per instruction; ``families`` are the permitted socket
    families. Raises KeyError for a machine not in :data:`ARCHITECTURES`."""
    column = _COLUMN[machine]
    steps: list[_Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        steps += _when(_AT_LEAST, X32, [_answer(ENOSYS)])
    steps += _when(_ABOVE, LAST_KNOWN, [_answer(ENOSYS)])
    for table, error in ((REFUSED, EPERM), (ABSENT, ENOSYS)):
        for numbers in table.values():
            number = numbers[column]
            if number is not None:
                steps += _when(_EQUAL, number, [_answer(error)])
    steps += _when(_EQUAL, CLONE[column], _refused_bits(NEW_BY_CLONE))
    steps += _when(_EQUAL, UNSHARE[column], _refused_bits(NEW_NAMESPACES))
    steps += _when(_EQUAL, SOCKET[column], _only(0, families, EAFNOSUPPORT))
    steps += _when(_EQUAL, SOCKETPAIR[column], _only(0, FAMILIES, EAFNOSUPPORT))
    steps += _when(_EQUAL, PERSONALITY[column], _only(0, PERSONALITIES, EPERM))
    steps += _when(_EQUAL, IOCTL[column], _none_of(1, (TIOCSTI, TIOCLINUX)))
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _answer(error: int) -> _Step:
    return (_RETURN, 0, 0, _ERRNO | error)


def _when(test: int, value: int, then: list[_Step]) -> list[_Step]:
    """Return the steps that run ``then`` if the test holds; ``then`` ends with a return."""
    return [(test, 0, len(then), value), *then]


def _argument(index: int) -> _Step:
    """Load the lower half of an argument; the kernel reads no more of it either."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refused_bits(bits: int) -> list[_Step]:
    return [_argument(0), (_ANY_BIT, 0, 1, bits), _answer(EPERM), (_RETURN, 0, 0, _ALLOW)]


def _only(index: int, values: tuple[int, ...], error: int) -> list[_Step]:
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(index), *tests, _answer(error), (_RETURN, 0, 0, _ALLOW)]


def _none_of(index: int, values: tuple[int, ...]) -> list[_Step]:
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(index), *tests, (_RETURN, 0, 0, _ALLOW), _answer(EPERM)]


_SET_SECCOMP, _FILTER, _SET_NO_NEW_PRIVILEGES = 22, 2, 38


def restrict(families: tuple[int, ...] = FAMILIES) -> bool:
    """Install the filter for this process and its children, which also gain no privileges by starting a program. Return
    False if the kernel or the architecture is not supported. Raises OSError if privileges cannot be given up."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no new privileges")
    machine = os.uname().machine
    if machine not in ARCHITECTURES or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    steps = assemble(machine, families)
    held = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("@HP", len(steps) // 8, ctypes.addressof(held))
    return bool(libc.prctl(_SET_SECCOMP, _FILTER, ctypes.c_char_p(program), 0, 0) == 0)
