"""What is taken for a list and for an event; a cache must not lose what a stranger does not mention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.control.informer import Informer
from syncline.kube.client import Request, Response
from syncline.kube.errors import Gone, Unanswered
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ResourceInfo

MAPS = ResourceInfo("", "v1", "ConfigMap", "configmaps", namespaced=True, verbs=("list", "watch"))


def config_map(name: str) -> Obj:
    return {"metadata": {"name": name, "namespace": "a", "resourceVersion": "3"}}


def listed(*names: str, more: str = "") -> Obj:
    metadata = {"resourceVersion": "7"} | ({"continue": more} if more else {})
    return {"kind": "ConfigMapList", "metadata": metadata, "items": [config_map(name) for name in names]}


class Api:
    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def send(self, request: Request) -> Response:
        self.asked.append(request.query.get("continue", ""))
        return self.answers.pop(0)


@pytest.fixture
def cache() -> Cache:
    return Cache(Mapper([MAPS]))


@pytest.fixture
def informer(cache: Cache) -> Informer:
    made = Informer(MAPS, cache)
    made.listed(listed("one", "two"))
    return made


def names(cache: Cache) -> list[str]:
    return [obj["metadata"]["name"] for obj in cache.objects(MAPS.group_kind)]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"status": "ok"},
        {"kind": "ConfigMapList", "items": []},
        {"kind": "ConfigMapList", "metadata": {"resourceVersion": ""}, "items": []},
        {"kind": "Status", "metadata": {"resourceVersion": "7"}},
        listed() | {"items": "none"},
        listed() | {"items": [{"data": {}}]},
        [],
        "<html>",
        None,
    ],
    ids=repr,
)
def test_what_is_no_list_takes_nothing_from_the_cache(informer: Informer, cache: Cache, body: Any) -> None:
    with pytest.raises(Unanswered):
        informer.listed(body)
    assert names(cache) == ["one", "two"]


@pytest.mark.parametrize(
    "line",
    [b"<html>", b'{"type":"ADDED","obj', b"[]", b"{}", b'{"type":"DELETED"}', b'{"type":"DELETED","object":{}}'],
    ids=repr,
)
def test_what_is_no_event_ends_the_watch_and_what_came_before_counts(
    informer: Informer, cache: Cache, line: bytes
) -> None:
    good = msgspec.json.encode({"type": "ADDED", "object": config_map("three")})
    changes, error = informer.received([good, line, good])
    assert len(changes) == 1
    assert isinstance(error, Unanswered)
    assert names(cache) == ["one", "three", "two"]
    assert not informer.needs_list


def test_a_list_in_pages_is_one_list(informer: Informer, cache: Cache) -> None:
    api = Api(Response.of(200, listed("one", more="x")), Response.of(200, listed("four")))
    informer.listed(run_in_place(informer.whole_list(), api))
    assert names(cache) == ["four", "one"]
    assert api.asked == ["", "x"]


def test_a_list_whose_token_expires_begins_again(informer: Informer, cache: Cache) -> None:
    expired = Response.refused(Gone("The provided continue parameter is too old"))
    api = Api(Response.of(200, listed("gone", more="x")), expired, Response.of(200, listed("one")))
    informer.listed(run_in_place(informer.whole_list(), api))
    assert names(cache) == ["one"]


def test_pages_without_end_are_refused(informer: Informer) -> None:
    class Endless(Api):
        def send(self, request: Request) -> Response:
            return Response.of(200, listed("one", more="x"))

    ask: Callable[[], Obj] = lambda: run_in_place(informer.whole_list(), Endless())  # noqa: E731
    with pytest.raises(Unanswered, match="did not end after"):
        ask()
