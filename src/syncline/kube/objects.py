"""Identity and metadata of Kubernetes objects: :class:`GVK`, :class:`ObjectRef` and readers of metadata.

Objects are plain JSON dicts (``Obj``); only the code that created one changes it. The readers tolerate everything that
a repository may contain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from syncline.base.remember import MAX_REMEMBERED_CHARS, remember

Obj: TypeAlias = dict[str, Any]
"""A decoded API object: JSON values only. Read-only unless you made it."""


class GroupKind(NamedTuple):
    """A kind without version, used in identities and as key of caches. The core group is the empty string.

    It is a tuple, because hashing and comparing are the most frequent operations.
    """

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


_group_kind = remember(4096)(GroupKind)
"""One shared object per kind: kinds are few, calls many."""


class GVK(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        return _group_kind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.api_version}, Kind={self.kind}"


class ObjectRef(NamedTuple):
    """The identity of one object, without a version.

    Text form ``group/Kind/namespace/name`` (group empty for core, namespace empty for cluster-scoped), as upstream
    writes resource keys: ``apps/Deployment/demo/web``, ``/Namespace//demo``.
    """

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        return _group_kind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.group}/{self.kind}/{self.namespace}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> ObjectRef:
        """Parse the text form; raises ValueError that names the text."""
        parts = text.split("/")
        if len(parts) != 4:
            raise ValueError(f"{text!r} is not an object reference; write group/Kind/namespace/name")
        return cls(*parts)


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """One served resource from discovery. ``subresources`` are bare names (``status``, ``scale``)."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: tuple[str, ...] = ()
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def gvk(self) -> GVK:
        return GVK(self.group, self.version, self.kind)

    @property
    def group_kind(self) -> GroupKind:
        return _group_kind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """The name in messages: ``deployments.apps``, ``pods``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of a collection, object or subresource; without a namespace for cluster-scoped kinds."""
        parts = ["", "apis", self.group, self.version] if self.group else ["", "api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


@remember(4096)
def split_api_version(text: str) -> tuple[str, str]:
    """Split ``apps/v1`` into (``apps``, ``v1``), and ``v1`` into (``""``, ``v1``)."""
    group, slash, version = text.partition("/")
    return (group, version) if slash else ("", group)


def gvk_of(obj: Mapping[str, Any]) -> GVK:
    """Return group, version and kind; missing or non-string parts are empty."""
    version = obj.get("apiVersion")
    kind = obj.get("kind")
    version, kind = version if isinstance(version, str) else "", kind if isinstance(kind, str) else ""
    if len(version) + len(kind) > MAX_REMEMBERED_CHARS:
        group, slash, ver = version.partition("/")
        return GVK(group, ver, kind) if slash else GVK("", group, kind)
    return _gvk(version, kind)


@lru_cache(maxsize=4096)
def _gvk(version: str, kind: str) -> GVK:
    group, ver = split_api_version(version)
    return GVK(group, ver, kind)


def api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def meta(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``metadata``, or an empty mapping if it is missing or not an object."""
    value = obj.get("metadata")
    return value if isinstance(value, dict) else {}


def name_of(obj: Mapping[str, Any]) -> str:
    value = meta(obj).get("name")
    return value if isinstance(value, str) else ""


def namespace_of(obj: Mapping[str, Any]) -> str:
    value = meta(obj).get("namespace")
    return value if isinstance(value, str) else ""


def uid_of(obj: Mapping[str, Any]) -> str:
    value = meta(obj).get("uid")
    return value if isinstance(value, str) else ""


def resource_version(obj: Mapping[str, Any]) -> str:
    value = meta(obj).get("resourceVersion")
    return value if isinstance(value, str) else ""


def generation(obj: Mapping[str, Any]) -> int:
    value = meta(obj).get("generation")
    return value if isinstance(value, int) else 0


def ref_of(obj: Mapping[str, Any]) -> ObjectRef:
    gvk = gvk_of(obj)
    metadata = meta(obj)
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return ObjectRef(
        gvk.group, gvk.kind, namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else ""
    )


def _string_map(value: Any) -> dict[str, str]:
    """Return a map of strings; empty if any value is null or no string, as in Go's accessor."""
    if not isinstance(value, dict):
        return {}
    for each in value.values():  # a plain loop: this is the most frequent call
        if not isinstance(each, str):
            return {}
    return value


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return _string_map(meta(obj).get("labels"))


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return _string_map(meta(obj).get("annotations"))


def finalizers(obj: Mapping[str, Any]) -> list[str]:
    value = meta(obj).get("finalizers")
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def owner_references(obj: Mapping[str, Any]) -> list[Obj]:
    value = meta(obj).get("ownerReferences")
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_terminating(obj: Mapping[str, Any]) -> bool:
    return bool(meta(obj).get("deletionTimestamp"))


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON tree; four times as fast as ``copy.deepcopy``, which also detects cycles."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def dig(obj: Any, *path: str | int, default: Any = None) -> Any:
    """Follow dict keys and list indices; return ``default`` if a step is missing or null."""
    here = obj
    for step in path:
        if isinstance(here, dict):
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int) and -len(here) <= step < len(here):
            here = here[step]
        else:
            return default
        if here is None:
            return default
    return here
