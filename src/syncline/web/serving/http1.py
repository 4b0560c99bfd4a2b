"""HTTP/1.1 by aiohttp: :class:`Http1` makes protocols of connections, and carries requests to ``web/wire/front.py``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from syncline.web.serving.bounds import Usage
from syncline.web.wire.http import Asked, Given, Serve

log = logging.getLogger("syncline.web")

MAX_HEADERS = 128
SHUTDOWN_S = 5.0


class _Handler(RequestHandler):
    __slots__ = ("spoke",)

    def __init__(self, spoke: Callable[[], None], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.spoke = spoke

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Log malformed HTTP at debug level only: the client caused it, and must not fill the log."""
        if isinstance(kwargs.get("exc_info"), HttpProcessingError):
            log.debug(*args)
        else:
            super().log_exception(*args, **kwargs)


class Http1:
    """The HTTP/1.1 side of one port."""

    def __init__(self, usage: Usage, serve: Serve) -> None:
        self._usage = usage
        self._serve = serve
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)

    def protocol(self, spoke: Callable[[], None]) -> RequestHandler:
        """Return the protocol for one connection; it calls ``spoke`` when a request's headers are complete."""
        bounds = self._usage.bounds
        return _Handler(
            spoke,
            self._server,
            loop=asyncio.get_running_loop(),
            access_log=None,
            max_line_size=bounds.header_bytes,
            max_field_size=bounds.header_bytes,
            max_headers=MAX_HEADERS,
            keepalive_timeout=bounds.idle_s,
            auto_decompress=False,
        )

    async def stop(self) -> None:
        """Close the connections; requests in flight may end."""
        self._server.pre_shutdown()
        await self._server.shutdown(SHUTDOWN_S)

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        protocol: object = incoming.protocol
        if isinstance(protocol, _Handler):
            protocol.spoke()
        body = await self._body(incoming)
        if isinstance(body, web.Response):
            return body
        try:
            headers = {name.lower(): value for name, value in incoming.headers.items()}
            asked = Asked(
                incoming.method, _target(incoming), headers, bytes(body), incoming.remote or "", incoming.secure
            )
            return await self._send(incoming, await self._serve(asked))
        finally:
            self._usage.free(len(body))

    async def _body(self, incoming: web.BaseRequest) -> bytearray | web.Response:
        """Return the body, which stays counted; or the refusal of one that is too large or too slow."""
        bounds, body = self._usage.bounds, bytearray()
        try:
            async with asyncio.timeout(bounds.body_s):
                async for piece in incoming.content.iter_any():
                    body += piece
                    if not self._usage.hold(len(piece)) or len(body) > bounds.body_bytes:
                        return self._refused(body, 413, "the body is too large")
        except TimeoutError:
            return self._refused(body, 408, "the body did not arrive in time")
        return body

    def _refused(self, body: bytearray, status: int, text: str) -> web.Response:
        self._usage.free(len(body))
        self._usage.cut_off += 1
        answer = web.Response(status=status, text=text + "\n")
        answer.force_close()
        return answer

    async def _send(self, incoming: web.BaseRequest, given: Given) -> web.StreamResponse:
        headers = [("Content-Type", given.content_type), *given.headers]
        if given.chunks is None:
            return web.Response(status=given.status, body=given.body, headers=headers)
        answer = web.StreamResponse(status=given.status, headers=headers)
        await answer.prepare(incoming)
        async with aclosing(given.chunks) as chunks:
            async for chunk in chunks:
                try:
                    async with asyncio.timeout(self._usage.bounds.stalled_s):
                        await answer.write(chunk)
                except TimeoutError:
                    self._usage.cut_off += 1
                    if incoming.transport is not None:
                        incoming.transport.abort()
                    break
        return answer


def _target(incoming: web.BaseRequest) -> str:
    """Return path and query as sent; a request to a proxy has scheme and host before them."""
    raw = incoming.raw_path
    if raw.startswith("/"):
        return raw
    _, separator, rest = raw.partition("://")
    return "/" + rest.partition("/")[2] if separator else raw
