"""The blocking client of ``kube/http`` against the real server: here, because a test of the kube floor cannot serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.cluster.serving import Frames, World, served

from syncline.kube.client import Request, Response
from syncline.kube.errors import Gone
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import ClusterAccess

PODS = "/api/v1/pods"


def against(scene: Callable[[World], None]) -> None:
    async def run() -> None:
        async with served() as world:
            await asyncio.to_thread(scene, world)

    asyncio.run(run())


def test_requests_and_answers_are_those_of_the_other_client() -> None:
    def scene(world: World) -> None:
        world.api.answers[PODS] = Response.of(201, {"x": 1}, {"warning": "one\ntwo"})
        client = BlockingClient(world.access)
        answer = client.send(Request("POST", PODS, {"dryRun": "All"}, body={"a": "ü"}))
        assert (answer.status, answer.obj, answer.headers["warning"]) == (201, {"x": 1}, "one\ntwo")
        assert client.send(Request("GET", "/a b/ü")).obj["path"] == "/a b/ü"
        client.close()
        request, user = world.api.asked[0]
        assert (request.query, request.body, user.name) == ({"dryRun": "All"}, '{"a":"ü"}'.encode(), "kubernetes-admin")

    against(scene)


def test_lines_of_a_watch_come_until_it_ends_and_a_refusal_raises() -> None:
    def scene(world: World) -> None:
        frames = Frames()
        frames.push(b'{"n":1}', b"x" * 500_000, over=True)
        world.api.answers[PODS] = Response(200, stream=frames)
        client = BlockingClient(world.access)
        assert list(client.watch(Request("GET", PODS))) == [b'{"n":1}', b"x" * 500_000]
        world.api.answers[PODS] = Response.refused(Gone("too old"))
        with pytest.raises(Gone):
            list(client.watch(Request("GET", PODS)))

    against(scene)


def test_a_server_name_may_differ_from_the_address() -> None:
    def scene(world: World) -> None:
        named = replace(world.access, tls_server_name="kubernetes.default.svc")
        assert BlockingClient(named).send(Request("GET", PODS)).ok
        wrong = BlockingClient(replace(world.access, tls_server_name="elsewhere.example"))
        refused = wrong.send(Request("GET", PODS))
        assert refused.status == 503 and "its certificate is not trusted (Hostname mismatch" in refused.obj["message"]

    against(scene)


def test_a_server_that_is_not_there_is_told_in_one_sentence() -> None:
    ports: list[int] = []
    against(lambda world: ports.append(world.server.port))
    refused = BlockingClient(ClusterAccess(f"http://127.0.0.1:{ports[0]}")).send(Request("GET", PODS))
    assert refused.obj["message"] == (
        f"the server http://127.0.0.1:{ports[0]} cannot be reached: nothing listens there; "
        "check the address and that the server runs"
    )
