"""Aggregated APIs: requests handed to another server, merged discovery, availability (and what local ones say)."""

from __future__ import annotations

import base64
import datetime
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.cluster.world import World
from tests.live import Served, served_cluster

from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import EPOCH
from syncline.cluster.access.pki import create_keys
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.builtin.services.api_services import Observed, plan
from syncline.cluster.serving.direct import DirectTransport
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig
from syncline.kube.transport.outbound import OutboundCall, Outcome

API = "/apis/apiregistration.k8s.io/v1/apiservices"
GROUP = "/apis/zoo.example.com/v1"
ANIMALS = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "zoo.example.com/v1",
    "resources": [
        {"name": "animals", "singularName": "animal", "namespaced": True, "kind": "Animal", "verbs": ["get", "list"]},
        {"name": "animals/status", "singularName": "", "namespaced": True, "kind": "Animal", "verbs": ["get"]},
    ],
}


def service(**spec: Any) -> Obj:
    wanted = {"name": "zoo", "namespace": "default", "port": 443}
    made = {"group": "zoo.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 10}
    return {"metadata": {"name": "v1.zoo.example.com"}, "spec": {**made, "service": wanted, **spec}}


# --- judgement -----------------------------------------------------------------------------------------------------

HTTPS = {"spec": {"type": "ClusterIP", "ports": [{"name": "https", "port": 443}]}}
SLICE = {"ports": [{"name": "https", "port": 8443}], "endpoints": [{"addresses": ["192.0.2.1"]}]}
WHERE = 'service/zoo in "default"'


@pytest.mark.parametrize(
    ("found", "slices", "reason", "message"),
    [
        (None, (), "ServiceNotFound", f"{WHERE} is not present"),
        ({"spec": {"ports": [{"port": 80}]}}, (), "ServicePortError", f"{WHERE} is not listening on port 443"),
        (HTTPS, (), "EndpointsNotFound", f"cannot find endpointslices for {WHERE}"),
        (
            HTTPS,
            ({**SLICE, "endpoints": []},),
            "MissingEndpoints",
            f'endpoints for {WHERE} have no addresses with port name "https"',
        ),
    ],
)
def test_a_server_that_cannot_be_there_is_not_asked(
    found: Obj | None, slices: tuple[Obj, ...], reason: str, message: str
) -> None:
    made = plan(Observed(service(), found, slices), EPOCH)
    [written] = made.status
    [condition] = written.new["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", reason, message)


def test_a_server_that_may_be_there_is_asked_again_and_again() -> None:
    made = plan(Observed(service(), HTTPS, (SLICE,)), EPOCH)
    assert [action.describe() for step in made.steps for action in step]
    assert not made.status


# --- in virtual time -----------------------------------------------------------------------------------------------


class Zoo:
    """Another server as a function; ``up`` says whether it answers."""

    def __init__(self) -> None:
        self.up = True
        self.calls: list[OutboundCall] = []

    def __call__(self, call: OutboundCall) -> Outcome:
        self.calls.append(call)
        if not self.up:
            return Outcome(failure=f'{call.method} "{call.url}": dial tcp 192.0.2.1:8443: connect: connection refused')
        path = call.url.partition("://")[2].partition("/")[2].partition("?")[0]
        body = ANIMALS if f"/{path}" == GROUP else {"kind": "Animal", "path": path, "method": call.method}
        headers = {"content-type": "application/json", "connection": "close", "x-own": "yes"}
        return Outcome(200, headers, json.dumps(body).encode())


def zoo_world() -> tuple[World, Zoo]:
    world, zoo = World(), Zoo()
    world.api.caller = zoo
    spec = {"ports": [{"name": "https", "port": 443}]}
    world.post("/api/v1/namespaces/default/services", {"metadata": {"name": "zoo"}, "spec": spec})
    slice_ = {
        "metadata": {"name": "zoo", "labels": {"kubernetes.io/service-name": "zoo"}},
        "addressType": "IPv4",
        **SLICE,
    }
    world.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice_)
    world.post(API, service(insecureSkipTLSVerify=True))
    world.settle()
    return world, zoo


def condition(world: World) -> Obj:
    found: Obj = world.get(f"{API}/v1.zoo.example.com")["status"]["conditions"][0]
    return found


