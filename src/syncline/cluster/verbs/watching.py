"""watch: a stream of encoded events.

``api`` calls it; it creates a :class:`WatchStream` that the HTTP server or an in-process controller reads. Events carry
the stored bytes; objects are decoded only for field selectors, other versions and tables. Rules of Kubernetes' watch
cache: an object that starts to match is ADDED, one that stops is DELETED with its last matching content.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from syncline.cluster.serving.answers import encode, shaped
from syncline.cluster.serving.negotiate import Shape
from syncline.cluster.storage.store import Compacted, Cursor, Event, EventType, Stored
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import ListOptions, list_options
from syncline.cluster.verbs.read import Matcher
from syncline.kube.client import Response
from syncline.kube.errors import ApiError, Gone
from syncline.kube.objects import Obj

BOOKMARK_PERIOD = timedelta(seconds=60)
"""Interval of bookmarks on a quiet watch that requests them, as in Kubernetes' watch cache."""

T = TypeVar("T")

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def watch(x: Exchange) -> Response:
    options = list_options(x.request.query, watch=True, fits=x.resource.fields.check)
    if x.route.watching and x.route.name:
        options = _only(options, x.route.name)
    matcher = Matcher(x.resource, options.labels, options.fields)
    if x.accepted.shape is Shape.METADATA_LIST:
        # An event is not a list: Kubernetes ends such a watch before its first event.
        return Response(200, stream=WatchStream(x, None, None, ListOptions()))
    try:
        stream = _start(x, options, matcher)
    except Compacted as compacted:
        return Response(200, stream=_expired(x, compacted.requested, compacted.compacted))
    return Response(200, stream=stream)


def _only(options: ListOptions, name: str) -> ListOptions:
    from dataclasses import replace

    from syncline.kube.selectors import FieldSelector, FieldTerm

    return replace(options, fields=FieldSelector((*options.fields.terms, FieldTerm("metadata.name", name))))


def _start(x: Exchange, options: ListOptions, matcher: Matcher) -> WatchStream:
    store, resource = x.store, x.resource
    from_now = options.revision in ("", "0")
    initial = options.initial_events if options.initial_events is not None else from_now
    since = store.revision if from_now or options.initial_events else int(options.revision)
    cursor = store.watch(resource.storage, x.namespace, since=since)
    stream = WatchStream(x, cursor, matcher, options)
    if initial:
        stream.begin_with(stored for stored in store.list(resource.storage, x.namespace) if matcher(stored))
    if options.initial_events and options.bookmarks:
        stream.bookmark({INITIAL_EVENTS_END: "true"})
    return stream


def _expired(x: Exchange, requested: int, compacted: int) -> WatchStream:
    stream = WatchStream(x, None, None, ListOptions())
    stream.fail(Gone(f"too old resource version: {requested} ({compacted})").to_status())
    return stream


