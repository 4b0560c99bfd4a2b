"""The process that runs scripts and expressions of users: one JSON request a line in, one JSON answer a line out, until
its input ends.

``assembly/scripts/process.py`` starts it with an empty environment and kills it when an answer takes too long. Before
an expression of several begins, a line says which. Never opens anything; files, calls, memory and computing of the
whole process are limited by the operating system too.
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
"""Address space: the interpreter of Python takes about 100 MiB of it, a script of Lua at most 32 MiB."""


def main() -> None:
    step_back(WORKER)
    os.environ.clear()  # Python itself adds a locale
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    # What a hole in an interpreter would lead to: no sockets, no tracing, no files but those of programs.
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
