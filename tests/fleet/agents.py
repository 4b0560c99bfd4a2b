"""Parts of tests of the work agent: a fleet of one cluster, counted requests, and questions about works and objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fleet.world import WORKS, Fleet, Member, manifest_work

from syncline.fleet.conditions import find_condition
from syncline.fleet.spoke.work.deletion import hub_hash
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, dig

APPLIED = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
HUB_URL = "https://hub.test:6443"
VERBS = ["create", "update", "patch", "get", "delete"]
"""What an executor needs."""


@dataclass(slots=True)
class Counted:
    """A transport that notes the requests that pass, but for watches."""

    inner: Transport
    seen: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)
    """The same, in one list for several transports."""
    before: Callable[[Request], Response | None] = lambda _request: None
    """Answers instead of the API, where it returns an answer."""

    def send(self, request: Request) -> Response:
        if "watch" not in request.query:
            self.seen.append(f"{request.method} {request.path}")
            self.both.append(self.seen[-1])
        return self.before(request) or self.inner.send(request)


@dataclass(slots=True)
class Place:
    """A fleet of one cluster, c1. ``hub`` and ``own``: the agent's requests to the hub and to the cluster."""

    fleet: Fleet
    hub: Counted = field(init=False)
    own: Counted = field(init=False)
    both: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start the agent with an empty memory."""

        def hub(inner: Transport) -> Transport:
            self.hub = Counted(inner, both=self.both)
            return self.hub

        def own(inner: Transport) -> Transport:
            self.own = Counted(inner, both=self.both)
            return self.own

        self.fleet.start_agent("c1", wrap_hub=hub, wrap_own=own)
        self.settle()

    @property
    def member(self) -> Member:
        return self.fleet.members["c1"]

    def settle(self, seconds: float = 0.0) -> None:
        self.fleet.time.advance(seconds)

    def work(self, name: str, *manifests: Obj, **spec: Any) -> None:
        self.fleet.work("c1", name, *manifests, **spec)

    def get(self, name: str) -> Obj:
        return self.fleet.hub.get(path(name))

    def patch(self, name: str, spec: Obj) -> None:
        self.fleet.hub.send("PATCH", path(name), {"spec": spec})

    def manifests(self, name: str, *manifests: Obj) -> None:
        """Replace the manifests of a work."""
        self.patch(name, manifest_work("c1", name, *manifests)["spec"])

    def delete(self, name: str) -> None:
        self.fleet.hub.send("DELETE", path(name))

    def gone(self, name: str) -> bool:
        return self.fleet.hub.absent(path(name))

    def condition(self, name: str, kind: str, ordinal: int | None = None) -> tuple[str, str] | None:
        """Return status and reason of a condition of a work, or of one of its manifests."""
        status = self.get(name).get("status") or {}
        holder = status if ordinal is None else dig(status, "resourceStatus", "manifests", ordinal) or {}
        found = find_condition(holder.get("conditions") or (), kind)
        return None if found is None else (found["status"], found["reason"])

    def values(self, name: str, ordinal: int = 0) -> dict[str, Any]:
        """Return the feedback of a manifest by name."""
        found = dig(self.get(name), "status", "resourceStatus", "manifests", ordinal, "statusFeedback", "values") or ()
        kinds = {"Integer": "integer", "String": "string", "Boolean": "boolean", "JsonRaw": "jsonRaw"}
        return {one["name"]: one["fieldValue"][kinds[one["fieldValue"]["type"]]] for one in found}

    def there(self, kind_path: str) -> Obj | None:
        """Return an object of the cluster, None if it does not exist."""
        return None if self.member.absent(kind_path) else self.member.get(kind_path)

    def applied(self, name: str) -> Obj | None:
        return self.there(f"{APPLIED}/{hub_hash(HUB_URL)}-{name}")

    @contextmanager
    def requests(self) -> Iterator[dict[str, list[str]]]:
        """Yield a table that afterwards has the requests for works to the hub, and those to the cluster."""
        table: dict[str, list[str]] = {}
        marks = len(self.hub.seen), len(self.own.seen)
        yield table
        table["hub"] = [one for one in self.hub.seen[marks[0] :] if "manifestworks" in one]
        probes = ("/livez", "/healthz", "/version")
        table["own"] = [one for one in self.own.seen[marks[1] :] if not one.endswith(probes)]


def path(name: str) -> str:
    return f"{WORKS.format('c1')}/{name}"


def maps(name: str, namespace: str = "default") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


# -- objects ------------------------------------------------------------------------------------------------------


def namespace(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def definition(plural: str, kind: str) -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    spec = {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{plural}.example.io"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def custom(kind: str, name: str, space: str = "default", **fields: Any) -> Obj:
    return {"apiVersion": "example.io/v1", "kind": kind, "metadata": {"name": name, "namespace": space}, **fields}


def deployment(name: str, replicas: int = 1) -> Obj:
    labels = {"app": name}
    container = {"name": "c", "image": "example.com/c:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def config(kind: str, name: str, group: str = "", **options: Any) -> Obj:
    return {"resourceIdentifier": {"group": group, "resource": kind, "name": name, "namespace": "default"}, **options}


def executor(name: str) -> Obj:
    return {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "default", "name": name}}}
