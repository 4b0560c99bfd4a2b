"""The one port of the server: :class:`Port` listens, with TLS or without, and picks a protocol for each connection.

With TLS the client says by ALPN what it speaks; without, the first bytes do: HTTP/2 begins with a preface. Connections
are counted, and closed if they do not begin in time.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from typing import Any, cast

from aiohttp.web_protocol import RequestHandler

from syncline.web.serving.bounds import Bounds, Usage
from syncline.web.serving.grpc import Grpc
from syncline.web.serving.http1 import Http1
from syncline.web.serving.http2 import Http2
from syncline.web.wire.calls import Calls
from syncline.web.wire.http import Serve

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
BACKLOG_CONNECTIONS = 1024
ALPN = ("h2", "http/1.1")


class PortError(Exception):
    """The address cannot be listened on; the text says why."""


def allow_both(context: ssl.SSLContext) -> ssl.SSLContext:
    """Let clients choose HTTP/2 or HTTP/1.1 by ALPN."""
    context.set_alpn_protocols(list(ALPN))
    return context


class Port:
    """One listening address."""

    def __init__(self, calls: Calls, web: Serve, bounds: Bounds | None = None) -> None:
        self.usage = Usage(bounds or Bounds())
        self._grpc = Grpc(calls, web, self.usage.bounds)
        self._http1 = Http1(self.usage, web)
        self._open: set[_Connection] = set()
        self._listener: asyncio.Server | None = None
        self.number = 0

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen; ``port`` 0 takes a free one (:attr:`number`). Raises :class:`PortError`."""
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                lambda: _Connection(self),
                host,
                port,
                ssl=tls,
                ssl_handshake_timeout=self.usage.bounds.first_bytes_s if tls else None,
                backlog=BACKLOG_CONNECTIONS,
                reuse_address=True,
            )
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise PortError(f"cannot listen on {host}:{port}: {why}; choose another address or port") from error
        self.number = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Take no connections any more, and close the open ones."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._open):
            connection.leave()
        await self._http1.stop()
        for connection in list(self._open):
            connection.abort()

    def http2(self) -> Http2:
        return Http2(self.usage, self._grpc.serve)

    def http1(self, spoke: Callable[[], None]) -> RequestHandler:
        return self._http1.protocol(spoke)

    def opened(self, connection: _Connection) -> bool:
        """Count a connection; False if there are too many."""
        self._open.add(connection)
        self.usage.connections += 1
        if self.usage.connections > self.usage.bounds.connections:
            self.usage.refused += 1
            return False
        return True

    def closed(self, connection: _Connection) -> None:
        if connection in self._open:
            self._open.discard(connection)
            self.usage.connections -= 1


class _Connection(asyncio.Protocol):
    """Hands a connection's bytes to the protocol that it turns out to speak."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._inner: Any = None
        self._transport: asyncio.Transport | None = None
        self._early = b""
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's are of classes of their own
        if not self._port.opened(self):
            transport.abort()
            return
        limit = self._port.usage.bounds.first_bytes_s
        self._late = asyncio.get_running_loop().call_later(limit, self._too_late)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._adopt(self._port.http2())

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            if self._late is not None and isinstance(self._inner, Http2):
                self.spoke()
            self._inner.data_received(data)
            return
        self._early += data
        if PREFACE.startswith(self._early[: len(PREFACE)]):
            if len(self._early) >= len(PREFACE):
                self._adopt(self._port.http2())
        else:
            self._adopt(self._port.http1(self.spoke))

    def _adopt(self, inner: Any) -> None:
        self._inner = inner
        inner.connection_made(self._transport)
        early, self._early = self._early, b""
        if early:
            self.data_received(early)

    def spoke(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._port.usage.cut_off += 1
        self.abort()

    def eof_received(self) -> bool | None:
        return bool(self._inner.eof_received()) if self._inner is not None else None

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.spoke()
        self._port.closed(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def leave(self) -> None:
        """Let an HTTP/2 client end its calls."""
        if isinstance(self._inner, Http2):
            self._inner.leave()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
