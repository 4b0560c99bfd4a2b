"""Sends HTTP requests to chart repositories, registries and Git hosts, blocking and with limits: :func:`fetch`.

``sources/remote/artifacts.py`` and ``sources/remote/registry.py`` call it in worker threads. Credentials are sent only
to their origin, never to another one after a redirect; bodies, redirects and time are limited; messages name the
address without secret parts.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import http.client
import socket
import ssl
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from syncline.base.scratch import named_in_memory
from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.remote.address import DEFAULT_NETWORKS, Networks, check_host, is_forbidden
from syncline.sources.remote.credentials import RepositoryAccess
from syncline.sources.remote.dialling import open_connection
from syncline.sources.remote.turns import away
from syncline.sources.workers.read_scope import current

REDIRECTS = (301, 302, 303, 307, 308)
NOT_MODIFIED = 304
CHUNK = 1 << 16
TRUSTED_FOR_S = 600
"""So long the authorities of the system are taken as they were read."""


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Limits of one request; ``bytes`` is the size of the decompressed body."""

    bytes: int = 4_000_000
    wait_s: float = 30.0
    """Without a byte from the other side."""
    wall_s: float = 300.0
    redirects: int = 5


Place = tuple[str, bool]
"""An origin, and whether our own credentials and certificates go there."""


class Line:
    """One connection that stays open between the requests of one thread to one origin, with one access."""

    def __init__(self) -> None:
        self._place: Place = ("", False)
        self._held: http.client.HTTPConnection | None = None

    def take(self, place: Place) -> http.client.HTTPConnection | None:
        """Return the connection to a place, which is no longer kept."""
        if place != self._place:
            self.close()
        found, self._held = self._held, None
        return found

    def keep(self, place: Place, connection: http.client.HTTPConnection) -> None:
        self.close()
        self._place, self._held = place, connection

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
        self._held = None


@dataclass(frozen=True, slots=True)
class WebRequest:
    """``access`` has TLS, proxy and, if ``signed``, the credentials; ``label`` names the work in messages."""

    url: str
    label: str
    access: RepositoryAccess | None = None
    signed: bool = True
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers that only the origin of ``url`` may see."""
    body: bytes = field(default=b"", repr=False)
    secret_body: bool = False
    """The body is for the origin of ``url`` alone, too."""
    limits: WebLimits = WebLimits()
    networks: Networks = DEFAULT_NETWORKS
    """That are not reached, whatever names them: the request, a redirect or the DNS."""
    same_origin: bool = False
    """Whether a redirect to another origin is refused, not followed without credentials."""
    line: Line | None = None
    """Keeps the connection for the next request; the caller closes it. None: each request has its own."""


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A response. Header names are in lower case; ``url`` is the one after redirects."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    url: str

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def said(self) -> str:
        """The status line: ``404 Not Found``."""
        return f"{self.status} {http.client.responses.get(self.status, '')}".strip()


def origin_of(url: str) -> str:
    """Return ``https://host:port``, always with port; empty for an invalid address."""
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:
        return ""
    scheme = parts.scheme.lower()
    return f"{scheme}://{(parts.hostname or '').lower()}:{port or (443 if scheme == 'https' else 80)}"


def shown_url(url: str) -> str:
    """Return a URL for messages: without user, query and fragment, which may contain tokens."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def basic(username: str, password: str) -> str:
    """Return the value of an ``Authorization`` header."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def fetch(request: WebRequest) -> WebAnswer:
    """Return the response after redirects, whatever its status. Raises :class:`SourceError` at a limit."""
    with away():
        return _followed(request)


def _followed(request: WebRequest) -> WebAnswer:
    """Follow redirects under one deadline."""
    until = time.monotonic() + min(request.limits.wall_s, current().left_s)
    url, method, body = request.url, request.method, request.body
    own, first = True, _checked_origin(request, url)
    for _ in range(request.limits.redirects + 1):
        # Who was sent elsewhere and back again follows a stranger's word: nothing of ours goes along any more.
        own = own and _checked_origin(request, url) == first
        left = replace(request.limits, wall_s=max(until - time.monotonic(), 0.001))
        answer = _once(replace(request, limits=left), url, method, body, own=own)
        target = answer.headers.get("location", "")
        if answer.status not in REDIRECTS or not target:
            return answer
        url = _joined(request, url, target)
        if urlsplit(request.url).scheme == "https" and urlsplit(url).scheme != "https":
            raise _problem(request, f"redirects from https to {urlsplit(url).scheme or 'nowhere'}", Problem.REFUSED)
        if request.same_origin and origin_of(url) != origin_of(request.url):
            raise _problem(request, f"redirects to {shown_url(url)}, which is another origin", Problem.REFUSED)
        if answer.status == 303:
            method, body = "GET", b""
        if body and request.secret_body and _checked_origin(request, url) != first:
            raise _problem(request, f"redirects what is for it alone to {shown_url(url)}", Problem.REFUSED)
    raise _problem(request, f"redirects more than {request.limits.redirects} times")


