"""``syncline up --server-listen`` and ``syncline server``, as processes: gRPC, gRPC-Web and REST of an installation."""

from __future__ import annotations

import base64
import json
import re
import signal
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.cli.test_stopping import Served

from syncline.kube.client import PatchType, Request
from syncline.kube.objects import Obj
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig
from syncline.web.wire.api import methods, read, writer
from syncline.web.wire.frames import framed

APPLICATIONS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
SPEC = {
    "project": "default",
    "source": {"repoURL": "https://git.example.invalid/demo.git", "path": "app"},
    "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
}


@dataclass
class Installation:
    """A cluster with the server in its process, and a server of its own without TLS."""

    client: BlockingClient
    channel: grpc.Channel
    plain: grpc.Channel
    plain_port: int
    password: str

    def call(self, path: str, request: Obj | None = None, *, token: str = "", plain: bool = False) -> Any:
        method = methods()[path]
        raw = writer().write(method.request, request or {})
        metadata = (("token", token),) if token else ()
        to = self.plain if plain else self.channel
        return read(method.response, to.unary_unary(path)(raw, metadata=metadata, timeout=60))

    def login(self, *, plain: bool = False, name: str = "admin") -> str:
        asked = {"username": name, "password": self.password}
        return str(self.call("/session.SessionService/Create", asked, plain=plain)["token"])

    def write(self, method: str, path: str, body: Obj) -> Obj:
        kind = PatchType.MERGE.value if method == "PATCH" else "application/json"
        found: Obj = self.client.send(Request(method, path, headers={"content-type": kind}, body=body)).or_raise()
        return found


def _certificate(port: int) -> bytes:
    return ssl.get_server_certificate(("127.0.0.1", port)).encode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("server")
    kubeconfig = folder / "kubeconfig"
    options = ("--memory", "--listen", "127.0.0.1:0", "--server-listen", "127.0.0.1:0")
    up = Served(folder, "up", *options, "--kubeconfig-out", str(kubeconfig), ready="argocd-initial-admin-secret")
    (folder / "own").mkdir()
    own = None
    try:
        client = BlockingClient(load_kubeconfig(kubeconfig))
        _make(client)
        listen = ("--listen", "127.0.0.1:0", "--insecure", "--kubeconfig", str(kubeconfig))
        own = Served(folder / "own", "server", *listen, ready="serves argocd's API")
        port, plain = _port(up.said, "https"), _port(own.said, "http")
        secret = client.send(Request("GET", "/api/v1/namespaces/argocd/secrets/argocd-initial-admin-secret")).or_raise()
        password = base64.b64decode(secret["data"]["password"]).decode()
        trust = grpc.ssl_channel_credentials(_certificate(port))
        with (
            grpc.secure_channel(f"localhost:{port}", trust) as secure,
            grpc.insecure_channel(f"127.0.0.1:{plain}") as open_,
        ):
            yield Installation(client, secure, open_, plain, password)
    finally:
        if own is not None:
            assert own.stop(signal.SIGTERM)[0] == 0
        up.stop(signal.SIGTERM)


def _port(said: str, scheme: str) -> int:
    found = re.search(rf"(?:API:|server) +{scheme}://127\.0\.0\.1:(\d+)", said)
    assert found, said
    return int(found[1])


def _make(client: BlockingClient) -> None:
    for name, labels in (("alpha", {"team": "a"}), ("beta", {"team": "b"})):
        body = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": name, "labels": labels},
            "spec": SPEC,
        }
        client.send(Request("POST", APPLICATIONS, body=body)).or_raise()


