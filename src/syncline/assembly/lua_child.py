"""The process that runs scripts of users: one JSON request a line in, one JSON answer a line out, until its input ends.

``assembly/lua_worker.py`` starts it with an empty environment and kills it when an answer takes too long. Never opens
anything; files, calls, memory and computing of the whole process are limited by the operating system too.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from syncline.base import landlock, seccomp
from syncline.base.priority import WORKER, step_back
from syncline.gitops.lua import LuaFailed, run_guarded

MEMORY_BYTES = 512 << 20
"""Address space: the interpreter of Python takes about 100 MiB of it, a script at most 32 MiB."""


def main() -> None:
    step_back(WORKER)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    # What a hole in the interpreter would lead to: no sockets, no tracing, no files but those of programs.
    seccomp.restrict(families=())
    landlock.confine(landlock.programs())
    _answer({"ready": True})
    for line in sys.stdin:
        _answer(_run(json.loads(line)))


def _run(request: dict[str, Any]) -> dict[str, Any]:
    try:
        result = run_guarded(request["script"], request["names"], open_libs=request["openLibs"])
    except LuaFailed as error:
        return {"error": str(error)}
    return {"type": result.type, "value": result.value}


def _answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
