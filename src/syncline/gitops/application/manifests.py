"""What rendering produced, kept for observers.

The handler of :class:`Render` writes here, ``observe`` reads. It is a cache, not state: lost with the process, filled
again by the next reconcile. Bounded by the number of entries.
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

__all__ = [
    "PATIENCE_S",
    "READ_LIMIT_S",
    "Join",
    "ManifestStore",
    "Manifests",
    "Reading",
    "Render",
    "RenderHandler",
    "SourceReader",
    "local_manifests",
]

MAX_KEPT = 20_000
"""Results kept. An application needs two, by what it asks for and by commit; one whose result was thrown out renders
again, so the bound has to lie well above twice the applications that one process serves (a few thousand)."""
PATIENCE_S = 2.0
"""A render that takes longer continues by itself, and the pass without it: the Application says what it waits for."""
READ_LIMIT_S = 900.0
"""One render with all it fetches; the first look at a large repository takes minutes."""
MAX_ANSWERS = 100
"""Requests remembered for a source: so many applications may share it and be refreshed at the same moment."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects of an application at one revision, or the one sentence why there are none."""

    revisions: tuple[str, ...]
    objects: tuple[Obj, ...]
    source_types: tuple[str, ...]
    resolved_at: datetime
    error: str = ""
    failing_since: datetime | None = None
    """When the source could be read last, or was first examined; None: it can be read."""
    warnings: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """Requests to refresh that this render or one before it answered, newest last (:data:`MAX_ANSWERS`)."""

    content: tuple[str, ...] = ()
    """Names what was read of each source: equal names, equal objects. Empty where the reader cannot say."""

    own_folder: bool = False
    """All that was read lies in the folders of its sources: a commit that touches none of them changes nothing."""

    asked: bool = False
    """A user waited for this render: if it failed, that is said at once."""
    local: bool = False
    """They came with an operation, so no look at the source makes newer ones."""

    @property
    def revision(self) -> str:
        """The commit of a single source; empty for several, as upstream."""
        return self.revisions[0] if len(self.revisions) == 1 else ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A render that continues beside the passes of its Application."""

    since: datetime
    source: str
    """What is read, without credentials."""
    begun: datetime | None = None
    """Since when it is under way; None: it waits for its turn."""
    answers: tuple[str, ...] = ()
    """Requests to refresh that its result will answer."""

    @property
    def text(self) -> str:
        """What is waited for, since when, until when."""
        until = format_time((self.begun or self.since) + timedelta(seconds=READ_LIMIT_S))
        if self.begun is not None:
            return f"waiting for {self.source} since {format_time(self.since)}, at most until {until}"
        return (
            f"waiting since {format_time(self.since)} for a turn to read {self.source}, at most until {until}: "
            "its project or its host has as many reads under way as it may have"
        )


def local_manifests(texts: Sequence[str], revisions: tuple[str, ...], now: datetime) -> Manifests:
    """Manifests that came with a request (``operation.sync.manifests``), instead of a render; never raises."""
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
    """Turns sources at revisions into manifests; blocking. Assembly gives the one made of ``sources``."""

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        """Never raises for what a repository may contain: the error is in the answer."""
        ...


@runtime_checkable
class PollingReader(Protocol):
    """A reader that can spare questions to remotes where no caller waits for the answer."""

    def poll(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        since: datetime | None,
    ) -> Manifests:
        """``since``: an answer to another reader then or later suffices; None: it is asked. One that failed a
        short while ago is not asked again."""
        ...


@runtime_checkable
class SharingReader(PollingReader, Protocol):
    """A reader that answers many from one question to a remote."""

    def moment(self) -> int:
        """A number for now: what begins later has a higher one."""
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
        """As that of :class:`SourceReader`; what a remote was asked after the moment ``wanted`` will do."""
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
    """Resolve ``revisions`` (as asked: branch, tag, SHA, empty for HEAD) and render the sources there."""

    app: str
    sources: tuple[Obj, ...]
    revisions: tuple[str, ...]
    reason: str
    answers: str = ""
    """The request to refresh that this is for, empty for none."""
    context: RenderContext = NO_CONTEXT
    may_be_old_s: float = 0.0
    """Seconds: nothing waits for a change, so what another Application learned so recently will do."""
    asked: bool = False
    """A request waits for it: a remote that failed is asked again, though its time has not come."""

    def describe(self) -> str:
        asked = ", ".join(
            f"{s.get('repoURL')} {s.get('path') or ''}@{r or 'HEAD'}" for s, r in zip(self.sources, self.revisions)
        )
        return f"render {asked}"


@dataclass(frozen=True, slots=True)
class Join(Action):
    """A request to refresh is answered by the render that goes on: the request is the same, its object has changed."""

    render: Render
    reason: str

    def describe(self) -> str:
        return f"join {self.render.describe()}"


def _key(sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext) -> str:
    """Charts and programs see who asks, so one source may render differently for two applications."""
    bare = [{key: value for key, value in source.items() if key != "targetRevision"} for source in sources]
    return json.dumps([bare, revisions, context.application, context.project, context.namespace], sort_keys=True)


class ManifestStore:
    """Results by (sources, revisions asked for); a resolved SHA finds the same entry. Beside them, what is read now."""

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
        """The render of this that continues; None: there is none."""
        found = self._readings.get(_key(sources, revisions, context))
        return replace(found[0], begun=next(iter(found[1]), None)) if found is not None else None

    def begin(self, action: Render, now: datetime, begun: list[datetime]) -> Reading:
        """A render continues by itself; ``begun`` gets the time when it has its turn. There are as many as their driver
        lets run and wait."""
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
        """The render that began at ``since`` has ended; the requests that it answers. A later one continues."""
        key = _key(action.sources, action.revisions, action.context)
        found = self._readings.get(key)
        if found is None or found[0].since != since:
            return (action.answers,)
        return self._readings.pop(key)[0].answers


class RenderHandler:
    """Performs :class:`Render` in the driver's worker. One that takes long answers with a :class:`Reading`."""

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
        """In the driver's thread, once there is a place."""
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
        if not isinstance(
            found, Manifests
        ):  # a defect of ours, or too many that wait: it is tried again as after errors
            found = Manifests((), (), (), now, error=f"{type(found).__name__}: {found}")
        self._keep(action, now, found, answers)

    def _keep(self, action: Render, now: datetime, found: Manifests, new: tuple[str, ...]) -> Manifests:
        before = self._store.get(action.sources, action.revisions, action.context)
        answers = (*(before.answers if before else ()), *filter(None, new))
        if before is not None and before.resolved_at > now:
            found = before  # it began later and ended before
        since = (before.failing_since if before and before.error else None) or now
        asked = action.asked or any(one and one != action.answers for one in new)
        failing = since if found.error else None
        found = replace(found, answers=answers[-MAX_ANSWERS:], failing_since=failing, asked=asked)
        self._store.put(action.sources, action.revisions, found, action.context)
        return found
