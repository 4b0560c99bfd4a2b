"""The versioned store of the embedded cluster: one revision counter, current objects, a bounded history of events.

``api`` reads, writes and watches; ``disk`` fills it at start and follows it through :meth:`Store.subscribe`. Objects
are stored encoded; the store knows no verbs, users or kinds, and does no I/O. It belongs to one thread: the caller's
event loop (or virtual driver) is the lock.

With a disk, a write is visible to reads at once, but watch cursors deliver it only after ``mark_durable``; the HTTP
server delays the writer's response in the same way. So no client sees what a crash could undo, nor what
:meth:`Store.take_back` undoes when the disk is full.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from syncline.kube.errors import InternalError
from syncline.kube.objects import Obj, labels_of, uid_of
from syncline.kube.text.jsontext import in_pieces

HISTORY_LIMIT_EVENTS = 20_000
"""Retained events of all resources: an hour of a busy laptop cluster. Watchers further behind list again (410)."""

HISTORY_LIMIT_BYTES = 128 * 2**20
"""Retained encoded bytes, so that a few thousand objects of the maximum size cannot exhaust memory."""

CURSOR_LIMIT_EVENTS = HISTORY_LIMIT_EVENTS
"""Undelivered events of one watcher. A watcher behind the history would have to list again anyway."""


class Key(NamedTuple):
    """``resource`` is ``group/plural`` (``apps/deployments``, core ``/pods``), without version."""

    resource: str
    namespace: str
    name: str


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class StoreConflict(Exception):
    """A write expected another revision than it found; 0 means "does not exist"."""

    def __init__(self, key: Key, expected: int, found: int) -> None:
        self.key, self.expected, self.found = key, expected, found
        super().__init__(f"{key.resource} {key.namespace}/{key.name} is at revision {found}, not {expected}")


class Compacted(Exception):
    """The history no longer includes ``requested``; the oldest available revision is ``compacted``."""

    def __init__(self, requested: int, compacted: int) -> None:
        self.requested, self.compacted = requested, compacted
        super().__init__(f"revision {requested} is older than the history, which begins after {compacted}")


MAX_UNDONE = 64
"""Number of undo operations whose revisions are remembered."""


class WriteRefused(InternalError):
    """The disk takes no writes now; nothing has changed. 500 like etcd's ``mvcc: database space exceeded``, without
    Retry-After: clients would retry ten times unnoticed, and a full disk lasts longer than a second."""


class Sink(Protocol):
    """Persists events: the disk."""

    def admit(self, *, removal: bool) -> None:
        """Raise :class:`WriteRefused` before anything changes."""
        ...

    def append(self, event: Event) -> None: ...

    def discard(self) -> None:
        """Drop appended events that are not durable, since they were undone."""
        ...


class _Metadata(msgspec.Struct):
    uid: str = ""
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decode_head = msgspec.json.Decoder(_Head).decode
_encode = msgspec.json.Encoder().encode


Encoded: TypeAlias = tuple[bytes, bytes]
"""An object's JSON before and after the digits of its resourceVersion."""


def encode_around_version(obj: Obj) -> Encoded:
    """Encode an object as :meth:`Stored.of` does, without the digits of its resourceVersion."""
    metadata = {**obj.get("metadata", {}), "resourceVersion": ""}
    before, behind = _split({**obj, "metadata": metadata}, "metadata")
    inner, outer = _split(metadata, "resourceVersion")
    head = b",".join(
        part for part in (before, b'"metadata":{' + (inner and inner + b",") + b'"resourceVersion":"') if part
    )
    return b"{" + head, b'"' + (outer and b"," + outer) + b"}" + (behind and b"," + behind) + b"}"


def _split(obj: Obj, name: str) -> tuple[bytes, bytes]:
    """Return the encoded members before and after one of them."""
    names = list(obj)
    at = names.index(name)
    first, second = (_encode({each: obj[each] for each in part})[1:-1] for part in (names[:at], names[at + 1 :]))
    return first, second


