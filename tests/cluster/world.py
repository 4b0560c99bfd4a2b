"""A cluster in virtual time for room tests: store, API, built-in controllers, no machines, no sockets.

``World`` sends requests as an administrator, lets controllers settle, and plays the kubelet where a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from syncline.base.clock import VirtualClock, format_time
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.pki import CertificateAuthority
from syncline.cluster.api import Api
from syncline.cluster.builtin import BuiltinSettings, builtin_controllers, handlers
from syncline.cluster.resources.registry import Registry
from syncline.cluster.serving.direct import DirectTransport
from syncline.cluster.storage.store import Store
from syncline.control.controller import Controller
from syncline.control.executor import kube_handlers
from syncline.control.loop import ControlLoop
from syncline.control.virtual import LoopActor, VirtualDriver
from syncline.kube.client import Request, Transport
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, name_of

READY = {"type": "Ready", "status": "True"}


class World:
    """One cluster; ``restart`` makes new controllers over the same store, as after a crash."""

    def __init__(
        self,
        seed: int = 1,
        *,
        controllers: Iterable[Controller[Any]] | None = None,
        shuffle: bool = False,
        authority: CertificateAuthority | None = None,
    ) -> None:
        self._authority = authority
        self.clock = VirtualClock()
        self.store = Store()
        self.entropy = Entropy(seed)
        self.journal = Journal()
        self.registry = Registry(self.store)
        self.api = Api(self.store, self.registry, Authorizer(self.store), self.clock, self.entropy.fork("api"))
        self.transport = DirectTransport(self.api)
        self._controllers = controllers
        self.heartbeats: Callable[[str], datetime | None] = lambda _node: self.clock.now()
        self._shuffle = self.entropy.fork("order") if shuffle else None
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.restart()

    def restart(self, transport: Transport | None = None) -> None:
        """Controllers from nothing but the API; ``transport`` may lose requests or crash."""
        mapper = Mapper()
        mine = handlers(mapper, self._settings()) | kube_handlers(mapper, self.clock, "syncline")
        chosen = self._controllers or builtin_controllers(self._settings())
        self.loop = ControlLoop(
            chosen, mapper=mapper, handlers=mine, clock=self.clock, journal=self.journal, strict=True
        )
        self.driver = VirtualDriver(self.clock)
        self.driver.add(LoopActor(self.loop, transport or self.transport, self.clock, self._shuffle))

    def _settings(self) -> BuiltinSettings:
        """Machines give signs of life for ever, unless a test replaces ``heartbeats``."""
        return BuiltinSettings("test root certificate", lambda node: self.heartbeats(node), self._authority)

    # -- requests ------------------------------------------------------------------------------------------------

    def send(self, method: str, path: str, body: Any = None, *, content: str = "") -> Any:
        """The decoded answer; raises the refusal."""
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        headers = {"content-type": content} if content else {}
        return self.transport.send(Request(method, path, query, headers, body)).or_raise()

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    def items(self, path: str) -> list[Obj]:
        found: list[Obj] = self.get(path)["items"]
        return found

    def exists(self, path: str) -> bool:
        return self.transport.send(Request("GET", path)).ok

    def post(self, path: str, body: Obj) -> Any:
        return self.send("POST", path, body)

    def merge(self, path: str, body: Obj) -> Any:
        return self.send("PATCH", path, body, content="application/merge-patch+json")

    def strategic(self, path: str, body: Obj) -> Any:
        return self.send("PATCH", path, body, content="application/strategic-merge-patch+json")

    def delete(self, path: str, policy: str = "", **options: Any) -> Any:
        body = ({"propagationPolicy": policy} if policy else {}) | options
        return self.send("DELETE", path, body or None)

    # -- time ----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything that is due now."""
        self.driver.settle()

    def advance(self, seconds: float) -> None:
        self.driver.advance(seconds)

    def idle(self, limit_s: float = 3600) -> float:
        return self.driver.until_idle(limit_s)

    # -- playing the kubelet -------------------------------------------------------------------------------------

    def node(self, name: str, *, cpu: str = "4", memory: str = "8Gi", labels: dict[str, str] | None = None) -> None:
        """A ready node without taints."""
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})}
        self.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        room = {"cpu": cpu, "memory": memory, "pods": "110"}
        stamp = format_time(self.clock.now())
        ready = READY | {"reason": "KubeletReady", "lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self.merge(f"/api/v1/nodes/{name}/status", {"status": status})
        self.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def pod_status(self, namespace: str, name: str, status: Obj) -> None:
        self.merge(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status})

    def make_ready(self, namespace: str, selector: str = "") -> int:
        """Every pod that is not ready becomes ready; how many did."""
        query = f"?labelSelector={selector}" if selector else ""
        stamp = format_time(self.clock.now())
        changed = 0
        for pod in self.items(f"/api/v1/namespaces/{namespace}/pods{query}"):
            if "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") != "Pending":
                continue
            others = [c for c in pod["status"].get("conditions", []) if c["type"] != "Ready"]
            ready = READY | {"lastTransitionTime": stamp}
            self.pod_status(namespace, name_of(pod), {"phase": "Running", "conditions": [*others, ready]})
            changed += 1
        return changed

    def reap(self, namespace: str) -> int:
        """Pods that are being deleted end at once; how many did."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        going = [name_of(pod) for pod in self.items(path) if "deletionTimestamp" in pod["metadata"]]
        for name in going:
            self.delete(f"{path}/{name}", gracePeriodSeconds=0)
        return len(going)

    def run_until_ready(self, namespace: str, rounds: int = 100) -> None:
        """Make pods ready until there is nothing left to do. Bounded, so that a fight shows; a second per round, so
        that refused requests are tried again."""
        for _ in range(rounds):
            self.advance(1)
            if not self.reap(namespace) + self.make_ready(namespace):
                return
        raise AssertionError(f"{namespace} is not ready after {rounds} rounds")

    def events(self, namespace: str) -> list[tuple[str, str]]:
        """Reason and message of every Event, in the order of the store."""
        return [(each["reason"], each["message"]) for each in self.items(f"/api/v1/namespaces/{namespace}/events")]


def deployment(name: str = "web", replicas: int = 2, image: str = "x:1", **spec: Any) -> Obj:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    template["spec"]["automountServiceAccountToken"] = False
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body | spec}


def job(name: str = "work", **spec: Any) -> Obj:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}
    body = {"template": {"spec": pod}} | spec
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}
