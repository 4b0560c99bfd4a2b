"""Resolves the branches, tags and version ranges of ordered Applications on the hub, so that clusters get commits.

An Application that tracks a branch would sync a new commit on every cluster at once. Under an order the hub resolves
the branch, and the copy that travels names the commit: :func:`pinned`. Resolutions are shared by all groups, kept in
memory, and asked for again after the poll interval or a refresh; a plan that lacks one has a :class:`ResolveRevision`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from syncline.base.action import Action, Late, Purpose, Work
from syncline.base.clock import Clock, format_time
from syncline.base.masking import mask_credentials
from syncline.kube.objects import Obj, ObjectRef

MAX_KEPT: Final = 5_000
"""Resolutions that are kept; the oldest makes room."""
PATIENCE_S: Final = 2.0
"""Seconds a reconcile waits for a host; a longer look continues in the background."""
POLL_S: Final = 180.0
"""Default of seconds between two looks at a repository, as Argo CD's ``timeout.reconciliation``."""
_COMMIT: Final = re.compile(r"[0-9a-fA-F]{40}")


@dataclass(frozen=True, slots=True, order=True)
class Tracked:
    """A revision of a repository, or a version range of a chart, that an Application of ``project`` follows."""

    project: str
    url: str
    chart: str = ""
    revision: str = ""
    tag_prefix: str = ""
    passes_credentials: bool = False

    @classmethod
    def of(cls, source: Obj, project: str) -> Tracked:
        """Return what a source of an Application follows."""
        helm = source.get("helm")
        return cls(
            project,
            str(source.get("repoURL") or ""),
            str(source.get("chart") or ""),
            str(source.get("targetRevision") or ""),
            str(source.get("tagPrefix") or ""),
            isinstance(helm, dict) and bool(helm.get("passCredentials")),
        )

    @property
    def source(self) -> Obj:
        """The fields of a source that the resolution depends on."""
        helm = {"helm": {"passCredentials": True}} if self.passes_credentials else {}
        return {
            "repoURL": self.url,
            "chart": self.chart,
            "targetRevision": self.revision,
            "tagPrefix": self.tag_prefix,
            **helm,
        }

    @property
    def is_fixed(self) -> bool:
        """Whether it names a commit, which needs no resolution."""
        return not self.chart and _COMMIT.fullmatch(self.revision) is not None

    @property
    def host(self) -> str:
        """The host of the repository; empty: unknown, or this machine."""
        return urlsplit(self.url).hostname or self.url.partition("@")[2].partition(":")[0]

    def __str__(self) -> str:
        """Return it for people, without credentials, as ``https://git.example/app@main``."""
        place = mask_credentials(self.url) + (f" chart {self.chart}" if self.chart else "")
        return f"{place}@{self.tag_prefix}{self.revision or 'HEAD'}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """``commit``: the last one that was found (a version for charts, a digest for OCI), empty: none yet. ``error``: why
    the last look failed, since ``failing_since``."""

    at: datetime
    commit: str = ""
    error: str = ""
    failing_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ResolveRevision(Action):
    """Look which commit a revision names now."""

    tracked: Tracked
    asker: ObjectRef
    """The key that is planned again when a look in the background ends."""
    reason: str
    may_be_old_s: float = 0.0
    """Age in seconds up to which a host's answer to another reader is reused; 0: the host is asked."""

    def describe(self) -> str:
        return f"resolve {self.tracked}"


