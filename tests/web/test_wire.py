"""The wire: gRPC, gRPC-Web and REST to a server in this process, by programs of others."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import grpc
import pytest
from tests.web.serving import served
from yarl import URL

from syncline.kube.errors import Conflict, NotFound
from syncline.kube.objects import Obj
from syncline.web.access import Caller, require
from syncline.web.serving.port import Port
from syncline.web.wire.api import read, writer
from syncline.web.wire.calls import Call
from syncline.web.wire.credentials import cookies_of, token_of
from syncline.web.wire.frames import MAX_MESSAGE_BYTES, framed
from syncline.web.wire.status import Code, RpcError, grpc_message

APPS = "/application.ApplicationService/"
QUERY = "application.ApplicationQuery"
EVENT = "argoproj.v1alpha1.ApplicationWatchEvent"
APP = "argoproj.v1alpha1.Application"


class Seen:
    """The handlers of these tests, and what they were given."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.calls: list[Call] = []
        self.ended = asyncio.Event()

    def handlers(self) -> dict[str, Any]:
        return {
            APPS + "Get": self.get,
            APPS + "List": self.list,
            APPS + "Watch": self.watch,
            APPS + "Sync": self.get,
            APPS + "GetManifestsWithFiles": self.gather,
            "/cluster.ClusterService/Get": self.cluster,
        }

    async def get(self, call: Call, request: Obj) -> Obj:
        self.requests.append(request)
        self.calls.append(call)
        match request.get("name"):
            case "missing":
                raise NotFound('applications.argoproj.io "missing" not found')
            case "conflict":
                raise Conflict("changed meanwhile")
            case "broken":
                raise ZeroDivisionError("inside")
            case "slow":
                await asyncio.Event().wait()
            case "verboten":
                raise RpcError(Code.PERMISSION_DENIED, "über 100 % verboten")
        return {"metadata": {"name": request.get("name", "")}, "spec": {"project": "default"}}

    async def list(self, call: Call, request: Obj) -> Obj:
        self.requests.append(request)
        return {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}, "spec": {"project": "p"}}]}

    async def watch(self, call: Call, request: Obj) -> AsyncIterator[Obj]:
        try:
            for number in range(3):
                yield {"type": "ADDED", "application": {"metadata": {"name": f"a{number}"}}}
            if request.get("name") == "fails":
                raise RpcError(Code.ABORTED, "the watch ended")
            if request.get("name") == "forever":
                await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def gather(self, call: Call, requests: AsyncIterator[Obj]) -> Obj:
        found = [request async for request in requests]
        return {"manifests": [f"{len(found)}"]}

    async def cluster(self, call: Call, request: Obj) -> Obj:
        self.requests.append(request)
        return {"server": "s"}


def run(test: Callable[[Seen, Port], Awaitable[None]]) -> Seen:
    async def body() -> Seen:
        seen = Seen()
        async with served(seen.handlers()) as port:
            await test(seen, port)
        return seen

    return asyncio.run(body())


def channel(port: Port, **options: Any) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"127.0.0.1:{port.number}", **options)


def query(**fields: Any) -> bytes:
    return writer().write(QUERY, fields)


def test_a_call_has_an_answer_and_a_stream_has_many() -> None:
    async def test(seen: Seen, port: Port) -> None:
        async with channel(port) as to:
            raw = await to.unary_unary(APPS + "Get")(query(name="web", projects=["a", "b"]))
            assert read(APP, raw)["metadata"]["name"] == "web"
            events = [read(EVENT, one) async for one in to.unary_stream(APPS + "Watch")(b"")]
            assert [one["application"]["metadata"]["name"] for one in events] == ["a0", "a1", "a2"]

    assert run(test).requests == [{"name": "web", "projects": ["a", "b"]}]


