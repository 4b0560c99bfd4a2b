"""Webhooks for tests: a world whose calls are answered by Python functions, and configurations of few words."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.api import Api
from syncline.cluster.resources.registry import Registry
from syncline.cluster.storage.store import Store
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj
from syncline.kube.transport.outbound import OutboundCall, Outcome

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/demo/configmaps"
GROUP = "/apis/admissionregistration.k8s.io/v1"
Hook = Callable[[Obj], Obj]


def allow(_request: Obj) -> Obj:
    return {"allowed": True}


def deny(status: Obj | None = None) -> Hook:
    return lambda request: {"allowed": False, **({"status": status} if status is not None else {})}


def patches(*steps: Obj) -> Hook:
    encoded = base64.b64encode(json.dumps(list(steps)).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def label(name: str, value: str = "yes") -> Hook:
    """Adds a label to objects that have some."""
    return patches({"op": "add", "path": f"/metadata/labels/{name}", "value": value})


@dataclass
class World:
    """An API with one namespace. ``answers``: by path of the URL, what a webhook answers, or what came of the call."""

    answers: dict[str, Hook | Outcome] = field(default_factory=dict)
    asked: list[tuple[str, Obj]] = field(default_factory=list)
    calls: list[OutboundCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store, self.clock = Store(), VirtualClock()
        self.api = Api(self.store, Registry(self.store), Authorizer(self.store), self.clock, Entropy(1))
        self.api.caller = self._call
        self.made("/api/v1/namespaces", {"metadata": {"name": "demo", "labels": {"team": "red"}}})
        self.made("/api/v1/namespaces/demo/serviceaccounts", {"metadata": {"name": "default"}})

    def _call(self, call: OutboundCall) -> Outcome:
        self.calls.append(call)
        path = "/" + call.url.partition("://")[2].partition("/")[2].partition("?")[0]
        review = json.loads(call.body)
        self.asked.append((path, review["request"]))
        answer = self.answers[path]
        if isinstance(answer, Outcome):
            return answer
        response = {"uid": review["request"]["uid"], **answer(review["request"])}
        body = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        return Outcome(200, {"content-type": "application/json"}, json.dumps(body).encode())

    def send(self, method: str, path: str, body: Any = None, content: str = "", user: UserInfo = ADMIN) -> Response:
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        headers = {"content-type": content} if content else {}
        return self.api.handle(Request(method, path, query, headers, body), user)

    def made(self, path: str, body: Obj) -> Any:
        return self.send("POST", path, body).or_raise()

    def map(self, name: str = "menu", **data: str) -> Response:
        return self.send("POST", MAPS, {"metadata": {"name": name, "labels": {"app": "web"}}, "data": data})

    def configure(self, *hooks: Obj, mutating: bool = False, name: str = "hooks") -> None:
        kind = ("Mutating" if mutating else "Validating") + "WebhookConfiguration"
        self.made(f"{GROUP}/{kind.lower()}s", {"metadata": {"name": name}, "webhooks": list(hooks)})

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


def hook(path: str, **fields: Any) -> Obj:
    """A webhook about ConfigMaps; its name comes from its path."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    made = {
        "name": f"{path.strip('/')}.hooks.example.com",
        "clientConfig": {"url": f"https://hooks.example.com{path}"},
        "rules": [rule | fields.pop("rule", {})],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return made | fields


def messages(answer: Response) -> Iterator[str]:
    yield str(answer.obj.get("message"))
