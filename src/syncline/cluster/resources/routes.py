"""Parse a request's path into a :class:`Route` and the verb that authorization judges.

``api`` calls it for each request, before any lookup. The rules are those of Kubernetes' ``RequestInfoFactory``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from syncline.base.remember import MAX_REMEMBERED_CHARS

MAX_ROUTES = 8192
"""Cached parsed paths; a busy cluster requests the same few thousand repeatedly."""

_NOTHING = "//"
"""An empty part of a path: an empty name."""

_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class Route:
    """Empty ``resource``: not a resource request (``/version``, ``/apis/apps/v1``)."""

    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    watching: bool = False
    """True for the deprecated ``/watch/`` prefix."""
    tail: tuple[str, ...] = ()
    """Path below the subresource (``proxy`` paths); no served resource has one."""


def route_of(path: str) -> Route:
    """Parse a path such as ``/apis/apps/v1/namespaces/demo/deployments/web/scale``."""
    return _remembered_route(path) if len(path) <= MAX_REMEMBERED_CHARS else _route_of(path)


def _route_of(path: str) -> Route:
    parts = [part or _NOTHING for part in path.strip("/").split("/")]
    if parts[0] not in ("api", "apis"):
        return Route(path)
    prefix = 2 if parts[0] == "api" else 3
    if len(parts) <= prefix:
        return Route(path)
    group = "" if parts[0] == "api" else parts[1]
    version = parts[prefix - 1]
    rest = parts[prefix:]
    watching = rest[0] == "watch"
    if watching:
        rest = rest[1:]
    if not rest:
        return Route(path)
    return _resource_route(path, group, version, rest, watching)


_remembered_route = lru_cache(maxsize=MAX_ROUTES)(_route_of)


def _resource_route(path: str, group: str, version: str, rest: list[str], watching: bool) -> Route:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    return Route(path, group, version, namespace, rest[0], name, subresource, watching, tuple(rest[3:]))


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return a boolean parameter: present and not ``0`` or ``false`` (``Convert_Slice_string_To_bool``)."""
    value = query.get(name)
    return value is not None and value.lower() not in ("0", "false")


def verb_of(method: str, route: Route, query: Mapping[str, str]) -> str:
    """Return the RBAC verb; for non-resource paths the lower-case method."""
    if not route.resource:
        return method.lower()
    if method in ("GET", "HEAD"):
        if route.watching or (query and flag(query, "watch") and not route.name):
            return "watch"
        return "get" if route.name else "list"
    if method == "DELETE":
        return "delete" if route.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
