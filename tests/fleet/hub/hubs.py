"""An embedded cluster with the role of a hub, in virtual time, and what people and agents do with it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.fleet.registrations import request

from syncline.assembly.embedded.core import ClusterCore, build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.hub import HubSettings, hub_role
from syncline.assembly.fleet.objects import BOOTSTRAP_ACCOUNT, hub_objects
from syncline.assembly.fleet.webhooks import INSIDE, admit_inside
from syncline.assembly.roles import SimulatedDriver, start
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import UserInfo, service_account_user
from syncline.cluster.storage.store import Key, Store, Stored
from syncline.control.executor import run_in_place
from syncline.control.virtual import VirtualDriver
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.fleet.hub.registration.requests import CLUSTERS_GROUP, PREFIX, SIGNER
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, name_of

GROUP = "/apis/cluster.open-cluster-management.io"
CLUSTER = f"{GROUP}/v1/managedclusters"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE = f"{RBAC}/clusterroles/open-cluster-management:managedcluster:c1"
BINDINGS = f"{RBAC}/namespaces/c1/rolebindings"
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/c1/leases/managed-cluster-lease"
MERGE = {"content-type": "application/merge-patch+json"}


SETS = f"{GROUP}/v1beta2/managedclustersets"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BOOTSTRAP = service_account_user("open-cluster-management", BOOTSTRAP_ACCOUNT)


def agent(cluster: str, name: str = "a1") -> UserInfo:
    """The user of an agent's certificate."""
    return UserInfo(f"{PREFIX}{cluster}:{name}", (PREFIX + cluster, CLUSTERS_GROUP, "system:authenticated"))


def csr(
    cluster: str, name: str = "r1", *, label: str = "", common_name: str = "", groups: Sequence[str] = (), **spec: Any
) -> Obj:
    """The request of an agent of a cluster; ``spec``: fields that differ."""
    pem = request(common_name or f"{PREFIX}{cluster}:a1", list(groups) or [PREFIX + cluster, CLUSTERS_GROUP])
    encoded = base64.b64encode(pem.encode()).decode()
    usages = ["digital signature", "key encipherment", "client auth"]
    fields = {"request": encoded, "signerName": SIGNER, "usages": usages, **spec}
    labels = {"open-cluster-management.io/cluster-name": label or cluster}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**kind, "metadata": {"name": name, "labels": labels}, "spec": fields}


