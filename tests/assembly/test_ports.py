"""How a controller asks a server that has too much to do: what it repeats, and how many requests are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from aiohttp import web

from syncline.assembly import ports
from syncline.assembly.ports import TRIES, HttpPort
from syncline.kube.client import Request, Response
from syncline.kube.transport.kubeconfig import ClusterAccess

Found = TypeVar("Found")
BUSY = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "reason": "TooManyRequests"}
GOOD = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
MAP = "/api/v1/namespaces/default/configmaps/a"


class Server:
    """Answers with 429 as often as it is told; ``hold`` keeps what it is asked until it is set."""

    def __init__(self, refusals: int = 0, headers: dict[str, str] | None = None) -> None:
        self.refusals, self.headers = refusals, headers if headers is not None else {"Retry-After": "0"}
        self.asked = self.now = self.most = 0
        self.held: dict[str, asyncio.Event] = {}

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        if request.path in self.held:
            await self.held[request.path].wait()
        else:
            await asyncio.sleep(0)
        self.now -= 1
        if self.asked <= self.refusals:
            return web.json_response(BUSY, status=429, headers=self.headers)
        return web.json_response(GOOD)


def served(server: Server, scene: Callable[[HttpPort], Awaitable[Found]]) -> Found:
    async def run() -> Found:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", server.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, number = runner.addresses[0][:2]
        port = HttpPort(ClusterAccess(server=f"http://{host}:{number}"))
        try:
            return await scene(port)
        finally:
            await port.close()
            await runner.cleanup()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("refusals", "headers", "path", "status", "asked"),
    [
        (3, {"Retry-After": "0"}, MAP, 200, 4),
        (100, {"Retry-After": "0"}, MAP, 429, TRIES),
        (3, {}, MAP, 429, 1),
        (3, {"Retry-After": "3600"}, MAP, 429, 1),
        (3, {"Retry-After": "0"}, "/api/v1/namespaces/default/pods/a/eviction", 429, 1),
    ],
    ids=["repeated", "not for ever", "only where the server says when", "not in an hour", "no budget is asked twice"],
)
def test_a_request_that_was_sent_away_is_repeated(
    refusals: int, headers: dict[str, str], path: str, status: int, asked: int
) -> None:
    server = Server(refusals, headers)

    async def scene(port: HttpPort) -> Response:
        return await port.send(Request("GET", path))

    assert (served(server, scene).status, server.asked) == (status, asked)


def test_no_more_requests_are_under_way_than_the_pace_allows_and_all_are_answered() -> None:
    server = Server()
    limits = [0]

    async def scene(port: HttpPort) -> list[Response]:
        async def one() -> Response:
            answer = await port.send(Request("GET", MAP))
            limits.append(port.pace.limit)
            return answer

        return await asyncio.gather(*(one() for _ in range(200)))

    answers = served(server, scene)
    assert {answer.status for answer in answers} == {200}
    assert server.most <= max(limits)


def test_a_request_that_hangs_keeps_no_other_one_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "SLOW_S", 0.01)
    server = Server()

    async def scene(port: HttpPort) -> list[int]:
        for number in range(port.pace.limit):
            server.held[f"/api/v1/namespaces/hangs/configmaps/{number}"] = asyncio.Event()
        hanging = [asyncio.create_task(port.send(Request("GET", path))) for path in server.held]
        while server.now < len(hanging):
            await asyncio.sleep(0)
        found = [(await port.send(Request("GET", MAP))).status]
        for event in server.held.values():
            event.set()
        return found + [answer.status for answer in await asyncio.gather(*hanging)]

    assert served(server, scene) == [200] * 5


def test_who_gives_up_while_waiting_leaves_the_turn_to_the_next() -> None:
    server = Server()

    async def scene(port: HttpPort) -> tuple[int, int]:
        for number in range(port.pace.limit):
            server.held[f"/api/v1/namespaces/hangs/configmaps/{number}"] = asyncio.Event()
        hanging = [asyncio.create_task(port.send(Request("GET", path))) for path in server.held]
        while server.now < len(hanging):
            await asyncio.sleep(0)
        waiting = [asyncio.create_task(port.send(Request("GET", MAP))) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        for event in server.held.values():
            event.set()
        answers = await asyncio.gather(*waiting[1:], *hanging)
        return len([answer for answer in answers if answer.ok]), port.pace.under_way

    assert served(server, scene) == (6, 0)
