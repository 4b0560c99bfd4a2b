"""A child process for users' scripts and expressions, killed when one takes too long. Begin at :class:`ScriptProcess`.

``lua`` and ``expressions`` use it. It starts with the first request and serves all later ones; a killed one is
replaced. One request at a time.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_MAIN = "import sys; sys.path.insert(0, sys.argv[1]); from syncline.assembly.scripts.child import main; main()"
_COMMAND = (sys.executable, "-I", "-c", _MAIN, str(Path(__file__).parents[3]))
"""Runs this code, without an environment."""
START_S = 20.0
"""Seconds to start Python and import, on a busy machine."""
WAITING_S, LOOK_EVERY_S = 2.0, 0.1
"""On a busy machine a process waits for the CPU: seconds allowed for that, and between checks of its CPU time."""
MAX_ANSWER_BYTES = 4 << 20


class ScriptOverran(Exception):
    """It exceeded its CPU time and was killed. ``number``: of the expression that ran."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ScriptEnded(Exception):
    """The process ended early, mostly out of memory. ``number``: as in :class:`ScriptOverran`."""

    def __init__(self, why: object, number: int) -> None:
        super().__init__(str(why))
        self.number = number


class ScriptProcess:
    """A child process; the owner must close it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: bytes, seconds: float) -> dict[str, Any]:
        """Return the result of one request, which may use the CPU for ``seconds`` (on a busy machine a little more).
        Raises ScriptOverran and ScriptEnded."""
        process = self._process or self._start()
        assert process.stdin is not None, "it was started with a pipe"
        try:
            process.stdin.write(request + b"\n")
            process.stdin.flush()
        except OSError as error:
            self.close()
            raise ScriptEnded(error, 0) from error
        return self._read(process, seconds, WAITING_S)

    def close(self) -> None:
        """End the process; the next request starts a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, close_fds=True
        )
        self._read(self._process, START_S, 0.0)
        return self._process

    def _read(self, process: subprocess.Popen[bytes], seconds: float, waiting_s: float) -> dict[str, Any]:
        """Return the next result; the process may wait ``waiting_s`` longer for the CPU until it has used it for
        ``seconds``."""
        assert process.stdout is not None, "it was started with a pipe"
        end, found, number = time.monotonic() + seconds, b"", 0
        last, used_s = end + waiting_s, _cpu_s(process.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(end - time.monotonic(), 0)):
                    if time.monotonic() < last and _cpu_s(process.pid) - used_s < seconds:
                        end = time.monotonic() + LOOK_EVERY_S
                        continue
                    self.close()
                    raise ScriptOverran(number)
                part = os.read(process.stdout.fileno(), 1 << 16)
                found += part
                if not part or len(found) > MAX_ANSWER_BYTES:
                    self.close()
                    why = "no answer" if not part else f"its answer exceeds {MAX_ANSWER_BYTES} bytes"
                    raise ScriptEnded(why, number)
                while b"\n" in part:
                    line, _, found = found.partition(b"\n")
                    answer: dict[str, Any] = json.loads(line)
                    if "begins" not in answer:
                        return answer
                    number, part = answer["begins"], found
                    end, used_s = time.monotonic() + seconds, _cpu_s(process.pid)
                    last = end + waiting_s


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used; infinite if the system does not report them."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return math.inf
