"""Keeps one kind of the cache equal to the server's, without a socket.

A state machine: ask for a list, then a watch; feed it answers and watch events; it says what changed. Drivers own the
transport. A watch that ends is resumed from the last resourceVersion; one that is too old (410) is listed anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from syncline.control.cache import Cache
from syncline.kube import client
from syncline.kube.client import Batch, Request
from syncline.kube.errors import ApiError, error_from_status
from syncline.kube.objects import Obj, ResourceInfo, name_of, namespace_of, resource_version

__all__ = ["Change", "Informer", "decoded_event"]


@dataclass(frozen=True, slots=True)
class Change:
    """``old`` is None for an arrival, ``new`` is None for a departure."""

    old: Obj | None
    new: Obj | None


class Informer:
    """One kind, all namespaces. ``fields``: a field selector; of the kind only what it selects is in the cache."""

    def __init__(self, info: ResourceInfo, cache: Cache, *, fields: str = "") -> None:
        self.info = info
        self._fields = fields
        self._cache = cache
        self._version = ""

    @property
    def needs_list(self) -> bool:
        """True before the first list and after a watch that was too old."""
        return not self._version

    def list_request(self) -> Request:
        return client.list_(self.info, field_selector=self._fields)

    def watch_request(self) -> Request:
        return client.watch(self.info, resource_version=self._version, field_selector=self._fields)

    def relist(self) -> None:
        """The next step is a list."""
        self._version = ""

    def listed(self, body: Obj) -> list[Change]:
        """Take a list; what the cache had and the list has not is gone."""
        kind = self.info.group_kind
        changes: list[Change] = []
        seen: set[tuple[str, str]] = set()
        for item in body.get("items") or ():
            obj = {"apiVersion": self.info.api_version, "kind": self.info.kind} | item
            seen.add((namespace_of(obj), name_of(obj)))
            old = self._cache.put(kind, obj)
            if old is None or resource_version(old) != resource_version(obj):
                changes.append(Change(old, obj))
        for known in self._cache.objects(kind):
            if (namespace_of(known), name_of(known)) not in seen:
                self._cache.drop(kind, namespace_of(known), name_of(known))
                changes.append(Change(known, None))
        self._version = str((body.get("metadata") or {}).get("resourceVersion") or "")
        self._cache.saw_revision(kind, self._version)
        self._cache.mark_synced(kind)
        return changes

    def received(self, batch: Batch) -> tuple[list[Change], ApiError | None]:
        """Take watch events. An ERROR event ends the batch: what came before it counts, and the error is returned
        (Gone: call :meth:`failed`, the next step is a list)."""
        changes: list[Change] = []
        for each in batch:
            what, obj = _event_of(each) if isinstance(each, bytes) else each
            if what == "ERROR":
                return changes, error_from_status(obj)
            change = self._event(what, obj)
            if change is not None:
                changes.append(change)
        return changes, None

    def _event(self, what: str, obj: Obj) -> Change | None:
        kind = self.info.group_kind
        version = resource_version(obj)
        if version:
            self._version = version
            self._cache.saw_revision(kind, version)
        if what == "BOOKMARK":
            return None
        if what == "DELETED":
            return Change(self._cache.drop(kind, namespace_of(obj), name_of(obj)) or obj, None)
        return Change(self._cache.put(kind, obj), obj)

    def failed(self, error: ApiError) -> None:
        """An error of list or watch: too old means list again, others are tried again by the driver."""
        if error.code == 410:
            self.relist()


def decoded_event(event: bytes | tuple[str, Obj]) -> tuple[str, Obj]:
    """Type and object of a watch event, as it comes over HTTP (bytes) or in process (decoded)."""
    return _event_of(event) if isinstance(event, bytes) else event


def _event_of(line: bytes) -> tuple[str, Obj]:
    event = msgspec.json.decode(line)
    return str(event.get("type")), event.get("object") or {}
