"""The connection to an API over HTTP: as many requests at once as the server takes, and one connection per watch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from syncline.kube.client import Batch, Request, Response
from syncline.kube.errors import TooManyRequests, Unanswered
from syncline.kube.transport.http import Fence, HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.kube.transport.pace import Pace

CONNECTIONS = 100
"""Open connections at once, slow requests included."""
TRIES = 6
"""Tries of a request that the server rejects unread with 429 and ``Retry-After``."""
LONGEST_WAIT_S = 10.0
"""Longest wait between two tries; if the server asks for more, the refusal is the result."""
SLOW_S = 1.0
"""Seconds after which a request counts as slow (a webhook or a hanging server) and frees its slot."""
EVICTION = "/eviction"
"""For evictions, 429 is the response of a disruption budget."""


@dataclass(slots=True)
class _Place:
    """The slot of one running request."""

    free: bool = False
    answer: Response | None = None
    sort: str = ""
    seconds: float = 0.0


class HttpPort:
    """A port over HTTP in which watches, one per kind, never delay requests.

    ``fence``: see :class:`~syncline.kube.transport.http.HttpClient`.
    """

    def __init__(self, access: ClusterAccess, fence: Fence | None = None) -> None:
        self._fence = fence
        self._requests = HttpClient(access, connections=CONNECTIONS, fence=fence, wary=True)
        self._watches = HttpClient(access, connections=0, wary=True)
        self._old: list[HttpClient] = []
        self.pace = Pace()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def use(self, access: ClusterAccess) -> None:
        """Use new access data from now on. Running requests and watches end with the old ones."""
        self._old += [self._requests, self._watches]
        self._requests = HttpClient(access, connections=CONNECTIONS, fence=self._fence, wary=True)
        self._watches = HttpClient(access, connections=0, wary=True)

    async def send(self, request: Request) -> Response:
        answer = await self._paced(request)
        for _ in range(TRIES - 1):
            wait = _asked_to_wait(request, answer)
            if wait is None:
                break
            await asyncio.sleep(wait)
            answer = await self._paced(request)
        return answer

    async def _paced(self, request: Request) -> Response:
        await self._turn()
        loop = asyncio.get_running_loop()
        began, place = loop.time(), _Place()
        slow = loop.call_later(SLOW_S, self._free, place)
        try:
            answer = place.answer = await self._requests.send(request)
            return answer
        finally:
            slow.cancel()
            place.sort, place.seconds = _sort(request), loop.time() - began
            self._free(place)

    def _free(self, place: _Place) -> None:
        """Free the slot once: when the request ends, or is so slow that it waits for something else than the server."""
        if place.free:
            return
        place.free = True
        answer = place.answer
        if answer is None:
            self.pace.dropped()
        elif answer.status == TooManyRequests.code or isinstance(answer.error, Unanswered):
            self.pace.refused()
        else:
            self.pace.answered(place.sort, place.seconds)
        self._next()

    async def _turn(self) -> None:
        """Wait for a slot, first come, first served, and take it."""
        if self.pace.room and not self._waiting:
            self.pace.begins()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was assigned at the same moment
                self.pace.dropped()
                self._next()
            raise

    def _next(self) -> None:
        while self._waiting and self.pace.room:
            turn = self._waiting.popleft()
            if not turn.done():
                self.pace.begins()
                turn.set_result(None)

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        return self._watches.watch(request)

    async def close(self) -> None:
        await self._requests.close()
        await self._watches.close()
        for each in self._old:
            await each.close()


def _sort(request: Request) -> str:
    """Return the class of requests with a similar response time: a list takes longer than an object."""
    question = " dry run" if "dryRun" in request.query else ""
    return f"{request.method} {request.path.count('/')}{question}"


def _asked_to_wait(request: Request, answer: Response) -> float | None:
    """Return the seconds to wait before a retry; None: the response is final."""
    if answer.status != TooManyRequests.code or request.path.endswith(EVICTION) or "retry-after" not in answer.headers:
        return None
    wait = answer.refusal().retry_after_s
    return wait if wait <= LONGEST_WAIT_S else None
