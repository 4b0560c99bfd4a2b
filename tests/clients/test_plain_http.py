"""kubectl and the official Python client, unmodified, on the loopback without TLS: the browser guard lets them in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.kubectl import Kubectl, needs_kubectl
from tests.clients.manifests import config
from tests.live import Served, served_cluster

from syncline.assembly.settings import ClusterSettings

RAW = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("plain"), ClusterSettings(tls=False)) as cluster:
        yield cluster


@needs_kubectl
def test_every_way_of_kubectl_to_send_a_body(plain: Served, tmp_path: Path) -> None:
    kubectl = Kubectl(plain.kubeconfig, tmp_path, url=plain.url)
    kubectl("create -f -", stdin=config("x", a="1"))
    kubectl("apply -f -", stdin=config("y", a="1"))
    kubectl("apply -f -", stdin=config("y", a="2"))
    kubectl("apply --server-side --force-conflicts -f -", stdin=config("y", a="3"))
    kubectl("replace -f -", stdin=config("x", a="2"))
    kubectl("label configmap x k=v")
    kubectl("patch configmap x --type=json -p", '[{"op":"add","path":"/data/b","value":"2"}]')
    kubectl("create deployment d --image=x")
    kubectl("scale deployment d --replicas=2")
    kubectl("create serviceaccount s")
    assert kubectl("create token s").count(".") == 2
    assert kubectl("auth can-i get pods").strip() == "yes"
    kubectl(f"create --raw {RAW} -f -", stdin=config("raw", a="1"))
    kubectl(f"replace --raw {RAW}/raw -f -", stdin=config("raw", a="2"))
    kubectl(f"delete --raw {RAW}/raw")
    kubectl("delete configmap x y --cascade=foreground --wait=false")


def test_the_python_client_sends_what_its_bodies_are(plain: Served) -> None:
    official = pytest.importorskip("kubernetes", reason="the official Python client is not installed")
    with official.config.new_client_from_config(str(plain.kubeconfig)) as connection:
        core = official.client.CoreV1Api(connection)
        core.create_namespaced_config_map("default", config("p", a="1"))
        core.patch_namespaced_config_map("p", "default", {"data": {"b": "2"}})
        core.delete_namespaced_config_map("p", "default", body=official.client.V1DeleteOptions())
