"""Attempts to take more of the server than its bounds allow; each ends, and others are still answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from tests.web.serving import served

from syncline.kube.objects import Obj
from syncline.web.serving.bounds import Bounds
from syncline.web.serving.port import PREFACE, Port
from syncline.web.wire.calls import Call
from syncline.web.wire.frames import framed

APPS = "/application.ApplicationService/"
HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "x"),
    (":path", APPS + "Get"),
    ("content-type", "application/grpc"),
]
TIGHT = Bounds(
    connections=3,
    streams=5,
    header_bytes=8_192,
    body_bytes=10_000,
    held_bytes=200_000,
    first_bytes_s=0.3,
    body_s=0.3,
    idle_s=0.5,
    stalled_s=0.3,
    resets=20,
    resets_s=60.0,
    unsent_bytes=100_000,
)
LONGEST_S = 30.0


class Client:
    """An HTTP/2 client that does what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8", validate_outbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        self.h2.initiate_connection()
        self.events: list[h2.events.Event] = []

    @classmethod
    async def to(cls, port: Port) -> Client:
        made = cls(*await asyncio.open_connection("127.0.0.1", port.number))
        await made.send()
        return made

    async def send(self) -> None:
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()

    async def until(self, wanted: Callable[[h2.events.Event], bool]) -> bool:
        """Read until an event comes; False if the server closes before."""
        async with asyncio.timeout(LONGEST_S):
            while True:
                for event in self.events:
                    if wanted(event):
                        return True
                self.events.clear()
                try:
                    data = await self.reader.read(65_536)
                except ConnectionError:
                    return False
                if not data:
                    return False
                self.events = self.h2.receive_data(data)
                self.writer.write(self.h2.data_to_send())

    async def closed(self) -> bool:
        return not await self.until(lambda _: False)

    def begin(self, headers: list[tuple[str, str]] | None = None) -> int:
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, headers or HEADERS)
        return number


async def answered(port: Port) -> bool:
    """Whether another client gets an answer."""
    url = f"http://127.0.0.1:{port.number}/api/v1/applications/a"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status == 200


def attempt(test: Callable[[Port], Awaitable[None]], bounds: Bounds = TIGHT) -> None:
    async def get(_: Call, request: Obj) -> Obj:
        return {"metadata": {"name": request.get("name", "")}}

    async def manifests(_: Call, __: Obj) -> Obj:
        return {"manifests": ["x" * 100_000] * 50}

    async def watch(_: Call, __: Obj) -> AsyncIterator[Any]:
        yield {"type": "ADDED"}
        await asyncio.Event().wait()

    async def body() -> None:
        handlers = {APPS + "Get": get, APPS + "GetManifests": manifests, APPS + "Watch": watch}
        async with served(handlers, bounds) as port:
            await test(port)
            assert await answered(port)
            async with asyncio.timeout(LONGEST_S):
                while port.usage.held:
                    await asyncio.sleep(0)

    asyncio.run(body())


def is_answer(event: h2.events.Event) -> bool:
    return isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived | h2.events.StreamReset)


def test_streams_that_are_opened_and_taken_back_end_the_connection() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        for _ in range(40):
            number = client.begin()
            client.h2.reset_stream(number)
        await client.send()
        assert await client.closed()
        assert port.usage.cut_off

    attempt(test)


def test_more_streams_than_allowed_are_refused_by_the_protocol() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        assert await client.until(lambda one: isinstance(one, h2.events.RemoteSettingsChanged))
        client.h2.remote_settings.update({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1000})
        client.h2.remote_settings.acknowledge()
        for _ in range(50):
            client.begin([*HEADERS[:3], (":path", APPS + "Watch"), HEADERS[4]])
        await client.send()
        assert await client.closed()

    attempt(test)


def test_headers_without_end_are_not_kept() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        client.begin([*HEADERS, ("x-long", "a" * 20_000)])
        await client.send()
        assert await client.closed()
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 20_000 + b"\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()

    attempt(test)


def test_a_message_that_announces_too_much_is_refused_before_it_comes() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        number = client.begin()
        client.h2.send_data(number, b"\0\xff\xff\xff\xff")
        await client.send()
        assert await client.until(is_answer)
        client.writer.close()

    attempt(test)


def test_a_call_whose_message_does_not_come_ends() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        number = client.begin()
        client.h2.send_data(number, framed(b"x" * 100)[:20])
        await client.send()
        assert await client.until(is_answer)
        client.writer.close()

    attempt(test)


def test_bodies_of_all_connections_have_one_bound() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        for _ in range(4):
            number = client.begin()
            for _ in range(3):
                client.h2.send_data(number, framed(b"x" * 100_000)[:5_000])
        await client.send()
        assert await client.until(is_answer)
        client.writer.close()

    attempt(test, Bounds(held_bytes=40_000))


@pytest.mark.parametrize("first", [b"", b"G", b"GET / HTTP/1.1\r\n", PREFACE[:10]])
def test_a_connection_that_does_not_begin_is_closed(first: bytes) -> None:
    async def test(port: Port) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(first)
        async with asyncio.timeout(LONGEST_S):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        assert port.usage.cut_off

    attempt(test)


def test_a_slow_and_a_large_body_of_http_are_refused() -> None:
    async def test(port: Port) -> None:
        head = b"POST /api/v1/applications/a/sync HTTP/1.1\r\nHost: x\r\nContent-Length: "
        for body, status in ((b"20\r\n\r\n{", b" 408 "), (b"20000\r\n\r\n" + b"x" * 20_000, b" 413 ")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
            writer.write(head + body)
            async with asyncio.timeout(LONGEST_S):
                assert status in await reader.readline()
            writer.close()

    attempt(test)


def test_connections_have_a_bound() -> None:
    async def test(port: Port) -> None:
        kept = [await Client.to(port) for _ in range(3)]
        for client in kept:
            assert await client.until(lambda one: isinstance(one, h2.events.RemoteSettingsChanged))
        more = await Client.to(port)
        assert await more.closed()
        assert port.usage.refused == 1
        for client in kept:
            client.writer.close()
        async with asyncio.timeout(LONGEST_S):
            while port.usage.connections:
                await asyncio.sleep(0)

    attempt(test)


def test_a_client_that_does_not_read_loses_its_stream() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        number = client.begin([*HEADERS[:3], (":path", APPS + "GetManifests"), HEADERS[4]])
        client.h2.send_data(number, framed(b""), end_stream=True)
        await client.send()
        assert await client.until(lambda one: isinstance(one, h2.events.StreamReset))
        client.writer.close()

    attempt(test)


def test_a_connection_without_calls_is_closed_in_time() -> None:
    async def test(port: Port) -> None:
        client = await Client.to(port)
        assert await client.closed()

    attempt(test)


def test_nonsense_after_the_preface_ends_the_connection() -> None:
    async def test(port: Port) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(PREFACE + b"\xff" * 4_000)
        async with asyncio.timeout(LONGEST_S):
            with contextlib.suppress(ConnectionError):
                await reader.read()

    attempt(test)
