"""HTTP around the API: sockets, TLS, credentials, watch frames, durability.

Called by ``assembly``. Turns an HTTP request into a :class:`Request` and a user, asks :class:`Api`, and writes the
answer once the revision it depends on is on disk. Knows no kinds and no verbs; content negotiation belongs to the API.
One handler takes every path: a routing table would only cost time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import tempfile
import zlib
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from aiohttp import web
from multidict import CIMultiDict

from syncline.base.clock import Clock
from syncline.cluster.answered import Answered
from syncline.cluster.authn import Authenticator
from syncline.cluster.conversing import converse
from syncline.cluster.pki import KeyPair
from syncline.cluster.store import Store
from syncline.cluster.users import ANONYMOUS, UserInfo
from syncline.kube.client import Request, Response, Stream
from syncline.kube.errors import ApiError, InternalError, TooLarge

__all__ = ["Api", "ApiServer", "Durability", "ServeError", "TimedStream", "threadsafe", "tune_garbage_collection"]

log = logging.getLogger("syncline.serve")

BODY_LIMIT_BYTES = 3 * 1024 * 1024
"""Largest request body (Kubernetes' MaxRequestBodyBytes)."""

DRAIN_LIMIT_BYTES = 16 * 1024 * 1024
"""How much of a body that is too large is still read, so that its sender sees the refusal instead of a broken pipe."""

GZIP_FROM_BYTES = 128 * 1024
"""Smaller answers are not worth the time (Kubernetes' defaultGzipThresholdBytes)."""
GZIP_LEVEL = 1

HEADER_LIMIT_BYTES = 64 * 1024
"""One header line or request line: label selectors of controllers grow long."""

WATCH_BATCH_EVENTS = 500
"""Events joined into one write before other requests get their turn."""

TICK_S = 1.0
"""How often open watches are asked for bookmarks and for their end."""

BACKLOG_CONNECTIONS = 1024
SHUTDOWN_S = 5.0
"""How long requests in flight may take when the server stops."""

IDLE_TLS_BUFFER_BYTES = 16384
"""asyncio reserves 256 KiB for each idle TLS stream unless told otherwise; uvloop does not."""

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
JSON = "application/json"


class ServeError(Exception):
    """The server cannot start; the message names the address and what to do."""


class Api(Protocol):
    """What is served. Never raises for a refusal: the answer carries it."""

    def handle(self, request: Request, user: UserInfo) -> Response: ...


@runtime_checkable
class TimedStream(Protocol):
    """A watch that ends or sends bookmarks by the clock."""

    def tick(self, now: datetime) -> None: ...


class Durability:
    """Holds answers back until the store's writes are on disk. Without a disk everything is durable at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.failure: Exception | None = None

    async def wait(self, revision: int) -> None:
        """Until ``revision`` is durable; raises InternalError when the disk has failed."""
        if revision <= self._store.committed:
            return
        if self.failure is not None:
            raise InternalError(f"the write is not on disk: {self.failure}")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (revision, next(self._order), future))
        await future

    async def wait_for_all(self) -> None:
        """Until everything written so far is durable."""
        await self.wait(self._store.revision)

    def advance(self, revision: int) -> None:
        """Everything up to ``revision`` is durable: wake watchers and release answers. In the loop's thread only."""
        self._store.mark_durable(revision)
        while self._waiting and self._waiting[0][0] <= revision:
            _, _, future = heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    def fail(self, error: Exception) -> None:
        """Nothing more will become durable: refuse what waits and what comes."""
        self.failure = error
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(InternalError(f"the write is not on disk: {error}"))
        self._waiting.clear()


@dataclass(slots=True, eq=False)
class _OpenWatch:
    """``stop`` marks that the server ends it; ``wake`` lets its writer look."""

    stream: Stream
    ready: asyncio.Event
    stop: bool = False


class ApiServer:
    """One listening address. ``durability`` is shared with whoever follows the disk; ``observers`` are told of each
    request when its status is known, and must be quick."""

    def __init__(
        self,
        api: Api,
        authenticator: Authenticator,
        clock: Clock,
        durability: Durability,
        observers: Sequence[Callable[[Answered], None]] = (),
    ) -> None:
        self._api = api
        self._authenticator = authenticator
        self._clock = clock
        self._durability = durability
        self._observers = observers
        self._watches: dict[_OpenWatch, None] = {}
        self._stopping = False
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self.port = 0

    async def start(self, host: str, port: int, *, certificate: KeyPair | None = None, client_ca_pem: str = "") -> None:
        """Listen; ``port`` 0 takes a free one (see :attr:`port`). Without a certificate it speaks plain HTTP.

        Raises :class:`ServeError`.
        """
        context = _tls_context(certificate, client_ca_pem) if certificate else None
        loop = asyncio.get_running_loop()
        self._web = web.Server(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            max_line_size=HEADER_LIMIT_BYTES,
            max_field_size=HEADER_LIMIT_BYTES,
        )
        try:
            self._listener = await loop.create_server(
                self._web, host, port, ssl=context, backlog=BACKLOG_CONNECTIONS, reuse_address=True
            )
        except OSError as error:
            raise ServeError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; choose another address or port"
            ) from error
        self.port = self._listener.sockets[0].getsockname()[1]
        self._tick()

    async def stop(self) -> None:
        """End watches properly, let requests in flight finish, close."""
        self._stopping = True
        if self._ticker is not None:
            self._ticker.cancel()
        if self._listener is not None:
            self._listener.close()
        for watch in self._watches:
            watch.stop = True
            watch.ready.set()
        if self._web is not None:
            self._web.pre_shutdown()  # Connections that clients keep open, but do not use, would hold us up.
            await self._web.shutdown(SHUTDOWN_S)

    def _tick(self) -> None:
        now = self._clock.now()
        for watch in list(self._watches):
            if isinstance(watch.stream, TimedStream):
                watch.stream.tick(now)
                if watch.stream.ended:
                    watch.ready.set()
        self._ticker = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    # -- one request ----------------------------------------------------------------------------------------------

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        if incoming.path.startswith(HEALTH_PATHS):
            health = self._health(incoming.path, "verbose" in incoming.query)
            if health is not None:
                return health
        began, user = self._clock.now(), ANONYMOUS
        try:
            user = self._authenticate(incoming)
            body = await _read_body(incoming) if incoming.can_read_body else None
            answer = self._api.handle(_request_of(incoming, body), user)
            if answer.stream is None and answer.session is None:
                answer.raw  # noqa: B018 - encode here, where a failure still becomes an answer
            await self._durability.wait(answer.revision)
        except ApiError as error:
            answer = Response.refused(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            # A bug of ours. The client gets Kubernetes' words for it, the log gets the trace.
            log.exception("%s %s failed", incoming.method, incoming.path)
            answer = Response.refused(InternalError(f'Internal error occurred: failed to answer "{incoming.path}"'))
        if self._observers:
            self._tell(incoming, user, answer.status, began)
        if answer.session is not None:
            return await converse(incoming, answer.session)
        if answer.stream is not None:
            return await self._watch(incoming, answer, answer.stream)
        return await _written(incoming, answer)

    def _tell(self, incoming: web.BaseRequest, user: UserInfo, status: int, began: datetime) -> None:
        request = _request_of(incoming, None)
        answered = Answered(request, user, status, began, self._clock.now(), incoming.remote or "")
        for observer in self._observers:
            observer(answered)

    @property
    def watching(self) -> int:
        """Watches that are open now."""
        return len(self._watches)

    def _authenticate(self, incoming: web.BaseRequest) -> UserInfo:
        credentials: dict[str, list[str]] = {}
        for name, value in incoming.headers.items():
            lower = name.lower()
            if lower == "authorization" or lower.startswith("impersonate-"):
                credentials.setdefault(lower, []).append(value)
        transport = incoming.transport
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        return self._authenticator.authenticate(credentials, certificate, self._clock.now(), incoming.path)

    def _health(self, path: str, verbose: bool) -> web.Response | None:
        """The probes: alive while we answer, ready while we serve and the disk writes. None: no such check."""
        probe, _, check = path.lstrip("/").partition("/")
        failing = self._durability.failure is not None or (probe == "readyz" and self._stopping)
        checks = {"ping": True, "disk": self._durability.failure is None}
        if probe == "readyz":
            checks["shutdown"] = not self._stopping
        if check and check not in checks:
            return None
        if check:
            failing = not checks[check]
        if not failing and not verbose:
            return web.Response(text="ok")
        lines = [f"[{'+' if fine else '-'}]{name} {'ok' if fine else 'failed'}" for name, fine in checks.items()]
        verdict = "failed" if failing else "passed"
        return web.Response(status=500 if failing else 200, text="\n".join([*lines, f"{probe} check {verdict}", ""]))

    # -- watches --------------------------------------------------------------------------------------------------

    async def _watch(self, incoming: web.BaseRequest, answer: Response, stream: Stream) -> web.StreamResponse:
        """Write frames as they come, one object a line, until the stream ends, the client leaves or we stop.

        A client that does not read blocks only its own ``write``; its cursor overruns and the API ends the stream.
        """
        out = web.StreamResponse(status=answer.status, headers=_headers(answer))
        out.enable_chunked_encoding()
        watch = _OpenWatch(stream, asyncio.Event(), stop=self._stopping)
        self._watches[watch] = None
        stream.on_ready = watch.ready.set
        try:
            # What the store shows now is in the first frames; it must not be taken back by a crash.
            await self._durability.wait_for_all()
            await out.prepare(incoming)
            while not watch.stop:
                watch.ready.clear()
                frames = stream.take(WATCH_BATCH_EVENTS)
                if frames:
                    await out.write(b"\n".join(frames) + b"\n")
                elif stream.ended:
                    break
                else:
                    await watch.ready.wait()
            await out.write_eof()
        except ConnectionError:
            pass  # The client left; it will come back with the last resourceVersion it saw.
        finally:
            del self._watches[watch]
            stream.close()
        return out


# -- translation --------------------------------------------------------------------------------------------------


def _request_of(incoming: web.BaseRequest, body: bytes | None) -> Request:
    """Lower-case header names, repeated headers joined; of a repeated query parameter the first counts."""
    headers: dict[str, str] = {}
    for name, value in incoming.headers.items():
        lower = name.lower()
        headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
    query: dict[str, str] = {}
    if incoming.query_string:
        for name, value in incoming.query.items():
            query.setdefault(name, value)
    return Request(incoming.method, incoming.path, query, headers, body, raw_query=incoming.query_string)


async def _read_body(incoming: web.BaseRequest) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in incoming.content.iter_any():
        size += len(chunk)
        if size <= BODY_LIMIT_BYTES:
            chunks.append(chunk)
        elif size > DRAIN_LIMIT_BYTES:
            break
    if size > BODY_LIMIT_BYTES:
        raise TooLarge(f"Request entity too large: limit is {BODY_LIMIT_BYTES}")
    return b"".join(chunks)


async def _written(incoming: web.BaseRequest, answer: Response) -> web.Response:
    raw = answer.raw
    headers = _headers(answer)
    if len(raw) >= GZIP_FROM_BYTES and "gzip" in incoming.headers.get("Accept-Encoding", ""):
        raw = await asyncio.get_running_loop().run_in_executor(None, _gzip, raw)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(status=answer.status, body=raw, headers=headers)


def _headers(answer: Response) -> CIMultiDict[str]:
    """A header value of several lines is sent as several headers of that name (``Warning``)."""
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in answer.headers.items():
        for line in value.split("\n"):
            headers.add(name, line)
    headers.setdefault("Content-Type", JSON)
    headers.setdefault("Cache-Control", "no-cache, private")
    return headers


def _gzip(raw: bytes) -> bytes:
    compressor = zlib.compressobj(GZIP_LEVEL, wbits=31)  # 31: gzip framing
    return compressor.compress(raw) + compressor.flush()


# -- set-up -------------------------------------------------------------------------------------------------------


def _tls_context(certificate: KeyPair, client_ca_pem: str) -> ssl.SSLContext:
    """TLS 1.2 or newer, HTTP/1.1; client certificates are asked for and may be missing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # The ssl module reads keys from files only; this one is readable by us alone and gone at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(certificate.certificate_pem + certificate.key_pem.reveal())
        file.flush()
        context.load_cert_chain(Path(file.name))
    if client_ca_pem:
        context.load_verify_locations(cadata=client_ca_pem)
        context.verify_mode = ssl.CERT_OPTIONAL
    SSLProtocol.max_size = IDLE_TLS_BUFFER_BYTES
    return context


def tune_garbage_collection() -> None:
    """For a process that holds many objects: the default thresholds make decoding three times slower."""
    gc.set_threshold(50_000, 50, 100)


def threadsafe(loop: asyncio.AbstractEventLoop, function: Callable[[Any], None]) -> Callable[[Any], None]:
    """``function`` to be called from another thread, run in ``loop``: for the disk's callbacks."""

    def call(value: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(function, value)

    return call
