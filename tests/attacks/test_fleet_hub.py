"""A hub attacked over HTTPS with the certificate of a real agent, and with the token of those who join."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from bench.processes import client_context
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.fleet.hub.hubs import BOOTSTRAP, CLUSTER, CSRS, LEASE, csr
from tests.live import Found, Served, reached, served_cluster

from syncline.assembly.fleet.agent import agent_user
from syncline.assembly.fleet.hub import BOOTSTRAP_NAMESPACE, HubSettings
from syncline.assembly.fleet.objects import BOOTSTRAP_ACCOUNT
from syncline.base.secret import Secret
from syncline.cluster.access.pki import KeyPair, kubeconfig_for
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.fleet.hub.registration.requests import CLUSTERS_GROUP, PREFIX
from syncline.fleet.spoke.registration.certificates import request as agents_request
from syncline.kube.certificates import client_key, issued_certificate
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj
from syncline.kube.transport.kubeconfig import load_kubeconfig

LONGEST_S = 300
MERGE = "application/merge-patch+json"
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
LABEL = "open-cluster-management.io/cluster-name"
Figure = Callable[[str, str], None]


@dataclass
class Person:
    """Somebody with credentials, on one connection."""

    url: str
    context: ssl.SSLContext
    token: str = ""

    def __post_init__(self) -> None:
        self._link = http.client.HTTPSConnection(urlsplit(self.url).netloc, context=self.context, timeout=LONGEST_S)

    def ask(self, verb: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send as it is written, without a look at the path; status and decoded answer."""
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        content = MERGE if verb == "PATCH" else "application/json"
        more = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            answer = self._sent(verb, path, raw, {"Content-Type": content, **more, **headers})
        except (http.client.HTTPException, OSError):  # the server ended the connection after the last answer
            self._link.close()
            answer = self._sent(verb, path, raw, {"Content-Type": content, **more, **headers})
        if "watch=true" in path and answer.status == 200:
            self._link.close()
            return 200, None
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode(errors="replace")

    def _sent(self, verb: str, path: str, raw: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        self._link.request(verb, path, raw, headers)
        return self._link.getresponse()

    def must(self, verb: str, path: str, body: Any = None) -> Obj:
        status, found = self.ask(verb, path, body)
        assert status < 300, (verb, path, found)
        return dict(found)


@dataclass
class Stage:
    """A hub that approves who joins, its clusters c1 and c2, and who attacks it."""

    served: Served
    folder: Path
    admin: Person
    joining: Person

    def join(self, name: str) -> Person:
        """Join as ``syncline join`` does; the agent with its certificate."""
        key = client_key()
        cluster = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
        made = {**cluster, "metadata": {"name": name}, "spec": {"hubAcceptsClient": False}}
        self.joining.must("POST", CLUSTER, made)
        asked = self.joining.must("POST", CSRS, agents_request(name, "a1", key))
        pem = self.issued(asked["metadata"]["name"])
        lease = LEASE.replace("/c1/", f"/{name}/")
        self.until(lease.rpartition("/")[0], lambda: self.see(lease).ok)
        return self._person(name, pem, key)

    def see(self, path: str, user: UserInfo = ADMIN) -> Response:
        """What a user gets, in process."""
        return self.served.cluster.core.transport(user).send(Request("GET", path))

    def issued(self, name: str) -> str:
        def look() -> str:
            pem, refusal = issued_certificate(self.see(f"{CSRS}/{name}").or_raise())
            assert not refusal
            return pem

        return self.until(CSRS, look)

    def until(self, collection: str, look: Callable[[], Found]) -> Found:
        """What ``look`` finds as soon as it is something, looking again after each change of the collection."""
        waiting = reached(self.served.cluster.core.transport(), collection, look)
        return asyncio.run_coroutine_threadsafe(waiting, self.served.loop).result(LONGEST_S)

    def _person(self, name: str, pem: str, key: Secret) -> Person:
        access = load_kubeconfig(self.served.kubeconfig)
        file = self.folder / f"{name}.kubeconfig"
        pair = KeyPair(pem, key)
        file.write_text(json.dumps(kubeconfig_for(server=access.server, ca_pem=access.ca_pem, client=pair, name="hub")))
        return Person(self.served.url, client_context(file))

    def settle(self, agent: Person) -> None:
        """Until the hub has judged everything that was asked before: a good request comes last."""
        made = agent.must("POST", CSRS, agents_request("c1", "a1", client_key()))
        self.issued(made["metadata"]["name"])


pytestmark = pytest.mark.filterwarnings("ignore:Attribute's length")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("hub")
    with served_cluster(folder, hub=HubSettings(auto_approve_users=(BOOTSTRAP.name,))) as served:
        admin = Person(served.url, client_context(served.kubeconfig))
        path = f"/api/v1/namespaces/{BOOTSTRAP_NAMESPACE}/serviceaccounts/{BOOTSTRAP_ACCOUNT}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = admin.must("POST", path, body)["status"]["token"]
        bare = ssl.create_default_context(cadata=load_kubeconfig(served.kubeconfig).ca_pem)
        yield Stage(served, folder, admin, Person(served.url, bare, token))


@pytest.fixture(scope="module")
def agent(stage: Stage) -> Person:
    """The agent of c1; the cluster c2 is there, too, with a work and an add-on."""
    found = stage.join("c1")
    other = stage.join("c2")
    joined = {"type": "ManagedClusterJoined", "status": "True", "reason": "ManagedClusterJoined", "message": ""}
    for name, one in (("c1", found), ("c2", other)):
        condition = {**joined, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        live = one.must("GET", f"{CLUSTER}/{name}")
        conditions = [*live["status"]["conditions"], condition]
        one.must("PATCH", f"{CLUSTER}/{name}/status", {"status": {"conditions": conditions}})
        stage.admin.must("POST", WORKS.format(name), _work("w"))
    return found


def _work(name: str) -> Obj:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    head = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": name}}
    return {**head, "spec": {"workload": {"manifests": [manifest]}}}


# -- every verb on every kind ------------------------------------------------------------------------------------------

MAY = {
    "certificatesigningrequests": "get list watch create",
    "selfsubjectreviews": "create",
    "selfsubjectaccessreviews": "create",
    "selfsubjectrulesreviews": "create",
}
"""What an agent may do outside its own objects: RBAC cannot say which requests are its own."""


def _kinds(stage: Stage) -> list[tuple[str, Obj]]:
    """Every resource that the hub serves, with the root of its version."""
    roots = ["/api/v1"]
    roots += [f"/apis/{one['preferredVersion']['groupVersion']}" for one in stage.admin.must("GET", "/apis")["groups"]]
    return [(root, one) for root in roots for one in stage.admin.must("GET", root)["resources"]]


def _requests(root: str, kind: Obj) -> Iterator[tuple[str, str, str, Any]]:
    plural, _, part = kind["name"].partition("/")
    every = f"{root}/namespaces/c2/{plural}" if kind["namespaced"] else f"{root}/{plural}"
    one = f"{every}/c2" + (f"/{part}" if part else "")
    wanted: dict[str, tuple[str, str, Any]] = {
        "get": ("GET", one, None),
        "list": ("GET", every, None),
        "watch": ("GET", f"{every}?watch=true", None),
        "create": ("POST", one if part else every, {"metadata": {"name": "c2"}}),
        "update": ("PUT", one, {"metadata": {"name": "c2"}}),
        "patch": ("PATCH", one, {"metadata": {"labels": {"a": "b"}}}),
        "delete": ("DELETE", one, None),
        "deletecollection": ("DELETE", every, None),
    }
    for verb in kind["verbs"]:
        if verb in wanted:
            yield (verb, *wanted[verb])


def test_no_verb_on_no_kind_reaches_what_is_not_the_agents_own(stage: Stage, agent: Person, figure: Figure) -> None:
    tried, kinds = 0, _kinds(stage)
    for root, kind in kinds:
        allowed = MAY.get(kind["name"], "").split()
        for verb, method, path, body in _requests(root, kind):
            tried += 1
            status, found = agent.ask(method, path, body)
            refused = status == 403 or (status == 405 and verb not in allowed)
            assert refused or verb in allowed, (verb, path, status, found)
    assert tried > 400
    figure("attacks on a hub by an agent", f"{tried} requests: each verb on {len(kinds)} kinds, none got through")


PATHS = [
    "/apis/work.open-cluster-management.io/v1/namespaces/c1/../c2/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/c1/%2e%2e/c2/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/c1%2f..%2fc2/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks/..%2f..%2fc2%2fmanifestworks%2fw",
    "/apis/work.open-cluster-management.io/v1//namespaces/c2/manifestworks/w",
    "//apis/work.open-cluster-management.io/v1/namespaces/c2/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/c2/manifestworks/w?namespace=c1",
    "/apis/work.open-cluster-management.io/v1/namespaces/c1,c2/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/C2/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/%EF%BD%832/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/c2%00c1/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/namespaces/c2;c1/manifestworks/w",
    "/apis/work.open-cluster-management.io/v1/manifestworks?fieldSelector=metadata.namespace=c1",
    "/apis/cluster.open-cluster-management.io/v1/managedclusters/c1/../c2",
    "/apis/cluster.open-cluster-management.io/v1/managedclusters?fieldSelector=metadata.name%3Dc2",
    "/apis/cluster.open-cluster-management.io/v1/managedclusters?fieldSelector=metadata.name%3Dc1,metadata.name%3Dc2",
    "/apis/cluster.open-cluster-management.io/v1/managedclusters?fieldSelector=metadata.name!%3Dc1",
    "/api/v1/namespaces/c2/secrets",
    "/api/v1/watch/namespaces/c2/secrets",
    "/api/v1/namespaces/c2/services/x/proxy/",
    "/metrics",
    "/debug/pprof/",
    "/configz",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("verb", ["GET", "PATCH", "DELETE"])
def test_no_spelling_of_a_path_leads_to_another_cluster(agent: Person, verb: str, path: str) -> None:
    status, found = agent.ask(verb, path, {"metadata": {"labels": {"a": "b"}}} if verb == "PATCH" else None)
    nothing = status == 200 and found["items"] == []  # both names must hold
    assert nothing or status in (301, 307, 308, 400, 403, 404, 405), found


@pytest.mark.parametrize(
    "headers",
    [
        {"Impersonate-User": "system:admin", "Impersonate-Group": "system:masters"},
        {"Impersonate-User": f"{PREFIX}c2:a1", "Impersonate-Group": PREFIX + "c2"},
        {"Impersonate-Group": "system:masters"},
        {"Impersonate-Uid": "0"},
        {"X-Remote-User": f"{PREFIX}c2:a1", "X-Remote-Group": PREFIX + "c2"},
        {"Authorization": "Bearer x"},
        {"Authorization": "Basic YWRtaW46YWRtaW4="},
    ],
    ids=str,
)
def test_no_header_makes_another_of_an_agent(agent: Person, headers: dict[str, str]) -> None:
    assert agent.ask("GET", WORKS.format("c2"), **headers)[0] in (400, 401, 403)


# -- certificates ------------------------------------------------------------------------------------------------------

KEY = ec.generate_private_key(ec.SECP256R1())


def _pem(*names: tuple[Any, str]) -> str:
    with warnings.catch_warnings(action="ignore"):  # of names that are too long
        subject = x509.Name([x509.NameAttribute(oid, text, _validate=False) for oid, text in names])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(KEY, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def _raw(pem: str, label: str = "c1", **spec: Any) -> Obj:
    made = csr(label, "r")
    made["metadata"] = {"generateName": "attack-", "labels": {LABEL: label}}
    made["spec"] |= {"request": base64.b64encode(pem.encode()).decode(), **spec}
    return made


CN, ORG = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME
OF_1, OF_2 = f"{PREFIX}c1:a1", f"{PREFIX}c2:a1"
ALL, ADDON = (ORG, CLUSTERS_GROUP), PREFIX + "cluster:"
NOTHING = "-----BEGIN NOTHING-----\n-----END NOTHING-----\n"
GOOD = _pem((ORG, PREFIX + "c1"), ALL, (CN, OF_1))
CERTIFICATES: dict[str, Obj] = {
    "the agent of another cluster": _raw(_pem((ORG, PREFIX + "c2"), ALL, (CN, OF_2)), "c2"),
    "of another cluster, with its own label": _raw(_pem((ORG, PREFIX + "c2"), ALL, (CN, OF_2))),
    "its own name, the group of another": _raw(_pem((ORG, PREFIX + "c2"), ALL, (CN, OF_1))),
    "its own group, the name of another": _raw(_pem((ORG, PREFIX + "c1"), ALL, (CN, OF_2))),
    "both groups": _raw(_pem((ORG, PREFIX + "c1"), (ORG, PREFIX + "c2"), ALL, (CN, OF_1))),
    "the group without system:": _raw(_pem((ORG, PREFIX + "c1"), (ORG, "open-cluster-management:c2"), ALL, (CN, OF_1))),
    "an administrator's group": _raw(_pem((ORG, PREFIX + "c1"), (ORG, "system:masters"), ALL, (CN, OF_1))),
    "an administrator": _raw(_pem((ORG, "system:masters"), (CN, "admin"))),
    "a controller of the hub": _raw(_pem((CN, "system:kube-controller-manager"))),
    "the bootstrap account": _raw(_pem((ORG, "system:serviceaccounts"), (CN, BOOTSTRAP.name))),
    "two names, its own first": _raw(_pem((ORG, PREFIX + "c1"), ALL, (CN, OF_1), (CN, OF_2))),
    "two names, its own last": _raw(_pem((ORG, PREFIX + "c2"), ALL, (CN, OF_2), (CN, OF_1))),
    "a third part": _raw(_pem((ORG, PREFIX + "c1"), ALL, (CN, f"{PREFIX}c1:a1:c2"))),
    "an empty agent": _raw(_pem((ORG, PREFIX + "c1"), ALL, (CN, f"{PREFIX}c1:"))),
    "an empty cluster": _raw(_pem((ORG, PREFIX), ALL, (CN, f"{PREFIX}:a1"))),
    "capitals": _raw(_pem((ORG, PREFIX + "C1"), ALL, (CN, f"{PREFIX}C1:a1"))),
    "a letter that looks alike": _raw(_pem((ORG, PREFIX + "с1"), ALL, (CN, f"{PREFIX}с1:a1"))),
    "a wide letter": _raw(_pem((ORG, PREFIX + "ｃ2"), ALL, (CN, f"{PREFIX}ｃ2:a1"))),
    "a space behind": _raw(_pem((ORG, PREFIX + "c2 "), ALL, (CN, f"{PREFIX}c2 :a1"))),
    "a zero byte": _raw(_pem((ORG, PREFIX + "c2"), ALL, (CN, f"{PREFIX}c1:a1\0{OF_2}"))),
    "a line break": _raw(_pem((ORG, PREFIX + "c1"), ALL, (CN, f"{OF_1}\n{OF_2}"))),
    "the group of all agents as its own": _raw(_pem(ALL, (CN, f"{PREFIX}managed-clusters:a1")), "managed-clusters"),
    "another agent of its own cluster": _raw(_pem((ORG, PREFIX + "c1"), ALL, (CN, f"{PREFIX}c1:a2"))),
    "an add-on of another cluster": _raw(_pem((ORG, f"{ADDON}c2:addon:x"), (CN, f"{ADDON}c2:addon:x:agent:a"))),
    "an add-on's name, an agent's group": _raw(_pem((ORG, PREFIX + "c2"), (CN, f"{ADDON}c1:addon:x:agent:a"))),
    "two requests in one text": _raw(GOOD + _pem((ORG, "system:masters"), (CN, "admin"))),
    "two requests, the bad one first": _raw(_pem((ORG, "system:masters"), (CN, "admin")) + GOOD),
    "text before it": _raw(NOTHING + _pem((ORG, PREFIX + "c2"), ALL, (CN, OF_2))),
    "the signer of nodes": _raw(GOOD, signerName="kubernetes.io/kube-apiserver-client-kubelet"),
    "the signer of servers": _raw(GOOD, signerName="kubernetes.io/kubelet-serving"),
    "an old signer": _raw(GOOD, signerName="kubernetes.io/legacy-unknown"),
    "a name that it gives itself": _raw(_pem((ORG, PREFIX + "c2"), ALL, (CN, OF_2)), "c2", username=OF_2),
    "no label": {**_raw(GOOD), "metadata": {"generateName": "attack-"}},
}  # fmt: skip


@pytest.mark.parametrize("what", CERTIFICATES)
@pytest.mark.parametrize("who", ["agent", "joining"])
def test_no_certificate_is_another_ones(stage: Stage, agent: Person, who: str, what: str) -> None:
    """Refused, or never approved by the hub; the name of its user is the server's word. Where two requests stand in one
    text, the first one counts, for the hub as for who signs it."""
    person = agent if who == "agent" else stage.joining
    status, made = person.ask("POST", CSRS, CERTIFICATES[what])
    if status == 201:
        stage.settle(agent)
        pem = issued_certificate(stage.admin.must("GET", f"{CSRS}/{made['metadata']['name']}"))[0]
        assert not pem or (who == "agent" and _is_own(pem)), what
    else:
        assert status in (400, 403, 422), made


def _is_own(pem: str) -> bool:
    subject = x509.load_pem_x509_certificate(pem.encode()).subject
    names = [str(one.value) for one in subject.get_attributes_for_oid(CN)]
    groups = {str(one.value) for one in subject.get_attributes_for_oid(ORG)}
    return names == [OF_1] and groups == {PREFIX + "c1", CLUSTERS_GROUP}


def test_an_agent_approves_no_request(stage: Stage, agent: Person) -> None:
    name = agent.must("POST", CSRS, {**_raw(_pem((ORG, PREFIX + "c1"), ALL, (CN, OF_1)))})["metadata"]["name"]
    yes = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "R", "message": ""}]}}
    for part in ("/approval", "/status", ""):
        assert agent.ask("PATCH", f"{CSRS}/{name}{part}", yes)[0] == 403
    assert stage.joining.ask("PATCH", f"{CSRS}/{name}/approval", yes)[0] == 403


