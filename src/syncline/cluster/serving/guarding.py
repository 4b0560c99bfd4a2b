"""Asks the browser guard before a request is answered: the one way in of listeners without TLS or credentials.

``cluster/serving/serve.py`` and ``assembly/endpoints/listening.py`` put it around their handlers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiohttp import web

from syncline.base.browserguard import BrowserGuard, Refusal

__all__ = ["guarded", "plainly"]

Asked = TypeVar("Asked", bound=web.BaseRequest)


def guarded(
    handler: Callable[[Asked], Awaitable[web.StreamResponse]],
    guard: BrowserGuard,
    refuse: Callable[[Refusal], web.Response],
) -> Callable[[Asked], Awaitable[web.StreamResponse]]:
    """``handler``, for requests that the guard lets in; ``refuse`` words the answer to the others."""

    async def handle(incoming: Asked) -> web.StreamResponse:
        refusal = guard.refusal(_local_address(incoming), incoming.raw_path, incoming.headers.items())
        return await handler(incoming) if refusal is None else refuse(refusal)

    return handle


def plainly(refusal: Refusal) -> web.Response:
    """A refusal as text, which no browser takes for anything else."""
    headers = {"X-Content-Type-Options": "nosniff"}
    return web.Response(status=refusal.status, text=refusal.message + "\n", headers=headers)


def _local_address(incoming: web.BaseRequest) -> str:
    """The address of ours that the request came to; empty where the connection is gone."""
    name = incoming.transport.get_extra_info("sockname") if incoming.transport is not None else None
    return str(name[0]) if isinstance(name, tuple) and name else ""
