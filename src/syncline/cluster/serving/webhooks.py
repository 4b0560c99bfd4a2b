"""Make the outbound calls of requests: webhooks and aggregated APIs over HTTPS, and long evaluations.

``serve`` and the live controllers' transport use it: the API names the calls and continues with their results
(``kube.outbound``). Failures use the words of Go's HTTP client, because webhook owners search for them. Every response
is bounded in time and in size.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from syncline.base.places import Limits
from syncline.base.scratch import named_in_memory
from syncline.base.threads import Threads
from syncline.cluster.access.pki import KeyPair
from syncline.cluster.serving.evaluators import shared_evaluators
from syncline.kube.client import Response
from syncline.kube.errors import TooManyRequests
from syncline.kube.transport.outbound import Aside, Computation, OutboundCall, Outcome

if TYPE_CHECKING:
    import aiohttp

ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
"""Size limit of a webhook response: more than twice that of a request."""
CALLS_LIMIT = 512
"""Concurrent calls; more wait, within their own timeout."""
CONTEXTS_KEPT = 64
"""Cached TLS contexts, one per CA bundle."""
MAX_REDIRECTS = 10
LINES_AHEAD = 1000
"""Buffered lines of a watch; when the buffer is full, reading pauses."""
MAX_RETRIES = 10
"""Retries of a call whose response has Retry-After (client-go ``WithMaxRetries``)."""
PARTS = Limits(2, {"user": 1})
"""Concurrent parts of large requests, in total and per user."""
PARTS_WAITING = 200
"""Waiting parts at which new large requests get 429."""
RETRY_AFTER_S = 1
_HOSTNAME, _ADDRESS, _EXPIRED, _NOT_YET = 62, 64, 10, 9
"""OpenSSL's error codes of certificate verification."""


class LineStream:
    """The lines of a streaming response, such as another API's watch. Reads ahead a bounded number of lines."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.on_ready: Callable[[], None] | None = None
        self._answer = answer
        self._lines: deque[bytes] = deque()
        self._room = asyncio.Event()
        self._over = False
        self._task = asyncio.create_task(self._read(), name="watch of another API")

    async def _read(self) -> None:
        rest = b""
        with contextlib.suppress(Exception):  # A broken connection ends a watch; its reader resumes.
            async for chunk in self._answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                self._lines.extend(line for line in lines if line)
                if len(rest) > ANSWER_LIMIT_BYTES:
                    break
                self._wake()
                while len(self._lines) > LINES_AHEAD:
                    self._room.clear()
                    await self._room.wait()
        self._over = True
        self._answer.close()
        self._wake()

    def _wake(self) -> None:
        if self.on_ready is not None:
            self.on_ready()

    def take(self, limit: int = 1000) -> list[bytes]:
        taken = [self._lines.popleft() for _ in range(min(limit, len(self._lines)))]
        self._room.set()
        return taken

    @property
    def ended(self) -> bool:
        return self._over and not self._lines

    def close(self) -> None:
        self._task.cancel()
        self._answer.close()


class Caller:
    """Makes calls for one served cluster; belongs to its event loop. ``proxy`` is the front proxy certificate that it
    presents to aggregated APIs."""

    def __init__(self, proxy: KeyPair | None = None) -> None:
        self._proxy = proxy
        self.inside: Callable[[OutboundCall], Outcome | None] = lambda _call: None
        """Returns the result of a call to a part of this process, None for all others."""
        self._parts = Threads("large request", PARTS)
        self._session: aiohttp.ClientSession | None = None
        self._contexts: OrderedDict[tuple[str, bool, bool], ssl.SSLContext] = OrderedDict()

    async def settle(self, answer: Response) -> Response:
        """Make the calls that ``answer`` waits for, concurrently, until it is complete."""
        while answer.pending is not None:
            pending = answer.pending
            try:
                outcomes = await asyncio.gather(*map(self._came_of, pending.calls))
            except BaseException:
                pending.abandon()
                raise
            answer = pending.resume(outcomes)
        return answer

    async def _came_of(self, one: OutboundCall | Computation | Aside) -> Outcome:
        if isinstance(one, Aside):
            return await self._beside(one)
        return await (shared_evaluators().run(one) if isinstance(one, Computation) else self.call(one))

    async def _beside(self, part: Aside) -> Outcome:
        """Run a part of a large request in a thread."""
        if part.first and self._parts.counts()["waiting"] >= PARTS_WAITING:
            why = "too many large requests wait for their turn, please try again later"
            return Outcome(error=TooManyRequests(why, retry_after_s=RETRY_AFTER_S))
        await self._parts.start(part.run, ("user", part.share))
        return Outcome()

    async def call(self, call: OutboundCall) -> Outcome:
        """Return the result of a call as an Outcome; raise only cancellation."""
        import aiohttp

        if (found := self.inside(call)) is not None:
            return found
        try:
            async with asyncio.timeout(call.timeout_s):
                return await self._repeated(call)
        except TimeoutError:
            return _failed(call, "context deadline exceeded")
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            return _failed(call, _worded(call, error))
        except ValueError as error:
            return _failed(call, str(error))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _repeated(self, call: OutboundCall) -> Outcome:
        for _ in range(MAX_RETRIES):
            outcome = await self._once(call)
            after = outcome.headers.get("retry-after", "")
            if not after.isdigit() or not (outcome.status == 429 or outcome.status >= 500):
                return outcome
            await asyncio.sleep(int(after))
        return outcome

    async def _once(self, call: OutboundCall) -> Outcome:
        import yarl

        url = yarl.URL(call.url, encoded=True)
        headers = [(name, line) for name, value in call.headers.items() for line in value.split("\n")]
        if call.address is not None:
            headers.append(("host", url.authority))
            url = url.with_host(call.address[0]).with_port(call.address[1])
        answer = await self._opened().request(
            call.method,
            url,
            data=call.body or None,
            headers=headers,
            ssl=self._context(call),
            server_hostname=call.server_name or None,
            allow_redirects=call.follow,
            max_redirects=MAX_REDIRECTS,
        )
        found: dict[str, str] = {}
        for name, value in answer.headers.items():
            lower = name.lower()
            found[lower] = f"{found[lower]}\n{value}" if lower in found else value
        if call.streams and answer.status == 200:
            return Outcome(answer.status, found, stream=LineStream(answer))
        async with answer:
            return Outcome(answer.status, found, await _bounded(answer))

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session, created on first use because it belongs to the running loop."""
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CALLS_LIMIT)
            timeout = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)
        return self._session

    def _context(self, call: OutboundCall) -> ssl.SSLContext:
        key = (call.ca_pem, call.insecure, call.as_proxy)
        context = self._contexts.get(key)
        if context is None:
            try:
                context = ssl.create_default_context(cadata=call.ca_pem or None)
            except ssl.SSLError:
                raise ValueError("unable to load root certificates: unable to parse bytes as PEM block") from None
            context.set_alpn_protocols(["http/1.1"])
            if call.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if call.as_proxy and self._proxy is not None:
                _show(context, self._proxy)
            self._contexts[key] = context
            if len(self._contexts) > CONTEXTS_KEPT:
                self._contexts.popitem(last=False)
        return context


