"""Serve the API over HTTP: sockets, TLS, credentials, watch frames, durability.

``assembly`` creates an :class:`ApiServer`. It converts an HTTP request to a :class:`Request` and a user, calls
:class:`Api`, and sends the response once the revision it depends on is on disk. It knows no kinds and no verbs; the API
does content negotiation. One handler serves every path, because a routing table would only cost time.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import zlib
from asyncio.sslproto import SSLProtocol
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol, runtime_checkable

from aiohttp import web
from multidict import CIMultiDict

from syncline.base.browserguard import BrowserGuard, Refusal, is_loopback
from syncline.base.clock import Clock
from syncline.base.scratch import named_in_memory
from syncline.cluster.access.audit import Audited, AuditTrail
from syncline.cluster.access.authn import Authenticator
from syncline.cluster.access.authz import SUPERUSERS
from syncline.cluster.access.pki import KeyPair
from syncline.cluster.access.users import ANONYMOUS, UserInfo
from syncline.cluster.fairness.control import Admitted, Fairness, is_long_running
from syncline.cluster.resources.routes import route_of, verb_of
from syncline.cluster.serving.answered import Answered
from syncline.cluster.serving.answers import refusal
from syncline.cluster.serving.connections import Connections
from syncline.cluster.serving.conversing import converse
from syncline.cluster.serving.evaluators import shared_evaluators
from syncline.cluster.serving.guarding import guarded
from syncline.cluster.serving.outgoing import asks_for_socket, outgoing, sent_in_full
from syncline.cluster.serving.webhooks import Caller
from syncline.cluster.storage.store import Store, WriteRefused
from syncline.cluster.verbs.body import read_apart, reads_slowly, remember_read
from syncline.kube.client import Request, Response, settle
from syncline.kube.errors import (
    ApiError,
    InternalError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    error_from_status,
)
from syncline.kube.transport.outbound import Computation, Stream

log = logging.getLogger("syncline.serve")

BODY_LIMIT_BYTES = 3 * 1024 * 1024
"""Largest request body (Kubernetes' MaxRequestBodyBytes)."""

DRAIN_LIMIT_BYTES = 16 * 1024 * 1024
"""Bytes of an oversized body that are still read, so that the client sees the refusal and not a broken pipe."""

GZIP_FROM_BYTES = 128 * 1024
"""Size from which responses are compressed (Kubernetes' defaultGzipThresholdBytes)."""
GZIP_LEVEL = 1

WATCH_BATCH_EVENTS = 500
"""Events per write, so that other requests get their turn."""

MAX_WATCHES = 10_000
"""Open watches; an idle one costs about 60 KB of memory. More get 429."""
MAX_WATCHES_OF_ONE = MAX_WATCHES // 2
"""Open watches per user, so that none takes all of them; members of system:masters are exempt."""
WATCH_RETRY_S = 10

STALLED_S = 60
"""Seconds after which a client that reads nothing is disconnected."""
BODY_S = 60.0
"""Seconds until a body must be complete (Kubernetes' ``--request-timeout``)."""
QUEUE_WAIT_S = 15.0
"""Longest wait for a seat, in seconds: a quarter of the request timeout, as in Kubernetes."""
BIG_ANSWER_BYTES = 64 * 1024
"""Larger responses hold their seat while they are sent; smaller ones fit in a socket's buffer."""

TICK_S = 1.0
"""Interval of the check for due bookmarks and expired watches."""

BACKLOG_CONNECTIONS = 1024
HANDSHAKE_S = 10.0
SHUTDOWN_S = 5.0
"""Seconds that requests in flight may take when the server stops."""

IDLE_TLS_BUFFER_BYTES = 16384
"""asyncio reserves 256 KiB for each idle TLS stream by default; uvloop does not."""


HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
JSON = "application/json"


class ServeError(Exception):
    """The server cannot start; the message names the address and what to do."""


class Api(Protocol):
    """The API behind the server. It raises no refusals: the response carries them, or is pending."""

    def begin(self, request: Request, user: UserInfo) -> Response: ...


@runtime_checkable
class TimedStream(Protocol):
    """A watch with a deadline or bookmarks, driven by the clock."""

    def tick(self, now: datetime) -> None: ...


class Durability:
    """Delays responses until the store's writes are on disk. Without a disk, writes are durable at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.failure: Exception | None = None
        self._refusal: WriteRefused | None = None
        """Why the last writes were undone."""

    async def wait(self, revision: int) -> None:
        """Wait until ``revision`` is durable. Raises WriteRefused if it was undone, InternalError if the disk failed. A
        large request encodes its response after its write, so the write may already be undone when this is called."""
        if self._refusal is not None and self._store.is_undone(revision):
            raise self._refusal
        if revision <= self._store.committed:
            return
        if self.failure is not None:
            raise InternalError(f"the write is not on disk: {self.failure}")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (revision, next(self._order), future))
        await future

    async def wait_for_all(self) -> None:
        """Wait until all writes so far are durable."""
        await self.wait(self._store.revision)

    def advance(self, revision: int) -> None:
        """Mark all writes up to ``revision`` durable and release what waits. Only in the loop's thread."""
        self._store.mark_durable(revision)
        while self._waiting and self._waiting[0][0] <= revision:
            _, _, future = heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    def take_back(self, refusal: WriteRefused) -> None:
        """Undo the writes that are not durable and refuse their requests. Only in the loop's thread."""
        self._store.take_back()
        self._refusal = refusal
        self._refuse(refusal)

    def fail(self, error: Exception) -> None:
        """Record that the disk failed: refuse waiting and later writes."""
        self.failure = error
        self._refuse(InternalError(f"the write is not on disk: {error}"))

    def _refuse(self, error: ApiError) -> None:
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()


@dataclass(slots=True, eq=False)
class _OpenWatch:
    """``stop`` is set when the server ends the watch; ``ready`` wakes its writer."""

    stream: Stream
    ready: asyncio.Event
    user: UserInfo
    transport: asyncio.Transport | None
    stop: bool = False
    writing: bool = False
    stalled: int = 0
    """Seconds since the client last read anything."""

    def leave(self) -> None:
        self.stop = True
        self.ready.set()


class ApiServer:
    """One listening address. ``durability`` is shared with the disk's followers; ``observers`` are called with each
    request once its status is known, and must be quick; ``fairness`` assigns seats (None: no limit); ``caller`` makes
    outbound calls for requests; ``auditor`` is notified of the stages of requests."""

    def __init__(
        self,
        api: Api,
        authenticator: Authenticator,
        clock: Clock,
        durability: Durability,
        observers: Sequence[Callable[[Answered], None]] = (),
        fairness: Fairness | None = None,
        caller: Caller | None = None,
        auditor: AuditTrail | None = None,
    ) -> None:
        self._api = api
        self._authenticator = authenticator
        self._clock = clock
        self._durability = durability
        self._observers = observers
        self._fairness = fairness
        self._caller = caller
        self._auditor = auditor
        self.connections = Connections()
        self.watches_cut_off = 0
        """Watches closed because their client stopped reading."""
        self._watches: dict[_OpenWatch, None] = {}
        self._watchers: Counter[str] = Counter()
        self._stopping = False
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self.port = 0

    async def start(
        self,
        host: str,
        port: int,
        names: Sequence[str] = (),
        *,
        certificate: KeyPair | None = None,
        client_ca_pem: str = "",
    ) -> None:
        """Listen; ``port`` 0 takes a free one (see :attr:`port`). Without a certificate it serves plain HTTP; if that
        needs no credentials either, it listens on loopback only, and clients may address it as ``names``.

        Raises :class:`ServeError`.
        """
        context = tls_context(certificate, client_ca_pem) if certificate else None
        open_to_all = context is None and self._authenticator.trusts_without_credentials
        handle = guarded(self._handle, BrowserGuard(host, tuple(names)), _refused) if open_to_all else self._handle
        loop = asyncio.get_running_loop()
        server = self._web = web.Server(handle, handler_cancellation=True, access_log=None)
        handshake = HANDSHAKE_S if context else None
        try:
            self._listener = await loop.create_server(
                lambda: self.connections.protocol(server),
                host,
                port,
                ssl=context,
                ssl_handshake_timeout=handshake,
                backlog=BACKLOG_CONNECTIONS,
                reuse_address=True,
            )
        except OSError as error:
            raise ServeError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; choose another address or port"
            ) from error
        self.port = self._listener.sockets[0].getsockname()[1]
        if open_to_all and not all(is_loopback(each.getsockname()[0]) for each in self._listener.sockets):
            self._listener.close()
            raise ServeError(f"cannot listen on {host}:{port} without TLS: others reach it; listen on 127.0.0.1")
        self._tick()

    async def stop(self) -> None:
        """End watches cleanly, let requests in flight finish, close."""
        self._stopping = True
        if self._ticker is not None:
            self._ticker.cancel()
        if self._listener is not None:
            self._listener.close()
        for watch in self._watches:
            watch.stop = True
            watch.ready.set()
        if self._web is not None:
            self._web.pre_shutdown()  # Idle keep-alive connections would delay the shutdown.
            await self._web.shutdown(SHUTDOWN_S)

    def _tick(self) -> None:
        now = self._clock.now()
        for watch in list(self._watches):
            if isinstance(watch.stream, TimedStream):
                watch.stream.tick(now)
                if watch.stream.ended:
                    watch.ready.set()
            if watch.writing:
                watch.stalled += 1
                if watch.stalled > STALLED_S and watch.transport is not None:
                    self.watches_cut_off += 1
                    watch.transport.abort()
                    watch.transport = None
        self.connections.tick()
        if self._fairness is not None:
            self._fairness.tick(asyncio.get_running_loop().time())
        self._ticker = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    # -- one request ----------------------------------------------------------------------------------------------

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        if incoming.path.startswith(HEALTH_PATHS):
            health = self._health(incoming.path, "verbose" in incoming.query)
            if health is not None:
                return health
        self.connections.spoke(incoming.protocol)
        began, user = self._clock.now(), ANONYMOUS
        seated: Admitted | None = None
        audited: Audited | None = None
        request = _request_of(incoming)
        try:
            try:
                caller, credentials = self._identify(incoming, request, began)
                if self._auditor is not None:
                    audited = self._auditor.begin(request, caller, incoming.remote or "", began)
                user, constraint = self._authenticator.acting(caller, credentials, request)
                if audited is not None:
                    audited.acting, audited.constraint = user, constraint
                if self._fairness is not None:
                    seated = await self._seat(self._fairness, request, user)
                asked = await _with_body(request, incoming, user) if incoming.can_read_body else request
                if audited is not None and self._auditor is not None:
                    self._auditor.read(audited, asked.body)
                answer = await self._durable_answer(asked, user)
                if answer.stream is not None:
                    self._room_for_watch(user, answer.stream)
            except ApiError as error:
                answer = refusal(error)
            except _NoSeat as full:
                answer, seated = full.answer, full.admitted
            except (ConnectionError, asyncio.CancelledError):
                raise
            except Exception:
                # Our bug: the client gets Kubernetes' message, the log gets the trace.
                log.exception("%s %s failed", incoming.method, incoming.path)
                answer = Response.refused(InternalError(f'Internal error occurred: failed to answer "{incoming.path}"'))
                if audited is not None and self._auditor is not None:
                    self._auditor.panicked(audited, "the log of the server has the trace")
                    audited = None
            if self._observers:
                self._tell(incoming, request, user, answer, began)
            if seated is not None:
                answer.headers = {**answer.headers, **seated.headers}
            return await self._send(incoming, answer, user, seated, audited)
        finally:
            self._leave(seated)

    async def _send(
        self,
        incoming: web.BaseRequest,
        answer: Response,
        user: UserInfo,
        seated: Admitted | None,
        audited: Audited | None,
    ) -> web.StreamResponse:
        auditor = self._auditor if audited is not None else None
        if auditor is None or audited is None:
            return await self._sent(incoming, answer, user, seated)
        answer.headers = {**answer.headers, "Audit-Id": audited.audit_id}
        if answer.stream is None and answer.session is None:
            auditor.complete(audited, answer)
            return await self._sent(incoming, answer, user, seated)
        auditor.started(audited, answer)
        try:
            return await self._sent(incoming, answer, user, seated)
        finally:
            auditor.complete(audited, answer)

    async def _sent(
        self, incoming: web.BaseRequest, answer: Response, user: UserInfo, seated: Admitted | None
    ) -> web.StreamResponse:
        if answer.session is not None:
            return await converse(incoming, answer.session)
        if answer.stream is not None:
            return await self._watch(incoming, answer, answer.stream, user, seated)
        if answer.status == 200 and _is_log(incoming.path) and asks_for_socket(incoming.headers):
            return await sent_in_full(incoming, answer.raw)
        return await _written(incoming, answer)

    async def _durable_answer(self, request: Request, user: UserInfo) -> Response:
        """Return the response once all that it shows is on disk: a crash must not undo what a client saw.

        If the disk has no space and the write is undone, run the request again, unless its write succeeded.
        """
        while True:
            answer = self._api.begin(request, user)
            if answer.pending is not None:
                answer = await self._caller.settle(answer) if self._caller is not None else settle(answer, None)
            refused = answer.status >= 400
            try:
                if answer.stream is None and answer.session is None:
                    answer.raw  # noqa: B018 - encode here, where a failure still becomes an answer
                if answer.stream is not None or refused:
                    # Initial watch frames, 404 and 409 show the store's current state.
                    await self._durability.wait_for_all()
                await self._durability.wait(answer.revision)
            except BaseException as error:
                if answer.stream is not None:
                    answer.stream.close()
                if isinstance(error, WriteRefused) and (refused or request.method in ("GET", "HEAD")):
                    continue
                raise
            return answer

    async def _seat(self, fairness: Fairness, request: Request, user: UserInfo) -> Admitted | None:
        """Wait for a seat; return None for requests that need none. Raises :class:`_NoSeat`."""
        route = route_of(request.path)
        verb = verb_of(request.method, route, request.query)
        if verb != "watch" and is_long_running(route, verb):
            return None
        loop = asyncio.get_running_loop()
        admitted = fairness.enter(user, verb, route, request.query, loop.time())
        if admitted.waiting:
            await self._queued(fairness, admitted)
        if admitted.refused:
            raise _NoSeat(admitted, fairness.retry_after_s(admitted.ticket))
        return admitted

    async def _queued(self, fairness: Fairness, admitted: Admitted) -> None:
        """Wait until a seat is free, the time limit passes or the client leaves."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not turn.done():
                turn.set_result(None)

        admitted.ticket.wake = wake
        timer = loop.call_later(QUEUE_WAIT_S, wake)
        try:
            await turn
        except asyncio.CancelledError:
            fairness.give_up(admitted.ticket, "cancelled", loop.time())
            raise
        finally:
            timer.cancel()
        if admitted.waiting:
            fairness.give_up(admitted.ticket, "time-out", loop.time())
        else:
            fairness.began(admitted.ticket, loop.time())

    def _leave(self, admitted: Admitted | None) -> None:
        if admitted is not None and self._fairness is not None:
            self._fairness.leave(admitted.ticket, asyncio.get_running_loop().time())

    def _room_for_watch(self, user: UserInfo, stream: Stream) -> None:
        """Check the watch limits; at the limit, close the stream and raise TooManyRequests."""
        most = MAX_WATCHES if SUPERUSERS in user.groups else MAX_WATCHES_OF_ONE
        if len(self._watches) < MAX_WATCHES and self._watchers[user.name] < most:
            return
        stream.close()
        raise TooManyRequests("Too many requests, please try again later.", retry_after_s=WATCH_RETRY_S)

    def _tell(
        self, incoming: web.BaseRequest, request: Request, user: UserInfo, answer: Response, began: datetime
    ) -> None:
        now, said = self._clock.now(), answer.annotations or {}
        answered = Answered(request, user, answer.status, began, now, incoming.remote or "", said)
        for observer in self._observers:
            observer(answered)

    @property
    def watching(self) -> int:
        """The number of open watches."""
        return len(self._watches)

    def _identify(
        self, incoming: web.BaseRequest, request: Request, began: datetime
    ) -> tuple[UserInfo, dict[str, list[str]]]:
        """Return the authenticated user and the headers that may impersonate another. Raises Unauthorized."""
        credentials: dict[str, list[str]] = {}
        for name, value in incoming.headers.items():
            lower = name.lower()
            if lower == "authorization" or lower.startswith("impersonate-"):
                credentials.setdefault(lower, []).append(value)
        transport = incoming.transport
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        try:
            return self._authenticator.identify(credentials, certificate, began, request.path), credentials
        except Unauthorized:
            audited = self._auditor.begin(request, None, incoming.remote or "", began) if self._auditor else None
            if audited is not None and self._auditor is not None:
                tried = "bearer" if "authorization" in credentials else "x509" if certificate else ""
                self._auditor.refused(audited, f"Authentication failed, attempted: {tried or '(none)'}")
            raise

    def _health(self, path: str, verbose: bool) -> web.Response | None:
        """Answer livez and readyz: ready while requests are served and the disk writes. None: no such check."""
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

    async def _watch(
        self, incoming: web.BaseRequest, answer: Response, stream: Stream, user: UserInfo, seated: Admitted | None
    ) -> web.StreamResponse:
        """Write frames, one object per line, until the stream ends, the client leaves or the server stops.

        A client that does not read blocks only its own ``write``: its cursor overruns, and it is disconnected after a
        while. The seat is held only until the watch has started.
        """
        out = outgoing(incoming, answer.status, _headers(answer))
        watch = _OpenWatch(stream, asyncio.Event(), user, incoming.transport, stop=self._stopping)
        self._watches[watch] = None
        self._watchers[user.name] += 1
        stream.on_ready = watch.ready.set
        try:
            await out.begin(incoming, watch.leave)
            self._leave(seated)
            while not watch.stop:
                watch.ready.clear()
                frames = stream.take(WATCH_BATCH_EVENTS)
                if frames:
                    watch.writing, watch.stalled = True, 0
                    await out.send(frames)
                    watch.writing = False
                elif stream.ended:
                    break
                else:
                    await watch.ready.wait()
            await out.end()
        except ConnectionError:
            pass  # The client left; it resumes from the last resourceVersion it saw.
        finally:
            out.close()
            del self._watches[watch]
            self._watchers[user.name] -= 1
            if not self._watchers[user.name]:
                del self._watchers[user.name]
            stream.close()
        return out.response


# -- translation --------------------------------------------------------------------------------------------------


class _NoSeat(Exception):
    """All seats and the queue are full. Kubernetes responds in plain text."""

    def __init__(self, admitted: Admitted, retry_after_s: int) -> None:
        super().__init__("too many requests")
        self.admitted = admitted
        headers = {
            "Content-Type": "text/plain; charset=utf-8",
            "X-Content-Type-Options": "nosniff",
            "Retry-After": str(retry_after_s),
        }
        self.answer = Response.encoded(429, b"Too many requests, please try again later.\n", headers)


def _refused(refusal: Refusal) -> web.Response:
    """Return the guard's refusal as a Kubernetes Status."""
    error = error_from_status(refusal.message, refusal.status)
    headers = {"X-Content-Type-Options": "nosniff", "Content-Type": JSON}
    return web.Response(status=refusal.status, body=Response.refused(error).raw, headers=headers)


