"""The live client: sends a :class:`Request` to any Kubernetes API over HTTP.

Called by the live driver and the faces. No retries and no decisions: a refusal is an answer, and a server that cannot
be reached is the refusal ``ServiceUnavailable`` in one sentence. Watches come as batches of encoded events.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import yarl

from syncline.kube.access import request_headers, tls_context, unreachable
from syncline.kube.client import Request, Response
from syncline.kube.errors import InternalError, error_from_status
from syncline.kube.kubeconfig import ClusterAccess

__all__ = ["EVENT_LIMIT_BYTES", "REQUEST_TIMEOUT_S", "HttpClient"]

READ_BUFFER_BYTES = 2**21
"""aiohttp pauses reading at twice this: a list of thousands of objects should not come in drops."""

EVENT_LIMIT_BYTES = 2**24
"""Longest watch event: an object may have 3 MiB, and twice that in a modified form; more is no Kubernetes API."""

REQUEST_TIMEOUT_S = 60.0
"""One request, from dialling to the last byte: Kubernetes' own --request-timeout."""
CONNECT_TIMEOUT_S = 10.0

WATCH_IDLE_S = 300.0
"""A watch without a byte for this long (bookmarks come each minute) hangs on a dead connection and is ended."""

CONNECTIONS_PER_CLIENT = 100
"""Open connections, watches included."""

_encode = msgspec.json.Encoder().encode


class HttpClient:
    """One session on one cluster. Use it in one event loop; :meth:`close` it there."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._options: dict[str, Any] = {}
        if access.tls_server_name:
            self._options["server_hostname"] = access.tls_server_name
        if access.proxy_url:
            self._options["proxy"] = access.proxy_url

    async def send(self, request: Request) -> Response:
        """The answer, whatever it is; only cancellation raises."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            async with self._call(request, timeout) as answer:
                raw = await answer.read()
                return Response.encoded(answer.status, raw, _folded(answer))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Response.refused(unreachable(self._access.server, error))

    async def watch(self, request: Request) -> AsyncIterator[list[bytes]]:
        """Batches of encoded events (one JSON object each) until the server ends the watch or the connection breaks.

        Raises the ApiError of a refusal, and Unavailable when the server cannot be reached at the start.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S, sock_read=WATCH_IDLE_S)
        begun = False
        try:
            async with self._call(request, timeout) as answer:
                if answer.status != 200:
                    refusal = Response.encoded(answer.status, await answer.read())
                    raise error_from_status(refusal.obj, answer.status)
                begun = True
                async for batch in _lines(answer.content):
                    yield batch
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if not begun:
                raise unreachable(self._access.server, error) from error
            # A watch that breaks off has simply ended: the caller goes on from the last resourceVersion it saw.

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _call(self, request: Request, timeout: aiohttp.ClientTimeout) -> Any:
        url = yarl.URL(
            self._access.server + yarl.URL.build(path=request.path, query=dict(request.query)).raw_path_qs, encoded=True
        )
        body = request.body
        data = body if body is None or isinstance(body, bytes) else _encode(body)
        headers = request_headers(self._access, request)
        return self._opened().request(
            request.method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False, **self._options
        )

    def _opened(self) -> aiohttp.ClientSession:
        """Made on first use: a session belongs to the running loop."""
        if self._session is None:
            context = tls_context(self._access)
            connector = aiohttp.TCPConnector(limit=CONNECTIONS_PER_CLIENT, ssl=context if context is not None else True)
            self._session = aiohttp.ClientSession(
                connector=connector, read_bufsize=READ_BUFFER_BYTES, auto_decompress=True, trust_env=False
            )
        return self._session


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[list[bytes]]:
    """Everything that has arrived, cut at newlines; the rest waits for its end."""
    rest = b""
    while True:
        chunk = await content.readany()
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > EVENT_LIMIT_BYTES:
            raise InternalError(f"a watch event is longer than {EVENT_LIMIT_BYTES} bytes; this is no Kubernetes API")
        whole = [line for line in lines if line]
        if whole:
            yield whole
    # An unfinished last line is a broken connection: the event comes again with the next watch.


def _folded(answer: aiohttp.ClientResponse) -> dict[str, str]:
    """Lower-case names; the values of a repeated header (``Warning``) as lines of one."""
    headers: dict[str, str] = {}
    for name, value in answer.headers.items():
        lower = name.lower()
        headers[lower] = f"{headers[lower]}\n{value}" if lower in headers else value
    return headers
