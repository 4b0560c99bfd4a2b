"""Runs users' Lua scripts in a child process, which is killed when one takes too long.

``syncline health`` passes it to :mod:`syncline.apply.health.overrides`. Safe to use from several threads, one script at
a time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

from syncline.apply.lua import OVERRAN, LuaFailed, LuaRests, LuaResult, run_guarded
from syncline.assembly.scripts.process import ScriptEnded, ScriptOverran, ScriptProcess
from syncline.base.rests import Rests

ANSWER_S = 1.5
"""The script's limit is one second of computing; one stuck in C code is killed half a second later, or once it has used
that time: on a busy machine a process waits for the CPU. The caller waits meanwhile."""
MAX_RESTING_NAMESPACES = 3
"""A script that pauses in this many namespaces pauses in all."""


class LuaWorker:
    """A :class:`~syncline.apply.lua.LuaRunner`. Close it, or use it as a context."""

    def __init__(self) -> None:
        self._process = ScriptProcess()
        self._lock = threading.Lock()
        self._rests = Rests(MAX_RESTING_NAMESPACES)

    def __enter__(self) -> LuaWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, script: str, names: Mapping[str, Any], *, open_libs: bool) -> LuaResult:
        """Run a script. Raises :class:`LuaFailed`, and :class:`LuaRests` if the process was killed or the script
        pauses."""
        request = json.dumps({"script": script, "names": names, "openLibs": open_libs}).encode()
        obj = names.get("obj")
        space = str((obj.get("metadata") or {}).get("namespace") or "") if isinstance(obj, dict) else ""
        with self._lock:
            left = self._rests.left(script, space, time.monotonic())
            if left:
                raise LuaRests(
                    f"the script ran longer than {ANSWER_S:.0f} s and was killed; it rests for {left:.0f} s more"
                )
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
        """End the process; the next script starts a new one."""
        self._process.close()

    def _ask(self, request: bytes) -> dict[str, Any]:
        run_guarded("", {}, open_libs=False)  # reports at once if the extra is missing
        try:
            return self._process.ask(request, ANSWER_S)
        except ScriptOverran as error:
            raise LuaRests(f"{OVERRAN}{ANSWER_S:g} s and was killed") from error
        except ScriptEnded as error:
            raise LuaFailed(f"the process that runs Lua scripts ended: {error}") from error
