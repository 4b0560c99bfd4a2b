"""Manifests that a hub rendered, in place of those of a repository: an Application with :data:`RENDERED`.

Contents and chunks are believed only in the agent's namespace, where no tenant writes, and a content only by the
Application that it names: the annotation alone gives a tenant nothing. What is missing, damaged or empty is an error of
the source, so nothing is pruned for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from syncline.argo.content.chunks import ContentError, data_of
from syncline.argo.content.entries import Asked, asked_for, chunk_names, entries_of, manifests_of, recipient_of
from syncline.argo.content.names import RENDERED
from syncline.argo.content.sealing import NO_ONE, PrivateKey, Recipient, key_bytes
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.control.cache import OfKind, Snapshot
from syncline.gitops.application.manifests import Join, Manifests, ManifestStore, Render, RenderHandler, SourceReader
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.content import AGENT_NAMESPACE, CHUNK, CONTENT, KEY_SECRET
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, name_of, namespace_of
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

CONTENTS: Final = CONTENT.group_kind
CHUNKS: Final = CHUNK.group_kind
SECRETS: Final = GroupKind("", "Secret")
_BRINGS: Final = "the cluster's agent brings it from the hub"
BY_APP: Final = "content-of-application"
BY_CHUNK: Final = "content-of-chunk"


def _apps(content: Obj) -> Iterable[str]:
    who = recipient_of(content)
    return (f"{who.namespace}/{who.name}",) if namespace_of(content) == AGENT_NAMESPACE else ()


def _chunks(content: Obj) -> Iterable[str]:
    if namespace_of(content) != AGENT_NAMESPACE:
        return ()
    return {name for entry in entries_of(content) for name in chunk_names(entry)}


INDICES: Final = {BY_APP: OfKind(CONTENTS, _apps), BY_CHUNK: OfKind(CONTENTS, _chunks)}


def of_content(content: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the Application that a content is for."""
    return [ObjectRef(*APPLICATION.group_kind, *one.split("/", 1)) for one in _apps(content)]


def of_chunk(chunk: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the Applications whose content names a chunk."""
    if namespace_of(chunk) != AGENT_NAMESPACE:
        return ()
    return [ref for one in cache.indexed(BY_CHUNK, name_of(chunk)) for ref in of_content(one, cache)]


def with_content(cache: Snapshot, app: Obj, context: RenderContext) -> RenderContext:
    """Return the context of an Application's renders, with what is known of its content: other content, or more of it,
    is another render."""
    digest = annotations_of(app).get(RENDERED)
    if not digest:
        return context
    place = f"{namespace_of(app)}/{name_of(app)}"
    entries = [entry for one in cache.indexed(BY_APP, place) for entry in entries_of(one)]
    entry: Obj = next((one for one in entries if one.get("digest") == digest), {})
    names = chunk_names(entry)
    here = sum(cache.get(ObjectRef(*CHUNKS, AGENT_NAMESPACE, one)) is not None for one in names)
    return replace(context, content=f"{place}@{digest} {here}/{len(names) if entry else '?'}")


@dataclass(frozen=True, slots=True)
class Found:
    """What the cluster has for one Application."""

    digest: str
    who: Recipient = NO_ONE
    entries: tuple[Obj, ...] = ()
    chunks: Mapping[str, Obj] = field(default_factory=dict, repr=False)
    keys: Mapping[str, PrivateKey] = field(default_factory=dict, repr=False)


def found_of(cache: Snapshot, marker: str) -> Found:
    """Read it from the cache. ``marker``: :attr:`RenderContext.content`."""
    place, _, rest = marker.partition("@")
    digest = rest.partition(" ")[0]
    known = cache.indexed(BY_APP, place)
    content = next((one for one in known if any(each.get("digest") == digest for each in entries_of(one))), None)
    if content is None:
        return Found(digest)
    entries = tuple(entries_of(content))
    refs = {name: ObjectRef(*CHUNKS, AGENT_NAMESPACE, name) for entry in entries for name in chunk_names(entry)}
    chunks = {name: one for name, ref in refs.items() if (one := cache.get(ref)) is not None}
    secret = cache.get(ObjectRef(*SECRETS, AGENT_NAMESPACE, KEY_SECRET))
    return Found(digest, recipient_of(content), entries, chunks, _keys(secret))


def _keys(secret: Obj | None) -> dict[str, PrivateKey]:
    found = {}
    for text in (dig(secret or {}, "data") or {}).values():
        try:
            key = PrivateKey(key_bytes(text))
        except ContentError:
            continue
        found[key.public.id] = key
    return found


class ContentReader:
    """A source reader whose only sources are the contents of one Application. ``before``: its last result, which stays
    as long as it is asked the same."""

    def __init__(self, found: Found, before: Manifests | None) -> None:
        self._found, self._before = found, before

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        if self._before is not None and not self._before.error:
            return replace(self._before, resolved_at=now)
        try:
            entry = self._entry(asked_for(sources, revisions))
            objects = manifests_of(entry, self._found.who, self._chunk, self._found.keys)
        except ContentError as error:
            short = self._found.digest[:12]
            return Manifests((), (), (), now, error=f"content {short} that the hub rendered: {error}")
        digest = str(entry["digest"])
        types = tuple(map(str, entry.get("types") or ()))
        return Manifests(tuple(map(str, entry["revisions"])), objects, types, now, content=(digest,))

    def _entry(self, asked: Asked) -> Obj:
        """Return the version that is asked for: the current one, or the one of an operation that began before."""
        current = next((one for one in self._found.entries if one.get("digest") == self._found.digest), None)
        if current is None:
            raise ContentError(f"it is not on this cluster yet; {_BRINGS}")
        if current.get("sources") != asked.sources:
            raise ContentError("it is of other sources than the Application has")
        if asked.requested in (tuple(current.get("requested") or ()), tuple(current.get("revisions") or ())):
            return current
        for one in self._found.entries:
            if one.get("sources") == asked.sources and tuple(one.get("revisions") or ()) == asked.requested:
                return one
        have = ", ".join("+".join(map(str, one.get("revisions") or ())) for one in self._found.entries)
        raise ContentError(f"revision {', '.join(asked.requested)} is not on this cluster, which has {have}")

    def _chunk(self, name: str) -> bytes:
        chunk = self._found.chunks.get(name)
        if chunk is None:
            raise ContentError(f"ContentChunk {name} is not on this cluster yet; {_BRINGS}")
        return data_of(chunk)


@dataclass(frozen=True, slots=True)
class ContentFirst:
    """A reader for one look at an Application: what a hub rendered where the Application has that, else ``inner``."""

    inner: SourceReader
    cache: Snapshot

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        reader = ContentReader(found_of(self.cache, context.content), None) if context.content else self.inner
        return reader.read(sources, revisions, now, context)


class ContentHandler:
    """Performs :class:`Render`: from content where the Application has it, else by ``inner``."""

    def __init__(self, inner: Handler, cache: Snapshot, store: ManifestStore, clock: Clock, patience_s: float) -> None:
        self._inner, self._cache, self._store = inner, cache, store
        self._clock, self._patience_s = clock, patience_s

    def handle(self, action: Render | Join) -> Generator[Any, Any, Any]:
        if isinstance(action, Join) or not action.context.content:
            return (yield from self._inner.handle(action))
        before = self._store.get(action.sources, action.revisions, action.context)
        reader = ContentReader(found_of(self._cache, action.context.content), before)
        handler = RenderHandler(reader, self._store, self._clock, self._patience_s)
        return (yield from handler.handle(action))
