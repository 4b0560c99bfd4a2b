"""The API in process: what it promises beyond the recorded conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.api import Api
from syncline.cluster.resources.registry import Registry
from syncline.cluster.storage.store import CURSOR_LIMIT_EVENTS, Key, Store
from syncline.cluster.verbs.watching import BOOKMARK_PERIOD
from syncline.kube.client import Request, Response

MERGE = {"content-type": "application/merge-patch+json"}
MAPS = "/api/v1/namespaces/demo/configmaps"


class Cluster:
    """An API over an empty store, with one namespace."""

    def __init__(self) -> None:
        self.store = Store()
        self.clock = VirtualClock()
        self.api = Api(self.store, Registry(self.store), Authorizer(self.store), self.clock, Entropy(1))
        self.make("/api/v1/namespaces", "demo")
        self.make("/api/v1/namespaces/demo/serviceaccounts", "default")

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        return self.api.handle(Request(method, path, query, headers or {}, body), ADMIN)

    def make(self, path: str, name: str, **rest: Any) -> Any:
        return self.send("POST", path, {"metadata": {"name": name}, **rest}).or_raise()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    yield Cluster()


def stored_bytes_match(store: Store) -> bool:
    """Nobody has written into an object that the store holds."""
    every = [stored for resource in store.resources() for stored in store.list(resource)]
    return all(msgspec.json.decode(stored.raw) == stored.obj for stored in every)


def test_a_list_joins_stored_bytes_into_what_its_objects_say(cluster: Cluster) -> None:
    for name in ("b", "a"):
        cluster.make(MAPS, name, data={"k": "v"})
    joined = json.loads(cluster.send("GET", MAPS).raw)
    assert joined == cluster.send("GET", MAPS).obj
    assert [item["metadata"]["name"] for item in joined["items"]] == ["a", "b"]
    assert all("kind" not in item for item in joined["items"])


def test_watch_events_carry_the_stored_bytes(cluster: Cluster) -> None:
    stream = cluster.send("GET", MAPS + "?watch=1").stream
    assert stream is not None
    cluster.make(MAPS, "a")
    stored = cluster.store.get(Key("/configmaps", "demo", "a"))
    assert stored is not None
    assert stream.take() == [b'{"type":"ADDED","object":' + stored.raw + b"}"]


def test_a_watch_wakes_its_reader_once_per_emptiness_and_at_once_when_something_waits(cluster: Cluster) -> None:
    woken: list[int] = []
    cluster.make(MAPS, "a")
    stream = cluster.send("GET", MAPS + "?watch=1").stream
    assert stream is not None
    stream.on_ready = lambda: woken.append(1)
    assert woken == [1]
    stream.take()
    stream.take()
    cluster.make(MAPS, "b")
    cluster.make(MAPS, "c")
    assert len(woken) == 2
    assert len(stream.take()) == 2


def test_a_watch_ends_at_its_timeout_and_not_before(cluster: Cluster) -> None:
    stream: Any = cluster.send("GET", MAPS + "?watch=1&timeoutSeconds=5").stream
    stream.tick(cluster.clock.now() + timedelta(seconds=4))
    assert not stream.ended
    stream.tick(cluster.clock.now() + timedelta(seconds=5))
    assert stream.ended


def test_a_quiet_watch_gets_a_bookmark_with_the_newest_revision_when_it_asked(cluster: Cluster) -> None:
    asked: Any = cluster.send("GET", MAPS + "?watch=1&allowWatchBookmarks=true").stream
    silent: Any = cluster.send("GET", MAPS + "?watch=1").stream
    cluster.make("/api/v1/namespaces/demo/secrets", "elsewhere")
    for stream in (asked, silent):
        stream.tick(cluster.clock.now() + BOOKMARK_PERIOD)
    (frame,) = asked.take()
    event = json.loads(frame)
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == str(cluster.store.revision)
    assert silent.take() == []


def test_a_watcher_that_falls_too_far_behind_is_told_to_list_again(cluster: Cluster) -> None:
    stream = cluster.send("GET", MAPS + "?watch=1").stream
    assert stream is not None
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "demo"}}
    for _ in range(CURSOR_LIMIT_EVENTS + 1):
        cluster.store.put(Key("/configmaps", "demo", "a"), obj, expect=None)
    frames: list[bytes] = []
    while taken := stream.take():
        frames += taken
    last = json.loads(frames[-1])
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
    assert stream.ended


def test_a_page_after_compaction_is_refused_with_410(cluster: Cluster) -> None:
    for name in "abc":
        cluster.make(MAPS, name)
    token = cluster.send("GET", MAPS + "?limit=1").obj["metadata"]["continue"]
    cluster.make(MAPS, "d")
    cluster.store.compact(cluster.store.revision)
    answer = cluster.send("GET", f"{MAPS}?limit=1&continue={token}")
    assert (answer.status, answer.obj["reason"]) == (410, "Expired")


def test_a_version_from_the_future_is_a_timeout_and_not_an_empty_list(cluster: Cluster) -> None:
    answer = cluster.send("GET", f"{MAPS}?resourceVersion={cluster.store.revision + 1}")
    assert (answer.status, answer.obj["reason"]) == (504, "Timeout")


def test_a_body_of_a_caller_in_process_is_not_changed(cluster: Cluster) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    before = json.dumps(body)
    assert cluster.send("POST", "/api/v1/namespaces/demo/pods", body).status == 201
    assert json.dumps(body) == before


def test_service_addresses_are_given_once_and_come_back(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/demo/services"
    ports = [{"port": 80}]
    given = {cluster.make(path, f"s{i}", spec={"ports": ports})["spec"]["clusterIP"] for i in range(20)}
    assert len(given) == 20
    address = cluster.make(path, "asked", spec={"ports": ports, "clusterIP": "10.96.0.10"})["spec"]["clusterIP"]
    assert address == "10.96.0.10"
    again = {"metadata": {"name": "again"}, "spec": {"ports": ports, "clusterIP": "10.96.0.10"}}
    refused = cluster.send("POST", path, again)
    assert refused.status == 422
    assert "provided IP is already allocated" in refused.obj["message"]
    cluster.send("DELETE", f"{path}/asked")
    assert cluster.send("POST", path, again).status == 201


def test_a_node_port_stays_while_the_service_is_updated(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/demo/services"
    made = cluster.make(path, "s", spec={"type": "NodePort", "ports": [{"port": 80}]})
    port = made["spec"]["ports"][0]["nodePort"]
    changed = cluster.send("PATCH", f"{path}/s", {"spec": {"ports": [{"port": 80, "name": "web"}]}}, MERGE)
    assert changed.or_raise()["spec"]["ports"][0]["nodePort"] == port


def test_a_dry_run_takes_nothing_from_a_quota(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/demo/resourcequotas"
    cluster.make(path, "q", spec={"hard": {"count/configmaps": "1"}})
    status = {"status": {"hard": {"count/configmaps": "1"}, "used": {"count/configmaps": "0"}}}
    cluster.send("PATCH", f"{path}/q/status", status, MERGE).or_raise()
    assert cluster.send("POST", MAPS + "?dryRun=All", {"metadata": {"name": "a"}}).status == 201
    assert cluster.send("POST", MAPS, {"metadata": {"name": "a"}}).status == 201
    refused = cluster.send("POST", MAPS, {"metadata": {"name": "b"}})
    assert refused.status == 403
    assert "exceeded quota: q, requested: count/configmaps=1" in refused.obj["message"]


def test_a_user_without_rights_learns_nothing_about_what_exists(cluster: Cluster) -> None:
    cluster.make(MAPS, "a")
    jane = UserInfo("jane")
    answers = [
        cluster.api.handle(Request("GET", path), jane)
        for path in (f"{MAPS}/a", f"{MAPS}/none", "/apis/none.example.com/v1/things", f"{MAPS}/a/nothing")
    ]
    assert {answer.status for answer in answers} == {403}


_PATHS = st.sampled_from(
    [
        "/",
        "/api/v1",
        "/api/v1/namespaces",
        "/api/v1/namespaces/demo/finalize",
        "/api/v1/watch/namespaces/demo/pods/a",
        "/api/v1/x y",
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/namespaces/demo/deployments",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/demo/rolebindings",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        *(f"/api/v1/namespaces/demo/{plural}" for plural in ("configmaps", "pods", "secrets", "services", "events")),
        *(f"/api/v1/namespaces/demo/{one}/a" for one in ("configmaps", "pods", "services", "bindings")),
        *(f"/api/v1/namespaces/demo/pods/a/{sub}" for sub in ("status", "log", "eviction", "binding", "nothing")),
        "/api/v1/namespaces/demo/serviceaccounts/default/token",
        "/apis/apps/v1/namespaces/demo/deployments/a/scale",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "demo", "None"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "name", "namespace", "spec", "containers", "data", "labels", "kind", "template"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "text/plain",
    ]
)
_QUERY = st.dictionaries(
    st.sampled_from(
        ["watch", "limit", "continue", "labelSelector", "fieldSelector", "dryRun", "fieldManager", "force"]
    ),
    st.sampled_from(["", "1", "true", "All", "a=b", "x in (", "rubbish"]),
    max_size=3,
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    _PATHS,
    _QUERY,
    _TYPES,
    _JSON,
)
def test_no_request_raises_fails_inside_or_changes_a_stored_object(
    method: str, path: str, query: dict[str, str], kind: str, body: Any
) -> None:
    cluster = _SHARED
    request = Request(method, path, query, {"content-type": kind}, body)
    answer = cluster.api.handle(request, ADMIN)
    assert answer.stream is not None or answer.raw is not None
    assert "Internal error occurred" not in str(answer.obj), (request, answer.obj)
    assert stored_bytes_match(cluster.store)


_SHARED = Cluster()
_CONTAINERS = [{"name": "c", "image": "x"}]
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": _CONTAINERS}}
_SHARED.make(MAPS, "a")
_SHARED.make("/api/v1/namespaces/demo/pods", "a", spec={"containers": _CONTAINERS})
_SHARED.make("/api/v1/namespaces/demo/services", "a", spec={"ports": [{"port": 80}]})
_SHARED.make(
    "/apis/apps/v1/namespaces/demo/deployments",
    "a",
    spec={"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
)
