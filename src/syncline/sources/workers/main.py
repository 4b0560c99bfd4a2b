"""The render worker process: reads tasks from its input and writes results to its output, until the input ends.

Only ``sources/workers/pool.py`` starts it, with the limits as arguments. It restricts itself before it loads anything,
and hides the result stream from the programs that it runs.
"""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec

from syncline.base import landlock, seccomp
from syncline.base.priority import RENDERING, step_back
from syncline.sources.errors import Problem, SourceError

HEADER = 8
"""As in ``sources/workers/pool.py``, which is not loaded here."""

TASKS = {
    "butane": "syncline.sources.rendering.butane_task:render",
    "helm": "syncline.sources.helm.task:render",
    "helm-binary": "syncline.sources.helm.task:render_with_binary",
    "patterns": "syncline.sources.helm.patterns_task:render",
    "jsonnet": "syncline.sources.rendering.jsonnet_task:evaluate",
}
"""What a worker can be asked for; each takes one dict of plain data and returns plain data."""


def main(memory_bytes: int, file_bytes: int, folder: str) -> None:
    """Process tasks until the input ends; besides programs only files below ``folder`` are accessible."""
    step_back(RENDERING)
    for kind, limit in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_FSIZE, file_bytes), (_CORE, 0)):
        resource.setrlimit(kind, (limit, limit))
    # No sockets, no rights by other programs, none of the calls that rendering has no use for.
    seccomp.restrict(families=())
    landlock.confine([*landlock.programs(), *_helm()], [folder])
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not look like an answer.
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while (request := _frame(requests)) is not None:
        answer = _answer(request)
        answers.write(len(answer).to_bytes(HEADER, "big") + answer)
        answers.flush()


_CORE = resource.RLIMIT_CORE


def _helm() -> list[str]:
    """Return the real path of the ``helm`` program, if there is one."""
    found = shutil.which("helm")
    return [os.path.dirname(os.path.realpath(found))] if found is not None else []


def _frame(stream: BinaryIO) -> bytes | None:
    header = stream.read(HEADER)
    return stream.read(int.from_bytes(header, "big")) if len(header) == HEADER else None


def _answer(request: bytes) -> bytes:
    try:
        asked = msgspec.msgpack.decode(request)
        _allow_cpu(int(asked["cpu_s"]))
        return msgspec.msgpack.encode({"value": _task(asked["task"])(asked["payload"])})
    except SourceError as error:
        return msgspec.msgpack.encode({"error": str(error), "problem": error.problem.value})
    except MemoryError:
        return msgspec.msgpack.encode({"error": "rendering needs too much memory", "problem": Problem.EXHAUSTED.value})
    except Exception as error:  # whatever a chart or program brings about is its own error, not the worker's end
        text = f"{type(error).__name__}: {error}"
        return msgspec.msgpack.encode({"error": text, "problem": Problem.INVALID.value})


def _allow_cpu(seconds: int) -> None:
    """Raise the limit for each task: processor time counts from the start of the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, hard))


def _task(name: str) -> Callable[[dict[str, Any]], Any]:
    module, _, function = TASKS[name].partition(":")
    found: Callable[[dict[str, Any]], Any] = getattr(importlib.import_module(module), function)
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
