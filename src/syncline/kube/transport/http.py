"""The live clients: send a :class:`Request` to any Kubernetes API over HTTP.

:class:`HttpClient` is for the live driver and servers, :class:`BlockingClient` for command-line faces: one request
after the other with the standard library only, since importing aiohttp takes longer than such a request. No retries and
no decisions: a refusal is an answer, and a server that cannot be reached is the refusal ``ServiceUnavailable`` in one
sentence. So is what only looks like an answer: the login page of a proxy is no success, its error page no absence
(``kube/transport/strangers.py``).
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

from syncline.base.places import Limits
from syncline.base.scratch import named_in_memory
from syncline.base.secret import Secret
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, InternalError, Unanswered, Unauthorized
from syncline.kube.transport.execplugin import Credential, PluginError, Plugins
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.kube.transport.strangers import WATCHED, begins_watch, checked, refused_watch

if TYPE_CHECKING:
    import aiohttp

    from syncline.base.threads import Threads

__all__ = ["BlockingClient", "Fence", "HttpClient"]

Fence = Callable[[], str]

ERROR_LIMIT_BYTES = 2**16
"""Read of an answer that refuses a watch."""

READ_BUFFER_BYTES = 2**21
"""aiohttp pauses reading at twice this: a list of thousands of objects should not come in drops."""

EVENT_LIMIT_BYTES = 2**24
"""Longest watch event: an object may have 3 MiB, and twice that in a modified form; more is no Kubernetes API."""

REQUEST_TIMEOUT_S = 60.0
"""One request, from dialling to the last byte: Kubernetes' own --request-timeout."""
CONNECT_TIMEOUT_S = 10.0

WATCH_IDLE_S = 130.0
"""A watch without a byte for this long (bookmarks come each minute) hangs on a dead connection and is ended. One that
was only quiet continues where it was."""

PLUGINS_PER_CLIENT = 2
"""Runs of a plugin for credentials that one client waits for at once."""
CONNECTIONS_PER_CLIENT = 100
"""Open connections, watches included."""

READING = ("GET", "HEAD")

_encode = msgspec.json.Encoder().encode


