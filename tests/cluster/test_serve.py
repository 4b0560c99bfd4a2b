from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.cluster.serving import KEYS, TOKEN, Frames, World, served

from syncline.base.secret import Secret
from syncline.cluster.access.pki import kubeconfig_for
from syncline.cluster.serving.serve import BODY_LIMIT_BYTES, ServeError
from syncline.cluster.storage.store import Key
from syncline.kube.client import Request, Response
from syncline.kube.errors import Gone, TooLarge, Unauthorized, error_from_status
from syncline.kube.transport.http import HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess

PODS = "/api/v1/pods"


async def raw(world: World, method: str, path: str, **options: Any) -> tuple[int, dict[str, list[str]], bytes]:
    """One request without credentials but those in ``headers``."""
    context = ssl.create_default_context(cadata=KEYS.ca_pem)
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.request(method, world.url + path, ssl=context, **options) as answer,
    ):
        headers = {name.lower(): answer.headers.getall(name) for name in answer.headers}
        return answer.status, headers, await answer.read()


@pytest.fixture
def bearer() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


async def _request_reaches_the_api(bearer: dict[str, str]) -> None:
    async with served() as world:
        headers = {**bearer, "X-Two": "a", "Content-Type": "application/json"}
        status, answered, body = await raw(
            world, "POST", "/api/v1/namespaces/a%20b/pods?dryRun=All&dryRun=no", headers=headers, data=b'{"x":1}'
        )
        request, user = world.api.asked[0]
    assert (status, json.loads(body)["user"]) == (200, "kubernetes-admin")
    assert (request.method, request.path, request.query) == ("POST", "/api/v1/namespaces/a b/pods", {"dryRun": "All"})
    assert request.body == b'{"x":1}' and request.headers["x-two"] == "a"
    assert user.groups == ("system:masters", "system:authenticated")
    assert answered["content-type"] == ["application/json"] and answered["cache-control"] == ["no-cache, private"]


def test_a_request_reaches_the_api_as_data(bearer: dict[str, str]) -> None:
    asyncio.run(_request_reaches_the_api(bearer))


def test_a_client_certificate_is_enough_and_nothing_is_too_little() -> None:
    async def scene() -> None:
        async with served() as world:
            client = HttpClient(world.access)
            nobody = HttpClient(replace(world.access, certificate_pem="", key_pem=None))
            assert (await client.send(Request("GET", PODS))).obj == {"path": PODS, "user": "kubernetes-admin"}
            refused = await nobody.send(Request("GET", PODS))
            assert isinstance(error_from_status(refused.obj), Unauthorized) and len(world.api.asked) == 1
            assert (await nobody.send(Request("GET", "/version"))).obj["user"] == "system:anonymous"
            await client.close()
            await nobody.close()

    asyncio.run(scene())


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping"])
def test_health_is_told_to_anyone(path: str) -> None:
    async def scene() -> None:
        async with served() as world:
            status, _, body = await raw(world, "GET", path)
            assert (status, body) == (200, b"ok")
            _, _, verbose = await raw(world, "GET", path.removesuffix("/ping") + "?verbose")
            assert verbose.startswith(b"[+]ping ok\n") and verbose.endswith(b" check passed\n")

    asyncio.run(scene())


def test_a_failed_disk_is_unhealthy_and_acknowledges_nothing(bearer: dict[str, str]) -> None:
    async def scene() -> None:
        async with served(durable=True) as world:
            world.api.answers[PODS] = Response.of(201, {}, revision=1)
            world.store.put(Key("/pods", "a", "b"), {"metadata": {}}, expect=0)
            waiting = asyncio.create_task(raw(world, "POST", PODS, headers=bearer))
            while not world.durability._waiting:
                await asyncio.wait([waiting], timeout=0.01)
            world.durability.fail(OSError("no space left"))
            for status, _, body in (await waiting, await raw(world, "POST", PODS, headers=bearer)):
                assert status == 500 and "the write is not on disk: no space left" in json.loads(body)["message"]
            assert (await raw(world, "GET", "/livez"))[0] == 500

    asyncio.run(scene())


