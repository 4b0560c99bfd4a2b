"""The agent of a cluster keeps the certificates of its add-ons, and says how they are by their leases."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.fleet.addons.hubs import TEMPLATES, WIDE, cluster_addon, managed, of_kind
from tests.fleet.addons.test_template import CLIENT, Templated, config_map, deployment, template
from tests.fleet.world import MERGE

from syncline.base.clock import format_micro_time
from syncline.cluster.access.pki import create_keys
from syncline.kube.certificates import Identity, certificate_request, client_key
from syncline.kube.client import Request
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, labels_of, name_of

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SECRET = "/api/v1/namespaces/site/secrets/a-hub-kubeconfig"
SIGNED = "/api/v1/namespaces/site/secrets/a-example.com-signer-client-cert"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/site/leases"
USER = "system:open-cluster-management:cluster:c1:addon:a:agent:a-agent"
NAMESPACE: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "site"}}
CUSTOM = {"type": "CustomSigner", "customSigner": {"signerName": "example.com/signer", "signingCA": {"name": "ca"}}}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(secret: Obj, key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


class Registered(Templated):
    """A fleet with the agent of c1."""

    def __init__(self) -> None:
        super().__init__("c1", agents=True)
        self.own = self.members["c1"]

    def requests(self) -> list[Obj]:
        return list(self.hub.get(REQUESTS)["items"])

    def as_agent(self, verb: str, path: str, body: Obj) -> None:
        """Send a request to the hub with the rights of the agent. Raises ApiError."""
        headers = MERGE if verb == "PATCH" else {}
        self.own.hub_cable.inner.send(Request(verb, path, headers=headers, body=body)).or_raise()

    def site(self) -> None:
        """Have the add-on's namespace on the cluster."""
        self.own.send("POST", "/api/v1/namespaces", NAMESPACE)


@pytest.fixture
def fleet() -> Registered:
    return Registered()


def agent_of(*registration: Obj) -> Obj:
    """A template with a Deployment in the namespace ``site``."""
    return template(deployment(), registration=registration)


