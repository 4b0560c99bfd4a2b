"""Limits the processor time of a computation in this process: :func:`within`.

``sources/kustomize/engine.py`` runs builds with it. When the thread has used its time, :class:`_Overrun` is raised in
it at its next bytecode, so that no loop needs a counter. Parts that must not be interrupted (network, locks, files) run
in :func:`sheltered`, which raises it at the end. C functions return first.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

AGAIN_S = 0.05
"""The interpreter swallows what is raised inside a destructor or its collector; work that has used so much processor
time since then is ended once more."""


class OutOfTime(Exception):
    """The work used up its processor time and was ended."""


class _Overrun(BaseException):
    """Raised in the work, which must not catch it."""


class _Allowance:
    """The limit of one piece of work in one thread."""

    def __init__(self, cpu_s: float) -> None:
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._end = time.clock_gettime(self._clock) + cpu_s
        self._lock = threading.Lock()
        self._shelters, self._due, self._closed = 0, False, False
        self._timer = self._look_in(cpu_s)

    def _look_in(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._look)
        timer.daemon = True
        timer.start()
        return timer

    def _look(self) -> None:
        with self._lock:
            if self._closed:
                return
            used = time.clock_gettime(self._clock)
            if used >= self._end:
                self._due, self._end = True, used + AGAIN_S
                if not self._shelters:
                    self._raise()
            self._timer = self._look_in(max(self._end - used, 0.01))

    def _raise(self) -> None:
        """Raise in the thread, at its next step."""
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(_Overrun))

    def _take_back(self) -> None:
        """What the timer raised and this thread may not have met. The interpreter can replace such an exception by none
        but looks for one at every step from then on, and never continues where a profiler counts: so it is met here."""
        try:
            self._raise()
            while True:
                pass
        except _Overrun:
            pass

    def enter(self) -> None:
        with self._lock:
            self._shelters += 1
            first = self._due and self._shelters == 1
        if first:
            self._take_back()
            raise _Overrun

    def leave(self) -> None:
        with self._lock:
            self._shelters -= 1
            last = self._due and not self._shelters
        if last:
            self._take_back()
            raise _Overrun

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._timer.cancel()
        if self._due:
            self._take_back()


_current: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


def within(cpu_s: float, work: Callable[[], T]) -> T:
    """Return the result of ``work``; raise :class:`OutOfTime` when this thread used too much processor time."""
    allowance = _Allowance(cpu_s)
    token = _current.set(allowance)
    try:
        try:
            return work()
        finally:
            allowance.close()
    except _Overrun:
        allowance.close()
        raise OutOfTime(f"took more than {cpu_s:g} seconds of processor time and was ended") from None
    finally:
        _current.reset(token)


@contextmanager
def sheltered() -> Iterator[None]:
    """Do not interrupt the work within the context."""
    allowance = _current.get()
    if allowance is None:
        yield
        return
    allowance.enter()
    try:
        yield
    finally:
        allowance.leave()
