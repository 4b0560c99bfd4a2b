"""Connections to the other clusters of Applications: a cache and a port for each.

They join the GitOps controllers' loop: changes of tracked objects wake their Applications. A :class:`Way` watches them
and sends requests: live over HTTP, or in virtual time to a second embedded cluster. Bounded by :data:`MAX_CLUSTERS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from syncline.apply.handler import SYNC_ACTIONS, SyncHandler
from syncline.apply.predicting import Predict, PredictHandler, PredictionCache
from syncline.argo.clusters import HERE, ClusterError, cluster_access, clusters_of
from syncline.argo.excluded import ResourceFilter
from syncline.assembly.roles import Driver, LiveDriver
from syncline.base.action import Handler
from syncline.control.cache import Snapshot
from syncline.control.executor import kube_handlers
from syncline.control.loop import Joined, Spaces, scopes_of
from syncline.control.manager import LiveWatches, Port
from syncline.control.virtual import VirtualDriver, WatchActor
from syncline.gitops.destinations import SECRETS, Connect, Declared
from syncline.kube.client import Batch, Request, Response, Transport
from syncline.kube.errors import Unanswered, Unavailable
from syncline.kube.objects import GroupKind, ObjectRef
from syncline.kube.transport.kubeconfig import ClusterAccess

MAX_NAMESPACES = 50
"""Namespaces of a cluster that are watched one by one; each costs a watch of every kind."""
MAX_CLUSTERS = 200
"""Limit of clusters that one process connects to; each costs its watches."""
ANSWER_S = 30.0
"""Limit of one request from a worker's thread."""
FIELD_MANAGER = "argocd-controller"
NAMESPACES = GroupKind("", "Namespace")


def is_unmanaged(kind: GroupKind) -> bool:
    """Return whether Applications never manage a kind, which changes all the time on a real cluster."""
    return ResourceFilter().excludes(kind.group, kind.kind, "")


@dataclass(slots=True)
class Remote:
    """One connected cluster. ``error``: why it cannot be used, or why the last request failed."""

    declared: Declared
    joined: Joined
    handlers: Mapping[type, Handler]
    anchor: GroupKind | None = NAMESPACES
    """A kind that must be readable before anything is concluded from the cluster."""
    stop: Callable[[], None] = field(default=lambda: None)
    error: str = ""
    _whole: bool = False

    @property
    def observed_whole(self) -> bool:
        """Whether every wanted kind was listed once, or cannot be read."""
        if not self._whole:
            cache = self.joined.cache
            found = map(cache.mapper.preferred, self.joined.wanted_kinds())
            wanted = [one.group_kind for one in found if one is not None and scopes_of(self.joined, one)]
            anchored = self.anchor is None or cache.has_synced(self.anchor)
            self._whole = bool(wanted) and anchored and all(map(cache.reads.settled, wanted))
        return self._whole


class Way(Protocol):
    """Watches other clusters for the loop of ``driver``, and sends requests to them."""

    driver: Driver

    def watch(self, access: ClusterAccess, remote: Remote, changed: Callable[[], None]) -> Callable[[], None]:
        """Start to watch; returns the function that stops it. ``changed`` is called when the cluster is fully listed,
        lost or back."""
        ...

    def blocking(self, server: str) -> Transport:
        """Return what sends requests to a watched cluster from a worker's thread; not from the loop's."""
        ...