class WatchStream:
    """Implements ``kube.client.Stream``. The driver calls :meth:`tick` at ``deadline``, unless it is None."""

    def __init__(self, x: Exchange, cursor: Cursor | None, matcher: Matcher | None, options: ListOptions) -> None:
        self._x = x
        self._cursor = cursor
        self._matcher = matcher
        self._waiting: deque[bytes] = deque()
        self._bookmarks = options.bookmarks
        self._last_bookmark = x.now
        self._sent = 0
        self._over = cursor is None
        self.deadline = None if options.timeout_s is None else x.now + timedelta(seconds=options.timeout_s)
        self._plain = x.accepted.plain
        self._headed = False
        """A table with column definitions was sent."""

    # -- filling --------------------------------------------------------------------------------------------------

    def begin_with(self, stored: Iterable[Stored]) -> None:
        self._waiting.extend(self._frame(EventType.ADDED, one) for one in stored)

    def bookmark(self, annotations: Obj | None = None) -> None:
        revision = self._cursor.revision if self._cursor else 0
        metadata: Obj = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        info = self._x.resource.info
        body: Obj = {"kind": info.kind, "apiVersion": info.api_version, "metadata": metadata}
        if not self._plain:
            body = self._shaped(body)
        self._waiting.append(encode({"type": "BOOKMARK", "object": body}))

    def fail(self, status: Obj) -> None:
        self._waiting.append(encode({"type": "ERROR", "object": status}))
        self._end()

    # -- Stream ---------------------------------------------------------------------------------------------------

    @property
    def on_ready(self) -> Callable[[], None] | None:
        return self._cursor.on_ready if self._cursor else None

    @on_ready.setter
    def on_ready(self, wake: Callable[[], None] | None) -> None:
        if self._cursor is not None:
            self._cursor.on_ready = wake
        if wake is not None and (self._waiting or self._over):
            wake()

    def take(self, limit: int = 1000) -> list[bytes]:
        return self._drain(limit, self._frame, bytes)

    def take_objects(self, limit: int = 1000) -> list[tuple[str, Obj]]:
        """Return type and object of each event, for in-process readers: the store's decoded objects where it has them,
        so nothing is encoded or decoded twice. Read-only."""
        return self._drain(limit, self._typed, _unframed)

    def _drain(self, limit: int, made: Callable[[EventType, Stored], T], read: Callable[[bytes], T]) -> list[T]:
        taken: list[T] = []
        waiting = self._waiting
        while waiting and len(taken) < limit:
            taken.append(read(waiting.popleft()))
        cursor = self._cursor
        while cursor is not None and not self._over and len(taken) < limit:
            events = cursor.take(limit - len(taken))
            if not events:
                self._note_overrun(cursor)
                break
            try:
                taken.extend(made(*observed) for observed in map(self._event, events) if observed is not None)
            except ApiError as error:  # The object cannot be converted.
                self.fail(error.to_status())
        while waiting and len(taken) < limit:
            taken.append(read(waiting.popleft()))
        return taken

    def _note_overrun(self, cursor: Cursor) -> None:
        if cursor.overrun and not self._over:
            self.fail(Gone("too old resource version: the watcher fell too far behind").to_status())

    def tick(self, now: datetime) -> None:
        """End the watch when its time is over; send a requested bookmark when it is due."""
        if self._over:
            return
        if self.deadline is not None and now >= self.deadline:
            self._end()
            return
        if self._bookmarks and now - self._last_bookmark >= BOOKMARK_PERIOD and not self._waiting:
            self._last_bookmark = now
            self.bookmark()
            self._wake()

    @property
    def ended(self) -> bool:
        return self._over and not self._waiting

    def close(self) -> None:
        self._waiting.clear()
        self._end()

    def _end(self) -> None:
        if self._over and self._cursor is None:
            return
        self._over = True
        if self._cursor is not None:
            self._wake()
            self._cursor.close()

    def _wake(self) -> None:
        wake = self.on_ready
        if wake is not None:
            wake()

    # -- events ---------------------------------------------------------------------------------------------------

    def _event(self, event: Event) -> tuple[EventType, Stored] | None:
        """Return the event as this watcher sees it; None if it does not."""
        matcher = self._matcher
        assert matcher is not None, "a stream with a cursor has a matcher"
        if matcher.everything:
            return event.type, event.stored
        before = event.previous is not None and matcher(event.previous)
        if event.type is EventType.DELETED:
            return (EventType.DELETED, event.stored) if before else None
        now = matcher(event.stored)
        if now:
            return (EventType.MODIFIED if before else EventType.ADDED), event.stored
        if before and event.previous is not None:
            last = Stored.of(event.previous.key, event.revision, event.previous.obj)
            return EventType.DELETED, last
        return None

    def _frame(self, kind: EventType, stored: Stored) -> bytes:
        resource = self._x.resource
        if self._plain and resource.shown_as_stored(stored):
            return b'{"type":"%b","object":%b}' % (kind.value.encode(), stored.raw)
        shown = resource.shown(stored.obj)
        return encode({"type": kind.value, "object": shown if self._plain else self._shaped(shown)})

    def _shaped(self, obj: Obj) -> Obj:
        headed, self._headed = not self._headed, True
        return shaped(self._x, obj, headed=headed)

    def _typed(self, kind: EventType, stored: Stored) -> tuple[str, Obj]:
        """Return type and object; the decoded form is cached only for current objects."""
        if not self._plain:
            return _unframed(self._frame(kind, stored))
        kept = stored._decoded is not None or self._x.store.get(stored.key) is stored
        obj: Obj = stored.obj if kept else msgspec.json.decode(stored.raw)
        return kind.value, obj if self._x.resource.shown_as_stored(stored) else self._x.resource.shown(obj)


def _unframed(frame: bytes) -> tuple[str, Obj]:
    event = msgspec.json.decode(frame)
    return event["type"], event["object"]