def test_a_server_that_lists_its_resources_is_available_and_asked() -> None:
    world, zoo = zoo_world()
    assert (condition(world)["reason"], condition(world)["message"]) == ("Passed", "all checks passed")
    jane = UserInfo("jane", ("system:masters", "staff"), "u1", {"Scopes/a": ("x", "y")})
    headers = {"authorization": "Bearer secret", "accept": "application/json", "x-remote-user": "forged"}
    request = Request("GET", f"{GROUP}/namespaces/default/animals/leo", {"pretty": "1"}, headers)
    answer = DirectTransport(world.api, jane).send(request)
    assert answer.or_raise()["path"] == "apis/zoo.example.com/v1/namespaces/default/animals/leo"
    assert answer.headers["x-own"] == "yes"
    assert "connection" not in answer.headers
    call = zoo.calls[-1]
    assert call.url.endswith("/animals/leo?pretty=1")
    assert (call.address, call.server_name, call.insecure, call.as_proxy) == (
        ("192.0.2.1", 8443),
        "zoo.default.svc",
        True,
        True,
    )
    assert {name: value for name, value in call.headers.items() if name != "accept"} == {
        "x-remote-user": "jane",
        "x-remote-uid": "u1",
        "x-remote-group": "system:masters\nstaff",
        "x-remote-extra-scopes%2Fa": "x\ny",
    }


def test_a_server_that_goes_away_is_found_out_and_comes_back() -> None:
    world, zoo = zoo_world()
    zoo.up = False
    world.driver.advance(40)
    assert condition(world)["reason"] == "FailedDiscoveryCheck"
    assert "connection refused" in condition(world)["message"]
    answer = world.transport.send(Request("GET", f"{GROUP}/animals"))
    assert (answer.status, answer.raw) == (503, b"service unavailable\n")
    zoo.up = True
    world.driver.advance(40)
    assert condition(world)["status"] == "True"
    assert world.transport.send(Request("GET", f"{GROUP}/animals")).ok


def test_discovery_is_merged_and_marks_what_is_stale() -> None:
    world, zoo = zoo_world()
    groups = {group["name"]: group for group in world.get("/apis")["groups"]}
    assert groups["zoo.example.com"]["preferredVersion"]["groupVersion"] == "zoo.example.com/v1"
    assert world.get("/apis/zoo.example.com")["versions"][0]["version"] == "v1"
    assert world.get(GROUP) == ANIMALS

    def merged() -> Obj:
        accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
        items = world.transport.send(Request("GET", "/apis", {}, accept)).obj["items"]
        return next(item for item in items if item["metadata"]["name"] == "zoo.example.com")["versions"][0]

    assert merged()["freshness"] == "Current"
    [animals] = merged()["resources"]
    assert (animals["resource"], animals["scope"]) == ("animals", "Namespaced")
    assert animals["responseKind"] == {"group": "zoo.example.com", "version": "v1", "kind": "Animal"}
    assert animals["subresources"][0]["subresource"] == "status"
    zoo.up = False
    world.driver.advance(40)
    assert merged()["freshness"] == "Stale"
    world.delete(f"{API}/v1.zoo.example.com")
    assert "zoo.example.com" not in {group["name"] for group in world.get("/apis")["groups"]}
    assert not world.api.aggregation.active


def test_who_may_not_is_refused_before_anybody_is_asked() -> None:
    world, zoo = zoo_world()
    zoo.calls.clear()
    answer = DirectTransport(world.api, UserInfo("jane")).send(Request("GET", f"{GROUP}/animals"))
    assert answer.status == 403
    assert not zoo.calls


def test_without_anybody_who_calls_the_answer_is_503_and_says_so() -> None:
    world, _ = zoo_world()
    world.api.caller = None
    answer = world.transport.send(Request("GET", f"{GROUP}/animals"))
    assert answer.status == 503
    assert b"error trying to reach service: no calls are made from here" in answer.raw


# --- over HTTPS ----------------------------------------------------------------------------------------------------

KEYS = create_keys(datetime.datetime.now(datetime.UTC))