def test_requests_stream_too() -> None:
    async def test(_: Seen, port: Port) -> None:
        async with channel(port) as to:
            chunk = writer().write("application.ApplicationManifestQueryWithFilesWrapper", {"chunk": {"chunk": "AAAA"}})
            call = to.stream_unary(APPS + "GetManifestsWithFiles")
            raw = await call(iter([chunk] * 40))
            assert read("repository.ManifestResponse", raw)["manifests"] == ["40"]

    run(test)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("missing", grpc.StatusCode.NOT_FOUND, 'applications.argoproj.io "missing" not found'),
        ("conflict", grpc.StatusCode.ABORTED, "changed meanwhile"),
        ("verboten", grpc.StatusCode.PERMISSION_DENIED, "über 100 % verboten"),
        ("broken", grpc.StatusCode.INTERNAL, "failed within the server; its log says how"),
    ],
)
def test_a_refusal_has_a_code_and_a_sentence(name: str, code: grpc.StatusCode, text: str) -> None:
    async def test(_: Seen, port: Port) -> None:
        async with channel(port) as to:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await to.unary_unary(APPS + "Get")(query(name=name))
            assert refused.value.code() is code
            assert text in (refused.value.details() or "")

    run(test)


def test_a_stream_that_fails_ends_with_its_refusal() -> None:
    async def test(_: Seen, port: Port) -> None:
        async with channel(port) as to:
            found = 0
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                async for _ in to.unary_stream(APPS + "Watch")(query(name="fails")):
                    found += 1
            assert found == 3
            assert refused.value.code() is grpc.StatusCode.ABORTED

    run(test)


def test_methods_that_are_not_served_say_so() -> None:
    async def test(_: Seen, port: Port) -> None:
        async with channel(port) as to:
            for path in (APPS + "Rollback", "/application.ApplicationService/Nope", "/nope.Nope/Nope"):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await to.unary_unary(path)(b"")
                assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED, path

    run(test)


def test_a_deadline_ends_a_call_and_a_client_that_leaves_ends_its_stream() -> None:
    async def test(seen: Seen, port: Port) -> None:
        async with channel(port) as to:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await to.unary_unary(APPS + "Get")(query(name="slow"), timeout=0.2)
            assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            call = to.unary_stream(APPS + "Watch")(query(name="forever"))
            await call.read()
            call.cancel()
            await asyncio.wait_for(seen.ended.wait(), 20)

    run(test)


def test_messages_may_be_packed_both_ways() -> None:
    async def test(_: Seen, port: Port) -> None:
        async with channel(port, compression=grpc.Compression.Gzip) as to:
            raw = await to.unary_unary(APPS + "Get")(query(name="w" * 5000))
            assert read(APP, raw)["metadata"]["name"] == "w" * 5000

    run(test)


def test_a_large_answer_passes_the_windows_of_its_client() -> None:
    async def body() -> None:
        async def large(_: Call, __: Obj) -> Obj:
            return {"manifests": ["x" * 1000] * 6000}

        unbounded = [("grpc.max_receive_message_length", -1)]
        async with served({APPS + "GetManifests": large}) as port, channel(port, options=unbounded) as to:
            call = to.unary_unary(APPS + "GetManifests")
            for raw in await asyncio.gather(*(call(b"") for _ in range(3))):
                assert len(raw) > 6_000_000

    asyncio.run(body())


def test_a_call_carries_its_token_and_the_address_of_its_client() -> None:
    async def test(seen: Seen, port: Port) -> None:
        async with channel(port) as to:
            await to.unary_unary(APPS + "Get")(b"", metadata=(("token", "a.b.c"),))
        assert seen.calls[0].metadata["token"] == "a.b.c"
        assert seen.calls[0].remote == "127.0.0.1"

    run(test)


# --- gRPC-Web ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [False, True])
def test_grpc_web_answers_in_frames_and_ends_with_its_trailers(text: bool) -> None:
    async def test(_: Seen, port: Port) -> None:
        kind = "application/grpc-web-text" if text else "application/grpc-web+proto"
        body = framed(query(name="web"))
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"http://127.0.0.1:{port.number}{APPS}Get",
                data=base64.b64encode(body) if text else body,
                headers={"Content-Type": kind},
            ) as answer,
        ):
            raw = await answer.read()
        if text:
            pieces = raw.split(b"=")
            raw = b"".join(base64.b64decode(piece + b"=" * (-len(piece) % 4)) for piece in pieces if piece)
        size = int.from_bytes(raw[1:5], "big")
        assert read(APP, raw[5 : 5 + size])["metadata"]["name"] == "web"
        assert raw[5 + size] == 0x80
        assert raw[10 + size :].startswith(b"grpc-status:0\r\n")

    run(test)


