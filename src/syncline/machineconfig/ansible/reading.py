"""Reads the playbooks of AnsibleConfigs: the action, its handler, and what was read last.

A plan that lacks the files, or has old ones, has a :class:`ReadPlaybook`. A quick answer is there when the same key is
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
from syncline.machineconfig.ansible.content import Files

MAX_KEPT: Final = 100
"""Playbooks that are kept; of a few hundred kilobytes, and eight megabytes at most."""
PATIENCE_S: Final = 2.0
"""Seconds that a reconcile waits for a host."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A folder of a repository at a revision. ``collections``: names of those that are read, of all that are there."""

    url: str
    revision: str
    path: str
    collections: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{mask_credentials(self.url)}@{self.revision or 'HEAD'}" + (f":{self.path}" if self.path else "")


@dataclass(frozen=True, slots=True)
class Found:
    """``commit`` and ``files`` of a read that succeeded; ``error`` of one that did not."""

    at: datetime
    commit: str = ""
    files: Files = field(default_factory=dict, repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class ReadPlaybook(Action):
    """Read the files of an AnsibleConfig."""

    wanted: Wanted
    asker: ObjectRef
    reason: str

    def describe(self) -> str:
        return f"read {self.wanted}"


class PlaybookReader(Protocol):
    """Reads repositories; blocking. Never raises for what a repository or its host does."""

    def playbook(self, wanted: Wanted, now: datetime) -> Found: ...


class PlaybookStore:
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
        """Keep what was read; after an error the files of the last read stay, with the error."""
        self._reading.discard(wanted)
        if found is None:
            return
        before = self._kept.pop(wanted, None)
        if found.error and before is not None:
            found = Found(found.at, before.commit, before.files, found.error)
        self._kept[wanted] = found
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


class PlaybookHandler:
    """Performs :class:`ReadPlaybook` in a worker thread."""

    def __init__(self, reader: PlaybookReader, store: PlaybookStore, clock: Clock) -> None:
        self._reader, self._store, self._clock = reader, store, clock

    def handle(self, action: ReadPlaybook) -> Generator[Work, Any, None]:
        now, wanted = self._clock.now(), action.wanted
        if not self._store.begin(wanted):
            return
        host = urlsplit(wanted.url).hostname or wanted.url.partition("@")[2].partition(":")[0]
        work = Work(
            action.describe(),
            partial(self._reader.playbook, wanted, now),
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

    def _keep_late(self, action: ReadPlaybook, began: datetime, found: Any) -> None:
        if not isinstance(found, Found):
            found = Found(began, error=f"{type(found).__name__}: {found}")
        self._store.end(action.wanted, found)
        self._store.wake(action.asker)