class _Handler(BaseHTTPRequestHandler):
    """An API server of one kind that trusts the front proxy's headers."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == GROUP:
            return self._answer(ANIMALS)
        if "watch=true" in self.path:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("connection", "close")
            self.end_headers()
            for name in ("leo", "mia"):
                event = {"type": "ADDED", "object": {"kind": "Animal", "metadata": {"name": name}}}
                self.wfile.write(json.dumps(event).encode() + b"\n")
            self.close_connection = True
            return None
        observed = {
            name.lower(): self.headers.get_all(name) for name in self.headers if name.lower().startswith("x-remote")
        }
        certificate = self.connection.getpeercert() or {}  # type: ignore[attr-defined]
        subject = [value for pairs in certificate.get("subject", ()) for _, value in pairs]
        return self._answer({"kind": "Animal", "seen": observed, "shown": subject, "path": self.path})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self._answer({"kind": "Animal", "sent": json.loads(body)}, 201)

    def _answer(self, obj: Obj, status: int = 200) -> None:
        body = json.dumps(obj).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("cluster")
    with served_cluster(folder, ClusterSettings(controllers=("api-services",))) as cluster:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.daemon_threads = True
        now = datetime.datetime.now(datetime.UTC)
        pair = KEYS.authority.issue("zoo", now=now, server_names=("zoo.default.svc",))
        (folder / "pair.pem").write_text(pair.certificate_pem + pair.key_pem.reveal())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "pair.pem")
        authority = cluster.access["clusters"][0]["cluster"]["certificate-authority-data"]
        context.load_verify_locations(cadata=base64.b64decode(authority).decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        named = {"type": "ExternalName", "externalName": "localhost"}
        send(cluster, "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "zoo"}, "spec": named})
        bundle = base64.b64encode(KEYS.ca_pem.encode()).decode()
        wanted = {"name": "zoo", "namespace": "default", "port": port}
        made = send(cluster, "POST", API, service(service=wanted, caBundle=bundle))
        assert made.ok, made.obj
        for line in BlockingClient(load_kubeconfig(cluster.kubeconfig)).watch(Request("GET", API, {"watch": "true"})):
            obj = json.loads(line)["object"]
            conditions = (obj.get("status") or {}).get("conditions") or []
            if obj["metadata"]["name"] == "v1.zoo.example.com" and any(one["status"] == "True" for one in conditions):
                break
        yield cluster
        server.shutdown()


def send(served: Served, method: str, path: str, body: Any = None) -> Response:
    client = BlockingClient(load_kubeconfig(served.kubeconfig))
    answer = client.send(Request(method, path, body=body))
    client.close()
    return answer


def test_a_real_server_is_asked_with_the_front_proxys_certificate(served: Served) -> None:
    found = send(served, "GET", f"{GROUP}/animals/leo%2Fn").or_raise()
    assert found["seen"]["x-remote-user"] == [ADMIN.name]
    assert "system:masters" in found["seen"]["x-remote-group"]
    assert found["shown"] == ["front-proxy-client"]
    assert send(served, "POST", f"{GROUP}/animals", {"legs": 4}).or_raise()["sent"] == {"legs": 4}


def test_a_watch_of_another_server_is_passed_on_line_by_line(served: Served) -> None:
    client = BlockingClient(load_kubeconfig(served.kubeconfig))
    lines = list(client.watch(Request("GET", f"{GROUP}/animals", {"watch": "true"})))
    assert [json.loads(line)["object"]["metadata"]["name"] for line in lines] == ["leo", "mia"]


def test_what_this_server_answers_for_is_listed_as_local(served: Served) -> None:
    items = {one["metadata"]["name"]: one for one in send(served, "GET", API).or_raise()["items"]}
    assert {"v1.", "v1.apps", "v1.batch", "v2.autoscaling", "v1.rbac.authorization.k8s.io"} <= set(items)
    apps = items["v1.apps"]
    assert apps["spec"] == {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}
    assert apps["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}


def test_tokens_can_be_verified_by_others(served: Served) -> None:
    about = send(served, "GET", "/.well-known/openid-configuration").or_raise()
    assert about["issuer"] == "https://kubernetes.default.svc.cluster.local"
    [key] = send(served, "GET", "/openid/v1/jwks").or_raise()["keys"]
    assert (key["use"], key["alg"]) == ("sig", about["id_token_signing_alg_values_supported"][0])
