"""One request as webhooks and policies see it (apiserver ``admission.Attributes``).

``cluster/verbs/admitting.py`` creates it for each write while anything is configured; matchers, reviews and expressions
read it. The object is passed separately, because mutations replace it.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.registry import Resource
from syncline.kube.errors import Forbidden
from syncline.kube.objects import GVK, Obj


@dataclass(frozen=True, slots=True)
class Subject:
    """``operation`` is CREATE, UPDATE, DELETE or CONNECT. ``kind`` is the sent object's; a subresource may have its own
    kind. A Namespace's ``namespace`` is its own name. ``options`` are the request's."""

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
    """Return ``pods "web" is forbidden: <why>`` (``admission.NewForbidden``); a name may be a generateName."""
    info = subject.resource.info
    metadata = (obj or {}).get("metadata") or {}
    name = subject.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    details: Obj = {"name": name, "kind": info.plural}
    if info.group:
        details["group"] = info.group
    return Forbidden(f'{info.group_resource} "{name}" is forbidden: {why}', details=details)
