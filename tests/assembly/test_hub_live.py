"""A hub as a process of its own against another API server: its webhooks over HTTPS, with the rights of deploy/."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.assembly.controllers import ANY, Cluster, start
from tests.assembly.test_deploy import manifests
from tests.live import served_cluster

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.webhookserver import SECRET, SECRETS, authority_of
from syncline.assembly.settings import ClusterSettings, HubWebhookSettings
from syncline.base.clock import EPOCH
from syncline.base.secret import Secret
from syncline.cluster.access.pki import KeyPair, new_authority
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings
from syncline.fleet.hub.admitting import MUTATE_CLUSTER
from syncline.fleet.hub.converting import CONVERT, CRD, NAMES
from syncline.kube.client import Request
from syncline.kube.objects import ResourceInfo
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
ACCOUNT = "/api/v1/namespaces/open-cluster-management-hub/serviceaccounts/syncline-hub-controller/token"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
HOOK = "managedclustermutators.admission.cluster.open-cluster-management.io"
CLUSTER = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
CLUSTER_INFO = ResourceInfo(
    "cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters", namespaced=False
)
CRD_INFO = ResourceInfo(*CRD, "customresourcedefinitions", namespaced=False)
HOOK_INFO = ResourceInfo(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with served_cluster(tmp_path, ClusterSettings()) as served:
        found = Cluster(served)
        run_in_place(ensure_objects(manifests("hub.yaml")), found.api)
        yield found


def as_the_account(cluster: Cluster) -> ClusterAccess:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.ask(Request("POST", ACCOUNT, body=request))["status"]["token"]
    access = load_kubeconfig(cluster.served.kubeconfig)
    return replace(access, token=Secret(token), certificate_pem="", key_pem=None)


def test_webhooks_of_a_hub_are_asked_over_https_and_survive_another_process(cluster: Cluster, tmp_path: Path) -> None:
    hooks = HubWebhookSettings(*ANY, "https://127.0.0.1:0")

    def begun(name: str) -> Any:
        leader = LeaderSettings(name, "argocd")
        return start(
            cluster.served, tmp_path / name, leader, access=as_the_account(cluster), roles=("hub",), hub_webhooks=hooks
        )

    first = begun("one")
    made = cluster.watch_until(HOOK_INFO, "", HOOK, lambda one: bool(one["webhooks"]))
    cluster.ask(
        Request("POST", CLUSTERS, body={**CLUSTER, "metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": True}})
    )
    client_config = made["webhooks"][0]["clientConfig"]
    convert = client_config | {"url": client_config["url"].replace(MUTATE_CLUSTER, CONVERT)}
    crd = cluster.watch_until(CRD_INFO, "", NAMES[0], lambda one: "webhook" in one["spec"].get("conversion", {}))
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"] == convert
    assert [one["served"] for one in crd["spec"]["versions"]] == [True, True]
    accepted = cluster.watch_until(CLUSTER_INFO, "", "c1", _accepted_and_tainted)
    assert accepted["metadata"]["labels"] == {"cluster.open-cluster-management.io/clusterset": "default"}
    answer = cluster.api.send(Request("POST", CLUSTERS, body={**CLUSTER, "metadata": {"name": "managed-clusters"}}))
    assert "is reserved" in str(answer.refusal())
    first.end()
    answer = cluster.api.send(Request("POST", CLUSTERS, body={**CLUSTER, "metadata": {"name": "c2"}}))
    assert "failed calling webhook" in str(answer.refusal()), "the policy is Fail"
    second = begun("two")
    address = made["webhooks"][0]["clientConfig"]["url"]
    moved = cluster.watch_until(HOOK_INFO, "", HOOK, lambda one: one["webhooks"][0]["clientConfig"]["url"] != address)
    secret = cluster.ask(Request("GET", f"{SECRETS}/{SECRET}"))["data"]["tls.crt"]
    assert moved["webhooks"][0]["clientConfig"]["caBundle"] == secret, "both have one authority"
    assert base64.b64decode(secret).startswith(b"-----BEGIN CERTIFICATE-----")
    cluster.ask(Request("POST", CLUSTERS, body={**CLUSTER, "metadata": {"name": "c2"}}))
    second.end()


def _accepted_and_tainted(cluster: Any) -> bool:
    conditions = [one["type"] for one in (cluster.get("status") or {}).get("conditions", ())]
    taints = cluster["spec"].get("taints") or ()
    return "HubAcceptedManagedCluster" in conditions and any(one.get("timeAdded") for one in taints)


def _stored(pair: KeyPair) -> Any:
    data = {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem.reveal()}
    return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def test_an_authority_whose_key_is_of_another_certificate_is_replaced() -> None:
    one, other = new_authority(EPOCH), new_authority(EPOCH)
    assert authority_of(_stored(one), EPOCH) == one
    assert authority_of(_stored(KeyPair(one.certificate_pem, other.key_pem)), EPOCH) is None