class HttpClient:
    """One session on one cluster. Use it in one event loop; :meth:`close` it there.

    ``connections`` bounds those open at once, 0 leaves it to the caller: a watch holds one as long as it lives.
    ``fence`` says why nothing may be written any more, empty while it may: it is asked when the connection is there,
    immediately before the first byte of each writing request, also of one that was repeated.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        connections: int = CONNECTIONS_PER_CLIENT,
        fence: Fence | None = None,
        wary: bool = False,
    ) -> None:
        """``wary``, for controllers, which act on what they read: a success that names no kind is none, and the first
        batch of a watch is empty and says that it has begun."""
        self._access = access
        self._fence = fence
        self._wary = wary
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._threads: Threads | None = None
        self._certificate = access.certificate_pem
        self._options: dict[str, Any] = {}
        if access.tls_server_name:
            self._options["server_hostname"] = access.tls_server_name
        if access.proxy_url:
            self._options["proxy"] = access.proxy_url

    async def send(self, request: Request) -> Response:
        """The answer, whatever it is; only cancellation raises."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            access = await self._usable()
            while True:
                async with self._call(access, request, timeout) as answer:
                    raw = await answer.read()
                    status, headers = answer.status, _folded(answer.headers.items())
                again = await self._renewed(access) if status == 401 else None
                if again is None:
                    found = Response.encoded(status, raw, headers)
                    return checked(self._access.server, request, found, kinds=self._wary)
                access = again
        except PluginError as error:
            return Response.refused(Unauthorized(str(error)))
        except ApiError as error:
            return Response.refused(error)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Response.refused(unreachable(self._access.server, error))

    async def watch(self, request: Request) -> AsyncIterator[list[bytes]]:
        """Batches of encoded events (one JSON object each) until the server ends the watch or the connection breaks.

        Raises the ApiError of a refusal, and Unavailable when the server cannot be reached at the start.
        """
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S, sock_read=WATCH_IDLE_S)
        begun = False
        try:
            access = await self._usable()
            again: ClusterAccess | None = access
            while again is not None:
                access, again = again, None
                async with self._call(access, request, timeout) as answer:
                    if answer.status == 401:
                        again = await self._renewed(access)
                    begun = begins_watch(request, answer.status, answer.content_type)
                    if not begun and again is None:
                        beginning = await answer.content.read(ERROR_LIMIT_BYTES)
                        refusal = Response.encoded(answer.status, beginning, _folded(answer.headers.items()))
                        raise refused_watch(self._access.server, request, refusal)
                    if begun:
                        if self._wary:
                            yield []
                        async for batch in _lines(answer.content):
                            yield batch
        except PluginError as error:
            raise Unauthorized(str(error)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if not begun:
                raise unreachable(self._access.server, error) from error
            # A watch that breaks off has simply ended: the caller continues from the last resourceVersion it saw.

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _usable(self) -> ClusterAccess:
        """With what the plugin gives, where there is one; it runs in a thread. Raises PluginError."""
        plugin = self._access.exec_plugin
        if plugin is None:
            return self._access
        known = PLUGINS.known(plugin)
        return await self._with(known if known is not None else await self._in_thread(lambda: PLUGINS.get(plugin)))

    async def _renewed(self, refused: ClusterAccess) -> ClusterAccess | None:
        """With other credentials than those; None where there are none, or they were tried already."""
        plugin = self._access.exec_plugin
        if plugin is None or refused.renewed:
            return None
        fresh = await self._in_thread(lambda: PLUGINS.renew(plugin, _credential_of(refused)))
        return replace(await self._with(fresh), renewed=True)

    async def _in_thread(self, ask: Callable[[], Credential]) -> Credential:
        """In a place of this client's own: a plugin that hangs keeps no other owner's work."""
        from syncline.base.threads import Threads  # Only here: who has no event loop does without it.

        self._threads = self._threads or Threads("credentials", Limits(PLUGINS_PER_CLIENT))
        found: Credential = await self._threads.start(ask)
        return found

    async def _with(self, credential: Credential) -> ClusterAccess:
        """Another certificate needs other connections."""
        access = _holding(self._access, credential)
        if access.certificate_pem != self._certificate:
            self._certificate = access.certificate_pem
            await self.close()
        return access

    def _call(self, access: ClusterAccess, request: Request, timeout: aiohttp.ClientTimeout) -> Any:
        import yarl

        target = yarl.URL.build(path=request.path, query=dict(request.query)).raw_path_qs
        url = yarl.URL(self._access.server + target, encoded=True)
        body = request.body
        data = body if body is None or isinstance(body, bytes) else _encode(body)
        headers = request_headers(access, request)
        return self._opened(access).request(
            request.method,
            url,
            data=data,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            trace_request_ctx=request.method,
            **self._options,
        )

    def _opened(self, access: ClusterAccess) -> aiohttp.ClientSession:
        """Made on first use: a session belongs to the running loop."""
        import aiohttp

        if self._session is None:
            context = tls_context(access)
            connector = aiohttp.TCPConnector(limit=self._connections, ssl=context if context is not None else True)
            self._session = aiohttp.ClientSession(
                connector=connector,
                read_bufsize=READ_BUFFER_BYTES,
                auto_decompress=True,
                trust_env=False,
                trace_configs=[self._fenced()] if self._fence is not None else None,
            )
        return self._session

    def _fenced(self) -> aiohttp.TraceConfig:
        """Asks the fence at the two moments in which a request gets its connection; nothing waits after them."""
        import aiohttp

        fence = self._fence
        assert fence is not None, "asked for by a caller that has one"

        async def ask(_session: object, context: Any, _params: object) -> None:
            if context.trace_request_ctx not in READING and (why := fence()):
                raise Unanswered(f"not sent: {why}")

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(ask)
        trace.on_connection_reuseconn.append(ask)
        return trace


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


class BlockingClient:
    """A ``Transport`` on one cluster. Not for several threads at once."""

    def __init__(self, access: ClusterAccess) -> None:
        self._given = self._access = access
        self._connection: http.client.HTTPConnection | None = None

    def send(self, request: Request) -> Response:
        """The answer, whatever it is; never raises."""
        try:
            self._use_plugin()
            answer = self._exchange(request)
            raw = answer.read()
            if answer.status == 401 and self._renew():
                answer = self._exchange(request)
                raw = answer.read()
        except PluginError as error:
            return Response.refused(Unauthorized(str(error)))
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Response.refused(unreachable(self._access.server, error))
        found = Response.encoded(answer.status, raw, _folded(answer.getheaders()))
        return checked(self._access.server, request, found, kinds=False)

    def watch(self, request: Request) -> Iterator[bytes]:
        """Encoded lines (watch events, or a log that is followed) until the server ends them.

        Raises the ApiError of a refusal. The connection is used up: later requests open a new one.
        """
        try:
            self._use_plugin()
        except PluginError as error:
            raise Unauthorized(str(error)) from error
        connection = self._connect(WATCH_IDLE_S)
        try:
            try:
                answer = self._ask(connection, request)
                if answer.status == 401 and self._renew():
                    connection.close()
                    connection = self._connect(WATCH_IDLE_S)
                    answer = self._ask(connection, request)
            except PluginError as error:
                raise Unauthorized(str(error)) from error
            except (OSError, http.client.HTTPException) as error:
                raise unreachable(self._access.server, error) from error
            media = answer.headers.get_content_type() if "content-type" in answer.headers else WATCHED[0]
            if not begins_watch(request, answer.status, media):
                headers = _folded(answer.getheaders())
                refusal = Response.encoded(answer.status, answer.read(ERROR_LIMIT_BYTES), headers)
                raise refused_watch(self._access.server, request, refusal)
            yield from _read_lines(answer)
        finally:
            connection.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _use_plugin(self) -> None:
        if self._given.exec_plugin is not None:
            self._take(PLUGINS.get(self._given.exec_plugin))

    def _renew(self) -> bool:
        """Whether the plugin gives other credentials than those that were refused."""
        plugin = self._given.exec_plugin
        if plugin is not None:
            self._take(PLUGINS.renew(plugin, _credential_of(self._access)))
        return plugin is not None

    def _take(self, credential: Credential) -> None:
        access = _holding(self._given, credential)
        if access.certificate_pem != self._access.certificate_pem:
            self.close()
        self._access = access

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
        host, port = server.hostname or "localhost", server.port
        proxy = urlsplit(self._access.proxy_url) if self._access.proxy_url else None
        if proxy is None:
            return _connection(host, port, self._access.tls_server_name, context, timeout_s)
        connection = _connection(
            proxy.hostname or "", proxy.port or 80, self._access.tls_server_name, context, timeout_s
        )
        headers = {}
        if proxy.username:
            pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        # Also for plain HTTP: a tunnel works with every proxy that lets one through to that port.
        connection.set_tunnel(host, port or (443 if context else 80), headers)
        return connection

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


def _connection(
    host: str, port: int | None, name: str, context: ssl.SSLContext | None, timeout_s: float
) -> http.client.HTTPConnection:
    if context is None:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    if name:
        return _NamedConnection(host, port, name, context, timeout_s)
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)