class RemoteClusters:
    """All other clusters by server. Implements ``Destinations`` of observation."""

    def __init__(self, way: Way, control_namespace: str) -> None:
        self._way, self._namespace = way, control_namespace
        self._remotes: dict[str, Remote] = {}
        self._connected: tuple[Declared, ...] = ()
        self.predictions = PredictionCache()

    # -- for observation -----------------------------------------------------------------------------------------

    def snapshot(self, server: str) -> Snapshot | None:
        remote = self._remotes.get(server)
        return remote.joined.cache if remote is not None and remote.observed_whole else None

    def problem(self, server: str) -> str:
        remote = self._remotes.get(server)
        if remote is None:
            return f"cluster {server} is not connected yet"
        if remote.error:
            return remote.error
        refused = remote.joined.cache.unread(ObjectRef(*remote.anchor, "", "")) if remote.anchor is not None else ""
        if refused:
            return f"cluster {server}: {refused}"
        return "" if remote.observed_whole else f"cluster {server} is being read for the first time"

    def connected(self) -> tuple[Declared, ...]:
        return self._connected

    # -- for handlers ------------------------------------------------------------------------------------------

    def handlers(self, server: str) -> Mapping[type, Handler]:
        """Return the handlers of a cluster; raises OSError if it is not connected."""
        remote = self._remotes.get(server)
        if remote is None:
            raise ConnectionError(f"cluster {server} is not connected")
        return remote.handlers

    def connect(self, wanted_now: tuple[Declared, ...], home: Snapshot) -> None:
        """Close removed or changed connections and open new ones; credentials are read from the local cluster's
        Secrets."""
        wanted = {one.server: one for one in wanted_now[:MAX_CLUSTERS]}
        for server in sorted(self._remotes):
            if wanted.get(server) != self._remotes[server].declared:
                self._remotes.pop(server).stop()
                self._way.driver.loop.leave(server)
        for server, declared in sorted(wanted.items()):
            if server not in self._remotes:
                self._open(declared, home)
        self._connected = wanted_now
        for server in sorted({one.server for one in wanted_now}):
            self._way.driver.reached(server)

    def close(self) -> None:
        for remote in self._remotes.values():
            remote.stop()
        self._remotes.clear()
        self._connected = ()

    def _open(self, declared: Declared, home: Snapshot) -> None:
        driver, server = self._way.driver, declared.server
        secret = home.get(ObjectRef(SECRETS.group, SECRETS.kind, self._namespace, declared.secret))
        named = next(iter(clusters_of([secret] if secret is not None else [], here=False)), HERE)
        spaces = Spaces(named.namespaces[:MAX_NAMESPACES], named.cluster_resources or not named.namespaces)
        joined = driver.loop.join(server, is_unmanaged, spaces)
        mine: dict[type, Handler] = dict.fromkeys(SYNC_ACTIONS, SyncHandler(joined.mapper))
        mine[Predict] = PredictHandler(joined.mapper, self.predictions, driver.clock)
        mine |= kube_handlers(joined.mapper, driver.clock, FIELD_MANAGER)
        anchor = NAMESPACES if spaces.wide else None
        remote = self._remotes[server] = Remote(declared, joined, mine, anchor)
        if len(named.namespaces) > MAX_NAMESPACES:
            many = f"its Secret names {len(named.namespaces)} namespaces, and {MAX_NAMESPACES} are watched at most"
            remote.error = f"cluster {server}: {many}: leave them out to watch the whole cluster"
            return
        try:
            access = cluster_access(secret or {})
        except ClusterError as error:
            remote.error = str(error)
            return
        remote.stop = self._way.watch(access, remote, lambda: driver.reached(server))


@dataclass(frozen=True, slots=True)
class ConnectHandler:
    """Performs :class:`Connect`. ``home``: the local cluster, which has the Secrets."""

    remotes: RemoteClusters
    home: Snapshot

    def handle(self, action: Connect) -> Generator[object, object, None]:
        self.remotes.connect(action.wanted, self.home)
        return
        yield


# -- live ---------------------------------------------------------------------------------------------------------


