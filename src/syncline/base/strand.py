"""A function that runs in turns with its caller: :class:`Strand`. Its parts may run in parallel.

Used for requests that are too large for the event loop (``cluster/serving/waiting.py``). The function runs in its own
thread, but never at the same time as the thread that gives turns, so shared data needs no lock. Functions passed to
:meth:`Strand.aside` must be pure, on data that does not change; they run outside of turns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")
P = TypeVar("P")


class _Abandoned(BaseException):
    """The caller no longer waits for the result."""


class Job:
    """A part that runs outside of turns: call :meth:`run` once, in any thread; it never raises."""

    def __init__(self, function: Callable[[], Any], context: Context) -> None:
        self._function = function
        self._context = context
        self._value: Any = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._value = self._context.run(self._function)
        except BaseException as error:  # the function that left it aside deals with it
            self._failure = error

    def result(self) -> Any:
        if self._failure is not None:
            raise self._failure
        return self._value


class Strand(Generic[T]):
    """Call :meth:`go_on` until it returns None, and run each returned job in between; or :meth:`abandon` it."""

    def __init__(self, function: Callable[[], T], name: str) -> None:
        self._context = copy_context()
        self._whole = Job(function, self._context)
        self._part: Job | None = None
        self._turn = threading.Semaphore(0)
        self._pause = threading.Semaphore(0)
        self._abandoned = self._over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def go_on(self) -> Job | None:
        """Give a turn; return the next job to run outside of turns, or None when the function has ended."""
        if not self._thread.ident:
            self._thread.start()
        self._turn.release()
        self._pause.acquire()
        return self._part

    def result(self) -> T:
        """Return the result of the ended function, or raise its exception."""
        value: T = self._whole.result()
        return value

    def abandon(self) -> None:
        """End the function where it waits; only its cleanup code still runs."""
        self._abandoned = True
        while self._thread.ident and not self._over:
            self.go_on()

    def aside(self, function: Callable[[], P]) -> P:
        """Called by the function: run ``function`` as a job and return its result. Inside a job it runs at once."""
        if threading.current_thread() is not self._thread:
            return function()
        self._part = part = Job(function, copy_context())
        self._pause.release()
        self._turn.acquire()
        self._part = None
        if self._abandoned:
            raise _Abandoned
        value: P = part.result()
        return value

    def _run(self) -> None:
        self._turn.acquire()
        if not self._abandoned:
            self._whole.run()
        self._over = True
        self._part = None
        self._pause.release()