def _joined(request: WebRequest, url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        raise _problem(request, "redirects to an address that cannot be read", Problem.REFUSED) from None


def _checked_origin(request: WebRequest, url: str) -> str:
    """Return the origin; raises :class:`SourceError` for hosts that are invalid or forbidden."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _problem(request, f"{parts.scheme or 'no'} address is no http or https address", Problem.REFUSED)
        host = check_host(parts.hostname, literal=":" in parts.hostname)
        origin = f"{parts.scheme}://{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    except ValueError as error:
        raise _problem(request, f"{shown_url(url)} has no valid host ({error})", Problem.REFUSED) from None
    if is_forbidden(host, request.networks):
        raise _problem(request, f"{shown_url(url)} {_UNREACHED}", Problem.REFUSED)
    return origin


_UNREACHED = "lies in a network that repositories may not name"


def _problem(request: WebRequest, what: str, problem: Problem = Problem.UNREACHABLE) -> SourceError:
    masked = request.access.mask(what) if request.access is not None else what
    return SourceError(problem, f"{request.label}: {shown_url(request.url)}: {mask_credentials(masked)}")


def _once(request: WebRequest, url: str, method: str, body: bytes, *, own: bool) -> WebAnswer:
    headers = {"User-Agent": "syncline", "Accept": "*/*", **request.headers}
    headers |= _credentials(request, url) | dict(request.secret_headers) if own else {}
    place = (origin_of(url), own)
    kept = request.line.take(place) if request.line is not None else None
    if kept is not None and method in ("GET", "HEAD"):
        # A host may close a connection that waits; nothing was answered then, and the request is made once more.
        with contextlib.suppress(ConnectionError, http.client.RemoteDisconnected):
            return _exchanged(request, url, method, body, headers, place, kept)
    elif kept is not None:
        kept.close()
    try:
        return _exchanged(request, url, method, body, headers, place, None)
    except (ConnectionError, http.client.RemoteDisconnected) as error:
        raise _problem(request, _said(error)) from None


def _exchanged(
    request: WebRequest,
    url: str,
    method: str,
    body: bytes,
    headers: Mapping[str, str],
    place: Place,
    kept: http.client.HTTPConnection | None,
) -> WebAnswer:
    """Send one request and read its answer. Raises ``ConnectionError`` if the other side closes, else
    :class:`SourceError`."""
    connection, expired, again = kept, threading.Event(), False
    try:
        connection, path, more = _connect(request, url, kept, own=place[1])
        with _deadline(connection, request.limits.wall_s, expired) as taken:
            if kept is None:
                connection.connect()
                _check_peer(request, connection)
            taken.append(connection.sock)
            connection.request(method, path, body=body or None, headers={**headers, **more})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            content = _body(request, response, found)
            if expired.is_set():
                raise TimeoutError
            again = not response.will_close
            return WebAnswer(response.status, found, content, url)
    except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
        if expired.is_set() or isinstance(error, TimeoutError):
            raise _problem(request, f"no whole answer within {round(request.limits.wall_s, 1):g} seconds") from None
        if isinstance(error, ConnectionError | http.client.RemoteDisconnected):
            raise
        raise _problem(request, _said(error)) from None
    finally:
        if connection is not None and again and request.line is not None:
            request.line.keep(place, connection)
        elif connection is not None:
            connection.close()


def _check_peer(request: WebRequest, connection: http.client.HTTPConnection) -> None:
    """Check the resolved address of the connection before anything is sent."""
    peer = str(connection.sock.getpeername()[0])
    if is_forbidden(peer, request.networks):
        raise _problem(request, f"{peer} {_UNREACHED}", Problem.REFUSED)


def _said(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate cannot be verified ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"


def _credentials(request: WebRequest, url: str) -> dict[str, str]:
    """Return the headers with the credentials of the access, or of the URL."""
    access, parts = request.access, urlsplit(url)
    if access is not None and request.signed:
        if access.bearer_token is not None:
            return {"Authorization": f"Bearer {access.bearer_token.reveal()}"}
        if access.username or access.password is not None:
            return {"Authorization": basic(access.username, access.password.reveal() if access.password else "")}
    if parts.username or parts.password:
        return {"Authorization": basic(unquote(parts.username or ""), unquote(parts.password or ""))}
    return {}


# -- connections ----------------------------------------------------------------------------------------------------


def _connect(
    request: WebRequest, url: str, kept: http.client.HTTPConnection | None, *, own: bool
) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """Return the connection, which may be one that was kept, the request target, and headers for a proxy."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    target = urlunsplit(("", "", quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._"), parts.query, ""))
    access = request.access if own else None
    context = _tls(access) if secure and kept is None else None
    proxy = _proxy(request.access, parts.scheme, host)
    if not proxy:
        return kept or open_connection(host, port, request.limits.wait_s, request.limits.wall_s, context), target, {}
    through = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    given = {}
    if through.username:
        given["Proxy-Authorization"] = basic(unquote(through.username), unquote(through.password or ""))
    host_port = through.hostname or "", through.port or 3128
    connection = kept or open_connection(*host_port, request.limits.wait_s, request.limits.wall_s, context)
    if secure:
        if kept is None:
            connection.set_tunnel(host, port, given)
        return connection, target, {}
    return connection, urlunsplit((parts.scheme, f"{host}:{port}", target, "", "")), given


