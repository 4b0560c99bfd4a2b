"""An Application applied to another cluster over HTTPS: two served clusters, tied by a cluster Secret."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.live import Served, served_cluster
from tests.sources.conftest import Upstream

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.objects import dig
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far}\ndata: {a: b}\n"
PATIENCE_S = 300


def ask(served: Served, method: str, path: str, body: Any = None) -> Any:
    client = BlockingClient(load_kubeconfig(str(served.kubeconfig)))
    try:
        return client.send(Request(method, path, body=body)).obj
    finally:
        client.close()


def until(found: Callable[[], Any], wanted: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while (observed := found()) != wanted:
        assert time.monotonic() < end, f"not {wanted!r} in {PATIENCE_S} s, but {observed!r}"


def secret_for(served: Served) -> dict[str, Any]:
    access = load_kubeconfig(served.kubeconfig)

    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    assert access.key_pem is not None
    tls = {
        "caData": encoded(access.ca_pem),
        "certData": encoded(access.certificate_pem),
        "keyData": encoded(access.key_pem.reveal()),
    }
    data = {"name": "far", "server": access.server, "config": json.dumps({"tlsClientConfig": tls})}
    metadata = {"name": "cluster-far", "labels": {"argocd.argoproj.io/secret-type": "cluster"}}
    encoded_data = {key: encoded(value) for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded_data}


def test_an_application_is_applied_to_another_cluster_over_https(tmp_path: Path, upstream: Upstream) -> None:
    upstream.commit({"map.yaml": MAP})
    home_folder, far_folder = tmp_path / "home", tmp_path / "far"
    gitops = GitOpsSettings(tmp_path / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with (
        served_cluster(far_folder, ClusterSettings()) as far,
        served_cluster(home_folder, ClusterSettings(), gitops) as home,
    ):
        ask(home, "POST", "/api/v1/namespaces/argocd/secrets", secret_for(far))
        spec = {
            "project": "default",
            "source": {"repoURL": str(upstream.path), "path": "."},
            "destination": {"name": "far", "namespace": "default"},
            "syncPolicy": {"automated": {"selfHeal": True}},
        }
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "app"}}
        ask(home, "POST", APPS, kind | {"spec": spec})
        maps = "/api/v1/namespaces/default/configmaps/far"
        until(lambda: dig(ask(far, "GET", maps), "data", "a"), "b")
        assert ask(home, "GET", maps).get("code") == 404
        ask(far, "DELETE", maps)
        until(lambda: dig(ask(far, "GET", maps), "data", "a"), "b")
        until(lambda: dig(ask(home, "GET", f"{APPS}/app"), "status", "sync", "status"), "Synced")
    assert "BEGIN" not in str(spec)
