"""Watches and logs over WebSocket, on a served stub."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType
from tests.cluster.serving import KEYS, TOKEN, Frames, World, served

from syncline.kube.client import Response

WATCH, LOG = "/api/v1/pods?watch=true", "/api/v1/namespaces/demo/pods/web/log"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PLAIN = {"content-type": "text/plain"}


async def opened(session: aiohttp.ClientSession, world: World, path: str, *protocols: str) -> Any:
    context = ssl.create_default_context(cadata=KEYS.ca_pem)
    return await session.ws_connect(world.url + path, ssl=context, headers=BEARER, protocols=protocols)


async def _watched() -> tuple[list[tuple[WSMsgType, Any]], bool]:
    frames = Frames()
    async with served() as world, aiohttp.ClientSession() as session:
        world.api.answers["/api/v1/pods"] = Response(200, stream=frames)
        socket = await opened(session, world, WATCH)
        frames.push(b'{"type":"ADDED"}', b'{"type":"DELETED"}', over=True)
        messages = [(one.type, one.data) async for one in socket]
        await socket.close()
    return messages, frames.closed


def test_each_event_of_a_watch_is_a_text_message() -> None:
    text = WSMsgType.TEXT
    assert asyncio.run(_watched()) == ([(text, '{"type":"ADDED"}\n'), (text, '{"type":"DELETED"}\n')], True)


async def _left() -> bool:
    frames = Frames()
    async with served() as world, aiohttp.ClientSession() as session:
        world.api.answers["/api/v1/pods"] = Response(200, stream=frames)
        socket = await opened(session, world, WATCH)
        await socket.send_str("ignored")
        await socket.close()
        async with asyncio.timeout(300):
            while not frames.closed:
                await asyncio.sleep(0)
    return frames.closed


def test_a_client_that_leaves_ends_its_watch() -> None:
    assert asyncio.run(_left())


async def _read(protocol: str, *, followed: bool) -> list[Any]:
    frames = Frames()
    async with served() as world, aiohttp.ClientSession() as session:
        answer = Response(200, headers=PLAIN, stream=frames) if followed else Response.encoded(200, b"one\ntwo", PLAIN)
        world.api.answers["/api/v1/namespaces/demo/pods/web/log"] = answer
        frames.push(b"one\n", b"two", over=True)
        socket = await opened(session, world, LOG, *([protocol] if protocol else []))
        assert (socket.protocol or "") == protocol
        messages = [one.data async for one in socket]
        await socket.close()
    return messages


@pytest.mark.parametrize("protocol", ["", "binary.k8s.io"])
def test_a_log_comes_in_binary_messages_after_an_empty_one(protocol: str) -> None:
    assert asyncio.run(_read(protocol, followed=False)) == [b"", b"one\ntwo"]
    assert asyncio.run(_read(protocol, followed=True)) == [b"", b"one\n", b"two"]


def test_a_log_comes_in_base64_where_the_client_says_so() -> None:
    messages = asyncio.run(_read("base64.binary.k8s.io", followed=False))
    assert [base64.b64decode(each) for each in messages] == [b"", b"one\ntwo"]
    assert all(isinstance(each, str) for each in messages)