class Stored(msgspec.Struct, frozen=True, eq=False):
    """One object at one revision. ``raw`` is its JSON including ``metadata.resourceVersion``."""

    key: Key
    revision: int
    raw: bytes
    uid: str
    labels: dict[str, str]
    _decoded: Obj | None = None

    @property
    def obj(self) -> Obj:
        """The object, decoded on demand and cached while it is current. Read-only."""
        obj = self._decoded
        if obj is None:
            obj = in_pieces(self.raw)
            msgspec.structs.force_setattr(self, "_decoded", obj)
        return obj

    def forget(self) -> None:
        """Drop the decoded form: it is six times larger than the bytes, and history is rarely read."""
        msgspec.structs.force_setattr(self, "_decoded", None)

    @classmethod
    def of(cls, key: Key, revision: int, obj: Obj, encoded: Encoded | None = None) -> Stored:
        """Encode ``obj`` with its new resourceVersion, without mutating it. ``encoded``: the earlier result of
        :func:`encode_around_version`."""
        own = {**obj, "metadata": {**obj.get("metadata", {}), "resourceVersion": str(revision)}}
        raw = _encode(own) if encoded is None else b"%b%d%b" % (encoded[0], revision, encoded[1])
        return cls(key, revision, raw, uid_of(own), labels_of(own), own)

    @classmethod
    def load(cls, key: Key, revision: int, raw: bytes) -> Stored:
        """Return the object of bytes that :meth:`of` encoded."""
        head = _decode_head(raw).metadata
        return cls(key, revision, raw, head.uid, head.labels or {})


class Event(msgspec.Struct, frozen=True, eq=False):
    """One change. For DELETED, ``stored`` is the last state, stamped with the revision of the deletion."""

    revision: int
    type: EventType
    stored: Stored
    previous: Stored | None


Page: TypeAlias = list[Stored]


class Cursor:
    """One watcher's queue. Take until empty, then wait for ``on_ready``; ``overrun`` requires a new list and watch."""

    __slots__ = ("_armed", "_closed", "_key", "_pending", "_store", "_taken", "on_ready", "overrun")

    def __init__(self, store: Store, key: tuple[str, str], since: int, backlog: Iterable[Event]) -> None:
        self.on_ready: Callable[[], None] | None = None
        self.overrun = False
        self._store = store
        self._key = key
        self._pending = deque(backlog)
        self._taken = since
        self._armed = True
        self._closed = False

    def take(self, limit: int = 1000) -> list[Event]:
        """Return at most ``limit`` durable events in order of revision; empty if there are none now."""
        taken: list[Event] = []
        pending, durable = self._pending, self._store.committed
        while pending and len(taken) < limit and pending[0].revision <= durable:
            taken.append(pending.popleft())
        if taken:
            self._taken = taken[-1].revision
        self._armed = not pending or pending[0].revision > durable
        return taken

    @property
    def revision(self) -> int:
        """The revision up to which all events were taken, for bookmarks."""
        if (self._pending and self._pending[0].revision <= self._store.committed) or self.ended:
            return self._taken
        return max(self._taken, self._store.committed)

    @property
    def ended(self) -> bool:
        """Return True if the cursor is closed, or overrun and empty."""
        return self._closed or (self.overrun and not self._pending)

    def close(self) -> None:
        """Stop listening; idempotent."""
        if not self._closed:
            self._closed = True
            self._pending.clear()
            self._store._drop(self._key, self)

    def _offer(self, event: Event) -> None:
        if self.overrun:
            return
        if len(self._pending) >= CURSOR_LIMIT_EVENTS:
            self.overrun = True
            self._store._drop(self._key, self)
            self._wake()
            return
        self._pending.append(event)

    def _withdraw(self, revision: int) -> None:
        while self._pending and self._pending[-1].revision > revision:
            self._pending.pop()
        self._taken = min(self._taken, revision)

    def _wake_if_ready(self) -> None:
        if self._pending and self._pending[0].revision <= self._store.committed:
            self._wake()

    def _wake(self) -> None:
        if self._armed:
            self._armed = False
            if self.on_ready is not None:
                self.on_ready()


class _Shelf:
    """The objects of one resource in one namespace, with sorted names."""

    __slots__ = ("items", "names")

    def __init__(self) -> None:
        self.items: dict[str, Stored] = {}
        self.names: list[str] = []

    def put(self, stored: Stored) -> None:
        name = stored.key.name
        if name not in self.items:
            insort(self.names, name)
        self.items[name] = stored

    def remove(self, name: str) -> None:
        del self.items[name]
        del self.names[bisect_left(self.names, name)]


