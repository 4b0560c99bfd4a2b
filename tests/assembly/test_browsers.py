"""Web pages against each listener of ours that has no TLS or asks for no credentials, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from syncline.assembly.embedded.live import running_cluster
from syncline.assembly.endpoints.configserver import config_server
from syncline.assembly.endpoints.listening import Answer, listening
from syncline.assembly.settings import ClusterSettings
from syncline.cluster.serving.serve import ServeError
from syncline.control.cache import Cache
from syncline.kube.mapper import Mapper

NAME = "hooks.example.com"
MAPS = "/api/v1/namespaces/default/configmaps"
BODY = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-a-page"}})
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "x" * 22 + "==",
    "Sec-WebSocket-Version": "13",
}


async def asked(port: int, target: str, headers: Mapping[str, str], body: str = "", version: str = "1.1") -> int:
    """The status of the answer, as bytes on the wire decide it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"{'POST' if body else 'GET'} {target} HTTP/{version}", *(f"{a}: {b}" for a, b in headers.items())]
    lines += [f"Content-Length: {len(body)}"] if body else []
    writer.write("\r\n".join([*lines, "", body]).encode())
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


@contextlib.asynccontextmanager
async def api() -> AsyncIterator[int]:
    async with running_cluster(ClusterSettings(tls=False, controllers=(), allowed_hosts=(NAME,))) as cluster:
        yield cluster.port


@contextlib.asynccontextmanager
async def endpoint() -> AsyncIterator[int]:
    async def answer(_headers: Mapping[str, str], _body: bytes) -> Answer:
        return Answer(200)

    async with listening(
        "127.0.0.1", 0, {("GET", "/metrics"): answer, ("POST", "/api/webhook"): answer}, [NAME]
    ) as port:
        yield port


@contextlib.asynccontextmanager
async def configs() -> AsyncIterator[int]:
    async with config_server("127.0.0.1", 0, Cache(Mapper()), lambda _: "", None, [NAME]) as port:
        yield port


LISTENERS: dict[str, tuple[Callable[[], contextlib.AbstractAsyncContextManager[int]], str, str, int]] = {
    "API server": (api, "/version", MAPS, 201),
    "faces": (endpoint, "/metrics", "/api/webhook", 200),
    "config server": (configs, "/healthz", "/healthz", 405),
}
"""What opens it, a path to read, one to write, and what a program gets there."""


@pytest.mark.parametrize("which", LISTENERS)
def test_no_page_is_answered_and_programs_are(which: str) -> None:
    opened, read, write, written = LISTENERS[which]

    async def story() -> None:
        async with opened() as port:
            here = {"Host": f"127.0.0.1:{port}"}
            json_body = {"Content-Type": "application/json"}
            attacks: list[tuple[str, int, str, Mapping[str, str], str]] = [
                ("rebound name", 403, read, {"Host": f"evil.example:{port}"}, ""),
                (
                    "rebound name, its own page",
                    403,
                    read,
                    {"Host": "evil.example", "Origin": "http://evil.example"},
                    "",
                ),
                ("foreign page", 403, read, here | {"Origin": "http://evil.example"}, ""),
                ("page of a file or a sandbox", 403, read, here | {"Origin": "null"}, ""),
                ("page of another port", 403, read, here | {"Origin": "http://127.0.0.1:1"}, ""),
                ("image of a page", 403, read, here | {"Sec-Fetch-Site": "cross-site"}, ""),
                ("WebSocket of a page", 403, read, here | UPGRADE | {"Origin": "http://evil.example"}, ""),
                ("proxy request", 400, f"http://evil.example{read}", here, ""),
                ("form", 415, write, here | {"Content-Type": "application/x-www-form-urlencoded"}, BODY),
                ("text", 415, write, here | {"Content-Type": "text/plain"}, BODY),
                ("no type", 415, write, here, BODY),
                ("JSON of a foreign page", 403, write, here | json_body | {"Origin": "https://evil.example"}, BODY),
            ]
            for what, status, target, headers, body in attacks:
                assert (what, await asked(port, target, headers, body)) == (what, status)
            assert await asked(port, read, {}, version="1.0") == 400, "no Host"
            assert await asked(port, read, here) == 200
            assert await asked(port, read, {"Host": NAME}) == 200
            assert await asked(port, read, here, version="1.0") == 200
            assert await asked(port, write, here | json_body, BODY) == written

    asyncio.run(asyncio.wait_for(story(), 300))


def test_exec_of_a_page_is_refused_before_anything_is_looked_up() -> None:
    async def story() -> None:
        async with api() as port:
            target = "/api/v1/namespaces/default/pods/p/exec?command=sh&stdout=true"
            headers = {"Host": f"127.0.0.1:{port}", **UPGRADE}
            assert await asked(port, target, headers) == 404
            assert await asked(port, target, headers | {"Origin": "http://evil.example"}) == 403

    asyncio.run(asyncio.wait_for(story(), 300))


def test_an_api_for_everybody_stays_on_the_loopback() -> None:
    async def story() -> None:
        async with running_cluster(ClusterSettings(tls=False, host="0.0.0.0", controllers=())):
            pass

    with pytest.raises(ServeError, match=r"without TLS: others reach it; listen on 127\.0\.0\.1"):
        asyncio.run(story())
