"""A process for scripts and expressions of users, killed when one takes too long.

Begin at :class:`ScriptProcess`. ``lua_worker`` and ``expressions`` ask it. It starts with the first request and serves
all that follow; a killed one is replaced. One request at a time.
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

__all__ = ["ScriptEnded", "ScriptOverran", "ScriptProcess"]

_MAIN = "import sys; sys.path.insert(0, sys.argv[1]); from syncline.assembly.scripts.child import main; main()"
_COMMAND = (sys.executable, "-I", "-c", _MAIN, str(Path(__file__).parents[3]))
"""The same code as here, without an environment."""
START_S = 20.0
"""Starting Python and importing; on a busy machine."""
WAITING_S, LOOK_EVERY_S = 2.0, 0.1
"""On a busy machine a process waits for its turn: how long beside what it may use, and how often it is looked what was
used."""
MAX_ANSWER_BYTES = 4 << 20


class ScriptOverran(Exception):
    """It used more of the processor than it may, and was killed. ``number``: of the expression that ran."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ScriptEnded(Exception):
    """The process ended in the middle, of too much memory mostly. ``number`` as there."""

    def __init__(self, why: object, number: int) -> None:
        super().__init__(str(why))
        self.number = number


class ScriptProcess:
    """Close it in the end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: bytes, seconds: float) -> dict[str, Any]:
        """The answer to one request, which may use the processor for ``seconds`` (on a busy machine a little more).
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
        """End the process; the next request starts another."""
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
        """The next answer; the process may wait ``waiting_s`` more for the processor as long as it has not used it for
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
    """Seconds of the processor that a process has used; without end where the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return math.inf