def test_an_answer_is_held_back_until_its_revision_is_durable(bearer: dict[str, str]) -> None:
    async def scene() -> None:
        async with served(durable=True) as world:
            world.api.answers[PODS] = Response.of(201, {}, revision=2)
            for name in "ab":
                world.store.put(Key("/pods", "a", name), {"metadata": {}}, expect=0)
            waiting = asyncio.create_task(raw(world, "POST", PODS, headers=bearer))
            while not world.durability._waiting:
                await asyncio.wait([waiting], timeout=0.01)
            world.durability.advance(1)
            assert (await raw(world, "GET", "/other", headers=bearer))[0] == 200 and not waiting.done()
            world.durability.advance(2)
            assert (await waiting)[0] == 201

    asyncio.run(scene())


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused_in_the_words_of_kubernetes(bearer: dict[str, str], chunked: bool) -> None:
    async def scene() -> None:
        async with served() as world:
            big = b"x" * (BODY_LIMIT_BYTES + 1)

            async def parts() -> AsyncIterator[bytes]:
                yield big

            _, _, body = await raw(world, "POST", PODS, headers=bearer, data=parts() if chunked else big)
            error = error_from_status(json.loads(body))
            assert isinstance(error, TooLarge) and error.message == "Request entity too large: limit is 3145728"
            status, _, _ = await raw(world, "POST", PODS, headers=bearer, data=big[1:])
            assert status == 200 and len(world.api.asked) == 1

    asyncio.run(scene())


def test_large_answers_are_compressed_for_those_who_ask(bearer: dict[str, str]) -> None:
    async def scene() -> None:
        async with served() as world:
            world.api.answers[PODS] = Response.of(200, {"items": ["x" * 1000] * 200})
            asking = {**bearer, "Accept-Encoding": "gzip"}
            _, headers, packed = await raw(world, "GET", PODS, headers=asking)
            assert headers["content-encoding"] == ["gzip"] and len(json.loads(gzip.decompress(packed))["items"]) == 200
            plain = {**bearer, "Accept-Encoding": "identity"}
            _, headers, body = await raw(world, "GET", PODS, headers=plain)
            assert "content-encoding" not in headers and len(json.loads(body)["items"]) == 200
            _, headers, _ = await raw(world, "GET", "/small", headers=asking)
            assert "content-encoding" not in headers

    asyncio.run(scene())


def test_several_warnings_are_several_headers(bearer: dict[str, str]) -> None:
    async def scene() -> None:
        async with served() as world:
            lines = '299 - "one"\n299 - "two, three"'
            world.api.answers[PODS] = Response.of(200, {}, {"Warning": lines})
            _, headers, _ = await raw(world, "GET", PODS, headers=bearer)
            assert headers["warning"] == lines.split("\n")
            client = HttpClient(world.access)
            assert (await client.send(Request("GET", PODS))).headers["warning"] == lines
            await client.close()

    asyncio.run(scene())


def test_a_watch_streams_frames_as_they_come_and_ends_with_its_stream() -> None:
    async def scene() -> None:
        async with served() as world:
            frames = Frames()
            frames.push(b'{"n":1}', b'{"n":2}')
            world.api.answers[PODS] = Response(200, stream=frames)
            client = HttpClient(world.access)
            watch = client.watch(Request("GET", PODS, {"watch": "true"}))
            got = await anext(watch)
            assert got == [b'{"n":1}', b'{"n":2}']
            long = b'"' + b"x" * 3_000_000 + b'"'
            frames.push(long, over=True)
            assert [batch async for batch in watch] == [[long]]
            assert frames.closed and not world.server._watches
            await client.close()

    asyncio.run(scene())


def test_a_client_that_leaves_closes_its_watch() -> None:
    async def scene() -> None:
        async with served() as world:
            frames = Frames()
            frames.push(b"1")
            world.api.answers[PODS] = Response(200, stream=frames)
            client = HttpClient(world.access)
            watch = client.watch(Request("GET", PODS))
            await anext(watch)
            await client.close()
            while not frames.closed:
                await asyncio.wait([asyncio.create_task(raw(world, "GET", "/livez"))])
            assert not world.server._watches

    asyncio.run(scene())


