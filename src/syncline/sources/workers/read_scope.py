"""The context of the current read: project, deadline, and known failures of remotes. :class:`ReadScope`.

``assembly/sources/reading.py`` opens one around each read; code below it that contacts a remote or needs a render
worker calls :func:`current`. So deadlines and shares apply also to a submodule of a base of a chart, without being
passed through every function.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from syncline.base.clock import format_time
from syncline.base.entropy import Entropy
from syncline.sources.errors import Problem, SourceError

FIRST_PAUSE_S = 10.0
"""After the first failure of a remote; it doubles with each further one."""
LONGEST_PAUSE_S = 120.0
SPREAD = 0.25
"""Part of a pause by which it may be shorter or longer, so that remotes are not asked together."""


@dataclass(frozen=True, slots=True)
class ReadScope:
    """One read of the sources of one Application. ``asked``: a user waits for it, so a remote that failed is requested
    again in spite of its back-off. ``limit_s``: for everything together."""

    now: datetime | None = None
    project: str = ""
    source: str = ""
    """The repository that is read first: of one project, sources share what there is little of."""
    asked: bool = True
    limit_s: float = math.inf
    _begun: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Return the seconds left, at least a moment, so that the next request times out by itself."""
        return max(self.limit_s - (time.monotonic() - self._begun), 0.001)

    def time(self) -> datetime | None:
        """The time by the clock of the caller, in whole seconds since then, so that virtual time stands still."""
        return None if self.now is None else self.now + timedelta(seconds=int(time.monotonic() - self._begun))


NO_SCOPE = ReadScope()
"""Of reads that belong to no Application: without a deadline beyond those of conversations, and without a memory."""
_current: ContextVar[ReadScope] = ContextVar("read_scope", default=NO_SCOPE)


def current() -> ReadScope:
    return _current.get()


@contextlib.contextmanager
def read_scope(one: ReadScope) -> Iterator[None]:
    """Set the scope of this thread until the context ends."""
    token = _current.set(one)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(slots=True)
class Failing:
    """The last error of one remote and its back-off. Not thread-safe."""

    entropy: Entropy
    _count: int = 0
    _asked_at: datetime | None = None
    _pause_s: float = 0.0
    _until: datetime | None = None
    _error: SourceError | None = None
    _access: object = None

    def check(self, access: object) -> None:
        """Raise the stored :class:`SourceError` during the back-off; other credentials are not affected."""
        here, error, until, asked_at = current(), self._error, self._until, self._asked_at
        now = here.time()
        if error is None or until is None or asked_at is None or now is None or here.now is None:
            return
        if access != self._access or not now < until <= now + timedelta(seconds=self._pause_s):
            return
        if here.asked and asked_at <= here.now:
            return
        times = "" if self._count == 1 else f" after {self._count} failures"
        message = (
            f"{error.message} (asked at {format_time(asked_at)}; it is asked again{times} at {format_time(until)})"
        )
        raise SourceError(error.problem, message, subject=error.subject, field=error.field, fix=error.fix)

    def note(self, began: datetime | None, access: object, error: SourceError | None) -> None:
        """Record the result of a call that began at ``began``. Only connection failures are stored."""
        if error is None or error.problem is not Problem.UNREACHABLE:
            self._count, self._error = 0, None
            return
        now = current().time()
        if now is None:
            return
        pause = min(FIRST_PAUSE_S * 2.0 ** min(self._count, 10), LONGEST_PAUSE_S)
        self._pause_s = pause * self.entropy.uniform(1 - SPREAD, 1 + SPREAD)
        self._count, self._error, self._access, self._asked_at = self._count + 1, error, access, began
        self._until = now + timedelta(seconds=self._pause_s)
