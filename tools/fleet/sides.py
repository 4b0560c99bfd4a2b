"""The two ends of a fleet as processes: an API of ours with a hub's controllers, another with an agent."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from bench.ocm import AGENT_NAMESPACE, Programs, kept, ocm_agent, ocm_hub, ocm_webhooks
from bench.processes import Blocking, Running, apiserver, free_port, running, syncline
from cryptography import x509

from syncline.assembly.fleet.objects import BOOTSTRAP_ACCOUNT, BOOTSTRAP_NAMESPACE, foreign_hub_objects
from syncline.cluster.access.pki import create_keys
from syncline.fleet.hub.confinement import Reach, webhooks
from syncline.fleet.spoke.registration.invitation import Invitation
from syncline.kube.kinds.managedaddons import addon_crds
from syncline.kube.kinds.managedclusters import cluster_claim_crd
from syncline.kube.kinds.manifestworks import applied_work_crd
from syncline.kube.transport.kubeconfig import load_kubeconfig

LIMIT_S, LOOK_S = 60.0, 0.2
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLUSTER_LABEL = "open-cluster-management.io/cluster-name"
THEIRS, OURS = "theirs", "ours"
Obj = dict[str, Any]


class Unmet(Exception):
    """What was waited for did not come."""


class Link(Blocking):
    """An administrator's connection."""

    def apply(self, obj: Obj, manager: str = "person") -> Obj:
        made: Obj = self.send(
            "PATCH", f"{self.path(obj)}?fieldManager={manager}&force=true", obj, "application/apply-patch+yaml"
        )
        if obj["kind"] == "CustomResourceDefinition":
            self.wait(lambda: self._established(self.path(obj)), f"{obj['metadata']['name']} is served")
        return made

    def path(self, obj: Obj) -> str:
        """The path of an object; its definition must be served."""
        group, _, version = obj["apiVersion"].rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        for resource in self.send("GET", root)["resources"]:
            if resource["kind"] == obj["kind"] and "/" not in resource["name"]:
                place = f"/namespaces/{obj['metadata'].get('namespace', 'default')}" if resource["namespaced"] else ""
                return f"{root}{place}/{resource['name']}/{obj['metadata']['name']}"
        raise Unmet(f"{obj['apiVersion']} {obj['kind']} is not served")

    def look(self, path: str) -> Obj | None:
        """What is there; None: nothing."""
        try:
            found: Obj = self.send("GET", path)
        except SystemExit as refused:
            if ": 404 " in str(refused):
                return None
            raise
        return found

    def wait(self, reached: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
        until = time.perf_counter() + limit_s
        while not (found := reached()):
            if time.perf_counter() > until:
                raise Unmet(f"not in {limit_s:g} s: {what}")
            time.sleep(LOOK_S)
        return found

    def _established(self, path: str) -> bool:
        conditions = (self.look(path) or {}).get("status", {}).get("conditions") or []
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@dataclass(slots=True)
class World:
    """A hub, a cluster, who works on each; ``agent`` can be ended and begun again."""

    folder: Path
    hub_side: str
    agent_side: str
    hub: Running
    spoke: Running
    programs: Path
    cluster: str = "cluster1"
    on_hub: Link = field(init=False)
    on_spoke: Link = field(init=False)
    running: dict[str, Programs] = field(default_factory=dict)
    _agent: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __post_init__(self) -> None:
        self.on_hub, self.on_spoke = Link(self.hub), Link(self.spoke)

    def begin_agent(self) -> None:
        bootstrap = self.folder / "bootstrap.kubeconfig"
        if not bootstrap.exists():
            bootstrap.write_text(yaml.safe_dump(self._bootstrap()))
        make = their_agent if self.agent_side == THEIRS else our_agent
        self.running["agent"] = self._agent.enter_context(make(self, bootstrap))

    def end_agent(self) -> None:
        self._agent.close()

    def requests(self) -> list[Obj]:
        """The certificate requests of the cluster, oldest first."""
        found = self.on_hub.send("GET", f"{REQUESTS}?labelSelector={CLUSTER_LABEL}={self.cluster}")["items"]
        return sorted(found, key=lambda each: each["metadata"]["creationTimestamp"])

    def approve(self) -> None:
        for request in self.requests():
            if not request.get("status", {}).get("conditions"):
                approved = {"type": "Approved", "status": "True", "reason": "Person", "message": "approved"}
                request["status"] = {"conditions": [approved]}
                self.on_hub.send("PUT", f"{REQUESTS}/{request['metadata']['name']}/approval", request)

    def accept(self, accepted: bool = True) -> None:
        patch = {"spec": {"hubAcceptsClient": accepted}}
        self.on_hub.send("PATCH", f"{CLUSTERS}/{self.cluster}", patch, "application/merge-patch+json")

    def condition(self, kind: str) -> str | None:
        found = self.on_hub.look(f"{CLUSTERS}/{self.cluster}") or {}
        conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions") or []}
        return conditions.get(kind)

    def _bootstrap(self) -> Obj:
        """The kubeconfig that ``clusteradm get token`` stands for."""
        config: Obj = yaml.safe_load(self.hub.kubeconfig.read_text())
        path = f"/api/v1/namespaces/{BOOTSTRAP_NAMESPACE}/serviceaccounts/{BOOTSTRAP_ACCOUNT}/token"
        wanted = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = self.on_hub.send("POST", path, wanted)["status"]["token"]
        config["users"] = [{"name": "bootstrap", "user": {"token": token}}]
        for each in config["contexts"]:
            each["context"]["user"] = "bootstrap"
        return config


def subject_of(request: Obj) -> Obj:
    """The names in a certificate request."""
    asked = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"])).subject
    by_name = {
        "CN": x509.NameOID.COMMON_NAME,
        "O": x509.NameOID.ORGANIZATION_NAME,
    }
    return {
        name: sorted(str(each.value) for each in asked.get_attributes_for_oid(oid)) for name, oid in by_name.items()
    }


# -- who runs where --------------------------------------------------------------------------------------------------


def _namespaces(*names: str) -> list[Obj]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]


