"""Run the long computations of requests (expressions, large bodies) in child processes
(``kube/transport/elsewhere.py``).

``webhooks`` uses it for computations that a request waits for, ``serve`` for bodies. A child starts on first use, runs
one computation at a time at low priority, and is killed when one exceeds its time limit. Users share the children
fairly. Children receive only Syncline's functions and data, never programs of users.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import threading
from functools import cache, partial
from typing import Any

from syncline.base.places import Crowded, Limits
from syncline.base.threads import Threads
from syncline.kube.errors import InternalError, TooManyRequests
from syncline.kube.transport.outbound import Computation, Outcome

HEADER = 8
"""Bytes of a frame's length prefix, big-endian."""
PLACES = Limits(2, {"user": 1}, waiting=200)
"""Concurrent computations, in total and per user; more wait, and beyond that limit requests get 429."""
WALL_S = 30.0
"""Time limit of one computation. All steps for one object take two seconds of CPU time, five at most."""
RETRY_AFTER_S = 1
_COMMAND = (sys.executable, "-s", "-m", "syncline.cluster.serving.evaluator_child")


class Evaluators:
    """A few child processes, reused for later computations."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._threads: Threads | None = None
        self.started = 0

    async def run(self, computation: Computation) -> Outcome:
        """Return the result of a computation as an Outcome; raise only cancellation."""
        if self._threads is None:
            self._threads = Threads("evaluation", PLACES)
        try:
            work = self._threads.start(partial(self._done, computation), ("user", computation.share))
        except Crowded:
            why = "too many long evaluations wait for their turn, please try again later"
            return Outcome(error=TooManyRequests(why, retry_after_s=RETRY_AFTER_S))
        try:
            return Outcome(value=await work)
        except _Ended as ended:
            return Outcome(error=InternalError(f"Internal error occurred: {ended}"))

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            _end(child)

    def _done(self, computation: Computation) -> Any:
        """Run a computation in a child; called in a thread. Raises _Ended."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
        child = child or self._start()
        timer = threading.Timer(WALL_S, child.kill)
        timer.daemon = True
        timer.start()
        try:
            answer = _exchanged(child, pickle.dumps((computation.function, computation.arguments)))
        except BaseException:
            _end(child)
            raise
        finally:
            timer.cancel()
        with self._lock:
            self._idle.append(child)
        value, problem = pickle.loads(answer)
        if problem:
            raise _Ended(problem)
        return value

    def _start(self) -> subprocess.Popen[bytes]:
        given = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = given | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        self.started += 1
        try:
            return subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
            )
        except OSError as error:
            raise _Ended(f"the process that evaluates expressions cannot be started ({error.strerror})") from None


class _Ended(Exception):
    """A computation ended without a result; the message says why."""


def _exchanged(child: subprocess.Popen[bytes], request: bytes) -> bytes:
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(OSError):
        child.stdin.write(len(request).to_bytes(HEADER, "big") + request)
        child.stdin.flush()
        header = child.stdout.read(HEADER)
        if len(header) == HEADER:
            answer = child.stdout.read(size := int.from_bytes(header, "big"))
            if len(answer) == size:
                return answer
    raise _Ended(f"the evaluation took longer than {WALL_S:g} s, or more memory than it may")


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


@cache
def shared_evaluators() -> Evaluators:
    """Return the Evaluators of this process."""
    evaluators = Evaluators()
    atexit.register(evaluators.close)
    return evaluators
