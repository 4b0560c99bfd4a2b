"""Large objects: what grows with them is done beside the loop, and the answer is the one that it gives in place."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from tests.cluster.admission.hooks import APPLY, MAPS, MERGE, World
from tests.cluster.test_work_counted import definition

from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.serving.webhooks import Caller
from syncline.cluster.storage.store import Key, Stored, encode_around_version
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj
from syncline.kube.text.jsontext import in_pieces
from syncline.kube.transport.outbound import Aside, Outcome

STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/demo/deployments"
SERVICES = "/api/v1/namespaces/demo/services"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CUSTOM = "/apis/example.com/v1/namespaces/demo/d1s"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Host:
    """What hosts the API and runs parts of requests. ``between`` is called before each part is run; ``turns`` counts
    the functions that were called meanwhile, but for those of parts."""

    def __init__(self, world: World, between: Callable[[int], None] = lambda number: None) -> None:
        self.world, self.between = world, between
        self.parts = self.turns = 0

    def send(self, method: str, path: str, body: Any = None, content: str = "", accept: str = "") -> Response:
        return self.finish(self.begin(method, path, body, content, accept))

    def begin(self, method: str, path: str, body: Any = None, content: str = "", accept: str = "") -> Response:
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        headers = {"content-type": content} if content else {}
        headers |= {"accept": accept} if accept else {}
        sent = body if body is None else msgspec.json.encode(body)
        return self._counted(lambda: self.world.api.begin(Request(method, path, query, headers, sent), ADMIN))

    def step(self, answer: Response) -> Response:
        pending = answer.pending
        assert pending is not None
        for one in pending.calls:
            assert isinstance(one, Aside)
            self.parts += 1
            self.between(self.parts)
            one.run()
        return self._counted(lambda: pending.resume([Outcome()]))

    def finish(self, answer: Response) -> Response:
        while answer.pending is not None:
            answer = self.step(answer)
        return answer

    def _counted(self, turn: Callable[[], Response]) -> Response:
        def count(_frame: Any, event: str, _argument: Any) -> None:
            self.turns += event in ("call", "c_call")

        threading.setprofile(count)
        sys.setprofile(count)
        try:
            answer = turn()
            if answer.pending is None:
                assert isinstance(answer.raw, bytes)
            return answer
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]


def env(size: int, value: str = "v") -> list[Obj]:
    return [{"name": f"VARIABLE_{number}", "value": f"{value}{number}"} for number in range(size)]


def deployment(size: int, name: str = "wide", value: str = "v") -> Obj:
    containers = [{"name": "main", "image": "shop:1", "env": env(size, value)}]
    labels = {"app": "shop"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config(size: int, name: str = "wide", value: str = "v") -> Obj:
    data = {f"key-{number}": f"{value} {number} of the settings of a shop" for number in range(size)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def custom(size: int, name: str = "wide", value: str = "v") -> Obj:
    spec = {"list": env(size, value)}
    return {"apiVersion": "example.com/v1", "kind": "D1", "metadata": {"name": name}, "spec": spec}


Step = tuple[str, str, Any, str, str]


def steps(size: int) -> Iterator[Step]:
    """Writes and reads of every kind, each of which has to do with an object of ``size`` parts."""
    for path, made in ((DEPLOYMENTS, deployment), (MAPS, config), (CUSTOM, custom)):
        wide, applied = f"{path}/wide", f"{path}/applied?fieldManager=me"
        forced = "&force=true"
        yield "POST", path, made(size), "", ""
        yield "PUT", wide, made(size, value="w"), "", ""
        yield "PATCH", wide, {"metadata": {"labels": {"a": "b"}}}, MERGE, ""
        yield "PATCH", wide, [{"op": "add", "path": "/metadata/labels/c", "value": "d"}], JSON_PATCH, ""
        if made is not custom:
            yield "PATCH", wide, made(size, value="x"), STRATEGIC, ""
        yield "PATCH", applied, made(size, "applied"), APPLY, ""
        yield "PATCH", applied, made(size, "applied"), APPLY, ""
        yield "PATCH", applied, made(size, "applied", "y"), APPLY, ""
        yield "PATCH", f"{applied}2{forced}", made(size // 2, "applied", "z"), APPLY, ""
        yield "PATCH", applied, made(size, "applied", "q"), APPLY, ""
        yield "GET", wide, None, "", TABLE
        yield "GET", wide, None, "", "application/yaml"
        yield "GET", path, None, "", TABLE
        yield "GET", path, None, "", "application/yaml"
        yield "DELETE", wide, None, "", ""


def world() -> World:
    made = World()
    made.made(CRDS, definition(1))
    return made


def test_the_answer_is_the_same_as_in_place() -> None:
    beside, in_place = Host(world()), world()
    for method, path, body, content, accept in steps(600):
        parts = beside.parts
        answer = beside.send(method, path, body, content, accept)
        assert beside.parts > parts or accept == TABLE, f"{method} {path} {content} {accept} leaves nothing aside"
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        headers = {"content-type": content} if content else {}
        headers |= {"accept": accept} if accept else {}
        sent = body if body is None else msgspec.json.encode(body)
        wanted = in_place.api.handle(Request(method, path, query, headers, sent), ADMIN)
        assert (answer.status, answer.raw, answer.headers) == (wanted.status, wanted.raw, wanted.headers)


def test_what_the_loop_does_for_a_request_does_not_grow_with_its_object() -> None:
    small, large = Host(world()), Host(world())
    for few, many in zip(steps(400), steps(1_600), strict=True):
        before = small.turns, large.turns
        small.send(*few)
        large.send(*many)
        took = small.turns - before[0], large.turns - before[1]
        assert took[1] < took[0] + 400, f"{few[0]} {few[1]} {few[3]} {few[4]}: {took}"


def test_a_request_of_usual_size_leaves_nothing_aside() -> None:
    host = Host(world())
    for step in steps(5):
        host.send(*step)
    assert host.parts == 0


def label_between(host: Host, path: str, most: int = 1000) -> None:
    """Somebody else writes a label before each part, ``most`` times."""

    def write(number: int) -> None:
        if number <= most:
            body = {"metadata": {"labels": {f"other-{number}": "yes"}}}
            host.world.api.handle(Request("PATCH", path, {}, {"content-type": MERGE}, body), ADMIN)

    host.between = write


@pytest.mark.parametrize("content", [MERGE, STRATEGIC, APPLY])
def test_a_patch_that_another_write_overtakes_is_worked_out_again(content: str) -> None:
    host = Host(world())
    host.send("POST", MAPS, config(600))
    host.parts = 0
    label_between(host, f"{MAPS}/wide", most=2)
    query = "?fieldManager=me&force=true" if content == APPLY else ""
    answer = host.send("PATCH", f"{MAPS}/wide{query}", config(600, value="mine"), content)
    assert answer.status == 200
    assert sorted(answer.obj["metadata"]["labels"]) == ["other-1", "other-2"]
    assert answer.obj["data"]["key-599"].startswith("mine 599")


def test_a_patch_that_others_overtake_again_and_again_is_answered_with_a_conflict() -> None:
    host = Host(world())
    host.send("POST", MAPS, config(600))
    label_between(host, f"{MAPS}/wide")
    answer = host.send("PATCH", f"{MAPS}/wide", config(600, value="mine"), MERGE)
    assert answer.status == 409
    assert "the object has been modified" in answer.obj["message"]
    assert host.parts < 200


def test_an_update_keeps_its_precondition_while_others_write() -> None:
    host = Host(world())
    made = host.send("POST", MAPS, config(600)).obj
    host.parts = 0
    label_between(host, f"{MAPS}/wide", most=1)
    changed = {**made, "data": {**made["data"], "more": "x"}}
    assert host.send("PUT", f"{MAPS}/wide", changed).status == 409


def test_an_apply_of_what_somebody_creates_meanwhile_is_merged_with_it() -> None:
    host = Host(world())
    theirs = {"metadata": {"name": "wide"}, "data": {"theirs": "x"}}
    host.between = lambda number: number == 3 and host.world.made(MAPS, theirs)
    answer = host.send("PATCH", f"{MAPS}/wide?fieldManager=me&force=true", config(600), APPLY)
    assert answer.status == 200
    assert len(answer.obj["data"]) == 601


def test_nothing_is_created_where_the_namespace_went_meanwhile() -> None:
    host = Host(world())

    def end(number: int) -> None:
        if number == 7:
            host.world.send("DELETE", "/api/v1/namespaces/demo")

    host.between = end
    answer = host.send("POST", MAPS, config(600))
    assert answer.status in (403, 404)
    assert host.world.store.count("/configmaps", "demo") == 0


def test_two_services_that_are_made_at_once_get_two_addresses() -> None:
    def service(name: str, address: str = "") -> Obj:
        notes = {f"note-{number}": "x" * 40 for number in range(400)}
        given = {"clusterIP": address} if address else {}
        return {"metadata": {"name": name, "annotations": notes}, "spec": {"ports": [{"port": 80}], **given}}

    alone = Host(world())
    address = alone.send("POST", SERVICES, service("first")).obj["spec"]["clusterIP"]
    others = [given_meanwhile(at, service("first"), service("other", address)) for at in range(1, alone.parts + 1)]
    assert {first != other for first, other in others} == {True}
    assert [other for _, other in others].count(address) > alone.parts / 2


def given_meanwhile(at: int, first: Obj, other: Obj) -> tuple[str, str]:
    """The addresses of two Services, the other one made before a part of the first; empty: it was refused."""
    host, found = Host(world()), [""]

    def make(number: int) -> None:
        if number == at:
            answer = host.world.send("POST", SERVICES, other)
            found[0] = answer.obj["spec"]["clusterIP"] if answer.status == 201 else ""

    host.between = make
    answer = host.send("POST", SERVICES, first)
    assert answer.status == 201
    return answer.obj["spec"]["clusterIP"], found[0]


def test_a_definition_that_changes_meanwhile_counts() -> None:
    host = Host(world())

    def end(number: int) -> None:
        if number == 2:
            host.world.send("DELETE", f"{CRDS}/d1s.example.com")

    host.between = end
    assert host.send("POST", CUSTOM, custom(600)).status in (404, 405)
    assert host.world.store.count("example.com/d1s", "demo") == 0


def _threads() -> list[threading.Thread]:
    """Those of large requests: what other tests left may end meanwhile."""
    return [thread for thread in threading.enumerate() if thread.name == "large request"]


def test_a_request_whose_client_left_writes_nothing_and_leaves_no_thread() -> None:
    host = Host(world())
    answer = host.begin("POST", MAPS, config(600))
    for _ in range(3):
        answer = host.step(answer)
    assert answer.pending is not None
    (thread,) = _threads()
    answer.pending.abandon()
    thread.join(300)
    assert _threads() == []
    assert host.world.store.count("/configmaps", "demo") == 0


@pytest.mark.parametrize(
    "obj",
    [
        {
            "apiVersion": "v1",
            "kind": "A",
            "metadata": {"name": "a", "resourceVersion": "7", "uid": "u"},
            "data": {"a": "é"},
        },
        {"metadata": {"resourceVersion": "7"}},
        {"metadata": {"name": "a"}, "spec": {"resourceVersion": "7"}},
        {"metadata": {}},
        {"kind": "A"},
    ],
)
def test_what_is_encoded_beforehand_is_what_the_store_would_encode(obj: Obj) -> None:
    key = Key("/as", "", "a")
    assert Stored.of(key, 123, obj, encode_around_version(obj)).raw == Stored.of(key, 123, obj).raw


@pytest.mark.parametrize("value", [{"a": 1, "b": [1.5, None, {"c": "é"}]}, [[1], {"a": True}], [], {}, "text", 1, None])
def test_json_that_is_decoded_in_pieces_is_the_same(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.kube.text.jsontext.PIECE_BYTES", 1)
    raw = b" \n" + msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    assert in_pieces(raw) == value


@pytest.mark.parametrize("raw", [b'{"a": [1, 2}', b"[1, 2", b'{"a": 1} x', b"[1,]", b"", b'{"a": tru}'])
def test_what_is_no_json_is_refused_in_pieces_too(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.kube.text.jsontext.PIECE_BYTES", 1)
    with pytest.raises(msgspec.DecodeError):
        in_pieces(raw)


def test_requests_of_several_are_worked_out_in_threads_side_by_side() -> None:
    host = Host(world())

    async def several() -> list[Response]:
        caller = Caller()
        users = [UserInfo(f"user-{number % 3}", groups=("system:masters",)) for number in range(6)]
        sent = [
            Request("POST", MAPS, {}, {}, msgspec.json.encode(config(600, f"wide-{number}"))) for number in range(6)
        ]
        begun = [host.world.api.begin(request, user) for request, user in zip(sent, users, strict=True)]
        assert all(answer.pending is not None for answer in begun)
        return await asyncio.gather(*map(caller.settle, begun))

    assert [answer.status for answer in asyncio.run(several())] == [201] * 6
    assert host.world.store.count("/configmaps", "demo") == 6


def test_a_request_that_nobody_waits_for_any_more_is_ended() -> None:
    host = Host(world())

    async def left() -> None:
        task = asyncio.create_task(Caller().settle(host.begin("POST", MAPS, config(600))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(left())
    assert host.world.store.count("/configmaps", "demo") == 0