@pytest.fixture(params=[False, True], ids=["tls", "plain"])
def plain(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_login_opens_what_is_closed_without_one(installed: Installation, plain: bool) -> None:
    service = "/session.SessionService/GetUserInfo"
    assert installed.call(service, plain=plain) == {}
    token = installed.login(plain=plain)
    said = installed.call(service, token=token, plain=plain)
    assert (said["loggedIn"], said["username"], said["iss"]) == (True, "admin", "argocd")
    with pytest.raises(grpc.RpcError) as refused:
        installed.call("/application.ApplicationService/List", plain=plain)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert refused.value.details() == "no session information"


def test_a_wrong_password_and_a_forged_token_open_nothing(installed: Installation) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        installed.call("/session.SessionService/Create", {"username": "admin", "password": "wrong"})
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert refused.value.details() == "Invalid username or password"
    header, claims, _ = installed.login().split(".")
    for forged in (f"{header}.{claims}.", f"{header}.{claims}.AAAA", "not-a-token"):
        with pytest.raises(grpc.RpcError) as refused:
            installed.call("/project.ProjectService/List", token=forged)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_session_that_was_ended_is_no_session(installed: Installation) -> None:
    token = installed.login()
    installed.call("/session.SessionService/Delete", token=token)
    with pytest.raises(grpc.RpcError) as refused:
        installed.call("/project.ProjectService/List", token=token)
    assert "token is revoked" in refused.value.details()


def test_applications_are_listed_by_name_and_chosen_by_a_query(installed: Installation, plain: bool) -> None:
    token = installed.login(plain=plain)

    def names(**query: Any) -> list[str]:
        found = installed.call("/application.ApplicationService/List", query, token=token, plain=plain)
        return [app["metadata"]["name"] for app in found.get("items") or ()]

    assert names() == ["alpha", "beta"]
    assert names(selector="team=b") == ["beta"]
    assert names(projects=["other"]) == []
    assert names(repo=SPEC["source"]["repoURL"], name="alpha") == ["alpha"]  # type: ignore[index]
    app = installed.call("/application.ApplicationService/Get", {"name": "alpha"}, token=token, plain=plain)
    assert app["spec"]["source"]["path"] == "app"


def test_a_missing_application_is_named_only_to_who_may_know(installed: Installation) -> None:
    token, service = installed.login(), "/application.ApplicationService/Get"
    denied, missing = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND
    for query, code, text in (
        ({"name": "nope"}, denied, "permission denied"),
        ({"name": "nope", "project": ["default"]}, missing, 'applications.argoproj.io "nope" not found'),
        ({"name": "alpha", "project": ["other"]}, missing, 'applications.argoproj.io "alpha" not found'),
        ({"name": "alpha", "appNamespace": "elsewhere"}, denied, "namespace 'elsewhere' is not permitted"),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            installed.call(service, query, token=token)
        assert (refused.value.code(), refused.value.details()) == (code, text)


def test_a_watch_begins_with_what_is_there_and_follows_changes(installed: Installation, plain: bool) -> None:
    token = installed.login(plain=plain)
    path = "/application.ApplicationService/Watch"
    to = installed.plain if plain else installed.channel
    raw = writer().write("application.ApplicationQuery", {"name": "beta"})
    stream = to.unary_stream(path)(raw, metadata=(("token", token),), timeout=60)
    events = (read("argoproj.v1alpha1.ApplicationWatchEvent", one) for one in stream)
    first = next(events)
    assert (first["type"], first["application"]["metadata"]["name"]) == ("ADDED", "beta")
    label = f"seen-{'plain' if plain else 'tls'}"
    installed.write("PATCH", f"{APPLICATIONS}/beta", {"metadata": {"labels": {"mark": label}}})
    assert any(one["application"]["metadata"]["labels"].get("mark") == label for one in events)
    stream.cancel()


def test_a_refresh_waits_for_the_controller(installed: Installation) -> None:
    query = {"name": "alpha", "refresh": "normal"}
    app = installed.call("/application.ApplicationService/Get", query, token=installed.login())
    assert "argocd.argoproj.io/refresh" not in app["metadata"].get("annotations", {})
    assert app["status"]["conditions"][0]["type"] == "ComparisonError"


def test_projects_clusters_and_settings_are_shown_without_secrets(installed: Installation) -> None:
    data = {
        "name": base64.b64encode(b"far").decode(),
        "server": base64.b64encode(b"https://far.example.invalid").decode(),
        "config": base64.b64encode(b'{"bearerToken": "hidden-canary", "tlsClientConfig": {"insecure": true}}').decode(),
    }
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "far", "labels": labels}, "data": data}
    installed.write("POST", "/api/v1/namespaces/argocd/secrets", secret)
    token = installed.login()
    projects = installed.call("/project.ProjectService/List", token=token)["items"]
    assert [one["metadata"]["name"] for one in projects] == ["default"]
    query = {"server": "https://far.example.invalid"}
    clusters = installed.call("/cluster.ClusterService/List", query, token=token)["items"]
    assert [(one["name"], one["config"]["tlsClientConfig"]["insecure"]) for one in clusters] == [("far", True)]
    assert "hidden-canary" not in json.dumps(clusters)
    assert "controllerNamespace" not in installed.call("/cluster.SettingsService/Get")
    assert installed.call("/cluster.SettingsService/Get", token=token)["controllerNamespace"] == "argocd"
    assert installed.call("/version.VersionService/Version")["Version"].startswith("v3.")


