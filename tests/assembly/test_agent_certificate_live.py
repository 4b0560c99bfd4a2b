"""A cluster joins a hub over TLS with a token; the certificate that its agent gets is good for its own cluster only."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from pathlib import Path

from tests.assembly.controllers import Cluster
from tests.fleet.hub.hubs import BOOTSTRAP
from tests.fleet.hub.test_admission import cluster as managed_cluster
from tests.fleet.hub.test_confinement import CASES, VERBS, carried_out
from tests.live import served_cluster

from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.settings import ClusterSettings
from syncline.base.secret import Secret
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.hub.registration.requests import CLUSTERS_GROUP, PREFIX, SIGNER
from syncline.kube.certificates import Identity, certificate_request, client_key
from syncline.kube.client import Request
from syncline.kube.objects import Obj, ResourceInfo, dig
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TOKEN = "/api/v1/namespaces/open-cluster-management/serviceaccounts/agent-registration-bootstrap/token"
CSR_INFO = ResourceInfo(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
CLUSTER_INFO = ResourceInfo(
    "cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters", namespaced=False
)
ASKED = tuple(verb for verb in VERBS if verb != "watch")
"""A watch does not end by itself; those are tried in process."""


def accepted(one: Obj) -> bool:
    conditions = dig(one, "status", "conditions") or ()
    return any(each["type"] == "HubAcceptedManagedCluster" and each["status"] == "True" for each in conditions)


def test_b11_the_certificate_of_an_agent_is_good_for_its_own_cluster_only(tmp_path: Path) -> None:
    settings = HubSettings(auto_approve_users=(BOOTSTRAP.name,))
    with served_cluster(tmp_path, ClusterSettings(), hub=settings) as served:
        people, access = Cluster(served), load_kubeconfig(served.kubeconfig)
        people.ask(Request("POST", CLUSTERS, body=managed_cluster("c2", hubAcceptsClient=True)))
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = Secret(people.ask(Request("POST", TOKEN, body=request))["status"]["token"])
        joining = BlockingClient(replace(access, token=token, certificate_pem="", key_pem=None))
        joining.send(Request("POST", CLUSTERS, body=managed_cluster("c1"))).or_raise()
        key, who = client_key(), Identity(f"{PREFIX}c1:a1", (PREFIX + "c1", CLUSTERS_GROUP))
        asked = certificate_request(who, key, SIGNER, {"name": "r1", "labels": {CLUSTER_NAME: "c1"}})
        joining.send(Request("POST", CSRS, body=asked)).or_raise()
        signed = people.watch_until(CSR_INFO, "", "r1", lambda one: bool(dig(one, "status", "certificate")))
        for name in ("c1", "c2"):
            people.watch_until(CLUSTER_INFO, "", name, accepted)

        pem = b64decode(signed["status"]["certificate"]).decode()
        agent = BlockingClient(replace(access, certificate_pem=pem, key_pem=key))
        for version, resource, space, name, verbs in CASES:
            wanted = sorted(set(verbs.split()) - {"watch"})
            found = carried_out(agent, version, resource, space, name, ASKED)
            assert sorted(found) == wanted, (version, resource, space, name)
        joining.close()
        agent.close()
