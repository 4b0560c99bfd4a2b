"""Values of cluster groups for tests, and their objects by kind."""

from __future__ import annotations

from typing import Any

from syncline.clustergroup.render import render, values_of
from syncline.kube.objects import Obj

HUB, SPOKE = "apps.hub.example.com", "apps.spoke.example.com"


def values(shared: Obj | None = None, top: Obj | None = None, **group: Any) -> Obj:
    """Values of group ``hub`` of pattern ``shop``; ``shared``: global ones, ``top``: beside the group."""
    section = {"name": "hub", "namespaces": [], "applications": {}, **group}
    return {"global": {"pattern": "shop", **(shared or {})}, "clusterGroup": section, **(top or {})}


def made(shared: Obj | None = None, top: Obj | None = None, **group: Any) -> list[Obj]:
    return render(values_of([values(shared, top, **group)]))


def of(objects: list[Obj], kind: str, name: str = "") -> list[Obj]:
    return [one for one in objects if one["kind"] == kind and name in ("", one["metadata"]["name"])]


def one(objects: list[Obj], kind: str, name: str = "") -> Obj:
    (found,) = of(objects, kind, name)
    return found


def names(objects: list[Obj], kind: str) -> list[str]:
    return [found["metadata"]["name"] for found in of(objects, kind)]


def namespaces(given: Any, **group: Any) -> tuple[dict[str, Obj], dict[str, Obj]]:
    """Namespaces and OperatorGroups of the given namespaces, by the namespace."""
    found = made(namespaces=given, **group)
    spaces = {n["metadata"]["name"]: n for n in of(found, "Namespace")}
    return (
        {name: n for name, n in spaces.items() if name not in ("imperative", "shop-hub")},
        {n["metadata"]["namespace"]: n for n in of(found, "OperatorGroup")},
    )


def subscribed(shared: Obj | None = None, **subscription: Any) -> list[Obj]:
    """Everything that one subscription in map form gives beside the baseline."""
    found = made(shared, subscriptions={"a": {"name": "op", **subscription}})
    return [n for n in found if n["kind"] in ("Subscription", "ClusterExtension", "Job")]


def application(shared: Obj | None = None, top: Obj | None = None, **given: Any) -> Obj:
    """The Application of one entry in map form."""
    group = given.pop("group", {})
    entry = {"name": "web", "path": "charts/web", **given}
    return one(made(shared, top, applications={"web": entry}, **group), "Application")
