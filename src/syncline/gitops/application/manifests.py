"""What rendering produced, kept for observers.

The performer of :class:`Render` writes here, ``observe`` reads. It is a cache, not state: lost with the process, filled
again by the next pass. Bounded by the number of entries.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, runtime_checkable

from syncline.base.action import Work
from syncline.base.clock import Clock
from syncline.kube.objects import Obj
from syncline.kube.yaml import YamlError, load
from syncline.sources.environment import NO_CONTEXT, RenderContext

__all__ = [
    "MAX_KEPT",
    "ManifestStore",
    "Manifests",
    "PollingReader",
    "Render",
    "RenderPerformer",
    "SourceReader",
    "local_manifests",
]

MAX_KEPT = 20_000
"""Results kept. An application needs two, by what it asks for and by commit; one whose result was thrown out renders
again, so the bound has to lie well above twice the applications that one process serves (a few thousand)."""
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
    """When the source could be read last, or was first looked at; None: it can be read."""
    warnings: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """Requests to refresh that this render or one before it answered, newest last (:data:`MAX_ANSWERS`)."""

    content: tuple[str, ...] = ()
    """Names what was read of each source: equal names, equal objects. Empty where the reader cannot say."""

    @property
    def revision(self) -> str:
        """The commit of a single source; empty for several, as upstream."""
        return self.revisions[0] if len(self.revisions) == 1 else ""


def local_manifests(texts: Sequence[str], revisions: tuple[str, ...], now: datetime) -> Manifests:
    """Manifests that came with a request (``operation.sync.manifests``), instead of a render; never raises."""
    objects: list[Obj] = []
    for number, text in enumerate(texts):
        place = f"operation.sync.manifests[{number}]"
        try:
            value = load(text, file=place)
        except YamlError as error:
            return Manifests(revisions, (), (), now, error=f"{place}: {error}")
        if not isinstance(value, dict) or not value.get("apiVersion") or not value.get("kind"):
            error_text = f"{place}: must be one object with apiVersion and kind"
            return Manifests(revisions, (), (), now, error=error_text)
        objects.append(value)
    return Manifests(revisions, tuple(objects), (), now)


class SourceReader(Protocol):
    """Turns sources at revisions into manifests; blocking. Assembly gives the one made of ``sources``."""

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        """Never raises for what a repository may contain: the error is in the answer."""
        ...


@runtime_checkable
class PollingReader(Protocol):
    """A reader that can spare questions to remotes where nobody waits for the answer."""

    def poll(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        since: datetime,
    ) -> Manifests: ...


@dataclass(frozen=True, slots=True)
class Render:
    """Resolve ``revisions`` (as asked: branch, tag, SHA, empty for HEAD) and render the sources there."""

    app: str
    sources: tuple[Obj, ...]
    revisions: tuple[str, ...]
    reason: str
    answers: str = ""
    """The request to refresh that this is for, empty for none."""
    context: RenderContext = NO_CONTEXT
    may_be_old_s: float = 0.0
    """Seconds: nobody waits for a change, so what another Application was told so long ago will do."""

    def describe(self) -> str:
        asked = ", ".join(
            f"{s.get('repoURL')} {s.get('path') or ''}@{r or 'HEAD'}" for s, r in zip(self.sources, self.revisions)
        )
        return f"render {asked}"


def _key(sources: tuple[Obj, ...], revisions: tuple[str, ...], context: RenderContext) -> str:
    """Charts and programs see who asks, so one source may render differently for two applications."""
    bare = [{key: value for key, value in source.items() if key != "targetRevision"} for source in sources]
    return json.dumps([bare, revisions, context.application, context.project, context.namespace], sort_keys=True)


class ManifestStore:
    """Results by (sources, revisions asked for); a resolved SHA finds the same entry."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._kept: OrderedDict[str, Manifests] = OrderedDict()
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


class RenderPerformer:
    """Performs :class:`Render` in the driver's worker."""

    def __init__(self, reader: SourceReader, store: ManifestStore, clock: Clock) -> None:
        self._reader = reader
        self._store = store
        self._clock = clock

    def perform(self, action: Render) -> Generator[Work, Any, Manifests]:
        now = self._clock.now()
        reader = self._reader
        read = reader.read
        if action.may_be_old_s and isinstance(reader, PollingReader):
            read = partial(reader.poll, since=now - timedelta(seconds=action.may_be_old_s))
        found: Manifests = yield Work(
            action.describe(), lambda: read(action.sources, action.revisions, now, action.context)
        )
        before = self._store.get(action.sources, action.revisions, action.context)
        answers = (*(before.answers if before else ()), *((action.answers,) if action.answers else ()))
        since = (before.failing_since if before and before.error else None) or now
        found = replace(found, answers=answers[-MAX_ANSWERS:], failing_since=since if found.error else None)
        self._store.put(action.sources, action.revisions, found, action.context)
        return found
