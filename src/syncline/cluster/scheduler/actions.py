"""The scheduler's one action on a pod: bind it to a node."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from syncline.base.action import Action
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.objects import ObjectRef, ResourceInfo

_PODS = ResourceInfo("", "v1", "Pod", "pods", namespaced=True)


@dataclass(frozen=True, slots=True)
class Bind(Action):
    """POST pods/NAME/binding; refused if the pod is already bound or was recreated."""

    namespace: str
    name: str
    uid: str
    node: str
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ObjectRef("", "Pod", self.namespace, self.name)

    def describe(self) -> str:
        return f"bind {self.target} to {self.node}"


class BindHandler:
    """Binds, then reads the pod: its resourceVersion is what the loop's cache must reach."""

    def handle(self, action: Bind) -> Generator[Request, Response, Any]:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": action.name, "namespace": action.namespace, "uid": action.uid},
            "target": {"kind": "Node", "name": action.node},
        }
        answer = yield client.create(_PODS, binding, name=action.name, subresource="binding")
        answer.or_raise()
        bound = yield client.get(_PODS, action.namespace, action.name)
        return bound.obj if bound.ok else None
