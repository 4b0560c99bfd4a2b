"""The child process that runs computations, one pickled function call at a time, until its input ends.

``cluster/serving/evaluators.py`` starts it. It runs at lower priority than the server, opens no sockets, and its memory
is bounded.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys

from syncline.base import landlock, seccomp

HEADER = 8
"""As in ``cluster/serving/evaluators.py``."""
MEMORY_BYTES = 2 << 30
NICE = 10
"""Niceness below the server; a separate session would get a full CPU share."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the server ends this process
    seccomp.restrict(families=())
    landlock.confine(landlock.programs())
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(header := requests.read(HEADER)) == HEADER:
        answer = _answer(requests.read(int.from_bytes(header, "big")))
        answers.write(len(answer).to_bytes(HEADER, "big") + answer)
        answers.flush()


def _answer(request: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(request)
        return pickle.dumps((function(*arguments), ""))
    except MemoryError:
        return pickle.dumps((None, "the evaluation takes more memory than it may"))
    except Exception as error:  # our bug: return the error as the request's result
        return pickle.dumps((None, f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main()
