"""Steps back behind the API: what foreign programs do must not decide how fast the API answers.

Called by the programs themselves before they begin (``cluster/machines/sandbox/launch.py``,
``sources/workers/main.py``, ``assembly/scripts/child.py``), since it cannot be taken back without rights. Little is
imported: it is loaded for each command.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os

__all__ = ["LAST", "RENDERING", "WORKER", "lower_session", "step_back"]

WORKER = 10
"""Niceness of git and of scripts: a tenth of the processor where the API wants all of it."""
RENDERING = 15
"""Niceness of rendering, which may compute for a minute: git, which others wait for, comes before it."""
LAST = 19
"""Niceness of commands of pods and plugins, which get what is left over."""
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
IDLE_IO = 3 << 13
"""The class that reads and writes when no other client does."""


def step_back(niceness: int) -> None:
    """From now on, and for all that this process starts. What the machine does not let us change stays as it is."""
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
    """Give the session of ``process`` the share of the processors that ``niceness`` stands for; False: not yet.

    With ``sched_autogroup_enabled`` (sched(7)) the kernel shares the processors among sessions first, so the niceness
    of a process counts only against its own session. Without rights the kernel takes one such change in 100 ms from
    the whole machine: who watches a session asks again.
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
