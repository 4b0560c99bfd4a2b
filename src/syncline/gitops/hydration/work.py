"""Git work of hydration as actions, and the cache of its results.

The planner returns the actions; their handler performs them in the background. The cache is lost with the process; the
next reconcile then starts again and writes nothing twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, runtime_checkable

from syncline.argo.hydrator import GroupKey, HydrationSettings
from syncline.base.action import Action, Late, Purpose, Work
from syncline.base.clock import Clock
from syncline.gitops.application.manifests import PATIENCE_S
from syncline.kube.objects import Obj, ObjectRef
from syncline.sources.errors import mask_credentials
from syncline.sources.remote.address import host_of
from syncline.sources.rendering.environment import RenderContext

MAX_GROUPS = 5000
MAX_ANSWERS = 1000
"""Requests that one read may answer: as many Applications may be hydrated together."""


@dataclass(frozen=True, slots=True)
class Scope:
    """An Application whose ``manifest-generate-paths`` name the files of the dry source that concern it."""

    app: ObjectRef
    since: str
    """The dry commit of its last comparison."""
    paths: tuple[str, ...]
    """Files, folders and globs, relative to the repository root."""


@dataclass(frozen=True, slots=True)
class ResolveDry(Action):
    """Resolve the revision of a dry source, and find the Applications whose files changed."""

    key: GroupKey
    source: Obj
    project: str
    reason: str
    answers: tuple[str, ...] = ()
    """Requests that this read answers."""
    scopes: tuple[Scope, ...] = ()
    may_be_old_s: float = 0.0

    def describe(self) -> str:
        return f"read {self.key.dry_url}@{self.key.dry_revision}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of a read. ``untouched``: Applications without a changed file."""

    at: datetime
    sha: str = ""
    ref: str = ""
    error: str = ""
    answers: tuple[str, ...] = ()
    untouched: frozenset[ObjectRef] = frozenset()


@dataclass(frozen=True, slots=True)
class Job:
    """One Application's part of a hydration."""

    app: ObjectRef
    source: Obj
    folder: str
    context: RenderContext
    project: str
    request: tuple[str, str] | None = None
    """The hydration request that this answers: value and time stamp."""


@dataclass(frozen=True, slots=True)
class Hydrate(Action):
    """Render the jobs at one dry commit, then commit and push the changes."""

    key: GroupKey
    sha: str
    ref: str
    jobs: tuple[Job, ...]
    url: str
    """The repository to write."""
    sync_branch: str
    settings: HydrationSettings
    reason: str

    def describe(self) -> str:
        return f"hydrate {self.key.dry_url}@{self.sha[:12]} to {self.key.url}@{self.key.branch}"


@dataclass(frozen=True, slots=True)
class Forget(Action):
    """Forget a run: its end is written in the statuses of its Applications."""

    key: GroupKey
    reason: str

    def describe(self) -> str:
        return f"forget the run for {self.key.url}@{self.key.branch}"


@dataclass(frozen=True, slots=True)
class Hydrated:
    """The end of a run: the commit with the manifests, or ``errors`` by Application, or one ``error`` for all."""

    at: datetime
    sha: str = ""
    errors: Mapping[ObjectRef, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A running hydration. ``ended`` None: it is still running."""

    action: Hydrate
    since: datetime
    ended: Hydrated | None = None


@runtime_checkable
class HydrationWorker(Protocol):
    """Does the Git work, blocking; provided by ``assembly``. Never raises for repository content."""

    def resolve_dry(self, action: ResolveDry, now: datetime) -> Resolution: ...

    def hydrate(self, action: Hydrate, now: datetime) -> Hydrated: ...


class HydrationCache:
    """Cached reads and runs by group, both bounded: the oldest reads and ended runs are evicted."""

    def __init__(self) -> None:
        self._looks: OrderedDict[GroupKey, Resolution] = OrderedDict()
        self._looking: set[GroupKey] = set()
        self._runs: OrderedDict[GroupKey, Run] = OrderedDict()

    def resolution(self, key: GroupKey) -> Resolution | None:
        return self._looks.get(key)

    def looking(self, key: GroupKey) -> bool:
        return key in self._looking

    def run(self, key: GroupKey) -> Run | None:
        return self._runs.get(key)

    def begin_look(self, key: GroupKey) -> None:
        self._looking.add(key)

    def end_look(self, key: GroupKey, found: Resolution) -> None:
        self._looking.discard(key)
        before = self._looks.pop(key, None)
        answers = (*(before.answers if before else ()), *found.answers)[-MAX_ANSWERS:]
        self._looks[key] = replace(found, answers=answers)
        while len(self._looks) > MAX_GROUPS:
            self._looks.popitem(last=False)

    def put_run(self, run: Run) -> None:
        self._runs.pop(run.action.key, None)
        self._runs[run.action.key] = run
        over = [key for key, one in self._runs.items() if one.ended is not None]
        for key in over[: max(len(self._runs) - MAX_GROUPS, 0)]:
            del self._runs[key]

    def forget(self, key: GroupKey) -> None:
        self._runs.pop(key, None)


class HydrationHandler:
    """Performs the actions in the driver's worker; long ones continue in the background."""

    def __init__(self, worker: object, book: HydrationCache, clock: Clock, *, patience_s: float = PATIENCE_S) -> None:
        self._worker = worker if isinstance(worker, HydrationWorker) else None
        self._book = book
        self._clock = clock
        self._patience_s = patience_s

    def handle(self, action: ResolveDry | Hydrate | Forget) -> Generator[Work, Any, Any]:
        if isinstance(action, Forget):
            self._book.forget(action.key)
            return None
        now = self._clock.now()
        worker, keep = self._worker, partial(self._keep, action, now)
        if worker is None:
            return keep(RuntimeError("this process cannot write to Git"))
        run: Callable[[], Resolution | Hydrated]
        if isinstance(action, ResolveDry):
            run, projects = partial(worker.resolve_dry, action, now), {action.project}
            self._book.begin_look(action.key)
        else:
            run, projects = partial(worker.hydrate, action, now), {job.project for job in action.jobs}
            self._book.put_run(Run(action, now))
        urls = (action.key.dry_url, action.key.url) if isinstance(action, Hydrate) else (action.key.dry_url,)
        work = Work(
            action.describe(),
            run,
            Purpose.SOURCES,
            project=next(iter(projects)) if len(projects) == 1 else "",
            hosts=tuple(dict.fromkeys(filter(None, map(host_of, urls)))),
            late=Late(self._patience_s, keep),
        )
        try:
            found = yield work
        except Exception as error:  # a bug of ours, or a full queue: retried as after errors
            return keep(error)
        return keep(found) if isinstance(found, Resolution | Hydrated) else None

    def _keep(self, action: ResolveDry | Hydrate, began: datetime, found: Any) -> None:
        if isinstance(action, ResolveDry):
            if not isinstance(found, Resolution):
                found = Resolution(began, error=_error_text(found), answers=action.answers)
            self._book.end_look(action.key, found)
            return
        if not isinstance(found, Hydrated):
            found = Hydrated(self._clock.now(), error=_error_text(found))
        self._book.put_run(Run(action, began, found))


def _error_text(found: object) -> str:
    return mask_credentials(str(found) if isinstance(found, RuntimeError) else f"{type(found).__name__}: {found}")
