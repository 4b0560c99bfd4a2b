"""The cache of rendered manifests. Begin at :class:`ManifestStore`.

The handler of :class:`Render` writes it, ``observe`` reads it. It is lost with the process and filled again by the next
reconciles. The number of entries is bounded.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, runtime_checkable

from syncline.base.action import Action, Late, Purpose, Work
from syncline.base.clock import Clock, format_time
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import YamlError, load
from syncline.sources.errors import mask_credentials
from syncline.sources.remote.address import host_of
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

MAX_KEPT = 20_000
"""Cached results. An Application needs two (by requested revision and by commit) and renders again after an eviction,
so the bound must be well above twice the Applications of one process (a few thousand)."""
PATIENCE_S = 2.0
"""Seconds a reconcile waits for a render. A longer one continues in the background, and the status reports it."""
READ_LIMIT_S = 900.0
"""Limit of one render with all its downloads, in seconds; the first read of a large repository takes minutes."""
MAX_ANSWERS = 100
"""Refresh requests remembered per source: as many Applications may share it and be refreshed at once."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects of an application at one revision, or one sentence that says why there are none."""

    revisions: tuple[str, ...]
    objects: tuple[Obj, ...]
    source_types: tuple[str, ...]
    resolved_at: datetime
    error: str = ""
    failing_since: datetime | None = None
    """When the source was last readable, or first read; None: it is readable."""
    warnings: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """Refresh requests that this or an earlier render answered, newest last (at most :data:`MAX_ANSWERS`)."""

    content: tuple[str, ...] = ()
    """Identifies the content of each source: equal names, equal objects. Empty where the reader cannot tell."""

    own_folder: bool = False
    """All content is inside the sources' own folders: a commit that touches none of them changes nothing."""

    asked: bool = False
    """A user waits for this render, so its failure is reported at once."""
    local: bool = False
    """The manifests came with an operation, so reading the source gives no newer ones."""

    @property
    def revision(self) -> str:
        """The commit of a single source; empty for several, as upstream."""
        return self.revisions[0] if len(self.revisions) == 1 else ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A render that continues in the background."""

    since: datetime
    source: str
    """The source, without credentials."""
    begun: datetime | None = None
    """When it started; None: it is queued."""
    answers: tuple[str, ...] = ()
    """Refresh requests that its result will answer."""

    @property
    def text(self) -> str:
        """Return a sentence: the source that is waited for, since when and until when."""
        until = format_time((self.begun or self.since) + timedelta(seconds=READ_LIMIT_S))
        if self.begun is not None:
            return f"waiting for {self.source} since {format_time(self.since)}, at most until {until}"
        return (
            f"waiting since {format_time(self.since)} for a turn to read {self.source}, at most until {until}: "
            "its project or its host has as many reads under way as it may have"
        )


def local_manifests(texts: Sequence[str], revisions: tuple[str, ...], now: datetime) -> Manifests:
    """Parse manifests sent with a request (``operation.sync.manifests``); never raises: errors are in the result."""
    objects: list[Obj] = []
    for number, text in enumerate(texts):
        place = f"operation.sync.manifests[{number}]"
        try:
            value = load(text, file=place)
        except YamlError as error:
            return Manifests(revisions, (), (), now, error=f"{place}: {error}", local=True)
        if not isinstance(value, dict) or not value.get("apiVersion") or not value.get("kind"):
            error_text = f"{place}: must be one object with apiVersion and kind"
            return Manifests(revisions, (), (), now, error=error_text, local=True)
        objects.append(value)
    return Manifests(revisions, tuple(objects), (), now, local=True)


class SourceReader(Protocol):
    """Turns sources at revisions into manifests; blocking. ``assembly`` provides the implementation."""

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        """Render the sources. Never raises for repository content: the error is in the result."""
        ...


@runtime_checkable
class PollingReader(Protocol):
    """A reader that saves requests to remotes when no caller waits for the result."""

    def poll(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        since: datetime | None,
    ) -> Manifests:
        """Render, reusing a result read at or after ``since`` by any reader; None: query the remote. A remote that
        failed a short while ago is not queried again."""
        ...


@runtime_checkable
class SharingReader(PollingReader, Protocol):
    """A reader that serves many callers from one request to a remote."""

    def moment(self) -> int:
        """Return a number for the present moment; later moments have higher numbers."""
        ...

    def read(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        wanted: int = 0,
    ) -> Manifests:
        """As :meth:`SourceReader.read`; may reuse what a remote was asked for after the moment ``wanted``."""
        ...

    def poll(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        since: datetime | None,
        wanted: int = 0,
    ) -> Manifests: ...


@dataclass(frozen=True, slots=True)
class Render(Action):
    """Resolve ``revisions`` (branch, tag, SHA, or empty for HEAD) and render the sources at them."""

    app: str
    sources: tuple[Obj, ...]
    revisions: tuple[str, ...]
    reason: str
    answers: str = ""
    """The refresh request that this render answers, or ""."""
    context: RenderContext = NO_CONTEXT
    may_be_old_s: float = 0.0
    """Maximum age in seconds of a result of another Application that is reused here; 0: none."""
    asked: bool = False
    """A request waits for it: a remote that failed is queried again before its retry time."""

    def describe(self) -> str:
        asked = ", ".join(
            f"{s.get('repoURL')} {s.get('path') or ''}@{r or 'HEAD'}" for s, r in zip(self.sources, self.revisions)
        )
        return f"render {asked}"


@dataclass(frozen=True, slots=True)
class Join(Action):
    """Let the running render answer a refresh request too: the same request, on a newer version of the object."""

    render: Render
    reason: str

    def describe(self) -> str:
        return f"join {self.render.describe()}"


def _key(sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext) -> str:
    """Return the cache key. It contains the Application: charts and plugins see it, so results may differ by it."""
    bare = [{key: value for key, value in source.items() if key != "targetRevision"} for source in sources]
    who = context.application, context.project, context.namespace, context.content, context.source
    return json.dumps([bare, revisions, *who], sort_keys=True)


class ManifestStore:
    """Cached results by (sources, requested revisions), also found by resolved SHA; and the running renders."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._kept: OrderedDict[str, Manifests] = OrderedDict()
        self._readings: dict[str, tuple[Reading, list[datetime]]] = {}
        self._limit = limit

    def get(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext = NO_CONTEXT
    ) -> Manifests | None:
        return self._kept.get(_key(sources, revisions, context))

    def put(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        found: Manifests,
        context: RenderContext = NO_CONTEXT,
    ) -> None:
        for asked in {revisions, found.revisions}:
            if len(asked) == len(sources):
                key = _key(sources, asked, context)
                self._kept[key] = found
                self._kept.move_to_end(key)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def reading(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext = NO_CONTEXT
    ) -> Reading | None:
        """Return the running render of these sources, or None."""
        found = self._readings.get(_key(sources, revisions, context))
        return replace(found[0], begun=next(iter(found[1]), None)) if found is not None else None

    def begin(self, action: Render, now: datetime, begun: list[datetime]) -> Reading:
        """Register a background render; its driver bounds their number. ``begun`` receives the start time."""
        shown = mask_credentials(", ".join(dict.fromkeys(str(one.get("repoURL") or "") for one in action.sources)))
        reading = Reading(now, shown, answers=(action.answers,) if action.answers else ())
        self._readings[_key(action.sources, action.revisions, action.context)] = reading, begun
        return reading

    def join(self, action: Join) -> None:
        key = _key(action.render.sources, action.render.revisions, action.render.context)
        if key in self._readings:
            reading, begun = self._readings[key]
            self._readings[key] = replace(reading, answers=(*reading.answers, action.render.answers)), begun

    def end(self, action: Render, since: datetime) -> tuple[str, ...]:
        """Remove the render that began at ``since``, but no later one; return the requests that it answers."""
        key = _key(action.sources, action.revisions, action.context)
        found = self._readings.get(key)
        if found is None or found[0].since != since:
            return (action.answers,)
        return self._readings.pop(key)[0].answers