def test_rights_decide_what_a_caller_sees(installed: Installation) -> None:
    data = {"accounts.guest": "login"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": data}
    rules = {"policy.csv": "p, guest, applications, get, default/beta, allow"}
    namespace = "/api/v1/namespaces/argocd"
    secret = installed.client.send(Request("GET", f"{namespace}/secrets/argocd-secret")).or_raise()
    hashed = {"accounts.guest.password": secret["data"]["admin.password"]}
    for path, body in (
        (f"{namespace}/configmaps", config),
        (f"{namespace}/configmaps", config | {"metadata": {"name": "argocd-rbac-cm"}, "data": rules}),
    ):
        answer = installed.client.send(Request("POST", path, body=body))
        if not answer.ok:
            installed.write("PATCH", f"{path}/{body['metadata']['name']}", {"data": body["data"]})  # type: ignore[index]
    installed.write("PATCH", f"{namespace}/secrets/argocd-secret", {"data": hashed})
    asked = {"username": "guest", "password": installed.password}
    token = str(_until(lambda: installed.call("/session.SessionService/Create", asked)["token"]))
    listed = installed.call("/application.ApplicationService/List", token=token)
    assert [app["metadata"]["name"] for app in listed["items"]] == ["beta"]
    with pytest.raises(grpc.RpcError) as refused:
        installed.call("/project.ProjectService/Get", {"name": "default"}, token=token)
    assert refused.value.details().startswith("permission denied: projects, get, default, sub: guest, iat: ")


def _until(ask: Any) -> Any:
    """Return the answer once the server's watch has seen what was written; it takes milliseconds."""
    for _ in range(1000):
        try:
            return ask()
        except grpc.RpcError as error:
            last = error
    raise last


def test_grpc_web_and_rest_speak_to_the_same_port(installed: Installation) -> None:
    from http.client import HTTPConnection

    token = installed.login(plain=True)
    connection = HTTPConnection("127.0.0.1", installed.plain_port, timeout=60)
    connection.request(
        "GET", "/api/v1/applications?fields=items.metadata.name", headers={"Authorization": f"Bearer {token}"}
    )
    answer = connection.getresponse()
    assert json.loads(answer.read()) == {"items": [{"metadata": {"name": "alpha"}}, {"metadata": {"name": "beta"}}]}
    asked = json.dumps({"username": "admin", "password": installed.password})
    connection.request("POST", "/api/v1/session", asked, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    cookie = answer.headers["Set-Cookie"]
    assert re.match(r"argocd\.token=[\w.-]+; path=/; SameSite=lax; httpOnly", cookie), cookie
    assert json.loads(answer.read())["token"] in cookie
    connection.request("GET", "/api/v1/applications", headers={"Cookie": cookie.partition(";")[0]})
    assert len(json.loads(connection.getresponse().read())["items"]) == 2
    connection.request("GET", "/api/v1/projects")
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["code"]) == (401, 16)
    path = "/application.ApplicationService/Get"
    body = framed(writer().write("application.ApplicationQuery", {"name": "beta"}))
    headers = {"Content-Type": "application/grpc-web+proto", "Token": token}
    connection.request("POST", path, body, headers)
    raw = connection.getresponse().read()
    assert (
        read("argoproj.v1alpha1.Application", raw[5 : 5 + int.from_bytes(raw[1:5], "big")])["metadata"]["name"]
        == "beta"
    )
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok"


def test_the_kubeconfig_of_a_server_must_reach_a_cluster(tmp_path: Path) -> None:
    from syncline.cli.main import main

    assert main(["server", "--kubeconfig", str(tmp_path / "none")]) == 2