# -- its own objects ---------------------------------------------------------------------------------------------------


def _lease(when: str) -> Obj:
    metadata = {"name": "managed-cluster-lease", "namespace": "c1"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {"renewTime": when}}


SET = "cluster.open-cluster-management.io/clusterset"
ORPHAN = {"propagationPolicy": "Orphan"}
OWN: dict[str, tuple[str, str, Any]] = {
    "move itself into another set": ("PATCH", f"{CLUSTER}/c1", {"metadata": {"labels": {SET: "production"}}}),
    "leave its set": ("PATCH", f"{CLUSTER}/c1", {"metadata": {"labels": {SET: None}}}),
    "delete itself": ("DELETE", f"{CLUSTER}/c1", None),
    "make a cluster": ("POST", CLUSTER, {"metadata": {"name": "c9"}, "spec": {"hubAcceptsClient": True}}),
    "make a work": ("POST", WORKS.format("c1"), _work("mine")),
    "change what a work says": ("PATCH", f"{WORKS.format('c1')}/w", {"spec": {"deleteOption": ORPHAN}}),
    "delete a work": ("DELETE", f"{WORKS.format('c1')}/w", None),
    "make a lease": ("POST", LEASE.rpartition("/")[0], {"metadata": {"name": "x"}, "spec": {}}),
    "delete its lease": ("DELETE", LEASE, None),
    "make an add-on": (
        "POST",
        "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/c1/managedclusteraddons",
        {"metadata": {"name": "a"}, "spec": {}},
    ),
    "read a Secret of its namespace": ("GET", "/api/v1/namespaces/c1/secrets", None),
    "give itself rights": (
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/c1/rolebindings",
        {"metadata": {"name": "x"}, "roleRef": {"kind": "ClusterRole", "name": "admin"}},
    ),
    "an event about another cluster": (
        "POST",
        "/api/v1/namespaces/c1/events",
        {
            "metadata": {"name": "e", "namespace": "c1"},
            "involvedObject": {"kind": "ManifestWork", "namespace": "c2", "name": "w"},
            "reason": "R",
        },
    ),
    "a status beyond every bound": (
        "PATCH",
        f"{CLUSTER}/c1/status",
        {"status": {"clusterClaims": [{"name": f"c{n}", "value": "x" * 1000} for n in range(4000)]}},
    ),
    "feedback beyond every bound": (
        "PATCH",
        f"{WORKS.format('c1')}/w/status",
        {"status": {"conditions": [{"type": "Applied", "message": "x" * 4_000_000}]}},
    ),
    "a lease of no time": ("PUT", LEASE, _lease("yesterday")),
    "a lease beyond time": ("PUT", LEASE, _lease("99999-01-01T00:00:00.000000Z")),
}  # fmt: skip