def test_stopping_ends_watches_in_order() -> None:
    async def scene() -> None:
        async with served() as world:
            frames = Frames()
            frames.push(b"1")
            world.api.answers[PODS] = Response(200, stream=frames)
            client = HttpClient(world.access)
            watch = client.watch(Request("GET", PODS))
            await anext(watch)
            stopping = asyncio.create_task(world.server.stop())
            assert [batch async for batch in watch] == []
            await client.close()
            await stopping
            assert frames.closed

    asyncio.run(scene())


def test_stopping_does_not_wait_for_connections_that_nobody_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.cluster.serving.serve.SHUTDOWN_S", 3600.0)

    async def scene() -> None:
        async with served() as world:
            client = HttpClient(world.access)
            await client.send(Request("GET", PODS))
            async with asyncio.timeout(300):
                await world.server.stop()
            await client.close()

    asyncio.run(scene())


def test_the_clock_ends_a_watch_whose_time_is_over() -> None:
    class Timed(Frames):
        def tick(self, now: datetime) -> None:
            self.over = True

    async def scene() -> None:
        async with served() as world:
            world.api.answers[PODS] = Response(200, stream=Timed())
            client = HttpClient(world.access)
            assert [batch async for batch in client.watch(Request("GET", PODS))] == []
            await client.close()

    asyncio.run(scene())


def test_a_refused_watch_raises_its_refusal() -> None:
    async def scene() -> None:
        async with served() as world:
            world.api.answers[PODS] = Response.refused(Gone("too old resource version: 1 (7)"))
            client = HttpClient(world.access)
            with pytest.raises(Gone, match="too old"):
                await anext(client.watch(Request("GET", PODS)))
            await client.close()

    asyncio.run(scene())


def test_a_bug_in_the_api_is_an_internal_error_and_the_server_goes_on(bearer: dict[str, str]) -> None:
    async def scene() -> None:
        async with served() as world:
            world.api.answers[PODS] = Response.of(200, {"unencodable": object()})
            status, _, body = await raw(world, "GET", PODS, headers=bearer)
            assert status == 500 and json.loads(body)["reason"] == "InternalError"
            assert (await raw(world, "GET", "/other", headers=bearer))[0] == 200

    asyncio.run(scene())


def test_an_address_in_use_is_told_with_what_to_do() -> None:
    async def scene() -> None:
        async with served() as world:
            with pytest.raises(ServeError, match=f"cannot listen on 127.0.0.1:{world.server.port}: .*choose another"):
                await type(world.server)(
                    world.api, world.server._authenticator, world.server._clock, world.durability
                ).start("127.0.0.1", world.server.port)

    asyncio.run(scene())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine")
def test_kubectl_reads_the_version_over_tls_with_the_written_kubeconfig(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served() as world:
            world.api.answers["/version"] = Response.of(200, {"major": "1", "gitVersion": "v1.36.0"})
            file = tmp_path / "config"
            file.write_text(json.dumps(kubeconfig_for(server=world.url, ca_pem=KEYS.ca_pem, client=KEYS.admin)))
            command = ["kubectl", "--kubeconfig", str(file), "get", "--raw", "/version"]
            run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
            assert run.returncode == 0, run.stderr
            assert json.loads(run.stdout)["gitVersion"] == "v1.36.0"
            assert world.api.asked[0][1].name == "kubernetes-admin"

    asyncio.run(scene())


def test_a_server_that_is_not_there_is_told_in_one_sentence() -> None:
    async def scene() -> tuple[Response, Response]:
        async with served() as world:
            port = world.server.port
            untrusting = HttpClient(ClusterAccess(world.url, token=Secret(TOKEN)))
            untrusted = await untrusting.send(Request("GET", PODS))
            await untrusting.close()
        client = HttpClient(ClusterAccess(f"http://127.0.0.1:{port}"))
        absent = await client.send(Request("GET", PODS))
        await client.close()
        return untrusted, absent

    untrusted, absent = asyncio.run(scene())
    assert (absent.status, absent.obj["reason"]) == (503, "ServiceUnavailable")
    assert "cannot be reached: nothing listens there; check" in absent.obj["message"]
    assert "its certificate is not trusted" in untrusted.obj["message"]
