"""Actions that read from the server, for decisions that a stale cache must not make.

The garbage collector confirms that an owner is deleted, the namespace controller that a namespace is empty. Each is a
step before the destructive one: a refusal stops the plan, and the key is planned again. The disruption controller reads
the scale of foreign controllers, an autoscaler that of its target.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, assert_never

from syncline.base.action import Action
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import Conflict, NotFound
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, uid_of

CONTENT_VERBS = {"list", "watch", "delete"}
"""Verbs that a kind must support to count as content of a namespace."""


@dataclass(frozen=True, slots=True)
class ConfirmAbsent(Action):
    """Raise Conflict while ``target`` exists with ``uid``."""

    target: ObjectRef
    uid: str
    reason: str

    def describe(self) -> str:
        return f"confirm absence of {self.target}"


@dataclass(frozen=True, slots=True)
class ConfirmEmpty(Action):
    """Raise Conflict while ``namespace`` has content."""

    namespace: str
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ObjectRef("", "Namespace", "", self.namespace)

    def describe(self) -> str:
        return f"confirm that {self.namespace} is empty"


@dataclass(frozen=True, slots=True)
class ReadScale(Action):
    """Read the Scale of a controller; the value is None if the object is deleted or has another ``uid``. Fails if its
    kind is unknown or has no scale."""

    target: ObjectRef
    version: str
    uid: str
    reason: str

    def describe(self) -> str:
        return f"read the scale of {self.target}"


@dataclass(frozen=True, slots=True)
class FindScale(Action):
    """Read the Scale of an object of a kind in any version. Fails, in Kubernetes' words, if there is none."""

    target: ObjectRef
    reason: str

    def describe(self) -> str:
        return f"find the scale of {self.target}"


class ConfirmHandler:
    """Executes these reads."""

    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def handle(self, action: ConfirmAbsent | ConfirmEmpty | ReadScale | FindScale) -> Generator[Request, Response, Any]:
        match action:
            case ConfirmAbsent():
                return (yield from self._absent(action))
            case ConfirmEmpty():
                return (yield from self._empty(action))
            case ReadScale():
                return (yield from self._scale(action))
            case FindScale():
                return (yield from self._found_scale(action))
            case _ as never:
                assert_never(never)

    def _absent(self, action: ConfirmAbsent) -> Generator[Request, Response, None]:
        target = action.target
        info = self._mapper.preferred(GroupKind(target.group, target.kind))
        if info is None:
            raise NotFound(f'no matches for kind "{target.kind}" in group "{target.group}"')
        answer = yield client.get(info, target.namespace, target.name)
        if answer.status == NotFound.code:
            return
        if uid_of(answer.or_raise()) == action.uid:
            raise Conflict(f"{target} exists")

    def _empty(self, action: ConfirmEmpty) -> Generator[Request, Response, None]:
        for info in self._mapper.all():
            if not info.namespaced or not set(info.verbs) >= CONTENT_VERBS:
                continue
            answer = yield client.list_(info, action.namespace, limit=1)
            if answer.status != NotFound.code and answer.or_raise().get("items"):
                raise Conflict(f"{info.group_resource} are left in namespace {action.namespace}")

    def _found_scale(self, action: FindScale) -> Generator[Request, Response, Obj]:
        target = action.target
        info = self._mapper.preferred(GroupKind(target.group, target.kind))
        if info is None:
            raise NotFound(f'no matches for kind "{target.kind}" in group "{target.group}"')
        if "scale" not in info.subresources:
            raise NotFound("the server could not find the requested resource")
        answer = yield client.get(info, target.namespace, target.name, "scale")
        found: Obj = answer.or_raise()
        return found

    def _scale(self, action: ReadScale) -> Generator[Request, Response, Obj | None]:
        target = action.target
        info = self._mapper.find(GVK(target.group, action.version, target.kind))
        if info is None:
            group_version = f"{target.group}/{action.version}" if target.group else action.version
            raise NotFound(f'no matches for kind "{target.kind}" in version "{group_version}"')
        if "scale" not in info.subresources:
            raise NotFound(f"{info.group_resource} does not implement the scale subresource")
        answer = yield client.get(info, target.namespace, target.name, "scale")
        if answer.status == NotFound.code:
            return None
        scale = answer.or_raise()
        return scale if uid_of(scale) == action.uid else None
