"""Export of spans to a collector: OTLP over HTTP in its JSON encoding.

:meth:`SpanExporter.offer` never blocks: spans that do not fit into the queue, or that the collector rejects, are
dropped and counted. Format, responses and retries: ``ExportTraceServiceRequest`` of opentelemetry-proto 1.x,
https://opentelemetry.io/docs/specs/otlp/#otlphttp. Why not its SDK: docs/decisions/0009-traces.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from syncline.base.secret import Secret
from syncline.telemetry.spans import Span, Value

log = logging.getLogger("syncline.assembly")

MAX_QUEUE = 8192
"""Maximum number of queued spans, about 8 MiB. A sync has one per object and a few per wave."""
MAX_BATCH = 512
LINGER_S = 1.0
"""Seconds that a span waits to share a batch with others."""
TIMEOUT_S = 10.0
"""Seconds for one delivery; OpenTelemetry's default."""
RETRY_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between attempts to deliver a batch; after the last one it is dropped."""
LAST_S = 3.0
"""Seconds to deliver the remaining spans when the process ends."""
MAX_ANSWER = 64 * 1024
PASSING = frozenset({429, 502, 503, 504})
"""Status codes after which a batch is retried; all others are final."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INTERNAL, ERROR = 1, 2


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """Address and headers of the OTLP/HTTP endpoint that receives the spans."""

    url: str
    """The complete URL, with its path."""
    headers: tuple[tuple[str, Secret], ...] = ()
    service: str = "syncline"

    @property
    def collector(self) -> str:
        """The address of the collector without its path, which may contain a key."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True, slots=True)
class _Answer:
    taken: bool
    again: bool = False
    why: str = ""
    rejected: int = 0


class SpanExporter:
    """A bounded queue before one collector. ``exported`` and ``dropped`` count spans since the start."""

    def __init__(self, settings: TraceSettings, resource: Mapping[str, Value], limit: int = MAX_QUEUE) -> None:
        self.exported = 0
        self.dropped = 0
        self._settings = settings
        self._resource = resource
        self._limit = limit
        self._queue: deque[Span] = deque()
        self._filled = asyncio.Event()
        self._failing = False

    def offer(self, span: Span) -> None:
        """Queue a finished span for delivery; drop it if the queue is full."""
        if len(self._queue) >= self._limit:
            self.dropped += 1
            return
        self._queue.append(span)
        self._filled.set()

    async def work(self) -> None:
        """Deliver spans until cancelled."""
        while True:
            await self._filled.wait()
            await asyncio.sleep(LINGER_S)
            while self._queue:
                await self._deliver(RETRY_S)
            self._filled.clear()

    async def finish(self) -> None:
        """Deliver the remaining spans in limited time, without retries; drop those that are left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                while self._queue and await self._deliver(()):
                    pass
        self.dropped += len(self._queue)
        self._queue.clear()

    async def _deliver(self, waits: Sequence[float]) -> bool:
        """Deliver one batch. It stays in the queue until the result is known, so that :meth:`finish` can retry it."""
        batch = [span for span, _ in zip(self._queue, range(MAX_BATCH))]
        body = msgspec.json.encode(payload(batch, self._resource))
        answer = await self._post(body)
        for wait in waits:
            if answer.taken or not answer.again:
                break
            self._tell(answer)
            await asyncio.sleep(wait)
            answer = await self._post(body)
        self._tell(answer)
        for _ in batch:
            self._queue.popleft()
        lost = answer.rejected if answer.taken else len(batch)
        self.dropped += lost
        self.exported += len(batch) - lost
        return answer.taken

    async def _post(self, body: bytes) -> _Answer:
        import aiohttp

        headers = {"content-type": "application/json", **{n: v.reveal() for n, v in self._settings.headers}}
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
                session.post(self._settings.url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                raw = await answer.content.read(MAX_ANSWER)
                if 200 <= answer.status < 300:
                    return _Answer(True, rejected=_rejected(raw))
                return _Answer(False, answer.status in PASSING, f"it answered {answer.status}")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return _Answer(False, True, str(error) or type(error).__name__)

    def _tell(self, answer: _Answer) -> None:
        """Log once when the collector begins to fail and once when it accepts spans again."""
        if answer.taken and self._failing:
            log.info("traces: %s takes spans again; %d were dropped", self._settings.collector, self.dropped)
        elif not answer.taken and not self._failing:
            log.warning("traces: %s takes no spans: %s", self._settings.collector, answer.why)
        self._failing = not answer.taken


@contextlib.asynccontextmanager
async def exporting(settings: TraceSettings, resource: Mapping[str, Value]) -> AsyncIterator[SpanExporter]:
    """Yield an exporter that delivers until the context ends and then delivers what is left."""
    exporter = SpanExporter(settings, resource)
    working = asyncio.create_task(exporter.work(), name="traces")
    try:
        yield exporter
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await exporter.finish()


def _rejected(raw: bytes) -> int:
    """Return how many spans the collector rejected of a batch that it accepted in part (``partialSuccess``)."""
    try:
        found = msgspec.json.decode(raw)
        count = int((found.get("partialSuccess") or {}).get("rejectedSpans") or 0)
    except (msgspec.DecodeError, AttributeError, TypeError, ValueError):
        return 0
    return max(0, min(count, MAX_BATCH))


# -- the format -----------------------------------------------------------------------------------------------------


def payload(spans: Iterable[Span], resource: Mapping[str, Value]) -> dict[str, Any]:
    """Return an ``ExportTraceServiceRequest``: hexadecimal ids, 64-bit numbers as strings, lowerCamelCase names."""
    scope = {"scope": {"name": "syncline"}, "spans": [_span(span) for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}


def _span(span: Span) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.began),
        "endTimeUnixNano": _nanoseconds(span.ended),
        "attributes": _attributes(span.attributes),
        "status": {} if span.failure is None else {"code": ERROR, "message": span.failure},
    }
    return fields | ({"parentSpanId": span.parent} if span.parent else {})


def _nanoseconds(instant: datetime) -> str:
    since = instant - EPOCH
    return str((since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000)


def _attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [{"stringValue": one} for one in value]}}
