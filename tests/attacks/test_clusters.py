"""Several clusters in one process: whose credentials go where, and who may say which cluster is meant."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.sources.charthttp import _Quiet, _Served

from syncline.argo.clusters import (
    IN_CLUSTER_SERVER,
    Cluster,
    ClusterError,
    cluster_access,
    clusters_of,
    resolve_destination,
)
from syncline.control.cache import Cache
from syncline.gitops.destinations import SECRETS, applications_in, destination_controller
from syncline.kube import client
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo
from syncline.kube.transport.http import HttpClient

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAPS = ResourceInfo("", "v1", "ConfigMap", "configmaps", namespaced=True)


def secret(name: str, server: str, namespace: str = "argocd", config: Any = None, **data: str) -> Obj:
    given = {"name": name, "server": server, "config": json.dumps(config or {}), **data}
    meta = {"name": f"c-{name}", "namespace": namespace, "resourceVersion": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta | {"labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in given.items()},
    }


def hold(cache: Cache, secrets: list[Obj]) -> None:
    for one in secrets:
        cache.put(SECRETS, one)


class Listening(_Served):
    """A cluster that notes what it is shown, and sends others away to ``elsewhere``."""

    def __init__(self, elsewhere: str = "", status: int = 307) -> None:
        self.shown: list[str] = []

        class Handler(_Quiet):
            def do_GET(handler) -> None:
                self.shown.append(handler.headers.get("authorization", ""))
                more = {"location": elsewhere + handler.path, "set_cookie": "stolen=1"} if elsewhere else {}
                handler.answer(status if elsewhere else 200, b"{}", **more)

        super().__init__(Handler)


@pytest.fixture
def listening() -> Iterator[Listening]:
    served = Listening()
    yield served
    served.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_cluster_that_sends_us_to_another_brings_it_no_token(status: int, listening: Listening) -> None:
    first = Listening(listening.url, status)
    try:
        access = cluster_access(secret("a", first.url, config={"bearerToken": "of-a"}))
        other = cluster_access(secret("b", listening.url, config={"bearerToken": "of-b"}))
        found = asyncio.run(_asked(access, other))
    finally:
        first.close()
    assert found == [503, 200]  # a redirect is no answer of a Kubernetes API (kube/transport/strangers.py)
    assert first.shown == ["Bearer of-a"] and listening.shown == ["Bearer of-b"]


async def _asked(*accesses: Any) -> list[int]:
    found = []
    for access in accesses:
        http = HttpClient(access)
        try:
            found.append((await http.send(client.list_(MAPS, "default"))).status)
        finally:
            await http.close()
    return found


SAME = "https://far:6443"


@pytest.mark.parametrize(
    ("destination", "secrets"),
    [
        ({"server": SAME}, [secret("a", SAME, project="one"), secret("b", SAME, project="two")]),
        ({"name": "a"}, [secret("a", SAME, project="one"), secret("b", SAME, project="two")]),
        ({"name": "b"}, [secret("a", SAME), secret("b", SAME + "/", namespaces="x")]),
        ({"name": "b"}, [secret("b", IN_CLUSTER_SERVER, namespaces="x"), secret("c", IN_CLUSTER_SERVER)]),
    ],
)
def test_a_server_that_two_secrets_declare_is_nobodys(destination: Obj, secrets: list[Obj]) -> None:
    """One would give the permission and the other the credentials."""
    for order in (secrets, secrets[::-1]):
        found = resolve_destination(destination, clusters_of(order))
        assert isinstance(found, str) and "2 clusters with the same server" in found
        cache = Cache(Mapper())
        hold(cache, order)
        observed = destination_controller("argocd", lambda: ()).observe(cache, ObjectRef("", "Secret", "argocd", "c-a"))
        assert observed is not None and observed.declared == ()


def test_names_that_two_secrets_give_the_own_cluster_are_both_known() -> None:
    """No credentials of a Secret are used there, so which of them is read changes nothing."""
    clusters = clusters_of([secret("b", IN_CLUSTER_SERVER), secret("c", IN_CLUSTER_SERVER)])
    for destination in ({"name": "b"}, {"name": "c"}, {"server": IN_CLUSTER_SERVER}):
        found = resolve_destination(destination, clusters)
        assert not isinstance(found, str) and found.is_here


def test_a_secret_outside_the_control_namespace_declares_no_cluster() -> None:
    cache = Cache(Mapper())
    mine = secret("in-cluster", "https://stranger", "team", config={"bearerToken": "x"})
    hold(cache, [mine, secret("far", SAME)])
    controller = destination_controller("argocd", lambda: ())
    assert controller.observe(cache, ObjectRef("", "Secret", "team", "c-in-cluster")) is None
    observed = controller.observe(cache, ObjectRef("", "Secret", "argocd", "c-far"))
    assert observed is not None and [one.server for one in observed.declared] == [SAME]
    assert list(applications_in(cache, "https://stranger", "argocd")) == []


@pytest.mark.parametrize(
    "server",
    ["https://kubernetes.default.svc:443", "https://KUBERNETES.default.svc", "https://kubernetes.default.svc/x", ""],
)
def test_what_only_looks_like_this_cluster_is_not_it(server: str) -> None:
    found = clusters_of([secret("in-cluster", server)])
    assert Cluster(IN_CLUSTER_SERVER, "in-cluster") in found
    meant = resolve_destination({"name": "in-cluster"}, found)
    assert isinstance(meant, str) if server else meant == Cluster(IN_CLUSTER_SERVER, "in-cluster")


REFUSED = [
    {"execProviderConfig": {"command": "sh", "args": ["-c", "id"]}, "bearerToken": "hidden"},
    {"awsAuthConfig": {"clusterName": "x", "roleARN": "y"}, "bearerToken": "hidden"},
    {"username": "admin", "password": "hidden"},
    {"tlsClientConfig": {"insecure": True, "caData": "aGlkZGVu"}},
    ["hidden"],
]


@pytest.mark.parametrize("config", REFUSED)
def test_a_secret_starts_no_program_and_its_refusal_shows_no_value(config: Any) -> None:
    with pytest.raises(ClusterError) as caught:
        cluster_access(secret("a", SAME, config=config))
    assert "hidden" not in str(caught.value) and "aGlkZGVu" not in str(caught.value)
    assert "hidden" not in repr(cluster_access(secret("a", SAME, config={"bearerToken": "hidden"})))


def test_a_secret_that_names_another_server_is_connected_to_anew() -> None:
    """What the old one was shown, its connection and its cache, goes with it."""
    cache = Cache(Mapper())
    hold(cache, [secret("a", SAME)])
    ref = ObjectRef("", "Secret", "argocd", "c-a")
    observed = destination_controller("argocd", lambda: ()).observe(cache, ref)
    assert observed is not None
    moved = secret("a", "https://stranger")
    moved["metadata"]["resourceVersion"] = "2"
    hold(cache, [moved])
    again = destination_controller("argocd", lambda: observed.declared).observe(cache, ref)
    assert again is not None
    ((connect,),) = destination_controller("argocd", lambda: observed.declared).plan(again, NOW).steps
    assert [one.server for one in connect.wanted] == ["https://stranger"]  # type: ignore[attr-defined]
