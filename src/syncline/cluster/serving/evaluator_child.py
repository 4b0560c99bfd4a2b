"""The process that runs computations: one pickled function with its arguments in, one answer out, until its input ends.

Started by ``cluster/serving/evaluators.py``. It yields to the server that waits for it, opens no sockets, and its
memory is bounded.
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
"""Against the server that started it; a session of its own would have the share of one."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
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
    except Exception as error:  # a bug of ours: the request is answered with it
        return pickle.dumps((None, f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main()
