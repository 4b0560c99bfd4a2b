"""The live clients: send a :class:`Request` to any Kubernetes API over HTTP.

:class:`HttpClient` is for the live driver and servers, :class:`BlockingClient` for command-line faces: one request
after the other with the standard library only, since importing aiohttp takes longer than such a request. No retries and
no decisions: an API error is a response, and a server that cannot be reached is the error ``ServiceUnavailable`` in one
sentence. So are responses that are not the API's: a proxy's login page is no success, its error page no absence
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

Fence = Callable[[], str]

ERROR_LIMIT_BYTES = 2**16
"""Bytes read of the response that refuses a watch."""

READ_BUFFER_BYTES = 2**21
"""aiohttp pauses reading at twice this size; a list of thousands of objects should arrive in few reads."""

EVENT_LIMIT_BYTES = 2**24
"""The longest watch event: an object may have 3 MiB, and twice that when modified."""

REQUEST_TIMEOUT_S = 60.0
"""The limit of one request, from connecting to the last byte: Kubernetes' own --request-timeout."""
CONNECT_TIMEOUT_S = 10.0

WATCH_IDLE_S = 130.0
"""A watch without a byte for this long (bookmarks arrive each minute) has a dead connection and is ended. One that was
only quiet resumes."""

PLUGINS_PER_CLIENT = 2
"""Concurrent runs of a credential plugin that one client waits for."""
CONNECTIONS_PER_CLIENT = 100
"""Open connections, watches included."""

READING = ("GET", "HEAD")

_encode = msgspec.json.Encoder().encode


class HttpClient:
    """A session with one cluster. Use it in one event loop, and :meth:`close` it there.

    ``connections`` bounds the open ones, 0 for no bound: each watch holds one. ``fence`` returns why writes are
    forbidden, empty while they are allowed; it is called when the connection is open, immediately before the first byte
    of each writing request and of each repetition.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        connections: int = CONNECTIONS_PER_CLIENT,
        fence: Fence | None = None,
        wary: bool = False,
    ) -> None:
        """``wary`` is for controllers: a success without a kind is an error, and a watch first yields an empty batch
        when it has begun."""
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
        """Return the response, also for errors; only cancellation raises."""
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
        """Yield batches of encoded events (one JSON object each) until the server or the connection ends the watch.

        Raises the server's ApiError, and Unavailable if the server cannot be reached at the start.
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
            # A broken watch has simply ended: the caller resumes from the last resourceVersion it saw.

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _usable(self) -> ClusterAccess:
        """Return the access, with the credential of its plugin if it has one (in a thread). Raises PluginError."""
        plugin = self._access.exec_plugin
        if plugin is None:
            return self._access
        known = PLUGINS.known(plugin)
        return await self._with(known if known is not None else await self._in_thread(lambda: PLUGINS.get(plugin)))

    async def _renewed(self, refused: ClusterAccess) -> ClusterAccess | None:
        """Return the access with a new credential; None without a plugin, or if the credential was renewed already."""
        plugin = self._access.exec_plugin
        if plugin is None or refused.renewed:
            return None
        fresh = await self._in_thread(lambda: PLUGINS.renew(plugin, _credential_of(refused)))
        return replace(await self._with(fresh), renewed=True)

    async def _in_thread(self, ask: Callable[[], Credential]) -> Credential:
        """Run a plugin in this client's own thread: one that hangs does not block others."""
        from syncline.base.threads import Threads  # imported here: only clients with an event loop need it

        self._threads = self._threads or Threads("credentials", Limits(PLUGINS_PER_CLIENT))
        found: Credential = await self._threads.start(ask)
        return found

    async def _with(self, credential: Credential) -> ClusterAccess:
        """Return the access with a credential; a new certificate closes the old connections."""
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
        """Return the session, created on first use because it belongs to the running loop."""
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
        """Call the fence at the two moments in which a request gets its connection; after them nothing waits."""
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
    """Yield the complete lines received so far; the rest waits for its newline."""
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
    # An unfinished last line means a broken connection: the next watch repeats the event.


class BlockingClient:
    """A ``Transport`` to one cluster, not thread-safe."""

    def __init__(self, access: ClusterAccess) -> None:
        self._given = self._access = access
        self._connection: http.client.HTTPConnection | None = None

    def send(self, request: Request) -> Response:
        """Return the response, also for errors; never raises."""
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
        """Yield encoded lines (watch events, or a followed log) until the server ends them.

        Raises the server's ApiError. The connection is used up; later requests open a new one.
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
        """Return True if the plugin gives a credential other than the refused one."""
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
        """Send on the open connection; if the server has closed it meanwhile, open a new one, once."""
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
        # Also for plain HTTP: a tunnel works with every proxy that allows one to that port.
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
    """TLS to one address under another server name (tls-server-name)."""

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
            return  # Broken: the caller resumes from the last event it saw.
        if not line:
            return
        if len(line) > EVENT_LIMIT_BYTES:
            raise InternalError(f"a watch event is longer than {EVENT_LIMIT_BYTES} bytes; this is no Kubernetes API")
        yield line.rstrip(b"\n")


PLUGINS = Plugins()
"""Shared by the process: clients of one cluster share the plugin's credentials."""


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
    """Return headers with lower-case names; values of a repeated one (``Warning``) are joined by line breaks."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        lower = name.lower()
        headers[lower] = f"{headers[lower]}\n{value}" if lower in headers else value
    return headers


def request_headers(access: ClusterAccess, request: Request) -> list[tuple[str, str]]:
    """Return the request's headers, plus credentials, content type and accept if they are missing."""
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
    """Return the token; a token file is read for each request, since the kubelet replaces it before it expires."""
    if access.token is not None or access.token_file is None:
        return access.token
    try:
        return Secret(access.token_file.read_text().strip())
    except OSError:
        return None  # The server answers 401, which says more than we could here.


def tls_context(access: ClusterAccess) -> ssl.SSLContext | None:
    """Return trust and client certificate; None for plain HTTP. Raises ssl.SSLError for bad PEM."""
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
    """Describe in one sentence a server that is unreachable, has the wrong identity, or does not respond.

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
