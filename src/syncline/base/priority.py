"""Lowers the priority of foreign programs, so that they never slow down the API: :func:`step_back`.

The programs call it before they begin (``cluster/machines/sandbox/launch.py``, ``sources/workers/main.py``,
``assembly/scripts/child.py``); an unprivileged process cannot undo it. Few imports: it is loaded for each command.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os

WORKER = 10
"""Niceness of git and of scripts: a tenth of the processor while the API is busy."""
RENDERING = 15
"""Niceness of rendering, which may compute for a minute; git, which others wait for, comes first."""
LAST = 19
"""Niceness of commands of pods and plugins, which use only idle time."""
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
IDLE_IO = 3 << 13
"""The I/O class that runs only when no other process reads or writes."""


def step_back(niceness: int) -> None:
    """Lower the priority of this process and its children. Settings that the machine refuses stay unchanged."""
    if os.getsid(0) == os.getpid():
        lower_session("self", niceness)
    if niceness > os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    if niceness < LAST:
        return
    if hasattr(os, "SCHED_IDLE"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    number = IOPRIO_SET.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, 1, 0, IDLE_IO)


def lower_session(process: int | str, niceness: int) -> bool:
    """Give the session of ``process`` the CPU share of ``niceness``; return False if it must be tried again.

    With ``sched_autogroup_enabled`` (sched(7)) the kernel shares the processors among sessions first, so the niceness
    of a process counts only within its session. Without privileges the kernel accepts one such change per 100 ms on the
    whole machine, so callers retry.
    """
    try:
        file = os.open(f"/proc/{process}/autogroup", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return not os.path.exists(f"/proc/{process}/autogroup")
    try:
        os.write(file, b"%d" % niceness)
    except OSError as error:
        return error.errno != errno.EAGAIN
    finally:
        os.close(file)
    return True
