"""Parts of tests of questions about pulled Applications: a hub, clusters that pull, and what people ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import msgspec
from tests.fleet.test_pull_controllers import APPS, application
from tests.fleet.test_pull_whole import Rows
from tests.fleet.world import Fleet, Wrap, config_map
from tests.gitops.behaviours.sim import Source

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.cluster.access.users import UserInfo
from syncline.control.virtual import LoopActor
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.queries.model import Ask, Question, query_object
from syncline.kube.client import Request
from syncline.kube.objects import Obj

QUERIES = "/apis/syncline.dev/v1alpha1/namespaces/{}/applicationqueries"
ADMIN = "kubernetes-admin"


def deployment(name: str) -> Obj:
    container = {"name": "main", "image": "nginx"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "web"}, "spec": spec}


def secret(name: str, value: str, namespace: str = "web") -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": value}}


class Two(Fleet):
    """Clusters c1 and c2, each with an Application ``web-CLUSTER`` that is synced there."""

    def __init__(self) -> None:
        super().__init__()
        self.gitops: dict[str, LoopActor] = {}
        self.pull: LoopActor | None = None

    def start_pull(self, wrap: Wrap | None = None) -> None:
        """Start the hub's controllers of the pull model, with an empty memory if they ran before."""
        self.stop_pull()
        settings = PullSettings()
        self.pull = self.start_role(pull_role(settings, objects=tuple(pull_objects(settings))), wrap=wrap)

    def stop_pull(self) -> None:
        if self.pull is not None:
            self.time.actors.remove(self.pull)
        self.pull = None


def fleet_of_two() -> Two:
    fleet = Two()
    fleet.start_pull()
    fleet.start_gitops(fleet.hub, Rows())
    for name in ("c1", "c2"):
        objects = (config_map("web", "web", cluster=name), secret("key", f"very-secret-{name}"), deployment("ui"))
        source = Source(*objects)
        fleet.sources[name] = lambda _cache, _namespace, source=source: nullcontext(source)
        member = fleet.add(name)
        for namespace in ("web", "other"):
            metadata = {"name": namespace}
            member.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        fleet.gitops[name] = fleet.start_gitops(member, source)
        app = application(f"web-{name}", name)
        app["spec"]["syncPolicy"] = {"automated": {}}
        fleet.hub.send("POST", APPS.format("argocd"), app)
    fleet.time.advance(120)
    return fleet


def question(ask: Ask, name: str = "web-c1", **given: Any) -> Question:
    return replace(Question("argocd", name, ask, ADMIN), **given)


_NUMBERS = iter(range(10**6))


def send(fleet: Fleet, asked: Question, cluster: str = "c1") -> str:
    """Ask, as an administrator; return the path of the query."""
    name = f"q{next(_NUMBERS)}"
    fleet.hub.send("POST", QUERIES.format(cluster), query_object(asked, cluster, name))
    return f"{QUERIES.format(cluster)}/{name}"


def status(fleet: Fleet, asked: Question, cluster: str = "c1") -> Obj:
    path = send(fleet, asked, cluster)
    fleet.time.advance(3)
    found: Obj = fleet.hub.get(path).get("status") or {}
    return found


def rows(fleet: Fleet, asked: Question, cluster: str = "c1") -> list[Obj]:
    found = status(fleet, asked, cluster)
    assert found.get("phase") == "Answered", found
    return [msgspec.json.decode(one) for one in found["rows"]]


def post_as(fleet: Fleet, user: str, asked: Question, cluster: str = "c1") -> Obj:
    """Ask as a user who may create queries in the namespace of the cluster; return the answer of the API."""
    transport = fleet.hub.core.transport(UserInfo(user, ("system:authenticated",)))
    name = f"q{next(_NUMBERS)}"
    found: Obj = transport.send(Request("POST", QUERIES.format(cluster), body=query_object(asked, cluster, name))).obj
    return found


def grant(fleet: Fleet, user: str, namespace: str, group: str, resources: list[str], *verbs: str) -> None:
    rbac, name = "rbac.authorization.k8s.io", f"{user}-{next(_NUMBERS)}"
    metadata = {"name": name, "namespace": namespace}
    rule = {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
    base = f"/apis/{rbac}/v1/namespaces/{namespace}"
    role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    fleet.hub.send("POST", f"{base}/roles", role)
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
        "subjects": [{"kind": "User", "apiGroup": rbac, "name": user}],
    }
    fleet.hub.send("POST", f"{base}/rolebindings", binding)


def events(fleet: Fleet, namespace: str = "argocd") -> Iterator[str]:
    for one in fleet.hub.get(f"/api/v1/namespaces/{namespace}/events")["items"]:
        if one["reason"] == "AskedThroughAgent":
            yield f"{one['involvedObject']['name']}: {one['message']}"