def _proxy(access: RepositoryAccess | None, scheme: str, host: str) -> str:
    """Return the proxy of the repository, or that of the process."""
    if access is not None and access.proxy is not None:
        bypassed = urllib.request.proxy_bypass_environment(host, {"no": access.no_proxy})  # type: ignore[attr-defined]
        return "" if bypassed else access.proxy.reveal()
    if urllib.request.proxy_bypass(host):
        return ""
    return urllib.request.getproxies().get(scheme, "")


def _tls(access: RepositoryAccess | None) -> ssl.SSLContext:
    insecure, ca_pem = (access.insecure, access.ca_pem) if access is not None else (False, "")
    if access is None or not access.certificate_pem or access.certificate_key is None:
        return _shared_tls(insecure, "" if insecure else ca_pem, int(time.monotonic() / TRUSTED_FOR_S))
    context = _new_tls(insecure, ca_pem)
    with named_in_memory(access.certificate_pem + "\n" + access.certificate_key.reveal()) as name:
        context.load_cert_chain(name)
    return context


@functools.lru_cache(maxsize=64)
def _shared_tls(insecure: bool, ca_pem: str, _period: int) -> ssl.SSLContext:
    """Return the settings of connections without a client certificate. Reading the system's authorities takes tens of
    milliseconds, and a list of repositories a thousand connections."""
    return _new_tls(insecure, ca_pem)


def _new_tls(insecure: bool, ca_pem: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_pem:
        context.load_verify_locations(cadata=ca_pem)
    return context


@contextlib.contextmanager
def _deadline(connection: http.client.HTTPConnection, wall_s: float, expired: threading.Event) -> Iterator[list[Any]]:
    """Close the connection's socket at the deadline, and those added to the yielded list: a response takes over its
    socket."""
    taken: list[Any] = []

    def expire() -> None:
        expired.set()
        for one in (connection.sock, *taken):
            if one is not None:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(one, socket.SHUT_RDWR)  # also in the middle of a handshake

    timer = threading.Timer(wall_s, expire)
    timer.daemon = True
    timer.start()
    try:
        yield taken
    finally:
        timer.cancel()


def _body(request: WebRequest, response: http.client.HTTPResponse, headers: Mapping[str, str]) -> bytes:
    limit = request.limits.bytes
    unpack = zlib.decompressobj(31) if headers.get("content-encoding", "").lower() == "gzip" else None
    parts: list[bytes] = []
    size = 0
    while chunk := response.read(CHUNK):
        while chunk:
            part = unpack.decompress(chunk, limit + 1 - size) if unpack is not None else chunk
            chunk = unpack.unconsumed_tail if unpack is not None else b""
            size += len(part)
            if size > limit:
                raise _problem(request, f"the answer is larger than {limit} bytes", Problem.TOO_LARGE)
            parts.append(part)
    return b"".join(parts)