def _request_of(incoming: web.BaseRequest) -> Request:
    """Convert all but the body: lower-case header names, repeated headers joined, the first of repeated parameters."""
    headers: dict[str, str] = {}
    for name, value in incoming.headers.items():
        lower = name.lower()
        headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
    query: dict[str, str] = {}
    if incoming.query_string:
        for name, value in incoming.query.items():
            query.setdefault(name, value)
    return Request(incoming.method, incoming.path, query, headers, raw_query=incoming.query_string)


async def _with_body(request: Request, incoming: web.BaseRequest, user: UserInfo) -> Request:
    """Add the body to a request. Raises ApiError."""
    content = incoming.content
    whole = content.is_eof() and content.total_bytes <= BODY_LIMIT_BYTES
    body = content.read_nowait(-1) if whole else await _read_body(incoming)
    asked = Request(request.method, request.path, request.query, request.headers, body, raw_query=request.raw_query)
    if reads_slowly(asked):
        outcome = await shared_evaluators().run(Computation(read_apart, (body,), user.name))
        if outcome.error is not None:
            raise outcome.error
        remember_read(body, outcome.value)
    return asked


async def _read_body(incoming: web.BaseRequest) -> bytes:
    """Read the body. Raises TooLarge, or Timeout (504) if it arrives too slowly."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in incoming.content.iter_any():
                size += len(chunk)
                if size <= BODY_LIMIT_BYTES:
                    chunks.append(chunk)
                elif size > DRAIN_LIMIT_BYTES:
                    break
    except TimeoutError:
        message = "Timeout: request did not complete within the allotted timeout"
        raise ApiError(message, code=504, reason="Timeout", details={}) from None
    if size > BODY_LIMIT_BYTES:
        raise TooLarge(f"Request entity too large: limit is {BODY_LIMIT_BYTES}")
    return b"".join(chunks)


def _is_log(path: str) -> bool:
    route = route_of(path)
    return (route.group, route.resource, route.subresource) == ("", "pods", "log")


async def _written(incoming: web.BaseRequest, answer: Response) -> web.Response:
    raw = answer.raw
    headers = _headers(answer)
    if len(raw) >= GZIP_FROM_BYTES and "gzip" in incoming.headers.get("Accept-Encoding", ""):
        raw = await asyncio.get_running_loop().run_in_executor(None, _gzip, raw)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    response = web.Response(status=answer.status, body=raw, headers=headers)
    if len(raw) > BIG_ANSWER_BYTES:
        try:
            async with asyncio.timeout(STALLED_S):
                await response.prepare(incoming)
                await response.write_eof()
        except TimeoutError:
            if incoming.transport is not None:
                incoming.transport.abort()
            raise ConnectionResetError("the client did not take its answer") from None
    return response


def _headers(answer: Response) -> CIMultiDict[str]:
    """Return the headers; a value of several lines becomes several headers (``Warning``)."""
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


def tls_context(certificate: KeyPair, client_ca_pem: str) -> ssl.SSLContext:
    """Return a context for TLS 1.2 or newer and HTTP/1.1; client certificates are requested, not required."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # The ssl module reads keys from files only.
    with named_in_memory(certificate.certificate_pem + certificate.key_pem.reveal()) as name:
        context.load_cert_chain(name)
    if client_ca_pem:
        context.load_verify_locations(cadata=client_ca_pem)
        context.verify_mode = ssl.CERT_OPTIONAL
    SSLProtocol.max_size = IDLE_TLS_BUFFER_BYTES
    return context


def threadsafe(loop: asyncio.AbstractEventLoop, function: Callable[[Any], None]) -> Callable[[Any], None]:
    """Wrap ``function`` so that other threads can call it and it runs in ``loop``; for the disk's callbacks."""

    def call(value: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(function, value)

    return call
