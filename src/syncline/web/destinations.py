"""The clusters of Applications as the server reaches them: :class:`Destinations`.

The local one through the server's own port; every other one through connections made from its Secret when a request
first needs it, closed when the Secret changes, or when too many are open.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from syncline.argo.clusters import (
    Cluster,
    ClusterError,
    cluster_access,
    clusters_of,
    destination_of,
    is_cluster_secret,
    secret_text,
)
from syncline.assembly.destinations import ClosablePort
from syncline.assembly.ports import HttpPort
from syncline.base.clock import Clock
from syncline.control.manager import Port, drive
from syncline.kube.mapper import Mapper, discover, server_version
from syncline.kube.objects import Obj, dig, resource_version
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.web.state import SECRET, State
from syncline.web.wire.status import Code, RpcError

MAX_OPEN = 200
"""Clusters that one process is connected to; the one that was used longest ago is closed first."""
DISCOVERY_S = 60.0
"""Seconds that the served kinds of a cluster are remembered."""


@dataclass(slots=True)
class Destination:
    """One cluster: its port, and the kinds that it serves."""

    cluster: Cluster
    port: Port
    mapper: Mapper
    version: str = ""
    """resourceVersion of its Secret; empty: the local cluster."""
    read_at: datetime | None = None
    """When its kinds were read."""


class Destinations:
    """Connections to the clusters that the Secrets of the control namespace declare."""

    def __init__(self, state: State, clock: Clock, port_of: Callable[[ClusterAccess], ClosablePort] = HttpPort) -> None:
        self._state = state
        self._clock = clock
        self._port_of = port_of
        self._open: OrderedDict[str, tuple[Destination, ClosablePort]] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def clusters(self) -> tuple[Cluster, ...]:
        """Return the declared clusters, sorted, the local one among them unless it is disabled."""
        here = str(self._state.data("argocd-cm").get("cluster.inClusterEnabled", "true")).lower() != "false"
        return clusters_of(self._state.cache.objects(SECRET, self._state.namespace), here=here)

    def cluster_of(self, app: Obj) -> Cluster:
        """Return the cluster of an Application. Raises :class:`RpcError`, in upstream's words."""
        found = destination_of(app, self.clusters())
        if isinstance(found, str):
            raise RpcError(Code.INVALID_ARGUMENT, f"error getting app cluster: {found}")
        return found

    async def reach(self, cluster: Cluster) -> Destination:
        """Return the connection to a cluster, opened if it must be. Raises :class:`RpcError` and ``ApiError``."""
        if cluster.is_here and self._secret(cluster) is None:
            return Destination(cluster, self._state.port, self._state.mapper)
        found = self._known(cluster) or self._opened(cluster)
        now = self._clock.now()
        if found.read_at is None or (now - found.read_at).total_seconds() > DISCOVERY_S:
            found.mapper.replace(await drive(discover(), found.port))
            found.mapper.version = await drive(server_version(), found.port)
            found.read_at = now
        return found

    async def close(self) -> None:
        """Close all connections."""
        while self._open:
            self._forget(next(iter(self._open)))
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _secret(self, cluster: Cluster) -> Obj | None:
        secrets = self._state.cache.objects(SECRET, self._state.namespace)
        declared = (one for one in secrets if is_cluster_secret(one))
        return next((one for one in declared if server_of(one) == cluster.server), None)

    def _known(self, cluster: Cluster) -> Destination | None:
        secret = self._secret(cluster)
        known = self._open.get(cluster.server)
        if known is None:
            return None
        if secret is None or known[0].version != resource_version(secret) or known[0].cluster != cluster:
            self._forget(cluster.server)
            return None
        self._open.move_to_end(cluster.server)
        return known[0]

    def _opened(self, cluster: Cluster) -> Destination:
        secret = self._secret(cluster)
        if secret is None:
            raise RpcError(Code.NOT_FOUND, f'cluster "{cluster.server}" not found')
        try:
            port = self._port_of(cluster_access(secret))
        except ClusterError as error:
            raise RpcError(Code.INVALID_ARGUMENT, str(error)) from None
        made = Destination(cluster, port, Mapper(), resource_version(secret))
        self._open[cluster.server] = made, port
        while len(self._open) > MAX_OPEN:
            self._forget(next(iter(self._open)))
        return made

    def _forget(self, server: str) -> None:
        task = asyncio.get_running_loop().create_task(self._open.pop(server)[1].close(), name=f"close {server}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def server_of(secret: Obj) -> str:
    """Return the address that a cluster Secret declares."""
    return secret_text(dig(secret, "data", "server")).rstrip("/")
