"""Keeps one kind of the cache equal to the server's: :class:`Informer`, a state machine without a socket.

It returns list and watch requests, takes their responses and returns the changes. Drivers own the transport. A watch
that ends is resumed from the last resourceVersion; after 410 (too old) the kind is listed again.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from syncline.control.cache import Cache
from syncline.kube import client
from syncline.kube.client import Batch, Request, Response
from syncline.kube.errors import ApiError, Unanswered, error_from_status
from syncline.kube.objects import GroupKind, Obj, ResourceInfo, meta, name_of, namespace_of, resource_version

CRDS = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
LOOK_S = 600.0
"""Seconds between two looks at what a server serves, where kinds are missing and their definitions are not watched."""
Part = tuple[GroupKind, str]
"""What one informer watches: a kind, and the namespace if it has one for each."""
CHANGES = ("ADDED", "MODIFIED", "DELETED")
SHOWN_BYTES = 24
"""Shown bytes of an invalid event: enough to tell HTML from JSON, too few for the value of a Secret."""
MAX_PAGES = 1000
"""The most requests for one list, including those for pages whose token expired."""


class Change(msgspec.Struct, frozen=True):
    """A change of one object: ``old`` is None if it was added, ``new`` is None if it was deleted."""

    old: Obj | None
    new: Obj | None


@dataclass(frozen=True, slots=True)
class Scope:
    """The objects of a kind that are watched: those of a namespace (empty: all), by a field selector. ``metadata``:
    only who they are and in which version is requested and cached (:data:`IDENTITY`). ``lean``: managedFields are not
    cached; only for objects that are never written as a whole. ``part``: the kind is watched namespace by namespace,
    and this is the one of ``namespace``; else the scope is all of the kind that is watched."""

    namespace: str = ""
    fields: str = ""
    metadata: bool = False
    lean: bool = False
    part: bool = False


WHOLE = Scope()
IDENTITY = ("creationTimestamp", "name", "namespace", "uid", "resourceVersion", "generation")
"""The metadata that is cached of an object whose kind is watched for its changes only."""


class Informer:
    """Lists and watches one kind. Objects outside ``scope`` are not cached."""

    def __init__(self, info: ResourceInfo, cache: Cache, scope: Scope = WHOLE) -> None:
        self.info = info
        self._kind = info.group_kind
        self._scope = scope
        self._cache = cache
        self._version = ""
        self.space = scope.namespace if scope.part else ""
        """The namespace, if others of the kind are watched by other informers."""

    @property
    def needs_list(self) -> bool:
        """True before the first list and after a watch that was too old."""
        return not self._version

    def list_request(self) -> Request:
        scope = self._scope
        return client.list_(self.info, scope.namespace, field_selector=scope.fields, metadata=scope.metadata)

    def whole_list(self) -> Generator[Request, Response, Obj]:
        """Request a list with all its pages; some proxies split lists unasked. Start again if a page token expires.
        Raises ApiError."""
        pages: list[Obj] = []
        token, first = "", self.list_request()
        for _ in range(MAX_PAGES):
            answer = yield replace(first, query={**first.query, "continue": token}) if token else first
            if token and answer.status == 410:
                pages, token = [], ""
                continue
            body: Obj = answer.or_raise()
            _list_of(body)
            pages.append(body)
            token = str(body["metadata"].get("continue") or "")
            if not token:
                return body if len(pages) == 1 else body | {"items": [one for each in pages for one in each["items"]]}
        raise Unanswered(f"the list of {self.info.group_resource} did not end after {MAX_PAGES} pages")

    def watch_request(self) -> Request:
        scope = self._scope
        return client.watch(
            self.info,
            scope.namespace,
            resource_version=self._version,
            field_selector=scope.fields,
            metadata=scope.metadata,
        )

    def relist(self) -> None:
        """Make the next request a list."""
        self._version = ""

    def listed(self, body: Obj) -> list[Change]:
        """Store a complete list, drop cached objects that it lacks, and return the changes. Raises Unanswered for a
        malformed list: an empty object would otherwise delete everything."""
        kind = self.info.group_kind
        items, version = _list_of(body)
        changes: list[Change] = []
        seen: set[tuple[str, str]] = set()
        for item in items:
            obj = self._cached({"apiVersion": self.info.api_version, "kind": self.info.kind} | item)
            seen.add((namespace_of(obj), name_of(obj)))
            old = self._cache.put(kind, obj)
            if old is None or resource_version(old) != resource_version(obj):
                changes.append(Change(old, obj))
        for known in self._cache.objects(kind, self.space) if self.space else self._cache.objects(kind):
            if (namespace_of(known), name_of(known)) not in seen:
                self._cache.drop(kind, namespace_of(known), name_of(known))
                changes.append(Change(known, None))
        self._version = version
        self._cache.saw_revision(kind, self._version)
        self._cache.mark_synced(kind, self.space)
        return changes

    def received(self, batch: Batch) -> tuple[list[Change], ApiError | None]:
        """Store watch events; return the changes, and an error if the batch held an ERROR or malformed event. Events
        before the error count. After Gone call :meth:`failed`, which makes the next request a list."""
        changes: list[Change] = []
        self._cache.mark_behind(self._kind, False, self.space)
        for each in batch:
            try:
                what, obj = _event_of(each) if isinstance(each, bytes) else each
            except Unanswered as error:
                return changes, error
            if what == "ERROR":
                return changes, error_from_status(obj)
            change = self._event(what, obj)
            if change is not None:
                changes.append(change)
        return changes, None

    def _event(self, what: str, obj: Obj) -> Change | None:
        kind = self._kind
        version = resource_version(obj)
        if version:
            self._version = version
            self._cache.saw_revision(kind, version)
        if what == "BOOKMARK":
            return None
        obj = self._cached(obj)
        if what == "DELETED":
            return Change(self._cache.drop(kind, namespace_of(obj), name_of(obj)) or obj, None)
        return Change(self._cache.put(kind, obj), obj)

    def _cached(self, obj: Obj) -> Obj:
        """Return the part of an object that is cached."""
        scope = self._scope
        if not (scope.lean or scope.metadata):
            return obj
        if scope.lean and "managedFields" in meta(obj):
            return {**obj, "metadata": {name: each for name, each in meta(obj).items() if name != "managedFields"}}
        if not scope.metadata:
            return obj
        known = {name: value for name, value in meta(obj).items() if name in IDENTITY}
        return {"apiVersion": self.info.api_version, "kind": self.info.kind, "metadata": known}

    def failed(self, error: ApiError) -> None:
        """Record an error of list or watch. After 410 the kind is listed again; the driver repeats other requests."""
        self._cache.mark_behind(self.info.group_kind, space=self.space)
        if error.code == 410:
            self.relist()


def decoded_event(event: bytes | tuple[str, Obj]) -> tuple[str, Obj]:
    """Return type and object of a watch event that came over HTTP (bytes) or in process (decoded)."""
    return _event_of(event) if isinstance(event, bytes) else event


def _event_of(line: bytes) -> tuple[str, Obj]:
    try:
        event = msgspec.json.decode(line)
    except msgspec.DecodeError:
        event = None
    what, obj = (event.get("type"), event.get("object")) if isinstance(event, dict) else (None, None)
    if isinstance(obj, dict) and (what in ("BOOKMARK", "ERROR") or (what in CHANGES and _is_named(obj))):
        return str(what), obj
    shown = ascii(line[:SHOWN_BYTES].decode("utf-8", "replace"))
    raise Unanswered(
        f"a watch said {shown}, which is no event of the Kubernetes API; check the proxy or gateway before it"
    )


def _list_of(body: Any) -> tuple[list[Obj], str]:
    """Return objects and resourceVersion of a list; raises Unanswered for anything else."""
    meta = body.get("metadata") if isinstance(body, dict) else None
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    items = (body.get("items") or []) if isinstance(version, str) and version else None
    if isinstance(items, list) and str(body.get("kind")).endswith("List") and all(map(_is_named, items)):
        return items, version or ""
    kind = str(body.get("kind"))[:SHOWN_BYTES] if isinstance(body, dict) else type(body).__name__
    raise Unanswered(
        f"a list was answered with kind {kind!r}, which is no whole list of the Kubernetes API (kind ...List, "
        "metadata.resourceVersion and items with names); check the proxy or gateway before it"
    )


def _is_named(item: Any) -> bool:
    meta = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(meta, dict) and isinstance(meta.get("name"), str)