class RenderHandler:
    """Performs :class:`Render` in a worker thread. A render that takes long returns a :class:`Reading` first."""

    def __init__(
        self, reader: SourceReader, store: ManifestStore, clock: Clock, patience_s: float = PATIENCE_S
    ) -> None:
        self._patience_s = patience_s
        self._reader = reader
        self._sharing = reader if isinstance(reader, SharingReader) else None
        self._store = store
        self._clock = clock

    def handle(self, action: Render | Join) -> Generator[Work, Any, Manifests | Reading | None]:
        if isinstance(action, Join):
            self._store.join(action)
            return None
        now = self._clock.now()
        begun: list[datetime] = []
        wanted = self._sharing.moment() if self._sharing is not None else 0
        found = yield Work(
            action.describe(),
            partial(self._read, action, now, begun, wanted),
            Purpose.SOURCES,
            project=action.context.project,
            hosts=tuple(dict.fromkeys(filter(None, (host_of(str(one.get("repoURL"))) for one in action.sources)))),
            late=Late(self._patience_s, partial(self._keep_late, action, now)),
            answered=lambda result: isinstance(result, Manifests) and not result.error,
        )
        if isinstance(found, Manifests):
            return self._keep(action, now, found, (action.answers,))
        return self._store.begin(action, now, begun)

    def _read(self, action: Render, now: datetime, begun: list[datetime], wanted: int) -> Manifests:
        """Read the source in the worker thread, once it has a slot."""
        begun.append(self._clock.now())
        if begun[0] > now + timedelta(seconds=READ_LIMIT_S):
            error = f"no turn to read the source within {READ_LIMIT_S:g} s: its project or its host has too many reads"
            return Manifests((), (), (), begun[0], error=error)
        reader, since = self._reader, None
        asked = action.sources, action.revisions, now, action.context
        if action.may_be_old_s:
            since = now - timedelta(seconds=action.may_be_old_s)
        if self._sharing is not None:
            if action.asked:
                return self._sharing.read(*asked, wanted=wanted)
            return self._sharing.poll(*asked, since=since, wanted=wanted)
        if action.asked or not isinstance(reader, PollingReader):
            return reader.read(*asked)
        return reader.poll(*asked, since=since)

    def _keep_late(self, action: Render, now: datetime, found: Any) -> None:
        answers = self._store.end(action, now)
        if not isinstance(found, Manifests):  # a bug of ours, or a full queue: retried as after errors
            found = Manifests((), (), (), now, error=f"{type(found).__name__}: {found}")
        self._keep(action, now, found, answers)

    def _keep(self, action: Render, now: datetime, found: Manifests, new: tuple[str, ...]) -> Manifests:
        before = self._store.get(action.sources, action.revisions, action.context)
        answers = (*(before.answers if before else ()), *filter(None, new))
        if before is not None and before.resolved_at > now:
            found = before  # a later read ended earlier
        since = (before.failing_since if before and before.error else None) or now
        asked = action.asked or any(one and one != action.answers for one in new)
        failing = since if found.error else None
        found = replace(found, answers=answers[-MAX_ANSWERS:], failing_since=failing, asked=asked)
        self._store.put(action.sources, action.revisions, found, action.context)
        return found