def test_a_refusal_of_grpc_web_is_among_the_headers() -> None:
    async def test(_: Seen, port: Port) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"http://127.0.0.1:{port.number}{APPS}Get",
                data=framed(query(name="missing")),
                headers={"Content-Type": "application/grpc-web+proto"},
            ) as answer,
        ):
            assert answer.status == 200
            assert answer.headers["grpc-status"] == "5"
            assert answer.headers["grpc-message"] == 'applications.argoproj.io "missing" not found'

    run(test)


# --- REST ----------------------------------------------------------------------------------------------------------


async def asked(port: Port, verb: str, path: str, **options: Any) -> tuple[int, str]:
    url = f"http://127.0.0.1:{port.number}{path}"
    async with aiohttp.ClientSession() as session, session.request(verb, url, **options) as answer:
        return answer.status, await answer.text()


APP_PATH = "/api/v1/applications/web"
REQUESTS = [
    ("GET", f"{APP_PATH}?refresh=hard&project=a&project=b", None, {"refresh": "hard", "project": ["a", "b"]}),
    ("GET", f"{APP_PATH}?unknown=1&appNamespace=ns", None, {"appNamespace": "ns"}),
    ("POST", f"{APP_PATH}/sync", {"dryRun": True, "prune": False}, {"dryRun": True, "prune": False}),
]


@pytest.mark.parametrize(("verb", "path", "body", "request_"), REQUESTS)
def test_path_query_and_body_fill_the_request(verb: str, path: str, body: Any, request_: Obj) -> None:
    async def test(_: Seen, port: Port) -> None:
        status, text = await asked(port, verb, path, **({"json": body} if body is not None else {}))
        assert status == 200, text

    assert run(test).requests == [request_ | {"name": "web"}]


def test_a_path_may_hold_an_address_for_a_nested_field() -> None:
    async def test(_: Seen, port: Port) -> None:
        path = "/api/v1/clusters/https%3A%2F%2Fx%3A6443?id.type=url"
        url = URL(f"http://127.0.0.1:{port.number}{path}", encoded=True)
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200

    assert run(test).requests == [{"id": {"value": "https://x:6443", "type": "url"}}]


def test_the_last_part_of_a_path_may_take_all_that_is_left() -> None:
    async def body() -> None:
        asked_: list[Obj] = []

        async def can_i(_: Call, request: Obj) -> Obj:
            asked_.append(request)
            return {"value": "yes"}

        async with served({"/account.AccountService/CanI": can_i}) as port:
            assert (await asked(port, "GET", "/api/v1/account/can-i/applications/sync/default/*"))[0] == 200
            assert (await asked(port, "GET", "/api/v1/account/can-i/applications/sync"))[0] == 404
        assert asked_ == [{"resource": "applications", "action": "sync", "subresource": "default/*"}]

    asyncio.run(body())


@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "code"),
    [
        ("GET", "/api/v1/applications/missing", None, 404, 5),
        ("GET", "/api/v1/applications/conflict", None, 409, 10),
        ("GET", "/api/v1/nothing", None, 404, 5),
        ("PATCH", "/api/v1/applications/a/sync", None, 501, 12),
        ("GET", "/api/v1/applications/web/syncwindows", None, 501, 12),
        ("POST", "/api/v1/applications/a/sync", b"{", 400, 3),
        ("POST", "/api/v1/applications/a/sync", b"[]", 400, 3),
    ],
)
def test_a_refusal_is_json_with_a_code(verb: str, path: str, body: bytes | None, status: int, code: int) -> None:
    async def test(_: Seen, port: Port) -> None:
        found, text = await asked(port, verb, path, data=body, headers={"Content-Type": "application/json"})
        said = json.loads(text)
        assert (found, said["code"]) == (status, code)
        assert said["error"] == said["message"] != ""

    run(test)


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_foreign_page_can_send_changes_nothing(verb: str, kind: str) -> None:
    async def test(seen: Seen, port: Port) -> None:
        for data in (b"{}", None):
            headers = {"Content-Type": kind} if kind else {}
            options: dict[str, Any] = {"skip_auto_headers": ["Content-Type"], "headers": headers}
            status, _ = await asked(port, verb, "/api/v1/applications/a/sync", data=data, **options)
            assert status == 415
        assert seen.requests == []

    run(test)


