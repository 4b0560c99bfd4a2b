"""Runs scripts of users in a process of their own that is killed when one takes too long.

``syncline health`` and the controllers hand it to :mod:`syncline.gitops.health.overrides`. The process starts with the
first script and serves all that follow; a killed one is replaced. Safe to use from several
threads, one script at a time.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from syncline.gitops.lua import OVERRAN, LuaFailed, LuaRests, LuaResult, run_guarded

__all__ = ["LuaWorker"]

COMMAND = (sys.executable, "-I", "-m", "syncline.assembly.lua_child")
START_S = 20.0
"""Starting Python and importing; on a busy machine."""
ANSWER_S = 1.5
"""One second of computing is the script's limit; what is stuck in C code is killed after half a second more, or as soon
after that as it has used it: on a busy machine a process waits for its turn. Whoever asks waits meanwhile."""
WAITING_S, LOOK_EVERY_S = 2.0, 0.1
"""The longest such wait, and how often it is looked what was used."""
REST_S, MAX_REST_S = 10.0, 600.0
"""How long a script that took too long is not run for objects of the same namespace: ten seconds, then twice as long
each time. A script that rests for so many namespaces rests for all."""
MAX_RESTING_NAMESPACES = 3
MAX_RESTING = 1_000
"""Scripts and namespaces of which that is remembered."""
MAX_ANSWER_BYTES = 1 << 20


class Rests:
    """Scripts that took too long, by namespace of the object, and until when they are not run. No clock of its own."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], tuple[float, float]] = {}

    def check(self, script: str, namespace: str, now: float) -> None:
        """Raises :class:`LuaRests` with the seconds that are left."""
        mine = self._until.get((script, namespace), (0.0, 0.0))[0] - now
        spaces = sorted((until - now for (one, _), (until, _) in self._until.items() if one == script), reverse=True)
        all_of_them = spaces[MAX_RESTING_NAMESPACES - 1] if len(spaces) >= MAX_RESTING_NAMESPACES else 0.0
        left = max(mine, all_of_them)
        if left > 0:
            raise LuaRests(
                f"the script ran longer than {ANSWER_S:.0f} s and was killed; it rests for {left:.0f} s more"
            )

    def tired(self, script: str, namespace: str, now: float) -> None:
        pause = min(max(self._until.pop((script, namespace), (0.0, 0.0))[1] * 2, REST_S), MAX_REST_S)
        self._until[script, namespace] = now + pause, pause
        if len(self._until) > MAX_RESTING:
            del self._until[next(iter(self._until))]

    def well(self, script: str, namespace: str) -> None:
        self._until.pop((script, namespace), None)


class LuaWorker:
    """A :class:`~syncline.gitops.lua.LuaRunner`. Close it, or use it as a context."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._rests = Rests()

    def __enter__(self) -> LuaWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, script: str, names: Mapping[str, Any], *, open_libs: bool) -> LuaResult:
        """Raises :class:`LuaFailed`, and :class:`LuaRests` where the process had to be killed or the script rests."""
        request = json.dumps({"script": script, "names": names, "openLibs": open_libs}).encode() + b"\n"
        obj = names.get("obj")
        space = str((obj.get("metadata") or {}).get("namespace") or "") if isinstance(obj, dict) else ""
        with self._lock:
            self._rests.check(script, space, time.monotonic())
            try:
                answer = self._ask(request)
                if answer.get("error", "").startswith(OVERRAN):
                    raise LuaRests(answer["error"])
            except LuaRests:
                self._rests.tired(script, space, time.monotonic())
                raise
            self._rests.well(script, space)
        if "error" in answer:
            raise LuaFailed(answer["error"])
        return LuaResult(answer["type"], answer["value"])

    def close(self) -> None:
        """End the process; the next script starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ask(self, request: bytes) -> dict[str, Any]:
        process = self._process or self._start()
        assert process.stdin is not None, "it was started with a pipe"
        try:
            process.stdin.write(request)
            process.stdin.flush()
            return self._read(process, ANSWER_S, WAITING_S)
        except (OSError, ValueError) as error:
            self.close()
            raise LuaFailed(f"the process that runs Lua scripts ended: {error}") from error

    def _start(self) -> subprocess.Popen[bytes]:
        run_guarded("", {}, open_libs=False)  # says at once where the extra is missing
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, close_fds=True
        )
        self._read(self._process, START_S)
        return self._process

    def _read(self, process: subprocess.Popen[bytes], seconds: float, waiting_s: float = 0.0) -> dict[str, Any]:
        """One line, or the end of the process, which may wait ``waiting_s`` more for the processor as long as it has
        not used it for ``seconds``. Raises ValueError and OSError for anything else."""
        assert process.stdout is not None, "it was started with a pipe"
        end, found = time.monotonic() + seconds, b""
        last, used_s = end + waiting_s, _cpu_s(process.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not found.endswith(b"\n"):
                if not selector.select(max(end - time.monotonic(), 0)):
                    if time.monotonic() < last and _cpu_s(process.pid) - used_s < seconds:
                        end = time.monotonic() + LOOK_EVERY_S
                        continue
                    self.close()
                    raise LuaRests(f"{OVERRAN}{seconds:g} s and was killed")
                part = os.read(process.stdout.fileno(), 1 << 16)
                found += part
                if not part or len(found) > MAX_ANSWER_BYTES:
                    raise ValueError("no answer" if not part else f"its answer exceeds {MAX_ANSWER_BYTES} bytes")
        answer: dict[str, Any] = json.loads(found)
        return answer


def _cpu_s(pid: int) -> float:
    """Seconds of the processor that a process has used; without end where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return math.inf