class LiveWay:
    """Watches over HTTP; each cluster has its own bounded connections and its own task on the event loop."""

    def __init__(self, driver: LiveDriver, port_of: Callable[[ClusterAccess], ClosablePort]) -> None:
        self.driver: Driver = driver
        self._live = driver
        self._port_of = port_of
        self.ports: dict[str, ClosablePort] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait until the connections that :meth:`RemoteClusters.close` has ended are released."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def watch(self, access: ClusterAccess, remote: Remote, changed: Callable[[], None]) -> Callable[[], None]:
        port, name = self._port_of(access), remote.declared.server
        self.ports[name] = port
        noticing = _Noticing(port, remote, changed)
        stir, where = self._live.manager.stir, f"cluster {name}"
        watches = LiveWatches(remote.joined, noticing, self._live.clock, stir, where=where)

        async def watch() -> None:
            try:
                async with asyncio.TaskGroup() as group:
                    await watches.run(group)
                    changed()
            finally:
                await port.close()

        task = asyncio.get_running_loop().create_task(watch(), name=f"cluster {name}")

        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def stop() -> None:
            self.ports.pop(name, None)
            if not task.cancelling():  # once: a second time would end the closing
                task.cancel()

        return stop

    def blocking(self, server: str) -> Transport:
        return _Waiting(lambda: self.ports.get(server), asyncio.get_running_loop())


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Sends requests through a port of an event loop, and waits for them in another thread."""

    port: Callable[[], Port | None]
    loop: asyncio.AbstractEventLoop

    def send(self, request: Request) -> Response:
        port = self.port()
        if port is None or self.loop.is_closed():
            return Response.refused(Unavailable("the cluster is not connected"))
        answer = asyncio.run_coroutine_threadsafe(port.send(request), self.loop)
        try:
            return answer.result(ANSWER_S)
        except TimeoutError:
            answer.cancel()
            return Response.refused(Unavailable(f"the cluster did not answer within {ANSWER_S:g} s"))


class VirtualWay:
    """Watches other clusters in virtual time, as actors of ``time``. ``transports``: by server; a missing one is a host
    that does not exist."""

    def __init__(self, driver: Driver, time: VirtualDriver, transports: Mapping[str, Transport]) -> None:
        self.driver = driver
        self._time, self._transports = time, transports

    def watch(self, access: ClusterAccess, remote: Remote, changed: Callable[[], None]) -> Callable[[], None]:
        server = remote.declared.server
        transport = self._transports.get(server)
        if transport is None:
            remote.error = f"cluster {server}: no such host"
            return lambda: None
        actor = WatchActor(remote.joined, transport, self._time.clock)
        actor.pump()  # discovery
        actor.pump()  # lists
        self._time.actors.append(actor)
        changed()
        return lambda: self._time.actors.remove(actor)

    def blocking(self, server: str) -> Transport:
        return self._transports[server]


class ClosablePort(Port, Protocol):
    async def close(self) -> None: ...


class _Noticing:
    """A port that notes whether the cluster responds, and reports changes of that."""

    def __init__(self, inner: Port, remote: Remote, changed: Callable[[], None]) -> None:
        self._inner, self._remote, self._changed = inner, remote, changed

    async def send(self, request: Request) -> Response:
        whole = self._remote.observed_whole
        answer = await self._inner.send(request)
        refused = answer.status in (401, 503) or isinstance(answer.error, Unanswered)
        error = f"cluster {self._remote.declared.server}: {answer.refusal()}" if refused else ""
        if error != self._remote.error or whole != self._remote.observed_whole:
            self._remote.error = error
            self._changed()
        elif request.method == "GET":
            asyncio.get_running_loop().call_soon(self._look, whole)
        return answer

    def _look(self, whole: bool) -> None:
        if whole != self._remote.observed_whole:
            self._changed()

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        return self._inner.watch(request)


class RoutedPort:
    """Sends requests for another cluster to it, all others to the local cluster."""

    def __init__(self, home: Port, way: LiveWay) -> None:
        self._home, self._way = home, way

    async def send(self, request: Request) -> Response:
        if not request.cluster:
            return await self._home.send(request)
        port = self._way.ports.get(request.cluster)
        if port is None:
            return Response.refused(Unavailable(f"cluster {request.cluster} is not connected"))
        return await port.send(request)

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        return self._home.watch(request)


class RoutedTransport:
    """As :class:`RoutedPort`, for transports that respond at once."""

    def __init__(self, home: Transport, others: Mapping[str, Transport]) -> None:
        self._home, self._others = home, others

    def send(self, request: Request) -> Response:
        if not request.cluster:
            return self._home.send(request)
        other = self._others.get(request.cluster)
        if other is None:
            return Response.refused(Unavailable(f"cluster {request.cluster} is not connected"))
        return other.send(request)