class _Collection:
    """One resource: shelves by namespace, and the retained events in order."""

    __slots__ = ("count", "events", "namespaces", "shelves")

    def __init__(self) -> None:
        self.shelves: dict[str, _Shelf] = {}
        self.namespaces: list[str] = []
        self.events: list[Event] = []
        self.count = 0

    def put(self, stored: Stored) -> None:
        namespace = stored.key.namespace
        shelf = self.shelves.get(namespace)
        if shelf is None:
            shelf = self.shelves[namespace] = _Shelf()
            insort(self.namespaces, namespace)
        self.count -= len(shelf.items)
        shelf.put(stored)
        self.count += len(shelf.items)

    def remove(self, key: Key) -> None:
        shelf = self.shelves[key.namespace]
        shelf.remove(key.name)
        self.count -= 1
        if not shelf.items:
            del self.shelves[key.namespace]
            del self.namespaces[bisect_left(self.namespaces, key.namespace)]

    def walk(self, namespace: str, after: tuple[str, str] | None) -> Iterator[Stored]:
        """Yield objects by (namespace, name) after position ``after``; empty ``namespace`` means all."""
        if namespace:
            spaces = [namespace] if namespace in self.shelves else []
        else:
            spaces = self.namespaces[bisect_left(self.namespaces, after[0]) if after else 0 :]
        for space in spaces:
            shelf = self.shelves[space]
            start = bisect_right(shelf.names, after[1]) if after and after[0] == space else 0
            yield from map(shelf.items.__getitem__, shelf.names[start:])

    def events_after(self, revision: int) -> Iterable[Event]:
        events = self.events
        if not events or events[-1].revision <= revision:
            return ()
        return events[bisect_right(events, revision, key=attrgetter("revision")) :]

    def trim(self, revision: int) -> None:
        del self.events[: bisect_right(self.events, revision, key=attrgetter("revision"))]


