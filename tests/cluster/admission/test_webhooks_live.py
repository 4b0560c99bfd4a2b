"""Webhooks over HTTPS: a real server, a served cluster, and everything that can go wrong between them."""

from __future__ import annotations

import base64
import datetime
import json
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.live import Served, served_cluster

from syncline.assembly.settings import ClusterSettings
from syncline.cluster.access.pki import create_keys
from syncline.cluster.serving.webhooks import ANSWER_LIMIT_BYTES
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
KEYS, OTHERS = (create_keys(datetime.datetime.now(datetime.UTC)) for _ in range(2))


class _Handler(BaseHTTPRequestHandler):
    """Answers by path; ``/slow`` when the test says so."""

    protocol_version = "HTTP/1.1"
    go = threading.Event()

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        if path == "/slow":
            self.go.wait(300)
        response: Obj = {"uid": review["request"]["uid"], "allowed": path != "/deny"}
        if path == "/label":
            steps = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(steps).encode()).decode()}
        body = json.dumps({**review, "response": response}).encode()
        body = {"/garbage": b"hello", "/huge": b" " * (ANSWER_LIMIT_BYTES + 1)}.get(path, body)
        status = {"/moved": 307, "/lost": 302}.get(path, 200)
        self.send_response(status)
        if status != 200:
            self.send_header("location", "/label" if path == "/moved" else "https://127.0.0.1:1/")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An HTTPS server with a certificate for 127.0.0.1 and for ``hook.default.svc``."""
    now = datetime.datetime.now(datetime.UTC)
    pair = KEYS.authority.issue("hook", now=now, server_names=("127.0.0.1", "hook.default.svc"))
    file = tmp_path_factory.mktemp("hook") / "pair.pem"
    file.write_text(pair.certificate_pem + pair.key_pem.reveal())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("cluster"), ClusterSettings(controllers=())) as cluster:
        yield cluster


class Api:
    def __init__(self, served: Served, port: int) -> None:
        self.port = port
        self._access: ClusterAccess = load_kubeconfig(served.kubeconfig)

    def send(self, method: str, path: str, body: Any = None, client: BlockingClient | None = None) -> Response:
        one = client or BlockingClient(self._access)
        answer = one.send(Request(method, path, body=body))
        one.close()
        return answer

    def configure(self, path: str, *, mutating: bool = False, **fields: Any) -> None:
        """One webhook about ConfigMaps, in place of the one before."""
        plural = ("mutating" if mutating else "validating") + "webhookconfigurations"
        for each in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            self.send("DELETE", f"{GROUP}/{each}/hooks")
        bundle = base64.b64encode(KEYS.ca_pem.encode()).decode()
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        hook = {
            "name": "h.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
        } | fields
        self.send("POST", f"{GROUP}/{plural}", {"metadata": {"name": "hooks"}, "webhooks": [hook]}).or_raise()

    def map(self, name: str) -> Response:
        return self.send("POST", MAPS, {"metadata": {"name": name}})


@pytest.fixture
def api(served: Served, port: int) -> Api:
    return Api(served, port)


def bundle(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def test_a_real_webhook_changes_and_refuses(api: Api) -> None:
    api.configure("/label", mutating=True)
    assert api.map("labelled").or_raise()["metadata"]["labels"] == {"seen": "yes"}
    api.configure("/deny")
    assert (
        api.map("denied").obj["message"] == 'admission webhook "h.example.com" denied the request without explanation'
    )


def test_a_redirect_is_followed_as_kubernetes_follows_it(api: Api) -> None:
    api.configure("/moved", mutating=True)
    assert api.map("moved").or_raise()["metadata"]["labels"] == {"seen": "yes"}


def test_a_service_that_is_a_name_of_this_host_is_called_under_its_own_name(api: Api) -> None:
    named = {"type": "ExternalName", "externalName": "localhost"}
    api.send("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "hook"}, "spec": named}).or_raise()
    reference = {"name": "hook", "namespace": "default", "path": "/label", "port": api.port}
    api.configure("/", mutating=True, clientConfig={"service": reference, "caBundle": bundle(KEYS.ca_pem)})
    assert api.map("by-service").or_raise()["metadata"]["labels"] == {"seen": "yes"}


FAULTS: list[tuple[str, Obj, str]] = [
    ("/garbage", {}, "couldn't get version/kind; json parse error"),
    ("/huge", {}, f"the answer is longer than {ANSWER_LIMIT_BYTES} bytes"),
    ("/lost", {}, "dial tcp 127.0.0.1:1: connect: connection refused"),
    ("/slow", {"timeoutSeconds": 1}, "context deadline exceeded"),
    ("", {"clientConfig": {"url": "https://127.0.0.1:1/x"}}, "dial tcp 127.0.0.1:1: connect: connection refused"),
]


@pytest.mark.parametrize(("path", "fields", "said"), FAULTS, ids=["garbage", "huge", "lost", "slow", "down"])
def test_a_webhook_that_fails_refuses_by_name_or_is_passed_over(api: Api, path: str, fields: Obj, said: str) -> None:
    _Handler.go.clear()
    api.configure(path, **fields)
    answer = api.map("refused")
    assert answer.status == 500
    assert answer.obj["message"].startswith('Internal error occurred: failed calling webhook "h.example.com": ')
    assert said in answer.obj["message"]
    api.configure(path, **fields, failurePolicy="Ignore")
    assert api.map(f"passed{path.replace('/', '-')}-x").ok
    _Handler.go.set()


def test_certificates_are_verified(api: Api) -> None:
    url = f"https://127.0.0.1:{api.port}/label"
    untrusted = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    for config in ({"url": url}, {"url": url, "caBundle": bundle(OTHERS.ca_pem)}):
        api.configure("", clientConfig=config)
        assert untrusted in api.map("never").obj["message"]
    named = {"url": f"https://localhost:{api.port}/label", "caBundle": bundle(KEYS.ca_pem)}
    api.configure("", clientConfig=named)
    assert "x509: certificate is not valid for localhost" in api.map("never").obj["message"]


def test_others_are_served_while_many_writes_wait_for_a_slow_webhook(api: Api) -> None:
    _Handler.go.clear()
    api.configure("/slow")
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(api.map, f"slow-{number}") for number in range(20)]
        for _ in range(20):
            assert api.send("GET", "/api/v1/namespaces/default").ok
        assert api.send("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"generateName": "s-"}}).ok
        assert not any(one.done() for one in waiting)
        _Handler.go.set()
        assert [one.result().status for one in waiting] == [201] * 20


def test_the_controllers_of_the_cluster_are_judged_too_and_go_on(tmp_path: Path, port: int) -> None:
    settings = ClusterSettings(controllers=("replicaset", "deployment", "serviceaccount"))
    with served_cluster(tmp_path, settings) as served:
        api = Api(served, port)
        rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["replicasets"], "operations": ["CREATE"]}
        api.configure("/label", mutating=True, rules=[rule])
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default"
        api.send("POST", f"{path}/deployments", {"metadata": {"name": "web"}, "spec": spec}).or_raise()
        watch = Request("GET", f"{path}/replicasets", {"watch": "true"})
        made = json.loads(next(BlockingClient(load_kubeconfig(served.kubeconfig)).watch(watch)))["object"]
        assert made["metadata"]["labels"] == {"seen": "yes"}
