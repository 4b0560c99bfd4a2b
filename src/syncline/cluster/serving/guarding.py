"""Apply the browser guard to each request of listeners without TLS or credentials.

``cluster/serving/serve.py`` and ``assembly/endpoints/listening.py`` wrap their handlers with :func:`guarded`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiohttp import web

from syncline.base.browserguard import BrowserGuard, Refusal

Asked = TypeVar("Asked", bound=web.BaseRequest)


def guarded(
    handler: Callable[[Asked], Awaitable[web.StreamResponse]],
    guard: BrowserGuard,
    refuse: Callable[[Refusal], web.Response],
) -> Callable[[Asked], Awaitable[web.StreamResponse]]:
    """Wrap ``handler`` so that it sees only requests the guard allows; ``refuse`` builds the other responses."""

    async def handle(incoming: Asked) -> web.StreamResponse:
        refusal = guard.refusal(_local_address(incoming), incoming.raw_path, incoming.headers.items())
        return await handler(incoming) if refusal is None else refuse(refusal)

    return handle


def plainly(refusal: Refusal) -> web.Response:
    """Return a refusal as plain text that no browser interprets as another type."""
    headers = {"X-Content-Type-Options": "nosniff"}
    return web.Response(status=refusal.status, text=refusal.message + "\n", headers=headers)


def _local_address(incoming: web.BaseRequest) -> str:
    """Return the local address of the request's connection, or "" if the connection is closed."""
    name = incoming.transport.get_extra_info("sockname") if incoming.transport is not None else None
    return str(name[0]) if isinstance(name, tuple) and name else ""
