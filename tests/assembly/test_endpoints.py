"""Webhooks, metrics and credentials of running controllers; and that a credential shows nowhere."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.assembly.controllers import ANY, APPS, MAP, Cluster, Running, start
from tests.live import served_cluster
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.assembly.controller import ControllerSettings, serve_controller
from syncline.assembly.endpoints.listening import ListenError
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.objects import Obj, ResourceInfo, dig
from syncline.kube.transport.kubeconfig import load_kubeconfig

SECRETS = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)
KEY = "wh-c4n4ry"
CANARY = "c4n4ry-p4ssw0rd"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with served_cluster(tmp_path_factory.mktemp("served"), ClusterSettings()) as served:
        yield Cluster(served)


@pytest.fixture
def running(cluster: Cluster, tmp_path: Path) -> Iterator[Running]:
    replica = start(cluster.served, tmp_path / "cache", endpoints=True)
    yield replica
    replica.end()


def call(running: Running, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    port = running.replica.ports[ANY]
    named = {name.replace("_", "-"): value for name, value in ({"Content_Type": "application/json"} | headers).items()}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def secret(name: str, labels: dict[str, str], **data: str) -> Obj:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": "argocd", "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def test_a_genuine_push_refreshes_the_application_at_once(
    cluster: Cluster, running: Running, upstream: Upstream
) -> None:
    upstream.commit({"hook/map.yaml": MAP.format(name="hook")})
    settings = {"webhook.github.secret": KEY}
    running.await_known(cluster.ask(client.create(SECRETS, secret("argocd-secret", {}, **settings))))
    cluster.application("hook", f"file://localhost{upstream.path}", "hook")
    cluster.synced("hook")
    sha = upstream.commit({"hook/map.yaml": MAP.format(name="hook") + "# changed\n"})
    payload = {
        "ref": "refs/heads/main",
        "repository": {"html_url": f"https://localhost{upstream.path}", "default_branch": "main"},
    }
    body = json.dumps(payload).encode()
    status, text = call(running, "/api/webhook", body, X_GitHub_Event="push", X_Hub_Signature_256="sha256=00")
    assert (status, text) == (401, "github webhook: the signature does not match webhook.github.secret\n")
    signature = "sha256=" + hmac.digest(KEY.encode(), body, "sha256").hex()
    assert call(running, "/api/webhook", body, X_GitHub_Event="push", X_Hub_Signature_256=signature)[0] == 200
    cluster.watch_until(APPS, "argocd", "hook", lambda app: dig(app, "status", "sync", "revision") == sha)


def test_b59_a_genuine_push_refreshes_the_sets_that_read_the_repository(
    cluster: Cluster, running: Running, upstream: Upstream
) -> None:
    url = f"file://localhost{upstream.path}"
    upstream.commit({"sets/one/map.yaml": MAP.format(name="one")})
    git = {"repoURL": url, "revision": "HEAD", "directories": [{"path": "sets/*"}], "requeueAfterSeconds": 36000}
    source = {"repoURL": url, "path": "{{path}}", "targetRevision": "HEAD"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "default"}
    spec = {"project": "default", "source": source, "destination": destination}
    template = {"metadata": {"name": "set-{{path.basename}}"}, "spec": spec}
    made = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "fleet", "namespace": "argocd"},
        "spec": {"generators": [{"git": git}], "template": template},
    }
    sets = ResourceInfo("argoproj.io", "v1alpha1", "ApplicationSet", "applicationsets", namespaced=True)
    running.await_known(cluster.ask(client.create(sets, made)))
    cluster.watch_until(APPS, "argocd", "set-one", lambda _app: True)
    upstream.commit({"sets/two/map.yaml": MAP.format(name="two")})
    repository = {"html_url": f"https://localhost{upstream.path}", "default_branch": "main"}
    body = json.dumps({"ref": "refs/heads/main", "repository": repository}).encode()
    secret_of_hook = "sha256=" + hmac.digest(KEY.encode(), body, "sha256").hex()
    status, _ = call(running, "/api/webhook", body, X_GitHub_Event="push", X_Hub_Signature_256=secret_of_hook)
    assert status == 200
    cluster.watch_until(APPS, "argocd", "set-two", lambda _app: True)
    _, text = call(running, "/metrics")
    assert 'argocd_appset_info{namespace="argocd",name="fleet",resource_update_status="' in text
    assert 'argocd_appset_reconcile_bucket{namespace="argocd",name="fleet",le="+Inf"}' in text
    cluster.ask(client.delete(sets, "argocd", "fleet"))


def test_b32_an_event_of_a_pull_request_refreshes_the_sets_that_list_it(
    cluster: Cluster, running: Running, upstream: Upstream
) -> None:
    upstream.commit({"preview/map.yaml": MAP.format(name="preview")})

    def pull(number: int) -> Obj:
        ends = {"head": {"ref": f"feature-{number}", "sha": f"{number:040x}"}, "base": {"ref": "main", "sha": "f" * 40}}
        return {"number": number, "title": "a change", "user": {"login": "anna"}, "labels": [], **ends}

    pulls = "/api/v3/repos/acme/web/pulls"
    host = ReplayHost({pulls: Replay([pull(1)])})
    source = {"repoURL": f"file://localhost{upstream.path}", "path": "preview", "targetRevision": "HEAD"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "preview-{{number}}"}
    listing = {"github": {"owner": "acme", "repo": "web", "api": host.url}, "requeueAfterSeconds": 36000}
    spec = {"project": "default", "source": source, "destination": destination}
    made = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "previews", "namespace": "argocd"},
        "spec": {
            "generators": [{"pullRequest": listing}],
            "template": {"metadata": {"name": "preview-{{number}}"}, "spec": spec},
        },
    }
    sets = ResourceInfo("argoproj.io", "v1alpha1", "ApplicationSet", "applicationsets", namespaced=True)
    running.await_known(cluster.ask(client.create(sets, made)))
    cluster.watch_until(APPS, "argocd", "preview-1", lambda _app: True)
    host.answers[pulls] = [Replay([pull(1), pull(2)])]
    repository = {"name": "web", "owner": {"login": "Acme"}, "url": f"{host.url}/api/v3/repos/acme/web"}
    body = json.dumps({"action": "opened", "number": 2, "repository": repository}).encode()
    signature = "sha256=" + hmac.digest(KEY.encode(), body, "sha256").hex()
    status, _ = call(running, "/api/webhook", body, X_GitHub_Event="pull_request", X_Hub_Signature_256=signature)
    assert status == 200
    cluster.watch_until(APPS, "argocd", "preview-2", lambda _app: True)
    cluster.ask(client.delete(sets, "argocd", "previews"))
    host.close()


def test_a_body_beyond_the_limit_is_refused_unread(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    status, _ = call(running, "/api/webhook", b"x" * (25 * 1024 * 1024 + 1), X_GitHub_Event="push")
    assert status == 413


def test_metrics_have_the_names_that_dashboards_use(cluster: Cluster, running: Running, upstream: Upstream) -> None:
    upstream.commit({"seen/map.yaml": MAP.format(name="seen")})
    cluster.application("seen", str(upstream.path), "seen")
    cluster.synced("seen")

    def over(app: Obj) -> bool:
        told = [
            dig(app, "status", *path)
            for path in (("operationState", "phase"), ("sync", "status"), ("health", "status"))
        ]
        return told == ["Succeeded", "Synced", "Healthy"] and not app.get("operation")

    running.await_known(cluster.watch_until(APPS, "argocd", "seen", over))
    status, text = call(running, "/metrics")
    identity = 'namespace="argocd",name="seen",project="default"'
    server = 'dest_server="https://kubernetes.default.svc"'
    assert status == 200
    assert (
        f'argocd_app_info{{{identity},autosync_enabled="true",repo="{str(upstream.path).lower()}",{server},'
        f'dest_namespace="demo",sync_status="Synced",health_status="Healthy",operation=""}} 1\n'
    ) in text
    assert f'argocd_app_sync_total{{{identity},{server},phase="Succeeded",dry_run="false"}} 1\n' in text
    assert f'argocd_app_reconcile_bucket{{namespace="argocd",{server},le="+Inf"}}' in text
    assert f'argocd_git_request_total{{repo="{upstream.path}",request_type="ls-remote"}} ' in text
    assert 'syncline_passes_total{controller="application"}' in text
    assert "\nsyncline_queue_depth " in text
    assert f'argocd_app_labels{{{identity},label_team="",label_example_com_tier=""}} 1\n' in text
    assert call(running, "/healthz") == (200, "ok\n")


def test_an_address_that_is_taken_is_told(cluster: Cluster, running: Running, tmp_path: Path) -> None:
    settings = GitOpsSettings(tmp_path, metrics_listen=("127.0.0.1", running.replica.ports[ANY]))
    access = load_kubeconfig(cluster.served.kubeconfig)
    with pytest.raises(ListenError, match=r"^cannot listen on 127.0.0.1:[0-9]+: Address already in use$"):
        asyncio.run(serve_controller(access, ControllerSettings(settings), SystemClock(), asyncio.Event()))


@pytest.fixture
def locked(upstream: Upstream, tmp_path: Path) -> Iterator[Server]:
    """A repository over HTTP that opens to robot and CANARY."""
    upstream.commit({"locked/map.yaml": MAP.format(name="locked")})
    bare = tmp_path / "www" / "app.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(upstream.path), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    server = Server(tmp_path / "www", "Basic " + base64.b64encode(f"robot:{CANARY}".encode()).decode())
    yield server
    server.close()


def test_a_credential_opens_the_repository_and_shows_nowhere(
    cluster: Cluster, running: Running, locked: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    repository = {"argocd.argoproj.io/secret-type": "repository"}
    url = f"{locked.url}/app.git"
    wrong = secret("locked", repository, url=url, username="robot", password=CANARY + "-wrong")
    running.await_known(cluster.ask(client.create(SECRETS, wrong)))
    cluster.application("locked", url, "locked")
    refused = cluster.watch_until(
        APPS, "argocd", "locked", lambda app: bool(dig(app, "status", "conditions", default=[]))
    )
    assert "give credentials" in refused["status"]["conditions"][0]["message"]
    right = secret("locked", repository, url=url, username="robot", password=CANARY)
    running.await_known(cluster.ask(client.update(SECRETS, right)))
    cluster.refresh("locked")
    cluster.synced("locked")
    shown = [
        json.dumps(cluster.ask(client.list_(APPS))),
        json.dumps(cluster.ask(Request("GET", "/api/v1/events"))),
        running.replica.journal.text(),
        call(running, "/metrics")[1],
        caplog.text,
    ]
    assert [text for text in shown if CANARY in text] == []
    files = [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert files
    assert [file for file in files if CANARY.encode() in file.read_bytes()] == []
