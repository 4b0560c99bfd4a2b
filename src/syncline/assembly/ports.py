"""The way to an API over HTTP: bounded connections for requests, one more for each watch."""

from __future__ import annotations

from collections.abc import AsyncIterator

from syncline.kube.client import Batch, Request, Response
from syncline.kube.http import Fence, HttpClient
from syncline.kube.kubeconfig import ClusterAccess

__all__ = ["HttpPort"]

CONNECTIONS = 24
"""Requests at once: the workers of the loop and some lists; each new connection costs both sides a handshake."""


class HttpPort:
    """A way to an API over HTTP in which watches, one per kind, never keep requests waiting for a connection.

    ``fence``: see :class:`~syncline.kube.http.HttpClient`.
    """

    def __init__(self, access: ClusterAccess, fence: Fence | None = None) -> None:
        self._fence = fence
        self._requests = HttpClient(access, connections=CONNECTIONS, fence=fence, wary=True)
        self._watches = HttpClient(access, connections=0, wary=True)
        self._old: list[HttpClient] = []

    def use(self, access: ClusterAccess) -> None:
        """From now on. What is under way, watches too, ends as it began."""
        self._old += [self._requests, self._watches]
        self._requests = HttpClient(access, connections=CONNECTIONS, fence=self._fence, wary=True)
        self._watches = HttpClient(access, connections=0, wary=True)

    async def send(self, request: Request) -> Response:
        return await self._requests.send(request)

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        return self._watches.watch(request)

    async def close(self) -> None:
        await self._requests.close()
        await self._watches.close()
        for each in self._old:
            await each.close()
