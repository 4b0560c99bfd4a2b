"""Hostile clients over real sockets: slow, silent, many, lying. Bounds are counted; nothing waits by the clock.

Seconds are told to the server by calling what its timer calls, so that a test of a minute takes none.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import random
import resource
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.serving import JANE, KEYS, TOKEN, Frames, World, served
from tests.cluster.world import World as Cluster

from syncline.base.clock import SystemClock
from syncline.cluster.access.authn import Authenticator
from syncline.cluster.access.pki import create_keys
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.serving.connections import FIRST_REQUEST_S, allow_many_connections
from syncline.cluster.serving.serve import STALLED_S, ApiServer, Durability
from syncline.cluster.storage.store import CURSOR_LIMIT_EVENTS
from syncline.kube.client import Response

BEARER = f"Authorization: Bearer {TOKEN}\r\n"
HEAD = f"Host: x\r\n{BEARER}"
GET = f"GET /api/v1/pods HTTP/1.1\r\n{HEAD}\r\n".encode()
MB = 1024 * 1024
HANG_S = 300
"""Longer than any busy machine takes: a hang is a failure, slowness is none."""


@pytest.fixture(autouse=True)
def no_second_passes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are those that a test tells the server, however long it takes itself."""
    monkeypatch.setattr("syncline.cluster.serving.serve.TICK_S", 86_400.0)