@dataclass
class Hub:
    """An embedded cluster with our controllers and one cluster, c1."""

    core: ClusterCore
    admin: Transport
    time: VirtualDriver
    clock: VirtualClock
    settings: HubSettings

    def start(self, wrap: Callable[[Transport], Transport] | None = None) -> None:
        """Start the controllers with an empty memory; those that ran before end."""
        role = hub_role(self.settings, reach=lambda: INSIDE)
        transport = self.core.transport(role.user)
        driver = SimulatedDriver(self.clock, Journal(), wrap(transport) if wrap else transport, strict=True)
        start(role, driver)
        self.time.actors[:] = [driver.actor]

    def send(self, verb: str, path: str, body: Any = None) -> Obj:
        headers = MERGE if verb == "PATCH" else {}
        made: Obj = self.admin.send(Request(verb, path, headers=headers, body=body)).or_raise()
        self.time.until_idle()
        return made

    def get(self, path: str) -> Obj:
        return self.send("GET", path)

    def absent(self, path: str) -> bool:
        return self.admin.send(Request("GET", path)).status == 404

    def join(self, *, accepted: bool, duration: int = 60) -> None:
        spec = {"hubAcceptsClient": accepted, "leaseDurationSeconds": duration}
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
        metadata = {"name": "c1", "labels": {"cluster.open-cluster-management.io/clusterset": "s1"}}
        self.send("POST", CLUSTER, {**kind, "metadata": metadata, "spec": spec})

    def accept(self, value: bool) -> None:
        self.send("PATCH", f"{CLUSTER}/c1", {"spec": {"hubAcceptsClient": value}})

    def available(self, status: str) -> None:
        found = [one for one in self.get(f"{CLUSTER}/c1")["status"]["conditions"] if one["type"] != AVAILABLE]
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
        new = {"type": AVAILABLE, "status": status, "reason": "R", **since}
        self.send("PATCH", f"{CLUSTER}/c1/status", {"status": {"conditions": [*found, new]}})

    def condition(self, kind: str) -> tuple[str, str] | None:
        found = self.get(f"{CLUSTER}/c1").get("status", {}).get("conditions", ())
        return next(((one["status"], one["reason"]) for one in found if one["type"] == kind), None)

    def taints(self) -> list[str]:
        return [one["key"] for one in self.get(f"{CLUSTER}/c1")["spec"].get("taints", ())]

    def bindings(self) -> list[str]:
        return [name_of(one).rpartition(":")[2] for one in self.get(BINDINGS)["items"]]

    def work(self, name: str = "w", priority: str = "") -> None:
        kind = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
        spec = {"workload": {"manifests": [manifest]}}
        notes = {"open-cluster-management.io/cleanup-priority": priority} if priority else {}
        metadata = {"name": name, "namespace": "c1", "finalizers": ["a.b/agent"], "annotations": notes}
        self.send("POST", WORKS, {**kind, "metadata": metadata, "spec": spec})

    def asks(self, user: UserInfo, verb: str, path: str, body: Any = None) -> Response:
        """A request of a user; the controllers then do their work."""
        headers = MERGE if verb == "PATCH" else {}
        answer = self.core.transport(user).send(Request(verb, path, headers=headers, body=body))
        self.time.until_idle()
        return answer

    def anyone_may_request(self) -> None:
        """Let every user write certificate requests, also agents that are not accepted."""
        rule = {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}
        version, name = "rbac.authorization.k8s.io", "anyone"
        role = {"apiVersion": f"{version}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
        self.send("POST", f"{RBAC}/clusterroles", role)
        refers = {"apiGroup": version, "kind": "ClusterRole", "name": name}
        subject = {"apiGroup": version, "kind": "Group", "name": "system:authenticated"}
        binding = {**role, "kind": "ClusterRoleBinding", "roleRef": refers, "subjects": [subject]}
        self.send("POST", f"{RBAC}/clusterrolebindings", {k: v for k, v in binding.items() if k != "rules"})

    def approval(self, name: str = "r1") -> str | None:
        """The reason of the approval of a request; None: it is not approved."""
        conditions = self.get(f"{CSRS}/{name}").get("status", {}).get("conditions", ())
        return next((one["reason"] for one in conditions if one["type"] == "Approved"), None)

    def event_reasons(self, namespace: str = "default") -> list[str]:
        return [one["reason"] for one in self.get(f"/api/v1/namespaces/{namespace}/events")["items"]]


def core_of() -> ClusterCore:
    """A new cluster."""
    core = build_core(store=Store(), clock=VirtualClock(), entropy=Entropy(1))
    core.bootstrap(port=6443)
    return core


@lru_cache(1)
def _beginning() -> tuple[int, list[tuple[Key, int, bytes]]]:
    """What is stored of a hub before its controllers run; to install it costs more than most tests."""
    core = core_of()
    run_in_place(ensure_objects(hub_objects(INSIDE)), core.transport(judged=False))
    store = core.store
    found = [(one.key, one.revision, one.raw) for resource in store.resources() for one in store.list(resource)]
    return store.revision, found


def installed() -> ClusterCore:
    """A cluster with all that a hub needs."""
    store, (revision, objects) = Store(), _beginning()
    store.restore(revision, (Stored.load(*one) for one in objects))
    return build_core(store=store, clock=VirtualClock(), entropy=Entropy(2))


def hub_of(settings: HubSettings | None = None, core: ClusterCore | None = None) -> Hub:
    """A hub; ``core``: a cluster where everything is installed, whose account has its own rights."""
    core, settings = core or installed(), settings or HubSettings()
    assert isinstance(core.clock, VirtualClock)
    admit_inside(core, settings)
    hub = Hub(core, core.transport(), VirtualDriver(core.clock), core.clock, settings)
    hub.start()
    hub.time.until_idle()
    return hub
