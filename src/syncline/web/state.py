"""What the server sees of Kubernetes: :class:`State`, a cache of the objects of Argo CD that its services read.

Filled by watches (``control/manager.py``), in this process or over HTTPS. Encoded Applications are kept with the object
that they are of, so that a list joins bytes. Writes and reads that must be fresh go to the API.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from syncline.control.cache import Cache
from syncline.control.informer import Change, Scope
from syncline.control.loop import Spaces
from syncline.control.manager import Port
from syncline.kube import client
from syncline.kube.errors import ApiError, Unavailable
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, namespace_of, resource_version
from syncline.kube.protobuf.writing import Encoded
from syncline.kube.text.glob import glob_matches
from syncline.web.wire.api import TYPES, encoded
from syncline.web.wire.status import Code, RpcError

CONFIG_MAP = GroupKind("", "ConfigMap")
SECRET = GroupKind("", "Secret")
APPLICATIONS = APPLICATION.group_kind
PROJECTS = APP_PROJECT.group_kind
SETS = APPLICATION_SET.group_kind
MAX_BEHIND = 10_000
"""Events that a watcher may be behind; more end its watch, and it lists again."""
CONTROL_NAMESPACE = "argocd"
SEEN_S = 2.0
"""Seconds that a write waits until the cache has it, so that the next request sees it (upstream's)."""
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?", re.ASCII)
"""Names of objects, none of which leads elsewhere in a path."""
NO_DATA: Mapping[str, str] = {}
T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """One change of an Application, encoded once for all who watch it."""

    type: str
    app: Obj
    application: Encoded

    @cached_property
    def encoded(self) -> Encoded:
        return encoded(f"{TYPES}.ApplicationWatchEvent", {"type": self.type, "application": self.application})


class State:
    """One cluster's objects, as :class:`~syncline.control.loop.Watched`. ``namespaces`` are patterns of those that
    may hold Applications beside ``namespace``."""

    def __init__(self, port: Port, namespace: str = CONTROL_NAMESPACE, namespaces: tuple[str, ...] = ()) -> None:
        self.port = port
        self.namespace = namespace
        self.namespaces = namespaces
        self.mapper = Mapper()
        self.cache = Cache(self.mapper)
        here = Scope(namespace)
        self.scopes: Mapping[GroupKind, Scope | None] = {CONFIG_MAP: here, SECRET: here, PROJECTS: here} | (
            {} if namespaces else {APPLICATIONS: here, SETS: here}
        )
        self.spaces = Spaces()
        self.wanted_changed: Callable[[], None] = lambda: None
        self._encoded: dict[tuple[str, str], tuple[Obj, Encoded]] = {}
        self._watchers: set[asyncio.Queue[Event | None]] = set()
        self._set_watchers: set[asyncio.Queue[tuple[str, Obj] | None]] = set()
        self._news: dict[GroupKind, asyncio.Event] = {}
        self.unreadable: dict[str, str] = {}

    # -- as a driver sees it -----------------------------------------------------------------------------------------

    def wanted_kinds(self) -> set[GroupKind]:
        return {APPLICATIONS, PROJECTS, CONFIG_MAP, SECRET, SETS}

    def needed_kinds(self) -> set[GroupKind]:
        return self.wanted_kinds() - {SETS}

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        news = self._news.pop(kind, None)
        if news is not None:
            news.set()
        if kind not in (APPLICATIONS, SETS):
            return
        for change in changes:
            obj = change.new or change.old
            assert obj is not None
            what = "DELETED" if change.new is None else "ADDED" if change.old is None else "MODIFIED"
            if kind == SETS:
                _tell(self._set_watchers, (what, obj))
                continue
            if change.new is None:
                self._encoded.pop((namespace_of(obj), name_of(obj)), None)
            if self._watchers and self.permits(namespace_of(obj)):
                _tell(self._watchers, Event(what, obj, self.application(obj)))

    def unread(self, kind: GroupKind, why: str, space: str = "") -> None:
        self.unreadable[str(kind)] = why

    # -- as the services see it --------------------------------------------------------------------------------------

    @contextmanager
    def watching_sets(self) -> Iterator[asyncio.Queue[tuple[str, Obj] | None]]:
        """As :meth:`watching`, for ApplicationSets: yield a queue of what happened, and to which."""
        queue: asyncio.Queue[tuple[str, Obj] | None] = asyncio.Queue(MAX_BEHIND)
        self._set_watchers.add(queue)
        try:
            yield queue
        finally:
            self._set_watchers.discard(queue)

    @contextmanager
    def watching(self) -> Iterator[asyncio.Queue[Event | None]]:
        """Yield a queue of changes of Applications; None stands for changes that were lost."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(MAX_BEHIND)
        self._watchers.add(queue)
        try:
            yield queue
        finally:
            self._watchers.discard(queue)

    def permits(self, namespace: str) -> bool:
        """Return whether Applications of a namespace are served."""
        return namespace == self.namespace or any(glob_matches(each, namespace) for each in self.namespaces)

    def applications(self, namespace: str = "") -> list[Obj]:
        """Return the Applications that are served, by name."""
        found = [one for one in self.cache.objects(APPLICATIONS, namespace) if self.permits(namespace_of(one))]
        return sorted(found, key=lambda one: (name_of(one), namespace_of(one)))

    def application(self, app: Obj) -> Encoded:
        """Return an Application in its written forms."""
        key = namespace_of(app), name_of(app)
        kept = self._encoded.get(key)
        if kept is not None and (kept[0] is app or _same_version(kept[0], app)):
            return kept[1]
        made = encoded(f"{TYPES}.Application", app)
        self._encoded[key] = (app, made)
        return made

    def project(self, name: str) -> Obj | None:
        return self.cache.get(ObjectRef(*PROJECTS, self.namespace, name))

    def data(self, name: str) -> Mapping[str, str]:
        """Return the data of a ConfigMap of the control namespace, empty if it is missing."""
        found = self.cache.get(ObjectRef(*CONFIG_MAP, self.namespace, name))
        return dig(found or {}, "data") or NO_DATA

    def secret(self, name: str) -> Obj | None:
        return self.cache.get(ObjectRef(*SECRET, self.namespace, name))

    async def send(self, kind: GroupKind, make: Callable[..., client.Request], *args: object, **options: object) -> Obj:
        """Send a request about a kind to the API; raises :class:`ApiError`."""
        info = self.mapper.preferred(kind)
        if info is None:
            raise Unavailable(f"the API does not serve {kind}")
        answer = await self.port.send(make(info, *args, **options))
        found: Obj = answer.or_raise()
        return found

    async def write(
        self, kind: GroupKind, make: Callable[..., client.Request], *args: object, **options: object
    ) -> Obj:
        """As :meth:`send`, for a write: the caches of the services have it, or two seconds have passed."""
        answer = await self.send(kind, make, *args, **options)
        gone = make is client.delete
        where = (str(args[0]), str(args[1])) if gone else (namespace_of(answer), name_of(answer))
        try:
            async with asyncio.timeout(SEEN_S):
                while not self._has(ObjectRef(*kind, *where), "" if gone else resource_version(answer)):
                    await self._news.setdefault(kind, asyncio.Event()).wait()
        except TimeoutError:
            pass
        return answer

    async def keep(self, name: str, data: Mapping[str, str]) -> None:
        """Make this the data of a ConfigMap of the control namespace, which is created if it is missing."""
        found = self.cache.get(ObjectRef(*CONFIG_MAP, self.namespace, name))
        labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels}
        fresh: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        make = client.create if found is None else client.update
        await self.write(CONFIG_MAP, make, {**(found or fresh), "data": dict(data)})

    def _has(self, ref: ObjectRef, version: str) -> bool:
        """Return whether the cache has an object at least in this version; none if it is empty."""
        found = self.cache.get(ref)
        if found is None or not version:
            return found is None and not version
        known = resource_version(found)
        return not (known.isdigit() and version.isdigit()) or int(known) >= int(version)

    async def fresh(self, kind: GroupKind, namespace: str, name: str) -> Obj:
        """Return an object as the API has it now. Raises :class:`ApiError`, and RpcError for what names no object."""
        for text in (namespace, name):
            if not NAME.fullmatch(text):  # it becomes a part of a path
                raise RpcError(Code.INVALID_ARGUMENT, f"invalid resource name {text[:80]!r}: it names no {kind.kind}")
        return await self.send(kind, client.get, namespace, name)


def _tell(watchers: set[asyncio.Queue[T | None]], event: T) -> None:
    for queue in list(watchers):
        if queue.full():
            queue.get_nowait()
            queue.put_nowait(None)
            watchers.discard(queue)
        else:
            queue.put_nowait(event)


def _same_version(one: Obj, other: Obj) -> bool:
    return bool(resource_version(one)) and resource_version(one) == resource_version(other)


def not_found(name: str, resource: str = "applications") -> RpcError:
    """Return upstream's refusal of an object that is missing, or that the caller may not know of."""
    return RpcError(Code.NOT_FOUND, f'{resource}.argoproj.io "{name}" not found')


def hidden(error: ApiError) -> RpcError:
    """Return the refusal that says as little as that of an object without permission."""
    return RpcError(Code.PERMISSION_DENIED, "permission denied")
