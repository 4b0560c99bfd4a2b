"""Spans reach a collector in OTLP's JSON, and a collector that fails costs spans, never time."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.assembly.controllers import MAP, Cluster, start
from tests.assembly.test_endpoints import call
from tests.live import served_cluster
from tests.sources.conftest import Upstream

from syncline.assembly.settings import ClusterSettings, SettingError, trace_settings
from syncline.base.clock import EPOCH
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.serving.running import trace_target
from syncline.telemetry import otlp
from syncline.telemetry.otlp import SpanExporter, TraceSettings, exporting, payload
from syncline.telemetry.spans import Span

RESOURCE = {"service.name": "syncline"}


class Collector:
    """Answers with ``answers`` in turn, then with 200. ``full`` is set when it took the root of a trace."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.arrived = threading.Event()
        self.full = threading.Event()
        self._answers = list(answers)
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                collector.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status, text = collector._answers.pop(0) if collector._answers else (200, "{}")
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())
                collector.arrived.set()
                if status == 200 and any("parentSpanId" not in span for span in spans_in(body)):
                    collector.full.set()

            def log_message(self, *_args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def spans(self) -> list[dict[str, Any]]:
        return [span for _, _, body in self.requests for span in spans_in(body)]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def spans_in(body: Any) -> list[dict[str, Any]]:
    return [span for r in body["resourceSpans"] for scope in r["scopeSpans"] for span in scope["spans"]]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about an answer that takes long."""
    monkeypatch.setattr(otlp, "TIMEOUT_S", 300.0)
    monkeypatch.setattr(otlp, "LAST_S", 300.0)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def span(number: int, **attributes: Any) -> Span:
    parent = "00f067aa0ba902b7"
    return Span("0af7651916cd43dd8448eb211c80319c", f"{number:016x}", parent, "s", EPOCH, EPOCH, attributes)


def settings(url: str) -> TraceSettings:
    found = trace_settings(url, {})
    assert found is not None
    return found


def delivered(url: str, count: int, limit: int = 100) -> tuple[int, int]:
    """Offer ``count`` spans and end: what was exported and what was dropped."""

    async def run() -> tuple[int, int]:
        exporter = SpanExporter(settings(url), RESOURCE, limit)
        for number in range(count):
            exporter.offer(span(number))
        await exporter.finish()
        return exporter.exported, exporter.dropped

    return asyncio.run(run())


def checked(body: Any) -> None:
    """The shape of an ExportTraceServiceRequest in JSON: opentelemetry-proto, "JSON Protobuf Encoding"."""
    assert set(body) == {"resourceSpans"}
    for resource in body["resourceSpans"]:
        assert set(resource) == {"resource", "scopeSpans"}
        attributes(resource["resource"]["attributes"])
        for scope in resource["scopeSpans"]:
            assert scope["scope"] == {"name": "syncline"}
            for one in scope["spans"]:
                checked_span(one)


def checked_span(one: dict[str, Any]) -> None:
    known = {"traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"}
    assert known <= set(one) <= known | {"parentSpanId"}
    assert re.fullmatch("[0-9a-f]{32}", one["traceId"]) and re.fullmatch("[0-9a-f]{16}", one["spanId"])
    assert re.fullmatch("[0-9a-f]{16}", one.get("parentSpanId", "0" * 16))
    assert re.fullmatch("[0-9]{19}", one["startTimeUnixNano"]) and re.fullmatch("[0-9]{19}", one["endTimeUnixNano"])
    assert int(one["startTimeUnixNano"]) <= int(one["endTimeUnixNano"])
    assert one["kind"] == 1 and one["name"]
    assert one["status"] == {} or (set(one["status"]) == {"code", "message"} and one["status"]["code"] == 2)
    attributes(one["attributes"])


def attributes(found: list[dict[str, Any]]) -> None:
    for each in found:
        assert set(each) == {"key", "value"} and isinstance(each["key"], str)
        ((kind, value),) = each["value"].items()
        shapes: dict[str, type] = {"stringValue": str, "intValue": str, "boolValue": bool, "arrayValue": dict}
        assert isinstance(value, shapes[kind]), each
    assert len({each["key"] for each in found}) == len(found)


def test_the_operations_of_running_controllers_reach_a_collector(
    tmp_path: Path, upstream: Upstream, collector: Collector
) -> None:
    upstream.commit({"seen/map.yaml": MAP.format(name="seen")})
    found = trace_settings(collector.url, {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=c4n4ry%20key"})
    with served_cluster(tmp_path / "served", ClusterSettings()) as served:
        cluster = Cluster(served)
        running = start(served, tmp_path / "cache", endpoints=True, traces=found)
        try:
            cluster.application("seen", str(upstream.path), "seen")
            assert collector.full.wait(300), f"no root of a trace among {collector.spans}"
            metrics = call(running, "/metrics")[1]
        finally:
            running.end()
    path, headers, _ = collector.requests[0]
    assert (path, headers["content-type"], headers["x-key"]) == ("/v1/traces", "application/json", "c4n4ry key")
    for _, _, body in collector.requests:
        checked(body)
    names = {one["name"] for one in collector.spans}
    assert names >= {"sync argocd/seen", "Sync", "Sync wave 0", "apply ConfigMap/seen", "render", "compare"}
    assert len({one["traceId"] for one in collector.spans}) == 1
    ids = {one["spanId"] for one in collector.spans}
    assert all(one.get("parentSpanId") in ids | {None} for one in collector.spans)
    assert "\nsyncline_spans_dropped_total 0\n" in metrics
    assert "c4n4ry" not in metrics + json.dumps([body for _, _, body in collector.requests])


def test_values_have_the_types_of_the_format() -> None:
    body = payload([span(1, text="a", big=2**40, truth=True, names=("a", "b"))], RESOURCE)
    checked(json.loads(json.dumps(body)))
    (one,) = spans_in(body)
    assert [each["value"] for each in one["attributes"]] == [
        {"stringValue": "a"},
        {"intValue": "1099511627776"},
        {"boolValue": True},
        {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}},
    ]


def test_what_does_not_fit_into_the_queue_is_dropped_and_counted(collector: Collector) -> None:
    assert delivered(collector.url, 12, limit=10) == (10, 2)
    assert len(collector.spans) == 10


def test_spans_go_in_batches(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "MAX_BATCH", 4)
    assert delivered(collector.url, 10) == (10, 0)
    assert [len(spans_in(body)) for _, _, body in collector.requests] == [4, 4, 2]


def test_a_collector_that_cannot_be_reached_costs_its_spans_and_no_time(collector: Collector) -> None:
    collector.close()
    assert delivered(collector.url, 3) == (0, 3)


def test_what_a_collector_takes_in_part_counts_in_part() -> None:
    collector = Collector((200, '{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "no"}}'))
    assert delivered(collector.url, 5) == (3, 2)
    collector.close()


@pytest.mark.parametrize(("status", "exported"), [(503, 1), (429, 1), (400, 0)])
def test_a_refusal_that_may_pass_is_tried_again_another_one_is_final(
    status: int, exported: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "RETRY_S", (0.0, 0.0))
    monkeypatch.setattr(otlp, "LINGER_S", 0.0)
    collector = Collector((status, ""))

    async def run() -> tuple[int, int]:
        async with exporting(settings(collector.url), RESOURCE) as exporter:
            exporter.offer(span(1))
            async with asyncio.timeout(300):
                while exporter.exported + exporter.dropped == 0:
                    await asyncio.to_thread(collector.arrived.wait, 0.01)
            return exporter.exported, exporter.dropped

    assert asyncio.run(run()) == (exported, 1 - exported)
    assert len(collector.requests) == 1 + exported
    collector.close()


BASE, ALONE = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("option", "environment", "url"),
    [
        (None, {}, None),
        (None, {BASE: ""}, None),
        (None, {BASE: "http://c:4318"}, "http://c:4318/v1/traces"),
        (None, {BASE: "http://c:4318/otlp/"}, "http://c:4318/otlp/v1/traces"),
        (None, {ALONE: "http://c:4318/mine", BASE: "http://d:4318"}, "http://c:4318/mine"),
        (None, {BASE: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, None),
        ("https://o:4318", {BASE: "http://c:4318"}, "https://o:4318/v1/traces"),
        ("https://o:4318/v1/traces", {}, "https://o:4318/v1/traces"),
    ],
)
def test_the_option_goes_before_the_variables_of_opentelemetry(
    option: str | None, environment: dict[str, str], url: str | None
) -> None:
    found = trace_settings(option, environment)
    assert (found.url if found else None) == url


@pytest.mark.parametrize(
    "text", ["c:4318", "grpc://c:4317", "http://", "http://jo:c4n4ry@c", "http://c:x", "http://c?k=v"]
)
def test_what_is_no_collector_is_refused_with_an_example_and_not_repeated(text: str) -> None:
    with pytest.raises(SettingError, match=r"--otlp-endpoint: not the address .* http://127.0.0.1:4318") as refused:
        trace_settings(text, {})
    assert "c4n4ry" not in str(refused.value)
    with pytest.raises(CommandFailed, match="--otlp-endpoint") as failed:
        trace_target(text)
    assert failed.value.code == USAGE


def test_headers_that_cannot_be_read_are_refused_and_not_repeated() -> None:
    with pytest.raises(SettingError, match="write NAME=VALUE by comma") as refused:
        trace_settings("http://c", {"OTEL_EXPORTER_OTLP_HEADERS": "c4n4ry"})
    assert "c4n4ry" not in str(refused.value)
