"""The filter of calls, run by a machine of our own: both processors are tried, whichever this one is."""

from __future__ import annotations

import errno
import struct

import pytest

from syncline.base.seccomp import (
    ABSENT,
    ARCHITECTURES,
    CLONE,
    FAMILIES,
    IOCTL,
    REFUSED,
    SOCKET,
    SOCKETPAIR,
    UNSHARE,
    assemble,
)

ALLOWED = 0
KILLED = -1
MACHINES = sorted(ARCHITECTURES)


def answer(
    machine: str,
    number: int,
    *arguments: int,
    architecture: int | None = None,
    families: tuple[int, ...] = FAMILIES,
) -> int:
    """What the kernel would answer: an errno, :data:`ALLOWED` or :data:`KILLED` (linux/bpf_common.h)."""
    data = struct.pack("=iIQ", number, ARCHITECTURES[machine] if architecture is None else architecture, 0)
    data += struct.pack("=6Q", *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    program = assemble(machine, families)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    held, at = 0, 0
    while True:
        code, true, false, value = steps[at]
        at += 1
        if code == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        elif code == 0x06:
            kind, said = value & 0xFFFF0000, value & 0xFFFF
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED, 0x00050000: said}[kind]
        else:
            met = {0x15: held == value, 0x35: held >= value, 0x25: held > value, 0x45: bool(held & value)}[code]
            at += true if met else false


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("table", "said"), [(REFUSED, errno.EPERM), (ABSENT, errno.ENOSYS)])
def test_every_listed_call_is_refused(machine: str, table: dict[str, tuple[int, int | None]], said: int) -> None:
    column = ("x86_64", "aarch64").index(machine)
    numbers = {name: pair[column] for name, pair in table.items() if pair[column] is not None}
    assert numbers and {name: answer(machine, number or 0) for name, number in numbers.items()} == dict.fromkeys(
        numbers, said
    )


EVERYDAY = {
    "x86_64": {"read": 0, "open": 2, "mmap": 9, "execve": 59, "kill": 62, "openat": 257, "futex": 202, "statx": 332},
    "aarch64": {"read": 63, "openat": 56, "mmap": 222, "execve": 221, "kill": 129, "futex": 98, "statx": 291},
}


@pytest.mark.parametrize("machine", MACHINES)
def test_what_programs_need_is_allowed(machine: str) -> None:
    assert {answer(machine, number) for number in EVERYDAY[machine].values()} == {ALLOWED}
    assert answer(machine, 434) == answer(machine, 436) == answer(machine, 449) == ALLOWED  # of both, and newer


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "said"),
    [
        (CLONE, (0x11,), ALLOWED),
        (CLONE, (0x3D0F00,), ALLOWED),
        (CLONE, (0x10000011,), errno.EPERM),
        (CLONE, (0x20011,), errno.EPERM),
        (UNSHARE, (0x400,), ALLOWED),
        (UNSHARE, (0x10000000,), errno.EPERM),
        (UNSHARE, (0x80,), errno.EPERM),
        (SOCKET, (1, 1), ALLOWED),
        (SOCKET, (2, 1), ALLOWED),
        (SOCKET, (16, 3), ALLOWED),
        (SOCKET, (40, 1), errno.EAFNOSUPPORT),
        (SOCKET, (17, 3), errno.EAFNOSUPPORT),
        (IOCTL, (0, 0x5401), ALLOWED),
        (IOCTL, (0, 0x5412), errno.EPERM),
        (IOCTL, (0, 0x541C), errno.EPERM),
        (IOCTL, (0, 0xFFFFFFFF00005412), errno.EPERM),  # CVE-2019-10063: the kernel looks at the lower half alone
        (SOCKET, (0xFFFFFFFF00000028, 1), errno.EAFNOSUPPORT),
    ],
)
def test_some_calls_depend_on_what_is_asked(
    machine: str, call: tuple[int, int], arguments: tuple[int, ...], said: int
) -> None:
    assert answer(machine, call[("x86_64", "aarch64").index(machine)], *arguments) == said


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_tomorrow_do_not_exist_and_other_processors_are_ended(machine: str) -> None:
    assert answer(machine, 470) == answer(machine, 5000) == errno.ENOSYS
    assert answer(machine, 0, architecture=0x40000003) == KILLED
    if machine == "x86_64":
        assert answer(machine, 0x40000000 + 39) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_that_needs_no_socket_gets_none(machine: str) -> None:
    column = ("x86_64", "aarch64").index(machine)
    assert {answer(machine, SOCKET[column], family, families=()) for family in (1, 2, 10, 16)} == {errno.EAFNOSUPPORT}
    assert answer(machine, SOCKETPAIR[column], 1, families=()) == ALLOWED
