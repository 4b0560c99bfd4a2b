"""A cluster with the role ``operators`` in virtual time, and catalogues made in a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.assembly.builtin import cluster_role
from syncline.assembly.embedded.core import build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.machines.virtual import virtual_machines
from syncline.assembly.operators.folders import FolderCatalogs
from syncline.assembly.operators.role import folder_role
from syncline.assembly.roles import Role, SimulatedDriver, start
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.builtin import BuiltinSettings
from syncline.cluster.storage.store import Store
from syncline.control.executor import run_in_place
from syncline.control.virtual import LoopActor, VirtualDriver
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unavailable
from syncline.kube.objects import Obj
from syncline.patterns.operators.behaving import Behaviours
from syncline.patterns.operators.catalogs.reading import read_catalog

Wrap = Callable[[Transport], Transport]
OLM = "/apis/operators.coreos.com/v1alpha1/namespaces"
MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")


def package(name: str, default: str = "stable") -> Obj:
    return {"schema": "olm.package", "name": name, "defaultChannel": default}


def channel(of: str, name: str, *entries: Mapping[str, Any] | str) -> Obj:
    listed = [{"name": one} if isinstance(one, str) else dict(one) for one in entries]
    return {"schema": "olm.channel", "package": of, "name": name, "entries": listed}


def bundle(of: str, version: str, *kinds: str, modes: Sequence[str] = MODES, **properties: Any) -> Obj:
    """A bundle with metadata alone; ``kinds``: such as ``Widget.v1.example.com``, ``properties``: ``_`` for dots."""
    owned = []
    for one in kinds:
        kind, number, group = one.split(".", 2)
        owned.append({"kind": kind, "version": number, "name": f"{kind.lower()}s.{group}"})
    supported = [{"type": mode, "supported": mode in modes} for mode in MODES]
    metadata = {"displayName": of.title(), "crdDescriptions": {"owned": owned}, "installModes": supported}
    given = [
        {"type": "olm.package", "value": {"packageName": of, "version": version}},
        {"type": "olm.csv.metadata", "value": metadata},
        *(
            {"type": "olm.gvk", "value": dict(zip(("kind", "version", "group"), one.split(".", 2), strict=True))}
            for one in kinds
        ),
        *({"type": key.replace("_", "."), "value": value} for key, value in properties.items()),
    ]
    return {
        "schema": "olm.bundle",
        "name": f"{of}.v{version}",
        "package": of,
        "image": f"example.com/{of}:{version}",
        "properties": given,
    }


@dataclass(slots=True)
class Flaky:
    """A connection on which every n-th writing request fails: in turn before it counts, and after."""

    inner: Transport
    every: int
    writes: int = 0

    def send(self, request: Request) -> Response:
        if request.method == "GET":
            return self.inner.send(request)
        self.writes += 1
        if self.writes % self.every:
            return self.inner.send(request)
        if self.writes // self.every % 2:
            self.inner.send(request)
        return Response.refused(Unavailable("the server does not answer"))


class Operators:
    """A cluster with one machine. ``documents``: of the catalogue ``cat`` in the global namespace."""

    def __init__(
        self, *documents: Obj, behaviours: Behaviours | None = None, seed: int = 1, wrap: Wrap | None = None
    ) -> None:
        self.clock, self.journal = VirtualClock(), Journal()
        self.time = VirtualDriver(self.clock)
        self.core = build_core(store=Store(), clock=self.clock, entropy=Entropy(seed))
        self.core.bootstrap(port=6443)
        self.admin = self.core.transport()
        machines = virtual_machines(self.core, self.clock, 1)
        settings = BuiltinSettings("virtual cluster", machines.room.heartbeat, machines_tell=True)
        self.start(cluster_role(settings, machines.room, follow=machines.attach))
        self.catalogs = FolderCatalogs({"cat": read_catalog(list(documents))})
        self.behaviours = behaviours or Behaviours()
        self._wrap = wrap
        self.actor = self.start(folder_role(self.catalogs, self.behaviours), wrap)
        self.time.settle()

    def start(self, role: Role, wrap: Wrap | None = None) -> LoopActor:
        run_in_place(ensure_objects(role.objects), self.admin)
        transport = self.core.transport(role.user)
        driver = SimulatedDriver(self.clock, self.journal, wrap(transport) if wrap else transport, strict=True)
        driver.host = self.core.registry.host
        start(role, driver)
        self.time.add(driver.actor)
        return driver.actor

    def restart(self) -> None:
        """Kill the controllers, and start them with an empty memory."""
        self.time.actors.remove(self.actor)
        self.actor = self.start(folder_role(self.catalogs, self.behaviours), self._wrap)

    def send(self, verb: str, path: str, body: Any = None) -> Any:
        headers = {"content-type": "application/merge-patch+json"} if verb == "PATCH" else {}
        made = self.admin.send(Request(verb, path, {}, headers, body)).or_raise()
        self.time.settle()
        return made

    def get(self, path: str) -> Obj:
        made: Obj = self.send("GET", path)
        return made

    def absent(self, path: str) -> bool:
        return self.admin.send(Request("GET", path)).status == 404

    def namespace(self, name: str, *targets: str, group: bool = True) -> None:
        """Make a namespace with an OperatorGroup; without targets it is for all namespaces."""
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if group:
            self.group(name, "group", *targets)

    def group(self, namespace: str, name: str, *targets: str, **spec: Any) -> None:
        body = {
            "apiVersion": "operators.coreos.com/v1",
            "kind": "OperatorGroup",
            "metadata": {"name": name},
            "spec": {**({"targetNamespaces": list(targets)} if targets else {}), **spec},
        }
        self.send("POST", f"/apis/operators.coreos.com/v1/namespaces/{namespace}/operatorgroups", body)

    def subscribe(self, namespace: str, name: str, **spec: Any) -> None:
        wanted = {"name": name, "source": "cat", "sourceNamespace": "openshift-marketplace", **spec}
        body = {
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "Subscription",
            "metadata": {"name": name},
            "spec": wanted,
        }
        self.send("POST", f"{OLM}/{namespace}/subscriptions", body)

    def subscription(self, namespace: str, name: str) -> Obj:
        return self.get(f"{OLM}/{namespace}/subscriptions/{name}")

    def phase(self, namespace: str, csv: str) -> str:
        """The phase of a ClusterServiceVersion; "absent" without one."""
        path = f"{OLM}/{namespace}/clusterserviceversions/{csv}"
        return "absent" if self.absent(path) else str((self.get(path).get("status") or {}).get("phase") or "")

    def reason(self, namespace: str, csv: str) -> str:
        path = f"{OLM}/{namespace}/clusterserviceversions/{csv}"
        return str((self.get(path).get("status") or {}).get("reason") or "")

    def plans(self, namespace: str) -> list[Obj]:
        found: list[Obj] = self.get(f"{OLM}/{namespace}/installplans")["items"]
        return sorted(found, key=lambda one: one["spec"]["generation"])

    def condition(self, namespace: str, name: str, kind: str) -> Obj:
        """A condition of a Subscription; empty without one."""
        conditions = self.subscription(namespace, name)["status"].get("conditions") or ()
        return next((one for one in conditions if one["type"] == kind), {})

    def until(self, namespace: str, csv: str, phase: str = "Succeeded", limit_s: float = 300) -> float:
        """Let time pass until a ClusterServiceVersion is in a phase; returns the seconds."""
        return self.time.until(lambda: self.phase(namespace, csv) == phase, limit_s)
