"""The plain blocking client: one request after the other, standard library only.

Called by command-line faces, where importing aiohttp would take longer than the request. Same requests, same answers
and same one-sentence error as ``kube/http.py``; no retries.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from syncline.kube.access import request_headers, tls_context, unreachable
from syncline.kube.client import Request, Response
from syncline.kube.errors import InternalError, error_from_status
from syncline.kube.kubeconfig import ClusterAccess

__all__ = ["BlockingClient"]

REQUEST_TIMEOUT_S = 60.0
WATCH_IDLE_S = 300.0
"""As in ``kube/http.py``."""

EVENT_LIMIT_BYTES = 2**24

_encode = msgspec.json.Encoder().encode


class BlockingClient:
    """A ``Transport`` on one cluster. Not for several threads at once. Proxies are not supported."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._connection: http.client.HTTPConnection | None = None

    def send(self, request: Request) -> Response:
        """The answer, whatever it is; never raises."""
        try:
            answer = self._exchange(request)
            raw = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Response.refused(unreachable(self._access.server, error))
        return Response.encoded(answer.status, raw, _folded(answer))

    def watch(self, request: Request) -> Iterator[bytes]:
        """Encoded lines (watch events, or a log that is followed) until the server ends them.

        Raises the ApiError of a refusal. The connection is used up: later requests open a new one.
        """
        connection = self._connect(WATCH_IDLE_S)
        try:
            try:
                answer = self._ask(connection, request)
            except (OSError, http.client.HTTPException) as error:
                raise unreachable(self._access.server, error) from error
            if answer.status != 200:
                raise error_from_status(Response.encoded(answer.status, answer.read()).obj, answer.status)
            yield from _lines(answer)
        finally:
            connection.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, request: Request) -> http.client.HTTPResponse:
        """On the open connection; a kept one that the server has closed meanwhile is opened again, once."""
        if self._connection is not None:
            try:
                return self._ask(self._connection, request)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.close()
        self._connection = self._connect(REQUEST_TIMEOUT_S)
        return self._ask(self._connection, request)

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        server = urlsplit(self._access.server)
        context = tls_context(self._access)
        host = server.hostname or "localhost"
        if context is None:
            return http.client.HTTPConnection(host, server.port, timeout=timeout_s)
        if self._access.tls_server_name:
            return _NamedConnection(host, server.port, self._access.tls_server_name, context, timeout_s)
        return http.client.HTTPSConnection(host, server.port, timeout=timeout_s, context=context)

    def _ask(self, connection: http.client.HTTPConnection, request: Request) -> http.client.HTTPResponse:
        target = urlsplit(self._access.server).path.rstrip("/") + quote(request.path, safe="/:@,;=+!$&'()*~")
        if request.query:
            target += "?" + urlencode(request.query)
        body = request.body
        data = body if body is None or isinstance(body, bytes) else _encode(body)
        connection.putrequest(request.method, target, skip_accept_encoding=True)
        for name, value in request_headers(self._access, request):
            connection.putheader(name, value)
        if data is not None or request.method not in ("GET", "HEAD"):
            connection.putheader("content-length", str(len(data or b"")))
        connection.endheaders(data)
        return connection.getresponse()


class _NamedConnection(http.client.HTTPSConnection):
    """TLS to one address under the name of another (tls-server-name)."""

    def __init__(self, host: str, port: int | None, name: str, context: ssl.SSLContext, timeout_s: float) -> None:
        super().__init__(host, port, timeout=timeout_s, context=context)
        self._name, self._tls = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            line = answer.readline(EVENT_LIMIT_BYTES + 1)
        except (OSError, http.client.HTTPException):
            return  # Broken off: the caller goes on from what it saw last.
        if not line:
            return
        if len(line) > EVENT_LIMIT_BYTES:
            raise InternalError(f"a watch event is longer than {EVENT_LIMIT_BYTES} bytes; this is no Kubernetes API")
        yield line.rstrip(b"\n")


def _folded(answer: http.client.HTTPResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in answer.getheaders():
        lower = name.lower()
        headers[lower] = f"{headers[lower]}\n{value}" if lower in headers else value
    return headers