def _show(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load a client certificate; the ssl module reads keys from files only."""
    with named_in_memory(pair.certificate_pem + pair.key_pem.reveal()) as name:
        context.load_cert_chain(name)


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        if size > ANSWER_LIMIT_BYTES:
            answer.close()
            raise ValueError(f"the answer is longer than {ANSWER_LIMIT_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


# --- words ---------------------------------------------------------------------------------------------------------


def _failed(call: OutboundCall, why: str) -> Outcome:
    return Outcome(failure=f'{call.method.capitalize()} "{call.url}": {why}')


def _worded(call: OutboundCall, error: BaseException) -> str:
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    where = _address(call, error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_untrusted(cause, call)}"
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {where.rpartition(':')[0]}: no such host"
    if isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {where}: connect: connection refused"
    if isinstance(cause, ssl.SSLError):
        return f"tls: {cause.reason or cause}".lower()
    if isinstance(cause, ConnectionResetError):
        return f"read tcp {where}: read: connection reset by peer"
    if isinstance(cause, OSError) and cause.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return f"dial tcp {where}: connect: no route to host"
    return "EOF" if type(error).__name__ == "ServerDisconnectedError" else str(error) or type(error).__name__


def _untrusted(error: ssl.SSLCertVerificationError, call: OutboundCall) -> str:
    name = call.server_name or call.url.partition("://")[2].partition("/")[0].rpartition(":")[0]
    if error.verify_code in (_HOSTNAME, _ADDRESS):
        return f"certificate is not valid for {name}"
    if error.verify_code in (_EXPIRED, _NOT_YET):
        return "certificate has expired or is not yet valid"
    return "certificate signed by unknown authority"


def _address(call: OutboundCall, error: BaseException) -> str:
    if call.address is not None:
        return f"{call.address[0]}:{call.address[1]}"
    host, port = getattr(error, "host", None), getattr(error, "port", None)
    if host and port:
        return f"{host}:{port}"
    netloc = call.url.partition("://")[2].partition("/")[0]
    return netloc if ":" in netloc else f"{netloc}:443"