class Store:
    """The store. ``committed`` is the newest durable revision; without a disk it equals ``revision``."""

    def __init__(self, *, durable: bool = False) -> None:
        """``durable=True``: a disk calls :meth:`mark_durable`, and cursors wait for it."""
        self.revision = 0
        self.compacted = 0
        self.listable = 0
        """Oldest revision that lists can show (:meth:`close_lists`); watches may begin at ``compacted``."""
        self.committed = 0
        self._durable = durable
        self._collections: dict[str, _Collection] = {}
        self._cursors: dict[tuple[str, str], dict[Cursor, None]] = {}
        self._waiting: dict[Cursor, None] = {}
        self._subscribers: list[Callable[[Event], None]] = []
        self._sink: Sink | None = None
        self._given = 0
        self._undone: deque[range] = deque(maxlen=MAX_UNDONE)
        self._undurable: deque[Event] = deque()
        self._history: deque[tuple[int, str, int]] = deque()
        self._history_bytes = 0

    def restore(self, revision: int, objects: Iterable[Stored]) -> None:
        """Fill an empty store from a disk. Earlier history is lost: watchers of it must list again."""
        assert self.revision == 0, "only an empty store is restored"
        for stored in objects:
            self._collection(stored.key.resource).put(stored)
        self.revision = self.committed = self.compacted = self._given = revision

    # -- reading --------------------------------------------------------------------------------------------------

    def get(self, key: Key) -> Stored | None:
        collection = self._collections.get(key.resource)
        shelf = collection.shelves.get(key.namespace) if collection else None
        return shelf.items.get(key.name) if shelf else None

    def changed(self, resource: str, since: int) -> bool:
        """Return whether an object of the resource may have changed after revision ``since``."""
        return since < self.compacted or bool(self._collection(resource).events_after(since))

    def resources(self) -> list[str]:
        """Return the resources that have objects, sorted."""
        return sorted(resource for resource, collection in self._collections.items() if collection.count)

    def count(self, resource: str, namespace: str = "") -> int:
        """Return the number of objects without reading them; empty ``namespace`` means all."""
        collection = self._collections.get(resource)
        if collection is None:
            return 0
        if not namespace:
            return collection.count
        shelf = collection.shelves.get(namespace)
        return len(shelf.items) if shelf else 0

    def list(self, resource: str, namespace: str = "") -> list[Stored]:
        """Return the current objects by (namespace, name)."""
        collection = self._collections.get(resource)
        return list(collection.walk(namespace, None)) if collection else []

    def list_page(
        self,
        resource: str,
        namespace: str = "",
        *,
        after: tuple[str, str] | None = None,
        limit: int = 0,
        at: int | None = None,
    ) -> Page:
        """Return at most ``limit`` (0: all) objects after ``after``, at revision ``at`` (None: current).

        So all pages of a chunked list show one revision. Raises :class:`Compacted` if ``at`` is too old.
        """
        collection = self._collections.get(resource)
        if at is not None and (at < max(self.compacted, self.listable) or self.is_undone(at)):
            raise Compacted(at, max(self.compacted, self.listable))
        if collection is None:
            return []
        then = _states_before(collection.events_after(at)) if at is not None else {}
        walk = collection.walk(namespace, after)
        if then:
            walk = _rewound(walk, then, namespace, after)
        return list(islice(walk, limit or None))

    # -- writing --------------------------------------------------------------------------------------------------

    def put(self, key: Key, obj: Obj, *, expect: int | None, encoded: Encoded | None = None) -> Stored:
        """Create or replace an object. ``expect``: 0 if it must not exist, n if it must be at revision n, None for any
        state. ``encoded``: the result of :func:`encode_around_version` for ``obj``.

        Raises :class:`StoreConflict` or :class:`WriteRefused`; then nothing has changed and no revision was used.
        """
        previous = self._expect(key, expect)
        if self._sink is not None:
            self._sink.admit(removal=False)
        stored = Stored.of(key, self._given + 1, obj, encoded)
        self._collection(key.resource).put(stored)
        kind = EventType.ADDED if previous is None else EventType.MODIFIED
        self._publish(Event(stored.revision, kind, stored, previous))
        return stored

    def delete(self, key: Key, *, expect: int | None, last: Obj | None = None) -> Event:
        """Delete an existing object; raise :class:`StoreConflict` (found 0 if it does not exist).

        ``last`` is the final state that watchers see (None: the stored one).
        """
        previous = self._expect(key, expect)
        if previous is None:
            raise StoreConflict(key, expect or 0, 0)
        if self._sink is not None:
            self._sink.admit(removal=True)
        stored = Stored.of(key, self._given + 1, previous.obj if last is None else last)
        self._collection(key.resource).remove(key)
        event = Event(stored.revision, EventType.DELETED, stored, previous)
        self._publish(event)
        return event

    def _expect(self, key: Key, expect: int | None) -> Stored | None:
        previous = self.get(key)
        found = previous.revision if previous else 0
        if expect is not None and expect != found:
            raise StoreConflict(key, expect, found)
        return previous

    def _publish(self, event: Event) -> None:
        self.revision = self._given = event.revision
        resource, namespace, _ = event.stored.key
        self._collection(resource).events.append(event)
        self._remember(event)
        if not self._durable:
            self.committed = event.revision
        else:
            self._undurable.append(event)
        if self._sink is not None:
            self._sink.append(event)
        for subscriber in self._subscribers:
            subscriber(event)
        for key in ((resource, ""), (resource, namespace)) if namespace else ((resource, ""),):
            for cursor in list(self._cursors.get(key, ())):
                cursor._offer(event)
                self._notify(cursor)
        if event.previous is not None:
            event.previous.forget()

    def _notify(self, cursor: Cursor) -> None:
        if self._durable:
            self._waiting[cursor] = None
        else:
            cursor._wake_if_ready()

    def _collection(self, resource: str) -> _Collection:
        collection = self._collections.get(resource)
        if collection is None:
            collection = self._collections[resource] = _Collection()
        return collection

    # -- watching -------------------------------------------------------------------------------------------------

    def watch(self, resource: str, namespace: str = "", *, since: int) -> Cursor:
        """Return a cursor of the events after revision ``since``; raise :class:`Compacted`. Empty ``namespace`` means
        all."""
        if since < self.compacted or self.is_undone(since):
            raise Compacted(since, self.compacted)
        backlog = self._collection(resource).events_after(since)
        if namespace:
            backlog = (event for event in backlog if event.stored.key.namespace == namespace)
        cursor = Cursor(self, (resource, namespace), since, backlog)
        self._cursors.setdefault(cursor._key, {})[cursor] = None
        if self._durable:
            self._waiting[cursor] = None
        return cursor

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        """Call ``subscriber`` with every event, in order, during the write. It must not write."""
        self._subscribers.append(subscriber)

    def attach(self, sink: Sink) -> None:
        """Send every later event to ``sink``, and let it admit each write first."""
        assert self._durable, "a store with a disk is made durable"
        self._sink = sink

    def take_back(self) -> int:
        """Undo all writes that are not durable, the last first; return their number.

        Subscribers get the reverse events. Cursors had none of these events; but in-process clients that listed or
        wrote have seen them, and must list again. The revisions are not reused.
        """
        undone, self._undurable = self._undurable, deque()
        if self._undone and self._undone[-1].start > self.committed:
            self._undone.pop()
        self._undone.append(range(self.committed + 1, self._given + 1))
        self.revision = self.committed
        self._forget_after(self.committed)
        for event in reversed(undone):
            key, previous = event.stored.key, event.previous
            if previous is None:
                self._collection(key.resource).remove(key)
                opposite = Event(event.revision, EventType.DELETED, event.stored, event.stored)
            else:
                self._collection(key.resource).put(previous)
                gone = event.type is EventType.DELETED
                kind = EventType.ADDED if gone else EventType.MODIFIED
                opposite = Event(event.revision, kind, previous, None if gone else event.stored)
            for subscriber in self._subscribers:
                subscriber(opposite)
        if self._sink is not None:
            self._sink.discard()
        return len(undone)

    def is_undone(self, revision: int) -> bool:
        """Return whether :meth:`take_back` undid this write; it remembers the last :data:`MAX_UNDONE` calls."""
        return any(revision in undone for undone in self._undone)

    def _forget_after(self, revision: int) -> None:
        while self._history and self._history[-1][0] > revision:
            _, resource, size = self._history.pop()
            self._history_bytes -= size
            self._collections[resource].events.pop()
        for watchers in self._cursors.values():
            for cursor in watchers:
                cursor._withdraw(revision)
        self.compacted = min(self.compacted, revision)
        self.listable = min(self.listable, revision)

    def mark_durable(self, revision: int) -> None:
        """Record that all writes up to ``revision`` are on disk, and wake the cursors that waited for it."""
        assert self.committed <= revision <= self.revision, f"{self.committed} <= {revision} <= {self.revision}"
        self.committed = revision
        while self._undurable and self._undurable[0].revision <= revision:
            self._undurable.popleft()
        waiting, self._waiting = self._waiting, {}
        for cursor in waiting:
            cursor._wake_if_ready()
            if cursor._pending and not cursor._closed and cursor._pending[-1].revision > revision:
                self._waiting[cursor] = None

    def _drop(self, key: tuple[str, str], cursor: Cursor) -> None:
        watchers = self._cursors.get(key, {})
        watchers.pop(cursor, None)
        self._waiting.pop(cursor, None)
        if not watchers:
            self._cursors.pop(key, None)

    # -- history --------------------------------------------------------------------------------------------------

    def compact(self, revision: int) -> None:
        """Drop the events up to ``revision``; lists and watches from before it raise :class:`Compacted`."""
        assert revision <= self.revision, f"cannot compact {revision}, the store is at {self.revision}"
        touched: dict[str, None] = {}
        while self._history and self._history[0][0] <= revision:
            _, resource, size = self._history.popleft()
            self._history_bytes -= size
            touched[resource] = None
        for resource in touched:
            self._collections[resource].trim(revision)
        self.compacted = max(self.compacted, revision)

    def close_lists(self, revision: int) -> None:
        """Disable lists at revisions before ``revision``, which can no longer be shown completely."""
        assert revision <= self.revision, f"the store is at {self.revision}, not yet at {revision}"
        self.listable = max(self.listable, revision)

    def _remember(self, event: Event) -> None:
        size = len(event.stored.raw)
        self._history.append((event.revision, event.stored.key.resource, size))
        self._history_bytes += size
        while len(self._history) > HISTORY_LIMIT_EVENTS or self._history_bytes > HISTORY_LIMIT_BYTES:
            # Drop a tenth at once: cutting the head of a list costs its length.
            drop = max(1, len(self._history) // 10)
            self.compact(self._history[drop - 1][0])


def _states_before(events: Iterable[Event]) -> dict[tuple[str, str], Stored | None]:
    """Return the state of each object in ``events`` before the first of them (None: it did not exist)."""
    states: dict[tuple[str, str], Stored | None] = {}
    for event in events:
        states.setdefault(event.stored.key[1:], event.previous)
    return states


def _rewound(
    walk: Iterable[Stored],
    then: dict[tuple[str, str], Stored | None],
    namespace: str,
    after: tuple[str, str] | None,
) -> Iterator[Stored]:
    untouched = [stored for stored in walk if stored.key[1:] not in then]
    earlier = [
        stored
        for (space, name), stored in then.items()
        if stored is not None and namespace in ("", space) and (after is None or (space, name) > after)
    ]
    return iter(sorted(untouched + earlier, key=lambda stored: stored.key))