class _NamedConnection(http.client.HTTPSConnection):
    """TLS to one address under the name of another (tls-server-name)."""

    def __init__(self, host: str, port: int | None, name: str, context: ssl.SSLContext, timeout_s: float) -> None:
        super().__init__(host, port, timeout=timeout_s, context=context)
        self._name, self._tls = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _read_lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            line = answer.readline(EVENT_LIMIT_BYTES + 1)
        except (OSError, http.client.HTTPException):
            return  # Broken off: the caller continues from what it saw last.
        if not line:
            return
        if len(line) > EVENT_LIMIT_BYTES:
            raise InternalError(f"a watch event is longer than {EVENT_LIMIT_BYTES} bytes; this is no Kubernetes API")
        yield line.rstrip(b"\n")


PLUGINS = Plugins()
"""Of this process: clients of one cluster share what its plugin gave."""


def _holding(access: ClusterAccess, credential: Credential) -> ClusterAccess:
    return replace(
        access,
        token=credential.token,
        certificate_pem=credential.certificate_pem,
        key_pem=credential.key_pem,
        credential=credential,
    )


def _credential_of(access: ClusterAccess) -> Credential:
    assert access.credential is not None, "it came from a plugin"
    return access.credential


# -- what both need -----------------------------------------------------------------------------------------------


def _folded(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Lower-case names; the values of a repeated header (``Warning``) as lines of one."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        lower = name.lower()
        headers[lower] = f"{headers[lower]}\n{value}" if lower in headers else value
    return headers


def request_headers(access: ClusterAccess, request: Request) -> list[tuple[str, str]]:
    """The request's own headers, and credentials, content type and accept where it has none."""
    headers = dict(request.headers)
    if request.body is not None:
        headers.setdefault("content-type", "application/json")
    headers.setdefault("accept", "application/json")
    headers.setdefault("user-agent", "syncline")
    token = _token(access)
    if token is not None:
        headers.setdefault("authorization", f"Bearer {token.reveal()}")
    listed = list(headers.items())
    if access.impersonate_user and "impersonate-user" not in headers:
        listed.append(("impersonate-user", access.impersonate_user))
        listed += [("impersonate-group", group) for group in access.impersonate_groups]
    return listed


def _token(access: ClusterAccess) -> Secret | None:
    """A token file is read for each request: the kubelet replaces it before the old token ends."""
    if access.token is not None or access.token_file is None:
        return access.token
    try:
        return Secret(access.token_file.read_text().strip())
    except OSError:
        return None  # The server answers 401, which says more than we could here.


def tls_context(access: ClusterAccess) -> ssl.SSLContext | None:
    """How to trust the server and show a client certificate; None for plain HTTP. Raises ssl.SSLError on bad PEM."""
    if urlsplit(access.server).scheme != "https":
        return None
    context = ssl.create_default_context(cadata=access.ca_pem or None)
    context.set_alpn_protocols(["http/1.1"])
    if access.skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate_pem and access.key_pem is not None:
        # The ssl module reads keys from files only.
        with named_in_memory(f"{access.certificate_pem.rstrip()}\n{access.key_pem.reveal()}") as name:
            context.load_cert_chain(name)
    return context


def unreachable(server: str, error: BaseException) -> Unanswered:
    """One sentence for a server that is not there, is not who it should be, or does not answer.

    aiohttp wraps the system's error as ``os_error`` or ``certificate_error``; the standard library raises it bare.
    """
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, TimeoutError):
        why = "it did not answer in time"
    elif isinstance(cause, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted ({cause.verify_message})"
    elif isinstance(cause, ConnectionRefusedError):
        why = "nothing listens there"
    else:
        why = str(error) or type(error).__name__
    return Unanswered(f"the server {server} cannot be reached: {why}; check the address and that the server runs")
