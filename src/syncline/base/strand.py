"""A function that continues only when it is given its turn, but for parts that it leaves to others meanwhile.

Used for requests that are too large for the event loop that serves them (``cluster/serving/waiting.py``). The function
runs in a thread of its own, and that thread and the one that gives turns never run at the same time: whatever both use
needs no lock. What it does :meth:`Strand.aside` is a pure function of data that does not change; it runs outside of
turns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

__all__ = ["Job", "Strand"]

T = TypeVar("T")
P = TypeVar("P")


class _Abandoned(BaseException):
    """The result is not waited for any more."""


class Job:
    """A part that is done aside: :meth:`run` it once, in any thread; never raises."""

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
    """Call :meth:`go_on` until it is over, running what it returns in between, or :meth:`abandon` it."""

    def __init__(self, function: Callable[[], T], name: str) -> None:
        self._context = copy_context()
        self._whole = Job(function, self._context)
        self._part: Job | None = None
        self._turn = threading.Semaphore(0)
        self._pause = threading.Semaphore(0)
        self._abandoned = self._over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def go_on(self) -> Job | None:
        """A turn: until there is a part to be done aside, or the function is over (None)."""
        if not self._thread.ident:
            self._thread.start()
        self._turn.release()
        self._pause.acquire()
        return self._part

    def result(self) -> T:
        """The function's result once it has ended; raises the exception that it raised."""
        value: T = self._whole.result()
        return value

    def abandon(self) -> None:
        """End it where it waits: nothing after that point runs but what cleans up."""
        self._abandoned = True
        while self._thread.ident and not self._over:
            self.go_on()

    def aside(self, function: Callable[[], P]) -> P:
        """Called by the function: what ``function`` returns, worked out aside. Within such a part it runs at once."""
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