def test_an_agent_gets_its_add_on_a_kubeconfig_of_the_hub(fleet: Registered) -> None:
    fleet.install(agent_of(CLIENT))
    fleet.settle(10)
    (asked,) = fleet.requests()
    assert name_of(asked).startswith("addon-c1-a-")
    assert asked["status"]["conditions"][0]["message"] == "Auto approving addon agent certificate."
    assert fleet.addon("c1")["status"]["kubeClientDriver"] == "csr"
    assert fleet.own.absent(SECRET), "there is no namespace for it yet"
    said = fleet.said("c1", "ClusterCertificateRotated")
    assert said is not None
    assert said[2].endswith("namespace site does not exist on the cluster")
    fleet.site()
    fleet.settle(10)
    secret = fleet.own.get(SECRET)
    certificate = x509.load_pem_x509_certificate(decoded(secret, "tls.crt").encode())
    (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == USER
    assert '"https://hub.test:6443"' in decoded(secret, "kubeconfig")
    said = fleet.said("c1", "ClusterCertificateRotated")
    assert said is not None
    assert said[:2] == ("True", "ClientCertificateUpdated")
    assert len(fleet.requests()) == 1


def test_a_certificate_is_renewed_before_it_ends(fleet: Registered) -> None:
    fleet.site()
    fleet.install(agent_of(CLIENT))
    fleet.settle(10)
    groups = tuple(fleet.addon("c1")["status"]["registrations"][0]["subject"]["groups"])
    old = short_lived(fleet, Identity(USER, groups))
    fleet.own.send("PATCH", SECRET, {"data": {key: encoded(value) for key, value in old.items()}})
    fleet.settle(700)
    assert decoded(fleet.own.get(SECRET), "tls.crt") != old["tls.crt"]


def short_lived(fleet: Registered, identity: Identity) -> dict[str, str]:
    """A certificate of which little is left, and its key."""
    key = client_key()
    pem = base64.b64decode(certificate_request(identity, key, "s", {})["spec"]["request"]).decode()
    now = fleet.clock.now()
    made = create_keys(now).authority.sign(pem, now=now, lifetime=timedelta(minutes=20))
    return {"tls.crt": made, "tls.key": key.reveal()}


def test_a_signer_of_the_templates_own_signs_with_its_secret(fleet: Registered) -> None:
    pair = create_keys(fleet.clock.now()).authority.pair
    data = {"tls.crt": encoded(pair.certificate_pem), "tls.key": encoded(pair.key_pem.reveal())}
    metadata = {"name": "ca", "namespace": "open-cluster-management-hub"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    fleet.hub.send("POST", "/api/v1/namespaces/open-cluster-management-hub/secrets", secret)
    fleet.site()
    fleet.install(agent_of(CUSTOM))
    fleet.settle(10)
    kept = fleet.own.get(SIGNED)
    certificate = x509.load_pem_x509_certificate(decoded(kept, "tls.crt").encode())
    assert certificate.not_valid_after_utc - fleet.clock.now() <= timedelta(hours=24)
    assert "kubeconfig" not in kept["data"]


def test_the_secrets_of_an_add_on_that_is_gone_go_too(fleet: Registered) -> None:
    fleet.site()
    fleet.install(agent_of(CLIENT))
    fleet.settle(10)
    fleet.start_agent("c1")  # Nothing is remembered.
    fleet.settle(10)
    assert not fleet.own.absent(SECRET)
    fleet.hub.send("DELETE", f"{WIDE}/a")
    fleet.settle(60)
    assert fleet.own.absent(SECRET)


def test_a_cluster_that_writes_the_status_of_its_add_on_gets_no_other_template(fleet: Registered) -> None:
    role = {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": "cluster-admin"}}
    client = {"type": "KubeClient", "kubeClient": {"hubPermissions": [role]}}
    other = template(config_map("secret", {}), registration=(client,))
    other["metadata"]["name"] = "other"
    fleet.hub.send("POST", TEMPLATES, other)
    fleet.install(agent_of(CLIENT))
    wanted = {"name": "other", "specHash": "x"}
    kind = {"group": "addon.open-cluster-management.io", "resource": "addontemplates"}
    status = {"status": {"configReferences": [{**kind, "name": "other", "desiredConfig": wanted}]}}
    fleet.as_agent("PATCH", f"{managed('c1', 'a')}/status", status)
    fleet.settle(5)
    bindings = fleet.hub.get("/apis/rbac.authorization.k8s.io/v1/namespaces/c1/rolebindings")["items"]
    assert "open-cluster-management.io/addon-name" not in {key for one in bindings for key in labels_of(one)}
    assert fleet.desired("c1")[0][0] == "t", "the hub puts it right"


def test_a_cluster_that_writes_who_its_add_on_is_gives_its_rights_to_none(fleet: Registered) -> None:
    role = {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": "view"}}
    fleet.install(agent_of({"type": "KubeClient", "kubeClient": {"hubPermissions": [role]}}))
    fleet.settle(5)
    (asked,) = fleet.addon("c1")["status"]["registrations"]
    other = {**asked, "subject": {"user": "mallory"}}
    status = {"status": {"kubeClientDriver": "token", "registrations": [other]}}
    fleet.as_agent("PATCH", f"{managed('c1', 'a')}/status", status)
    fleet.settle(5)
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/c1/rolebindings/open-cluster-management:a:clusterrole:agent"
    assert "mallory" not in {one["name"] for one in fleet.hub.get(path)["subjects"]}
    assert fleet.addon("c1")["status"]["registrations"] == [asked]


def lease(fleet: Registered) -> Obj:
    spec = {"holderIdentity": "a", "renewTime": format_micro_time(fleet.clock.now())}
    metadata = {"name": "a", "namespace": "site"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def test_an_add_on_is_available_while_its_lease_on_the_cluster_is_renewed(fleet: Registered) -> None:
    fleet.site()
    fleet.hub.send("POST", WIDE, cluster_addon("a"))
    made = of_kind("ManagedClusterAddOn", "a", {"installNamespace": "site"}, "c1")
    fleet.hub.send("POST", managed("c1"), made)
    fleet.settle(35)
    unknown = ("Unknown", "ManagedClusterAddOnLeaseNotFound", "The status of a add-on is unknown.")
    assert fleet.said("c1", "Available") == unknown
    fleet.own.send("POST", LEASES, lease(fleet))
    fleet.settle(35)
    assert fleet.said("c1", "Available") == ("True", "ManagedClusterAddOnLeaseUpdated", "a add-on is available.")
    fleet.settle(240)
    assert fleet.said("c1", "Available")[0] == "True"  # type: ignore[index]
    fleet.settle(60)
    stopped = ("False", "ManagedClusterAddOnLeaseUpdateStopped", "a add-on is not available.")
    assert fleet.said("c1", "Available") == stopped


def test_a_lease_on_the_hub_counts_where_the_cluster_has_none(fleet: Registered) -> None:
    fleet.hub.send("POST", WIDE, cluster_addon("a"))
    fleet.hub.send("POST", managed("c1"), of_kind("ManagedClusterAddOn", "a", {}, "c1"))
    made = lease(fleet)
    made["metadata"]["namespace"] = "c1"
    fleet.hub.send("POST", "/apis/coordination.k8s.io/v1/namespaces/c1/leases", made)
    fleet.settle(35)
    assert fleet.said("c1", "Available")[0] == "True"  # type: ignore[index]


def test_an_agent_may_not_write_the_spec_of_its_add_ons(fleet: Registered) -> None:
    fleet.hub.send("POST", WIDE, cluster_addon("a"))
    fleet.hub.send("POST", managed("c1"), of_kind("ManagedClusterAddOn", "a", {}, "c1"))
    with pytest.raises(ApiError, match="forbidden"):
        fleet.as_agent("PATCH", managed("c1", "a"), {"spec": {"configs": []}})
