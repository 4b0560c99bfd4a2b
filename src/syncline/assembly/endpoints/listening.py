"""Small HTTP servers beside the controllers: webhooks and metrics, each a few fixed paths at its own address.

They have no authentication, so the browser guard protects all of them (``cluster/serving/guarding.py``). An endpoint is
a function from headers and body to a response; nothing of aiohttp reaches it. Size and number of bodies and the time to
receive them are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from syncline.base.browserguard import BrowserGuard
from syncline.cluster.serving.guarding import guarded, plainly

MAX_BODY = 25 * 1024 * 1024
"""Limit of a body; GitHub's own limit for its webhooks."""
MAX_AT_ONCE = 4
"""Bodies held at once."""
RECEIVE_S = 30.0
"""Seconds for a body to arrive; slower clients are cut off."""


class ListenError(Exception):
    """The address cannot be listened on; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: str = ""
    content_type: str = "text/plain"


Endpoint = Callable[[Mapping[str, str], bytes], Awaitable[Answer]]
"""Takes headers with lower-case names, and the body."""


@contextlib.asynccontextmanager
async def listening(
    host: str,
    port: int,
    endpoints: Mapping[tuple[str, str], Endpoint],
    names: Sequence[str] = (),
    *,
    tls: ssl.SSLContext | None = None,
    at_once: int = MAX_AT_ONCE,
    max_body: int = MAX_BODY,
) -> AsyncIterator[int]:
    """Serve ``endpoints``, by method and path, until the context ends; yields the port. ``names``: further host names
    of this address. Raises :class:`ListenError`."""
    slots = asyncio.Semaphore(at_once)
    guard = BrowserGuard(host, tuple(names))

    @web.middleware
    async def watched(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        return await guarded(handler, guard, plainly)(request)

    app = web.Application(client_max_size=max_body, middlewares=[watched])
    for (method, path), endpoint in endpoints.items():
        app.router.add_route(method, path, _handler(endpoint, slots))
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    async with begun(runner, host, port, tls) as taken:
        yield taken


@contextlib.asynccontextmanager
async def begun(
    runner: web.AppRunner | web.ServerRunner,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Let ``runner`` listen until the context ends; yields the port. Raises :class:`ListenError`."""
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise ListenError(f"cannot listen on {host}:{port}: {why}") from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _handler(endpoint: Endpoint, slots: asyncio.Semaphore) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        async with slots:
            try:
                async with asyncio.timeout(RECEIVE_S):
                    body = await request.read()
            except TimeoutError:
                return web.Response(status=408, text="the body did not arrive in time\n")
            answer = await endpoint({name.lower(): value for name, value in request.headers.items()}, body)
        return web.Response(status=answer.status, text=answer.body, content_type=answer.content_type)

    return handle