def hub_definitions() -> list[Obj]:
    """What ``clusteradm init`` leaves on a hub, without the sets: the hub's controllers make those."""
    add_ons = addon_crds()
    named = {each["metadata"]["name"] for each in add_ons}
    rest = [each for each in foreign_hub_objects() if each["metadata"]["name"] not in named]
    return [*(each for each in rest if each["kind"] != "ManagedClusterSet"), *add_ons]


def spoke_definitions() -> list[Obj]:
    return [
        *_namespaces(AGENT_NAMESPACE, f"{AGENT_NAMESPACE}-addon"),
        applied_work_crd(),
        cluster_claim_crd(),
    ]


@contextlib.contextmanager
def _their_hub(world: World) -> Iterator[Programs]:
    """OCM's controllers and webhooks. The cluster-manager operator, which is not here, would install the latter."""
    place, kubeconfig = world.folder / "hub-programs", world.hub.kubeconfig
    certificates = world.folder / "certificates"
    certificates.mkdir()
    authority = create_keys(datetime.now(UTC)).authority
    pair = authority.issue("webhooks", now=datetime.now(UTC), server_names=("127.0.0.1",))
    (certificates / "tls.crt").write_text(pair.certificate_pem)
    (certificates / "tls.key").write_text(pair.key_pem.reveal())
    with ocm_webhooks(world.programs, place, kubeconfig, certificates) as urls:
        for name, url in urls.items():
            for obj in webhooks(Reach(url=url, ca_pem=authority.pair.certificate_pem)):
                of_works = ".work." in obj["metadata"]["name"]
                if "syncline" not in obj["metadata"]["name"] and of_works == (name == "work"):
                    world.on_hub.apply(obj, "cluster-manager")
        with ocm_hub(world.programs, place, kubeconfig, features=("ManifestWorkReplicaSet",)) as running_hub:
            yield running_hub


@contextlib.contextmanager
def _our_hub(world: World) -> Iterator[Programs]:
    at = f"127.0.0.1:{free_port()}"
    more = ("--hub-webhook-listen", at, "--hub-webhook-url", f"https://{at}")
    kubeconfig = str(world.hub.kubeconfig)
    command = syncline("controller", "--roles", "hub", "--no-leader-elect", "--kubeconfig", kubeconfig, *more)
    configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    with kept({"hub-syncline": command}, world.folder / "hub-programs") as running_hub:
        world.on_hub.wait(lambda: world.on_hub.send("GET", configurations)["items"], "our hub's webhooks")
        yield running_hub


def their_agent(world: World, bootstrap: Path) -> contextlib.AbstractContextManager[Programs]:
    return ocm_agent(world.programs, world.folder / "agent", world.cluster, bootstrap, world.spoke.kubeconfig)


def our_agent(world: World, bootstrap: Path) -> contextlib.AbstractContextManager[Programs]:
    access = load_kubeconfig(bootstrap)
    assert access.token is not None, "agents join with the token of an account"
    line = Invitation(access.server, access.token, access.ca_pem).line()
    where = ("--name", world.cluster, "--kubeconfig", str(world.spoke.kubeconfig))
    command = syncline("join", line, *where)
    home = {"SYNCLINE_HOME": str(world.folder / "agent-home")}
    return kept({f"{world.cluster}-syncline": command}, world.folder / "agent", home)


@contextlib.contextmanager
def world_of(hub_side: str, agent_side: str, programs: Path, folder: Path) -> Iterator[World]:
    """A fresh hub and a fresh cluster; the agent is not begun."""
    with contextlib.ExitStack() as closing:
        ends = []
        for name, more in (("hub", ()), ("spoke", ("--nodes", "1"))):
            place = folder / name
            place.mkdir(parents=True)
            port = free_port()
            ends.append(closing.enter_context(running(apiserver(place, port, *more), place, port)))
        world = World(folder, hub_side, agent_side, ends[0], ends[1], programs)
        closing.callback(world.end_agent)
        for obj in hub_definitions():
            world.on_hub.apply(obj, "clusteradm")
        for obj in spoke_definitions():
            world.on_spoke.apply(obj, "clusteradm")
        make = _their_hub if hub_side == THEIRS else _our_hub
        world.running["hub"] = closing.enter_context(make(world))
        yield world
