"""Reads the repository of a pattern: the action, its handler, and what was read last.

A plan that lacks the files, or has old ones, has a :class:`ReadCheckout`. A quick answer is there when the same key is
planned again; a slow one continues in the background, and its end plans the key again. ``assembly`` provides who reads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from syncline.base.action import Action, Late, Purpose, Work
from syncline.base.clock import Clock
from syncline.base.masking import mask_credentials
from syncline.kube.objects import ObjectRef
from syncline.patterns.installing.checkout import Checkout

MAX_KEPT: Final = 50
"""Checkouts that are kept."""
PATIENCE_S: Final = 2.0
"""Seconds that a reconcile waits for a host."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A revision of a repository, and the files of it that are read, with every values file at their places."""

    url: str
    revision: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{mask_credentials(self.url)}@{self.revision}"


@dataclass(frozen=True, slots=True)
class Found:
    """``commit`` and ``checkout`` of a read that succeeded; ``error`` of one that did not."""

    at: datetime
    commit: str = ""
    checkout: Checkout = field(default_factory=Checkout, repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class ReadCheckout(Action):
    """Read the files of a pattern."""

    wanted: Wanted
    asker: ObjectRef
    reason: str

    def describe(self) -> str:
        return f"read {self.wanted}"


class CheckoutReader(Protocol):
    """Reads repositories; blocking. Never raises for what a repository or its host does."""

    def checkout(self, wanted: Wanted, now: datetime) -> Found: ...


class CheckoutStore:
    """What was read, and what is being read. Bounded; used by the loop's thread alone."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Wanted, Found] = OrderedDict()
        self._reading: set[Wanted] = set()
        self.wake: Callable[[ObjectRef], None] = lambda _ref: None

    def get(self, wanted: Wanted) -> Found | None:
        return self._kept.get(wanted)

    def is_reading(self, wanted: Wanted) -> bool:
        return wanted in self._reading

    def begin(self, wanted: Wanted) -> bool:
        """Register a read; False if it runs already."""
        if wanted in self._reading:
            return False
        self._reading.add(wanted)
        return True

    def end(self, wanted: Wanted, found: Found | None) -> None:
        self._reading.discard(wanted)
        if found is not None:
            self._kept.pop(wanted, None)
            self._kept[wanted] = found
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)


class CheckoutHandler:
    """Performs :class:`ReadCheckout` in a worker thread."""

    def __init__(self, reader: CheckoutReader, store: CheckoutStore, clock: Clock) -> None:
        self._reader, self._store, self._clock = reader, store, clock

    def handle(self, action: ReadCheckout) -> Generator[Work, Any, None]:
        now, wanted = self._clock.now(), action.wanted
        if not self._store.begin(wanted):
            return
        host = urlsplit(wanted.url).hostname or wanted.url.partition("@")[2].partition(":")[0]
        work = Work(
            action.describe(),
            partial(self._reader.checkout, wanted, now),
            Purpose.SOURCES,
            hosts=(host,) if host else (),
            late=Late(PATIENCE_S, partial(self._keep_late, action, now)),
            answered=lambda result: isinstance(result, Found) and not result.error,
        )
        try:
            found = yield work
        except BaseException:
            self._store.end(wanted, None)
            raise
        if isinstance(found, Found):
            self._store.end(wanted, found)

    def _keep_late(self, action: ReadCheckout, began: datetime, found: Any) -> None:
        if not isinstance(found, Found):
            found = Found(began, error=f"{type(found).__name__}: {found}")
        self._store.end(action.wanted, found)
        self._store.wake(action.asker)
