"""Reads of repositories that planners ask for: the action, its handler, and what was read last.

A plan that lacks the content, or has an old one, has a :class:`Fetch`. A quick answer is there when the same key is
planned again; a slow one continues in the background, and its end plans the key again. ``assembly`` provides who reads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from syncline.base.action import Action, Late, Purpose, Work
from syncline.base.clock import Clock
from syncline.base.masking import mask_credentials
from syncline.kube.objects import ObjectRef

PATIENCE_S: Final = 2.0
"""Seconds that a reconcile waits for a host."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A revision of a repository; a subclass adds what of it is read."""

    url: str
    revision: str

    def __str__(self) -> str:
        return f"{mask_credentials(self.url)}@{self.revision or 'HEAD'}"

    @property
    def host(self) -> str:
        """The host of the address, in URL or SCP form."""
        return urlsplit(self.url).hostname or self.url.partition("@")[2].partition(":")[0]


@dataclass(frozen=True, slots=True)
class Found:
    """``commit`` of the last read that succeeded, ``error`` of the last one if it did not; a subclass adds what was
    read."""

    at: datetime
    commit: str = ""
    error: str = ""


W = TypeVar("W", bound=Wanted)
F = TypeVar("F", bound=Found)


@dataclass(frozen=True, slots=True)
class Fetch(Action, Generic[W]):
    """Read what an object names; each room has a subclass, by which its handler is found."""

    wanted: W
    asker: ObjectRef
    reason: str

    def describe(self) -> str:
        return f"read {self.wanted}"


class FetchStore(Generic[W, F]):
    """What was read, and what is being read. Bounded; used by the loop's thread alone."""

    def __init__(self, limit: int) -> None:
        """``limit``: of what is kept; the oldest goes first."""
        self._kept: OrderedDict[W, F] = OrderedDict()
        self._reading: set[W] = set()
        self._limit = limit
        self.wake: Callable[[ObjectRef], None] = lambda _ref: None

    def get(self, wanted: W) -> F | None:
        return self._kept.get(wanted)

    def is_reading(self, wanted: W) -> bool:
        return wanted in self._reading

    def begin(self, wanted: W) -> bool:
        """Register a read; False if it runs already."""
        if wanted in self._reading:
            return False
        self._reading.add(wanted)
        return True

    def end(self, wanted: W, found: F | None) -> None:
        """Keep what was read; after an error the content of the last read stays, with the error."""
        self._reading.discard(wanted)
        if found is None:
            return
        before = self._kept.pop(wanted, None)
        if found.error and before is not None:
            found = replace(before, at=found.at, error=found.error)
        self._kept[wanted] = found
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)


class FetchHandler(Generic[W, F]):
    """Performs a :class:`Fetch` in a worker thread."""

    def __init__(self, read: Callable[[W, datetime], F], kind: type[F], store: FetchStore[W, F], clock: Clock) -> None:
        """``read`` blocks, and never raises for what a repository or its host does. ``kind``: what it returns."""
        self._read, self._kind, self._store, self._clock = read, kind, store, clock

    def handle(self, action: Fetch[W]) -> Generator[Work, Any, None]:
        now, wanted = self._clock.now(), action.wanted
        if not self._store.begin(wanted):
            return
        work = Work(
            action.describe(),
            partial(self._read, wanted, now),
            Purpose.SOURCES,
            hosts=(wanted.host,) if wanted.host else (),
            late=Late(PATIENCE_S, partial(self._keep_late, action, now)),
            answered=lambda result: isinstance(result, Found) and not result.error,
        )
        try:
            found = yield work
        except BaseException:
            self._store.end(wanted, None)
            raise
        if isinstance(found, self._kind):
            self._store.end(wanted, found)

    def _keep_late(self, action: Fetch[W], began: datetime, found: Any) -> None:
        if not isinstance(found, self._kind):  # a bug of ours, or a full queue: tried again at the next poll
            found = self._kind(began, error=f"{type(found).__name__}: {found}")
        self._store.end(action.wanted, found)
        self._store.wake(action.asker)
