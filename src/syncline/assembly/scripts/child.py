"""The child process for users' scripts and expressions: one JSON request per line in, one JSON result per line out.

``assembly/scripts/process.py`` starts it with an empty environment and kills it if a result takes too long. Before each
of several expressions, a line names it. It never opens anything; the operating system also limits files, calls, memory
and computing of the process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

import msgspec

from syncline.apply.diff.jq import Addressed, JqQuestion, answer
from syncline.apply.lua import LuaFailed, run_guarded
from syncline.base import landlock, seccomp
from syncline.base.priority import WORKER, step_back

MEMORY_BYTES = 512 << 20
"""Address space: Python takes about 100 MiB of it, a Lua script at most 32 MiB."""


def main() -> None:
    step_back(WORKER)
    os.environ.clear()  # Python itself adds a locale
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    # Limits what a hole in an interpreter could reach: no sockets, no tracing, no files but those of programs.
    seccomp.restrict(families=())
    landlock.confine(landlock.programs())
    _answer({"ready": True})
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line)
        _answer(_expressions(request) if "rules" in request else _script(request))


def _script(request: dict[str, Any]) -> dict[str, Any]:
    try:
        result = run_guarded(request["script"], request["names"], open_libs=request["openLibs"])
    except LuaFailed as error:
        return {"error": str(error)}
    return {"type": result.type, "value": result.value}


def _expressions(request: dict[str, Any]) -> dict[str, Any]:
    question = msgspec.convert(request, JqQuestion)
    several = len(question.expressions) > 1
    found = answer(question, lambda number: _answer({"begins": number}) if several else None)
    return {"trees": found.trees} if isinstance(found, Addressed) else {"error": found.why}


def _answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201