def test_a_stream_is_lines_or_events() -> None:
    async def test(_: Seen, port: Port) -> None:
        status, text = await asked(port, "GET", "/api/v1/stream/applications?name=fails")
        lines = [json.loads(line) for line in text.splitlines()]
        assert status == 200
        assert [line["result"]["application"]["metadata"]["name"] for line in lines[:3]] == ["a0", "a1", "a2"]
        assert lines[3]["error"]["grpc_code"] == 10
        status, text = await asked(
            port, "GET", "/api/v1/stream/applications?fields=result.type", headers={"Accept": "text/event-stream"}
        )
        assert text.startswith('data: {"result":{"type":"ADDED"}}')
        assert text.count("\n\n") == 3

    run(test)


def test_fields_choose_what_a_list_shows() -> None:
    async def test(_: Seen, port: Port) -> None:
        _, text = await asked(port, "GET", "/api/v1/applications?fields=items.metadata.name,items.spec")
        assert json.loads(text)["items"][0].keys() == {"metadata", "spec"}
        _, text = await asked(port, "GET", "/api/v1/applications?fields=-items.spec,items.status")
        assert json.loads(text)["items"][0].keys() == {"metadata"}
        assert json.loads(text)["metadata"] == {"resourceVersion": "7"}

    run(test)


# --- what is pure --------------------------------------------------------------------------------------------------


def test_a_token_is_found_where_upstream_looks() -> None:
    long = "a." + "b" * 9000 + ".c"
    cookie = "; ".join(each.partition(";")[0] for each in cookies_of(long))
    found = [
        token_of({"token": "t", "authorization": "Bearer a.b.c"}),
        token_of({"authorization": "Bearer a.b.c", "cookie": "argocd.token=d.e.f"}),
        token_of({"authorization": "Basic abc", "cookie": "other=1; argocd.token=d.e.f"}),
        token_of({"cookie": cookie}),
        token_of({"authorization": "Bearer nonsense"}),
        token_of({"cookie": "argocd.token=99:x"}),
    ]
    assert [one.reveal() if one else None for one in found] == ["t", "a.b.c", "d.e.f", long, None, None]


def test_a_refused_right_is_said_in_upstreams_words() -> None:
    class None_:
        def permits(self, *_: Any) -> bool:
            return False

    with pytest.raises(RpcError) as refused:
        require(None_(), Caller("bob", {"iat": 5}), "applications", "get", "p/a")  # type: ignore[arg-type]
    assert refused.value.message == "permission denied: applications, get, p/a, sub: bob, iat: 1970-01-01T00:00:05Z"


def test_a_message_of_a_status_is_ascii() -> None:
    assert grpc_message("100 % ü\n") == "100 %25 %C3%BC%0A"


def test_a_bomb_is_not_unpacked() -> None:
    from syncline.web.wire.frames import Frames

    bomb = gzip.compress(b"\0" * (MAX_MESSAGE_BYTES + 10))
    with pytest.raises(RpcError) as refused:
        Frames("gzip").feed(b"\1" + len(bomb).to_bytes(4, "big") + bomb)
    assert refused.value.code is Code.RESOURCE_EXHAUSTED
    with pytest.raises(RpcError):
        Frames("identity").feed(b"\0" + (MAX_MESSAGE_BYTES + 1).to_bytes(4, "big"))
    assert ssl.HAS_ALPN