class RevisionReader(Protocol):
    """Looks at a repository; blocking. ``assembly`` provides the implementation."""

    def resolve(self, tracked: Tracked, now: datetime, *, since: datetime | None, wanted: int) -> Resolution:
        """Return the commit or one sentence that says why there is none. ``since``: an answer of the host to another
        reader from then on is reused; None: it is asked. ``wanted``: the :meth:`moment` of the need. Never raises for
        what a repository or its host does."""
        ...

    def moment(self) -> int:
        """Return a number for the present moment; later moments have higher numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Looks:
    """What is known when a plan is made: resolutions, and since when others are being looked for."""

    known: Mapping[Tracked, Resolution] = field(default_factory=dict)
    asking: Mapping[Tracked, datetime] = field(default_factory=dict)

    def due(
        self, tracked: Iterable[Tracked], asker: ObjectRef, now: datetime, poll_s: float, *, fresh: bool = False
    ) -> Due:
        """Return the looks that are due, and when the next one is. ``fresh``: a refresh wants each of them now."""
        actions: list[ResolveRevision] = []
        again: list[datetime] = []
        for one in sorted({each for each in tracked if not each.is_fixed}):
            found = self.known.get(one)
            next_at = now if found is None or fresh else found.at + timedelta(seconds=poll_s)
            if one in self.asking:
                continue
            if next_at > now:
                again.append(next_at)
                continue
            again.append(now + timedelta(seconds=poll_s))
            reason = "a refresh asks" if fresh else "not known yet" if found is None else "the poll interval is over"
            actions.append(ResolveRevision(one, asker, reason, 0.0 if fresh else poll_s))
        return Due(tuple(actions), min(again, default=None))

    def commit(self, one: Tracked) -> str:
        """Return the commit that a revision names, as far as is known; empty: unknown."""
        if one.is_fixed:
            return one.revision.lower()
        found = self.known.get(one)
        return found.commit if found is not None else ""

    def problem(self, one: Tracked) -> str:
        """Return why the commit is not known, or may be an old one; empty: it is as new as the poll interval."""
        found, since = self.known.get(one), self.asking.get(one)
        if one.is_fixed or (found is not None and not found.error):
            return ""
        if found is not None:
            stays = f"; clusters stay at {found.commit[:12]}" if found.commit else ""
            failing = format_time(found.failing_since or found.at)
            return f"{one} cannot be resolved since {failing}: {found.error}{stays}"
        return f"{one} is being resolved" + (f" since {format_time(since)}" if since is not None else "")


@dataclass(frozen=True, slots=True)
class Due:
    """``actions``: looks to make now; ``next_at``: when the next ones are due, None: none but those that run."""

    actions: tuple[ResolveRevision, ...]
    next_at: datetime | None


def pinned(source: Obj, commit: str) -> Obj:
    """Return the source at a commit, or at a version of its chart."""
    return {key: value for key, value in source.items() if key != "tagPrefix"} | {"targetRevision": commit}


class RevisionStore:
    """Resolutions of one process, and the looks that run. Bounded; used by the loop's thread alone."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._kept: OrderedDict[Tracked, Resolution] = OrderedDict()
        self._asking: dict[Tracked, tuple[datetime, set[ObjectRef]]] = {}
        self._limit = limit
        self.wake: Callable[[ObjectRef], None] = lambda _ref: None
        """Plans a key again that waited for a look of another one."""

    def looks(self, tracked: Iterable[Tracked]) -> Looks:
        """Return what is known about these revisions."""
        wanted = set(tracked)
        known = {one: self._kept[one] for one in wanted if one in self._kept}
        asking = {one: self._asking[one][0] for one in wanted if one in self._asking}
        return Looks(MappingProxyType(known), MappingProxyType(asking))

    def begin(self, action: ResolveRevision, now: datetime) -> bool:
        """Register a look; False if one runs already, which then wakes this asker, too."""
        running = self._asking.get(action.tracked)
        if running is not None:
            running[1].add(action.asker)
            return False
        self._asking[action.tracked] = now, {action.asker}
        return True

    def end(self, tracked: Tracked, found: Resolution | None, *, asker: ObjectRef | None = None) -> None:
        """Keep the result of a look and wake those who wait for it; ``asker`` only if it says something new, since its
        plan was made without. None: it ended without a result."""
        _, askers = self._asking.pop(tracked, (None, set[ObjectRef]()))
        before = self._kept.get(tracked)
        if found is not None:
            self._keep(tracked, found)
        same = _said(before) == _said(self._kept.get(tracked))
        for ref in sorted(askers - {asker} if same else askers):
            self.wake(ref)

    def _keep(self, tracked: Tracked, found: Resolution) -> None:
        before = self._kept.pop(tracked, None)
        if found.error and before is not None:
            since = before.failing_since if before.error else None
            found = replace(found, commit=found.commit or before.commit, failing_since=since or found.at)
        elif found.error:
            found = replace(found, failing_since=found.at)
        self._kept[tracked] = found
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)


def _said(found: Resolution | None) -> tuple[str, str] | None:
    return (found.commit, found.error) if found is not None else None


class RevisionHandler:
    """Performs :class:`ResolveRevision` in a worker thread."""

    def __init__(
        self, reader: RevisionReader, store: RevisionStore, clock: Clock, patience_s: float = PATIENCE_S
    ) -> None:
        self._reader, self._store, self._clock, self._patience_s = reader, store, clock, patience_s

    def handle(self, action: ResolveRevision) -> Generator[Work, Any, None]:
        now, tracked = self._clock.now(), action.tracked
        if not self._store.begin(action, now):
            return
        since = now - timedelta(seconds=action.may_be_old_s) if action.may_be_old_s else None
        look = partial(self._reader.resolve, tracked, now, since=since, wanted=self._reader.moment())
        work = Work(
            action.describe(),
            look,
            Purpose.SOURCES,
            project=tracked.project,
            hosts=(tracked.host,) if tracked.host else (),
            late=Late(self._patience_s, partial(self._keep_late, action, now)),
            answered=lambda result: isinstance(result, Resolution) and not result.error,
        )
        try:
            found = yield work
        except BaseException:
            self._store.end(tracked, None)
            raise
        if isinstance(found, Resolution):
            self._store.end(tracked, found, asker=action.asker)

    def _keep_late(self, action: ResolveRevision, began: datetime, found: Any) -> None:
        if not isinstance(found, Resolution):  # a bug of ours, or a full queue: tried again at the next poll
            found = Resolution(began, error=f"{type(found).__name__}: {found}")
        self._store.end(action.tracked, found)


def unresolved(tracked: Sequence[Tracked], looks: Looks) -> str:
    """Return why the first revision without a commit has none; empty: all have one."""
    return next((looks.problem(one) for one in tracked if not looks.commit(one)), "")
