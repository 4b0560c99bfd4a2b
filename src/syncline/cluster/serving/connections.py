"""Limit the API server's connections, and close those that never send a request.

``serve`` creates one :class:`Connections` and takes a protocol from it for each connection. A connection without a
complete first request is closed in time; idle time, pipelining and headers are bounded by aiohttp settings given here.
The limits are those of Kubernetes' API server (``server/secure_serving.go``) where it has one.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

log = logging.getLogger("syncline.serve")

MAX_CONNECTIONS = 12_000
"""Open connections, watches included. An idle one with TLS costs about 60 KB; more are closed when they connect."""

HEADER_LIMIT_BYTES = 64 * 1024
"""Size limit of one header line or request line: controllers send long label selectors."""
MAX_HEADERS = 128

FIRST_REQUEST_S = 32
"""Seconds until the first request must be complete (``ReadHeaderTimeout``)."""
IDLE_S = 90.0
"""Seconds a connection may idle between requests (``IdleTimeout``)."""


FILES_WANTED = 65_536


def allow_many_connections() -> None:
    """Raise the limit of open files, which by default allows a process 1,024 connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Connections:
    """Counts the open connections; call :meth:`tick` once a second."""

    def __init__(self) -> None:
        self.open = 0
        self.refused = 0
        """Connections refused at the limit."""
        self.cut_off = 0
        """Connections closed because they sent no request in time."""
        self._silent: dict[RequestHandler, int] = {}
        self._seconds = 0

    def options(self) -> dict[str, Any]:
        """Return aiohttp's handler settings. Bodies stay as sent: Kubernetes accepts no compressed ones."""
        return {
            "access_log": None,
            "max_line_size": HEADER_LIMIT_BYTES,
            "max_field_size": HEADER_LIMIT_BYTES,
            "max_headers": MAX_HEADERS,
            "keepalive_timeout": IDLE_S,
            "auto_decompress": False,
        }

    def protocol(self, server: web.Server) -> asyncio.Protocol:
        """Return the protocol for one new connection."""
        return _Connection(self, server)

    def spoke(self, protocol: RequestHandler | None) -> None:
        """Record that this connection sent a complete request."""
        if protocol is not None:
            self._silent.pop(protocol, None)

    def tick(self) -> None:
        """Count one second and close the connections that sent no request in time."""
        self._seconds += 1
        late = [each for each, since in self._silent.items() if self._seconds - since > FIRST_REQUEST_S]
        for protocol in late:
            del self._silent[protocol]
            self.cut_off += 1
            if protocol.transport is not None:
                protocol.transport.abort()

    def _opened(self, connection: RequestHandler) -> bool:
        """Count a new connection; return False if it exceeds the limit."""
        self.open += 1
        if self.open > MAX_CONNECTIONS:
            self.refused += 1
            return False
        self._silent[connection] = self._seconds
        return True

    def _closed(self, connection: RequestHandler) -> None:
        self.open -= 1
        self._silent.pop(connection, None)


class _Connection(RequestHandler):
    __slots__ = ("_counted", "_kept")

    def __init__(self, kept: Connections, server: web.Server) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **kept.options())
        self._kept = kept
        self._counted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._counted = True
        if not self._kept._opened(self) and isinstance(transport, asyncio.Transport):
            transport.abort()

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Log malformed HTTP at debug level only: the client caused it, and must not fill the log."""
        if isinstance(kwargs.get("exc_info"), HttpProcessingError):
            log.debug(*args)
        else:
            super().log_exception(*args, **kwargs)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._counted:
            self._counted = False
            self._kept._closed(self)
        super().connection_lost(exc)
