"""Which requests go where, by the objects of the cluster; and what a caller sees of it over HTTP."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
import pytest
from tests.cluster.serving import JANE, KEYS, TOKEN, World, served
from tests.cluster.world import World as Cluster

from syncline.cluster.access.users import ADMIN, ANONYMOUS, UserInfo, service_account_user
from syncline.cluster.bootstrap import bootstrap_objects, install
from syncline.cluster.fairness.control import LEVELS, SCHEMAS, Fairness, is_long_running
from syncline.cluster.fairness.queues import State
from syncline.cluster.resources.routes import route_of, verb_of
from syncline.cluster.serving.metrics import Metrics
from syncline.cluster.storage.store import Key
from syncline.kube.client import Response
from syncline.kube.objects import Obj

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
JO = UserInfo("jo", ("system:authenticated",))
NODE = UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
MANAGER = UserInfo("system:kube-controller-manager", ("system:authenticated",))
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
PODS = "/api/v1/namespaces/demo/pods"


def bootstrapped() -> tuple[Cluster, Fairness]:
    cluster = Cluster()
    install(cluster.transport.send, bootstrap_objects())
    return cluster, Fairness(cluster.store, 600)


def place(fairness: Fairness, user: UserInfo, method: str, path: str, query: dict[str, str] | None = None) -> Any:
    route = route_of(path)
    return fairness.enter(user, verb_of(method, route, query or {}), route, query or {}, 1.0)


@pytest.mark.parametrize(
    ("user", "method", "path", "schema", "level"),
    [
        (ADMIN, "DELETE", PODS, "exempt", "exempt"),
        (ANONYMOUS, "GET", "/healthz", "probes", "exempt"),
        (ANONYMOUS, "GET", PODS, "global-default", "global-default"),
        (MANAGER, "PUT", LEASE, "system-leader-election", "leader-election"),
        (NODE, "PUT", LEASE.replace("kube-system", "kube-node-lease"), "system-node-high", "node-high"),
        (NODE, "PATCH", "/api/v1/nodes/n1/status", "system-node-high", "node-high"),
        (NODE, "GET", PODS, "system-nodes", "system"),
        (MANAGER, "GET", PODS, "kube-controller-manager", "workload-high"),
        (service_account_user("kube-system", "x"), "GET", PODS, "kube-system-service-accounts", "workload-high"),
        (service_account_user("demo", "x"), "GET", PODS, "service-accounts", "workload-low"),
        (JO, "GET", PODS, "global-default", "global-default"),
        (JO, "GET", "/apis", "global-default", "global-default"),
        (UserInfo("nobody", ()), "GET", PODS, "catch-all", "catch-all"),
    ],
)
def test_requests_go_where_the_suggested_configuration_leads_them(
    user: UserInfo, method: str, path: str, schema: str, level: str
) -> None:
    cluster, fairness = bootstrapped()
    found = place(fairness, user, method, path)
    assert (found.ticket.flow, found.ticket.level.name) == (schema, level)
    assert found.headers == {
        "X-Kubernetes-Pf-Flowschema-Uid": cluster.get(f"{FLOW}/flowschemas/{schema}")["metadata"]["uid"],
        "X-Kubernetes-Pf-Prioritylevel-Uid": cluster.get(f"{FLOW}/prioritylevelconfigurations/{level}")["metadata"][
            "uid"
        ],
    }


def rule(**subject: Any) -> Obj:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    return {"subjects": [subject], "resourceRules": [everything]}


def schema(name: str, level: str, precedence: int, *rules: Obj) -> Obj:
    spec = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": list(rules)}
    return {"apiVersion": FLOW.removeprefix("/apis/"), "kind": "FlowSchema", "metadata": {"name": name}, "spec": spec}


JO_RULE = rule(kind="User", user={"name": "jo"})


def test_a_change_of_the_objects_counts_for_the_next_request() -> None:
    cluster, fairness = bootstrapped()
    assert place(fairness, JO, "GET", PODS).ticket.flow == "global-default"
    cluster.post(f"{FLOW}/flowschemas", schema("jo", "system", 50, JO_RULE))
    assert place(fairness, JO, "GET", PODS).ticket.level.name == "system"
    cluster.delete(f"{FLOW}/flowschemas/jo")
    assert place(fairness, JO, "GET", PODS).ticket.flow == "global-default"


def test_a_dangling_schema_leads_nobody_and_says_so_in_its_status() -> None:
    cluster, fairness = bootstrapped()
    cluster.post(f"{FLOW}/flowschemas", schema("jo", "gone", 50, JO_RULE))
    assert place(fairness, JO, "GET", PODS).ticket.flow == "global-default"
    cluster.settle()
    (condition,) = cluster.get(f"{FLOW}/flowschemas/jo")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "NotFound")
    assert condition["message"].endswith('named "gone" but there is no such object')
    found = cluster.get(f"{FLOW}/flowschemas/exempt")["status"]["conditions"][0]
    assert (found["status"], found["reason"]) == ("False", "Found")
    level = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    kind = {"apiVersion": FLOW.removeprefix("/apis/"), "kind": "PriorityLevelConfiguration"}
    cluster.post(f"{FLOW}/prioritylevelconfigurations", kind | {"metadata": {"name": "gone"}, "spec": level})
    cluster.settle()
    assert cluster.get(f"{FLOW}/flowschemas/jo")["status"]["conditions"][0]["status"] == "False"
    assert place(fairness, JO, "GET", PODS).ticket.level.name == "gone"


def test_without_any_objects_the_mandatory_ones_hold() -> None:
    fairness = Fairness(Cluster().store, 600)
    assert place(fairness, ADMIN, "GET", PODS).ticket.flow == "exempt"
    assert place(fairness, JO, "GET", PODS).ticket.flow == "catch-all"


def test_who_waits_in_a_level_that_is_deleted_keeps_waiting_and_gets_the_seat() -> None:
    cluster, fairness = bootstrapped()
    seated = [place(fairness, JO, "GET", PODS) for _ in range(60)]
    waiting = next(each for each in seated if each.waiting)
    level = waiting.ticket.level
    cluster.delete(f"{FLOW}/prioritylevelconfigurations/global-default")
    assert place(fairness, JO, "GET", PODS).ticket.level.name == "catch-all"
    for each in [each for each in seated if each.ticket.state is State.SEATED]:
        fairness.leave(each.ticket, 2.0)
    assert waiting.ticket.state is State.SEATED and waiting.ticket.level is level


def test_long_lists_take_more_seats_than_short_ones() -> None:
    cluster, fairness = bootstrapped()
    cluster.post("/api/v1/namespaces", {"metadata": {"name": "demo"}})
    body = {"metadata": {"generateName": "c-"}, "data": {"x": "y" * 5_000}}
    for _ in range(200):
        cluster.post("/api/v1/namespaces/demo/configmaps", body)
    maps = "/api/v1/namespaces/demo/configmaps"
    assert place(fairness, JO, "GET", maps).ticket.seats == 8, "15% of 49 seats"
    assert place(fairness, JO, "GET", maps, {"limit": "20"}).ticket.seats == 2
    assert place(fairness, JO, "GET", f"{maps}/one").ticket.seats == 1
    assert place(fairness, JO, "GET", maps, {"watch": "1", "resourceVersion": "7"}).ticket.seats == 1
    assert place(fairness, ADMIN, "GET", maps).ticket.seats == 1


@pytest.mark.parametrize("path", ["log", "exec", "attach", "portforward", "proxy"])
def test_connections_into_pods_take_no_seat(path: str) -> None:
    route = route_of(f"{PODS}/p/{path}")
    assert is_long_running(route, "get") and not is_long_running(route_of(PODS), "list")


def test_the_metrics_have_the_names_of_kubernetes() -> None:
    _, fairness = bootstrapped()
    tickets = [place(fairness, UserInfo("nobody"), "GET", PODS).ticket for _ in range(40)]
    for ticket in tickets:
        fairness.leave(ticket, 2.0)
    text = Metrics(dict, fairness.families).text()
    labels = '{flow_schema="catch-all",priority_level="catch-all"'
    assert f"apiserver_flowcontrol_dispatched_requests_total{labels}}} 30\n" in text
    assert f'apiserver_flowcontrol_rejected_requests_total{labels},reason="concurrency-limit"}} 10\n' in text
    assert f"apiserver_flowcontrol_request_execution_seconds_sum{labels}}} 30\n" in text
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 245\n' in text
    assert 'apiserver_flowcontrol_current_executing_requests{priority_level="catch-all"} 0\n' in text


# -- over HTTP ----------------------------------------------------------------------------------------------------


def _one_seat(world: World, *, queue: int) -> None:
    """Everybody but administrators shares one seat."""
    response: Obj = {"type": "Reject"}
    if queue:
        response = {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": queue}}
    spec = {"type": "Limited", "limited": {"nominalConcurrencyShares": 30, "lendablePercent": 0}}
    spec["limited"] |= {"limitResponse": response, "borrowingLimitPercent": 0}
    for key, name, uid, body in ((LEVELS, "one", "level-uid", spec), (SCHEMAS, "one", "schema-uid", None)):
        body = body or schema("one", "one", 50, rule(kind="Group", group={"name": "*"}))["spec"]
        world.store.put(Key(key, "", name), {"metadata": {"name": name, "uid": uid}, "spec": body}, expect=0)
    world.durability.advance(world.store.revision)
    world.store.put(Key("/pods", "", "later"), {"metadata": {}}, expect=0)  # revision 3, which is not on disk


class Clients:
    def __init__(self, world: World) -> None:
        self.world = world
        self.context = ssl.create_default_context(cadata=KEYS.ca_pem)

    async def get(self, path: str, token: str = JANE) -> tuple[int, dict[str, str], str]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.get(self.world.url + path, ssl=self.context, headers=headers) as answer,
        ):
            return answer.status, {key.lower(): value for key, value in answer.headers.items()}, await answer.text()


async def _until(what: Any) -> None:
    for _ in range(100_000):
        if what():
            return
        await asyncio.wait([asyncio.ensure_future(asyncio.to_thread(int))])
    raise AssertionError("it never came to that")


def test_over_http_a_full_level_is_429_with_retry_after_and_administrators_pass() -> None:
    async def scene() -> None:
        async with served(durable=True, seats=1) as world:
            _one_seat(world, queue=0)
            world.api.answers["/slow"] = Response.of(200, {}, revision=3)
            clients = Clients(world)
            holding = asyncio.create_task(clients.get("/api/v1/slow/x/slow"))
            world.api.answers["/api/v1/slow/x/slow"] = world.api.answers["/slow"]
            await _until(lambda: world.durability._waiting)
            status, headers, text = await clients.get("/api/v1/pods")
            assert (status, text) == (429, "Too many requests, please try again later.\n")
            assert headers["retry-after"] == "1" and headers["content-type"] == "text/plain; charset=utf-8"
            assert headers["x-kubernetes-pf-flowschema-uid"] == "schema-uid"
            assert headers["x-kubernetes-pf-prioritylevel-uid"] == "level-uid"
            assert (await clients.get("/api/v1/pods", TOKEN))[0] == 200
            world.durability.advance(3)
            assert (await holding)[0] == 200
            assert (await clients.get("/api/v1/pods"))[0] == 200

    asyncio.run(scene())


def test_over_http_a_queued_request_is_answered_when_its_turn_comes_and_one_that_left_is_forgotten() -> None:
    async def scene() -> None:
        async with served(durable=True, seats=1) as world:
            _one_seat(world, queue=2)
            world.api.answers["/api/v1/slow"] = Response.of(200, {}, revision=3)
            clients = Clients(world)
            holding = asyncio.create_task(clients.get("/api/v1/slow"))
            await _until(lambda: world.durability._waiting)
            level = world.server._fairness._levels["one"]  # type: ignore[union-attr]
            first = asyncio.create_task(clients.get("/api/v1/pods"))
            await _until(lambda: level.waiting == 1)
            leaver = asyncio.create_task(clients.get("/api/v1/pods"))
            await _until(lambda: level.waiting == 2)
            assert (await clients.get("/api/v1/pods"))[0] == 429
            leaver.cancel()
            await _until(lambda: level.waiting == 1)
            assert not first.done()
            world.durability.advance(3)
            assert (await first)[0] == 200 and (await holding)[0] == 200
            await _until(lambda: level.executing == 0)

    asyncio.run(scene())


def test_over_http_who_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.cluster.serving.serve.QUEUE_WAIT_S", 0.0)

    async def scene() -> None:
        async with served(durable=True, seats=1) as world:
            _one_seat(world, queue=2)
            world.api.answers["/api/v1/slow"] = Response.of(200, {}, revision=3)
            clients = Clients(world)
            holding = asyncio.create_task(clients.get("/api/v1/slow"))
            await _until(lambda: world.durability._waiting)
            assert (await clients.get("/api/v1/pods"))[0] == 429
            world.durability.advance(3)
            await holding

    asyncio.run(scene())


def test_a_watch_has_its_seat_only_while_it_begins() -> None:
    from tests.cluster.serving import Frames

    async def scene() -> None:
        async with served(seats=1) as world:
            _one_seat(world, queue=0)
            streams = []
            for name in "abc":
                frames = Frames()
                streams.append(frames)
                world.api.answers[f"/api/v1/{name}"] = Response(200, stream=frames)
            clients = Clients(world)
            watches = [asyncio.create_task(clients.get(f"/api/v1/{name}?watch=1")) for name in "a"]
            await _until(lambda: world.server.watching == 1)
            assert (await clients.get("/api/v1/pods"))[0] == 200
            streams[0].push(b"{}", over=True)
            assert (await watches[0])[2] == "{}\n"

    asyncio.run(scene())
