"""Lists the objects of a kind that a ConfigMap names (``clusterDecisionResource``): :class:`ListKind`.

Upstream lists them at each reconcile instead of watching them, since the kind is known at run time only. So do we, with
an age up to which a list is reused; a kind that the loop watches anyway is read from its cache, without a request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from syncline.base.action import Action
from syncline.base.clock import Clock
from syncline.control.cache import Snapshot
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, ResourceInfo, split_api_version

REUSED_S: Final = 10.0
"""Seconds for which all sets share a list."""
MAX_KINDS: Final = 100
MAX_OBJECTS: Final = 10_000
"""The most objects of one kind that are read."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The objects of a kind in the control namespace, or why they cannot be read."""

    at: datetime
    objects: tuple[Obj, ...] = field(default=(), repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class ListKind(Action):
    """List the objects of ``plural`` in a namespace."""

    api_version: str
    plural: str
    namespace: str
    reason: str

    def describe(self) -> str:
        return f"list {self.plural} of {self.api_version} in {self.namespace}"


class ListStore:
    """The last list of each kind; bounded, used by the loop's thread alone."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Listed] = OrderedDict()

    def known(self) -> Mapping[tuple[str, str], Listed]:
        """Return all lists; the mapping never changes afterwards."""
        return MappingProxyType(dict(self._kept))

    def keep(self, key: tuple[str, str], listed: Listed) -> Listed:
        before = self._kept.pop(key, None)
        if before is not None and (before.objects, before.error) == (listed.objects, listed.error):
            listed = Listed(listed.at, before.objects, before.error)
        self._kept[key] = listed
        while len(self._kept) > MAX_KINDS:
            self._kept.popitem(last=False)
        return listed


class ListHandler:
    """Performs :class:`ListKind`."""

    def __init__(self, cache: Snapshot, store: ListStore, clock: Clock) -> None:
        self._cache, self._store, self._clock = cache, store, clock

    def handle(self, action: ListKind) -> Generator[Request, Response, Listed]:
        now = self._clock.now()
        key = action.api_version, action.plural
        info = self._info(action)
        if info is None:
            return self._store.keep(
                key, Listed(now, error=f"the server has no {action.plural} of {action.api_version}")
            )
        if self._cache.follows(info.group_kind) and self._cache.has_synced(info.group_kind):
            known = self._cache.objects(info.group_kind, action.namespace)
            return self._store.keep(key, self._bounded(known, action, more=len(known) > MAX_OBJECTS))
        answer = yield client.list_(info, action.namespace, limit=MAX_OBJECTS)
        try:
            found: Any = answer.or_raise()
        except ApiError as error:
            return self._store.keep(key, Listed(now, error=str(error)))
        more = bool((found.get("metadata") or {}).get("continue"))
        return self._store.keep(key, self._bounded(found.get("items") or [], action, more=more))

    def _bounded(self, items: list[Obj], action: ListKind, *, more: bool) -> Listed:
        now = self._clock.now()
        if more:
            return Listed(now, error=f"there are more than {MAX_OBJECTS} {action.plural} in {action.namespace}")
        return Listed(now, tuple(items))

    def _info(self, action: ListKind) -> ResourceInfo | None:
        group, version = split_api_version(action.api_version)
        return next(
            (
                one
                for one in self._cache.mapper.all()
                if (one.group, one.version, one.plural) == (group, version, action.plural)
            ),
            None,
        )
