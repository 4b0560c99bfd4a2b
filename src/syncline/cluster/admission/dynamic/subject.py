"""One request as webhooks and policies see it (apiserver ``admission.Attributes``).

Made by ``cluster/verbs/admitting.py`` for each write while anything is configured; read by the matchers, the reviews
and the expressions. The object itself is handed along beside it, because mutations replace it.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.registry import Resource
from syncline.kube.errors import Forbidden
from syncline.kube.objects import GVK, Obj

__all__ = ["Subject", "forbidden"]


@dataclass(frozen=True, slots=True)
class Subject:
    """``operation`` is CREATE, UPDATE, DELETE or CONNECT; ``kind`` that of the object sent, which a subresource may
    have of its own. ``namespace`` of a Namespace is its own name. ``options`` are those of the request."""

    operation: str
    resource: Resource
    kind: GVK
    subresource: str
    namespace: str
    name: str
    user: UserInfo
    options: Obj | None = None
    dry_run: bool = False

    @property
    def is_namespace(self) -> bool:
        return self.resource.storage == "/namespaces"


def forbidden(subject: Subject, obj: Obj | None, why: str) -> Forbidden:
    """``pods "web" is forbidden: <why>`` (``admission.NewForbidden``): or that its name is to be generated."""
    info = subject.resource.info
    metadata = (obj or {}).get("metadata") or {}
    name = subject.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    details: Obj = {"name": name, "kind": info.plural}
    if info.group:
        details["group"] = info.group
    return Forbidden(f'{info.group_resource} "{name}" is forbidden: {why}', details=details)