def resident() -> int:
    """Bytes of this process: server and clients together."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def until(what: Callable[[], Any], turns: int = 20_000) -> None:
    """Let the loop run until ``what`` holds; bounded by turns of the loop, each of which polls the sockets."""
    loop = asyncio.get_running_loop()
    for _ in range(turns):
        if what():
            return
        turn = loop.create_future()
        loop.call_later(0.0005, turn.set_result, None)
        await turn
    raise AssertionError("it never came to that")


class Line:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, world: World, *, tls: bool = False) -> Line:
        context = ssl.create_default_context(cadata=KEYS.ca_pem) if tls else None
        return cls(*await asyncio.open_connection("127.0.0.1", world.server.port, ssl=context, limit=8 * MB))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """One answer with a content-length; status 0 when the server closed instead."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, {}, b""
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if "content-length" not in headers:
            return int(first.split()[1]), headers, b""
        return int(first.split()[1]), headers, await self.reader.readexactly(int(headers["content-length"]))

    async def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        await self.send(data)
        return await self.answer()

    async def closed(self) -> bool:
        """Whether the server ends it; what it still says is thrown away."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.writer.close()


async def lives(world: World) -> None:
    """The server still answers others."""
    line = await Line.open(world)
    assert (await line.ask(GET))[0] == 200
    line.close()


def seconds(server: ApiServer, count: int) -> None:
    for _ in range(count):
        server._tick()


def run(scene: Coroutine[Any, Any, None]) -> None:
    """With an end, whatever happens: a hang is a failure."""

    async def bounded() -> None:
        await asyncio.wait_for(scene, HANG_S)

    asyncio.run(bounded())


# -- slow and silent ----------------------------------------------------------------------------------------------


def test_connections_that_never_finish_their_first_request_are_cut_off_and_others_served() -> None:
    async def scene() -> None:
        async with served(tls=False) as world:
            lines = [await Line.open(world) for _ in range(200)]
            for number, line in enumerate(lines):
                await line.send(b"" if number % 2 else b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            await until(lambda: world.server.connections.open >= 200)
            busy = await Line.open(world)
            assert (await busy.ask(GET))[0] == 200
            seconds(world.server, FIRST_REQUEST_S)
            assert world.server.connections.cut_off == 0
            seconds(world.server, 2)
            assert world.server.connections.cut_off == 200
            assert all([await line.closed() for line in lines])
            assert (await busy.ask(GET))[0] == 200, "who has asked before may pause"
            await until(lambda: world.server.connections.open == 1)
            busy.close()

    run(scene())


def test_a_body_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.cluster.serving.serve.BODY_S", 0.05)

    async def scene() -> None:
        async with served(tls=False, seats=5) as world:
            line = await Line.open(world)
            status, _, body = await line.ask(post("Content-Length: 999", body="{"))
            assert (status, json.loads(body)["reason"]) == (504, "Timeout")
            assert world.api.asked == []
            line.close()
            await lives(world)
            fairness = world.server._fairness
            assert fairness is not None and all(not each.executing for each in fairness._levels.values())

    run(scene())


def test_a_handshake_that_stops_half_way_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.cluster.serving.serve.HANDSHAKE_S", 0.05)

    async def scene() -> None:
        async with served() as world:
            silent = [await Line.open(world) for _ in range(50)]
            for line in silent[::2]:
                await line.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
            assert all([await line.closed() for line in silent])
            plain = await Line.open(world)
            await plain.send(GET)
            assert await plain.closed(), "plain HTTP on the port of TLS"
        monkeypatch.undo()  # a good handshake may take its time
        async with served() as world:
            silent = await Line.open(world)
            secure = await Line.open(world, tls=True)
            assert (await secure.ask(GET))[0] == 200
            for line in (silent, secure):
                line.close()

    run(scene())


def test_a_client_that_takes_no_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.cluster.serving.serve.STALLED_S", 0.05)

    async def scene() -> None:
        async with served(tls=False, seats=5) as world:
            world.api.answers["/big"] = Response.encoded(200, b"x" * 30 * MB)
            line = await Line.open(world)
            line.writer.transport.pause_reading()
            await line.send(GET.replace(b"/api/v1/pods", b"/big"))
            await until(lambda: world.server.connections.open == 0)
            line.close()
            fairness = world.server._fairness
            assert fairness is not None and all(not each.executing for each in fairness._levels.values())
            await lives(world)

    run(scene())


def test_connections_that_their_client_closes_half_way_are_closed() -> None:
    async def scene() -> None:
        async with served(tls=False) as world:
            line = await Line.open(world)
            assert (await line.ask(GET))[0] == 200
            line.writer.write_eof()
            assert await line.closed()
            silent = await Line.open(world)
            silent.writer.write_eof()
            assert await silent.closed()
            await until(lambda: world.server.connections.open == 0)
            await lives(world)

    run(scene())


# -- many ---------------------------------------------------------------------------------------------------------


def test_connections_are_bounded_and_places_come_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.cluster.serving.connections.MAX_CONNECTIONS", 100)

    async def scene() -> None:
        async with served(tls=False) as world:
            lines = [await Line.open(world) for _ in range(150)]
            await until(lambda: world.server.connections.refused == 50)
            assert (await lines[0].ask(GET))[0] == 200
            assert await lines[149].closed()
            for line in lines:
                line.close()
            await until(lambda: world.server.connections.open == 0)
            await lives(world)

    run(scene())


def test_two_thousand_connections_ask_at_once(figure: Callable[[str, str], None]) -> None:
    allow_many_connections()
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 5_000:
        pytest.skip("this machine allows too few open files for 2,000 connections")

    async def scene() -> None:
        async with served(tls=False, seats=600) as world:
            before = resident()
            lines = [await Line.open(world) for _ in range(2_000)]
            statuses = [status for status, _, _ in await asyncio.gather(*(line.ask(GET) for line in lines))]
            assert statuses == [200] * 2_000
            each = (resident() - before) // 2_000
            figure("connections that asked at once", "2000")
            assert each < 200 * 1024
            for line in lines:
                line.close()
            await until(lambda: world.server.connections.open == 0)

    run(scene())


@asynccontextmanager
async def serving(cluster: Cluster) -> AsyncIterator[World]:
    """A real API behind plain HTTP."""
    durability = Durability(cluster.store)
    known = {TOKEN: ADMIN, JANE: UserInfo("jane", ("devs",))}
    authenticator = Authenticator(authorize=cluster.api.backend.authorizer.decide, fixed_tokens=known)
    server = ApiServer(cluster.api, authenticator, SystemClock(), durability)
    await server.start("127.0.0.1", 0)
    try:
        yield World(cluster.api, cluster.store, durability, server)  # type: ignore[arg-type]
    finally:
        await asyncio.wait_for(server.stop(), HANG_S)


MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"GET {MAPS}?watch=1 HTTP/1.1\r\n{HEAD}\r\n".encode()


def test_two_thousand_watches_opened_at_once_see_the_next_change(figure: Callable[[str, str], None]) -> None:
    allow_many_connections()
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 5_000:
        pytest.skip("this machine allows too few open files for 2,000 connections")
    cluster = Cluster()

    async def scene() -> None:
        async with serving(cluster) as world:
            before = resident()
            lines = [await Line.open(world) for _ in range(2_000)]
            for line in lines:
                line.writer.write(WATCH)
            await until(lambda: world.server.watching == 2_000)
            each = (resident() - before) // 2_000
            figure("watches opened at once", "2000, and all saw the next change")
            assert each < 250 * 1024
            cluster.post(MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})

            async def observed(line: Line) -> bytes:
                return await line.reader.readuntil(b'"ADDED"')

            assert all(await asyncio.gather(*map(observed, lines)))
            for line in lines:
                line.close()
            await until(lambda: world.server.watching == 0)

    run(scene())


def test_watches_are_bounded_for_all_and_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.cluster.serving.serve.MAX_WATCHES", 30)
    monkeypatch.setattr("syncline.cluster.serving.serve.MAX_WATCHES_OF_ONE", 10)
    watch = GET.replace(b"/api/v1/pods", b"/api/v1/pods?watch=1")
    jane = watch.replace(TOKEN.encode(), JANE.encode())

    async def scene() -> None:
        async with served(tls=False) as world:
            streams: list[Frames] = []

            def begin(_request: Any, _user: Any) -> Response:
                streams.append(Frames())
                return Response(200, stream=streams[-1])

            world.api.begin = begin  # type: ignore[method-assign]
            lines = [await Line.open(world) for _ in range(12)]
            found = [(await line.ask(jane))[:2] for line in lines]
            assert [status for status, _ in found] == [200] * 10 + [429] * 2
            assert found[-1][1]["retry-after"] == "10" and streams[-1].closed
            others = [await Line.open(world) for _ in range(21)]
            assert [(await line.ask(watch))[0] for line in others] == [200] * 20 + [429]
            lines[0].close()
            await until(lambda: world.server.watching == 29)
            again = await Line.open(world)
            assert (await again.ask(jane))[0] == 200
            for line in (*lines, *others, again):
                line.close()
            await until(lambda: world.server.watching == 0)
            assert all(stream.closed for stream in streams)

    run(scene())


def test_a_watcher_that_never_reads_delays_nobody_and_is_cut_off() -> None:
    cluster = Cluster()

    async def scene() -> None:
        async with serving(cluster) as world:
            deaf, good = await Line.open(world), await Line.open(world)
            deaf.writer.transport.pause_reading()
            await deaf.send(WATCH)
            await good.send(WATCH)
            await until(lambda: world.server.watching == 2)
            cluster.post(MAPS, {"metadata": {"name": "m"}, "data": {"a": "0"}})
            before = resident()
            for number in range(CURSOR_LIMIT_EVENTS // 10):
                cluster.merge(f"{MAPS}/m", {"data": {"a": str(number) + "x" * 2_000}})
                if number % 50 == 0:
                    await good.reader.read(4 * MB)
            stuck = next(each for each in world.server._watches if each.writing)
            seconds(world.server, STALLED_S // 2)
            assert world.server.watches_cut_off == 0 and world.server.watching == 2
            seconds(world.server, STALLED_S)
            assert world.server.watches_cut_off == 1 and stuck.stalled > STALLED_S
            await until(lambda: world.server.watching == 1)
            assert resident() - before < 64 * MB
            await lives(world)
            deaf.close()
            good.close()

    run(scene())


# -- lying --------------------------------------------------------------------------------------------------------


def post(*headers: str, body: str = "") -> bytes:
    head = "".join(f"{each}\r\n" for each in headers)
    return f"POST /api/v1/pods HTTP/1.1\r\n{HEAD}{head}\r\n{body}".encode("latin-1")


SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        post("Content-Length: 5", "Transfer-Encoding: chunked", body="0\r\n\r\n" + SMUGGLED),
        post("Transfer-Encoding: chunked", "Content-Length: 5", body="0\r\n\r\n" + SMUGGLED),
        post("Content-Length: 5", "Content-Length: 6", body="12345" + SMUGGLED),
        post("Content-Length: -1", body=SMUGGLED),
        post("Content-Length: +5", body="12345" + SMUGGLED),
        post("Content-Length: 0x5", body="12345" + SMUGGLED),
        post("Content-Length: 5 5", body="12345" + SMUGGLED),
        post("Content-Length: 5,5", body="12345" + SMUGGLED),
        post("Content-Length: " + "9" * 30, body=SMUGGLED),
        post("Transfer-Encoding: chunked", body="zz\r\n" + SMUGGLED),
        post("Transfer-Encoding: chunked", body="-1\r\n" + SMUGGLED),
        post("Transfer-Encoding: chunked", body="f" * 40 + "\r\n" + SMUGGLED),
        post("Transfer-Encoding: chunked", body="5\r\n12345" + SMUGGLED),
        post("Transfer-Encoding: xchunked", body="0\r\n\r\n" + SMUGGLED),
        post("Transfer-Encoding: chunked, identity", body="0\r\n\r\n" + SMUGGLED),
        post("Content-Length : 5", body="12345" + SMUGGLED),
        post("X: a\r\n Content-Length: 5", body="12345" + SMUGGLED),
        post("X\0: a"),
        post("X: a\0b"),
        post("X: " + "y" * 70_000),
        post(*(f"X-{n}: y" for n in range(200))),
        f"GET /{'x' * 70_000} HTTP/1.1\r\n{HEAD}\r\n".encode(),
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n\0\0\0",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        bytes(range(256)) * 20,
        b"GET /api/v1/pods\r\n\r\n",
        b"GET  /api/v1/pods HTTP/1.1\r\n\r\n",
        b"GET /api/v1/pods HTTP/1.1\rHost: x\r\r",
    ],
    ids=lambda data: data.split(b"\r\n\r\n")[0][-60:].decode("latin-1").encode("ascii", "replace").decode(),
)
def test_requests_that_lie_about_their_end_are_refused_and_smuggle_nothing(data: bytes) -> None:
    async def scene() -> None:
        async with served(tls=False) as world:
            line = await Line.open(world)
            await line.send(data)
            line.writer.write_eof()
            status, _, _ = await line.answer()
            assert status in (0, 400, 413, 431, 501, 505), status
            assert await line.closed()
            assert [request.path for request, _ in world.api.asked] == [] or status == 0
            assert "/smuggled" not in [request.path for request, _ in world.api.asked]
            await lives(world)

    run(scene())


def test_a_body_that_ends_early_reaches_nobody_and_what_follows_one_is_no_part_of_it() -> None:
    async def scene() -> None:
        async with served(tls=False) as world:
            short = await Line.open(world)
            await short.send(post("Content-Length: 50", body="{}"))
            short.close()
            await until(lambda: world.server.connections.open == 0)
            assert world.api.asked == []
            long = await Line.open(world)
            await long.send(post("Content-Length: 2", body="{}garbage that is no request\r\n\r\n"))
            statuses = [(await long.answer())[0] for _ in range(2)]
            assert statuses in ([200, 400], [400, 0]), "the good one may be thrown away with what follows it"
            assert await long.closed()
            assert [request.body for request, _ in world.api.asked] == ([b"{}"] if statuses[0] == 200 else [])

    run(scene())


def test_five_hundred_requests_in_one_piece_are_answered_in_their_order() -> None:
    async def scene() -> None:
        async with served(tls=False) as world:
            line = await Line.open(world)
            await line.send(b"".join(GET.replace(b"/pods", f"/p{n}".encode()) for n in range(500)))
            for number in range(500):
                status, _, body = await line.answer()
                assert (status, json.loads(body)["path"]) == (200, f"/api/v1/p{number}")
            line.close()

    run(scene())


def test_a_bomb_in_a_compressed_body_stays_packed() -> None:
    compressor = zlib.compressobj(1, wbits=31)
    bomb = b"".join(compressor.compress(b"\0" * MB) for _ in range(100)) + compressor.flush()

    async def scene() -> None:
        async with served(tls=False) as world:
            before = resident()
            line = await Line.open(world)
            head = f"POST /api/v1/pods HTTP/1.1\r\n{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
            assert (await line.ask(head.encode() + bomb))[0] == 200
            assert world.api.asked[0][0].body == bomb
            assert resident() - before < 20 * MB
            line.close()

    run(scene())


def test_a_body_that_is_too_long_is_refused_without_being_kept() -> None:
    async def scene() -> None:
        async with served(tls=False) as world:
            before = resident()
            line = await Line.open(world)
            await line.send(post("Transfer-Encoding: chunked"))
            chunk = b"100000\r\n" + b"x" * MB + b"\r\n"
            try:
                for _ in range(40):
                    await line.send(chunk)
            except ConnectionError:
                pass
            status, _, _ = await line.answer()
            assert status in (0, 413)
            assert world.api.asked == [] and resident() - before < 24 * MB
            line.close()
            await lives(world)

    run(scene())


ODD_BYTES = [b"%", b"%00", b"\xff", b"%ff%fe", b"\r\n", b"\n", b"?", b"#", b"//", b"\xc3\xa9", b"%ed%a0%80"]


def test_raw_noise_stops_nobody(figure: Callable[[str, str], None]) -> None:
    """Seeded: valid requests with bytes changed, moved, doubled and cut."""
    chance = random.Random(6)
    cluster = Cluster()
    good = [
        GET,
        WATCH,
        f"GET {MAPS}?limit=1&labelSelector=a%3Db HTTP/1.1\r\n{HEAD}Accept: application/yaml\r\n\r\n".encode(),
        post("Content-Length: 2", body="{}").replace(b"/api/v1/pods", MAPS.encode()),
        post("Content-Type: application/merge-patch+json", "Content-Length: 2", body="{}")
        .replace(b"/api/v1/pods", f"{MAPS}/m".encode())
        .replace(b"POST", b"PATCH"),
    ]
    count = 300

    def noise() -> bytes:
        data = bytearray(chance.choice(good))
        for _ in range(chance.choice((0, 1, 1, 2, 5, 30))):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(5):
                case 0:
                    data[at:at] = chance.randbytes(chance.choice((1, 4, 40)))
                case 1:
                    del data[at : at + chance.choice((1, 3, 30))]
                case 2:
                    data[at : at + 1] = chance.choice(ODD_BYTES)
                case 3:
                    data[at:at] = data[: chance.choice((5, 50))]
                case 4:
                    data[at:] = b""
            if not data:
                data = bytearray(b"x")
        return bytes(data)

    async def scene() -> None:
        async with serving(cluster) as world:
            answered = 0
            for number in range(count):
                line = await Line.open(world)
                await line.send(noise())
                asked = asyncio.ensure_future(line.answer())
                with contextlib.suppress(AssertionError):  # else it waits for the rest of the request
                    await until(asked.done, turns=60)
                asked.cancel()
                (found,) = await asyncio.gather(asked, return_exceptions=True)
                status, _, body = (0, {}, b"") if isinstance(found, asyncio.CancelledError) else found
                assert status != 500 or b"resourceVersion" in body, body
                answered += status > 0
                line.close()
                if number % 50 == 49:
                    await lives(world)
            assert answered > count // 10
            await until(lambda: world.server.connections.open == 0)
            assert world.server.watching == 0
            figure("raw requests with noise over sockets", f"{count}, of which {answered} got an answer")

    run(scene())


# -- certificates over TLS ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what", ["another authority", "expired", "not yet valid", "for servers only", "own key, name of ours"]
)
def test_a_certificate_that_should_not_open_the_door_does_not(what: str) -> None:
    now = SystemClock().now()
    other = create_keys(now)
    year, masters = timedelta(days=366), ("system:masters",)
    pair = {
        "another authority": lambda: other.admin,
        "expired": lambda: KEYS.authority.issue("x", now=now - 2 * year, organizations=masters),
        "not yet valid": lambda: KEYS.authority.issue("x", now=now + year, organizations=masters),
        "for servers only": lambda: KEYS.server,
        "own key, name of ours": lambda: other.authority.issue("kubernetes-admin", now=now, organizations=masters),
    }[what]()

    async def scene() -> None:
        async with served() as world:
            context = ssl.create_default_context(cadata=KEYS.ca_pem)
            folder = Path(os.environ.get("TMPDIR", "/tmp"))
            file = folder / f"hostile-{os.getpid()}.pem"
            file.write_text(pair.certificate_pem + pair.key_pem.reveal())
            try:
                context.load_cert_chain(file)
            finally:
                file.unlink()
            try:
                streams = await asyncio.open_connection("127.0.0.1", world.server.port, ssl=context)
                line = Line(*streams)
                status, _, _ = await line.ask(b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n")
            except (ssl.SSLError, ConnectionError):
                status = 0
            assert status in (0, 401)
            assert world.api.asked == []

    run(scene())