@pytest.mark.parametrize("what", OWN)
def test_what_an_agent_may_not_do_to_its_own_objects(agent: Person, what: str) -> None:
    verb, path, body = OWN[what]
    status, found = agent.ask(verb, path, body)
    assert status in (400, 403, 413, 422), (status, found)


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"])
def test_a_lease_from_another_time_stops_nothing(stage: Stage, agent: Person, when: str) -> None:
    """The hub sees that the clock is wrong; everything else goes on."""
    _renew(agent, when)
    stage.until(CLUSTER, lambda: _clock(stage) == "False")
    stage.settle(agent)
    _renew(agent, time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()))
    stage.until(CLUSTER, lambda: _clock(stage) == "True")


def _renew(agent: Person, when: str) -> None:
    lease = agent.must("GET", LEASE)
    agent.must("PUT", LEASE, {**lease, "spec": {**lease["spec"], "renewTime": when}})


def _clock(stage: Stage) -> str:
    conditions = stage.see(f"{CLUSTER}/c1").or_raise()["status"]["conditions"]
    kind = "ManagedClusterConditionClockSynced"
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


def test_a_denied_agent_does_not_accept_itself(stage: Stage) -> None:
    agent = stage.join("c3")
    stage.admin.must("PATCH", f"{CLUSTER}/c3", {"spec": {"hubAcceptsClient": False}})
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/c3/rolebindings"
    stage.until(bindings, lambda: stage.see(WORKS.format("c3"), agent_user("c3", "a1")).status == 403)
    for verb, path, body in (
        ("PATCH", f"{CLUSTER}/c3", {"spec": {"hubAcceptsClient": True}}),
        ("PUT", f"{CLUSTER}/c3", {**agent.must("GET", f"{CLUSTER}/c3"), "spec": {"hubAcceptsClient": True}}),
        ("PATCH", f"{CLUSTER}/c3/status", {"status": {"version": {"kubernetes": "v9"}}}),
        ("POST", CSRS, agents_request("c3", "a1", client_key())),
        ("GET", LEASE.replace("/c1/", "/c3/"), None),
    ):
        assert agent.ask(verb, path, body)[0] == 403, path


def test_who_joins_takes_no_cluster_that_is_there(stage: Stage, agent: Person) -> None:
    """The token of those who join is no way to another cluster: neither to its object nor to its certificate."""
    for verb, path, body in (
        ("PATCH", f"{CLUSTER}/c2", {"metadata": {"labels": {"a": "b"}}}),
        ("PUT", f"{CLUSTER}/c2", stage.admin.must("GET", f"{CLUSTER}/c2")),
        ("DELETE", f"{CLUSTER}/c2", None),
        ("GET", WORKS.format("c2"), None),
        ("GET", "/api/v1/namespaces/c2/secrets", None),
    ):
        assert stage.joining.ask(verb, path, body)[0] == 403, path
    made = stage.joining.must("POST", CSRS, agents_request("c2", "thief", client_key()))
    stage.settle(agent)
    assert issued_certificate(stage.admin.must("GET", f"{CSRS}/{made['metadata']['name']}"))[0] == ""
