"""Edit lists of status conditions in the style of the workload APIs, with their timestamps."""

from __future__ import annotations

from syncline.kube.objects import Obj


def find(conditions: list[Obj], kind: str) -> Obj | None:
    return next((item for item in conditions if item.get("type") == kind), None)


def without(conditions: list[Obj], kind: str) -> list[Obj]:
    """Return a new list without one type."""
    return [item for item in conditions if item.get("type") != kind]


def put(conditions: list[Obj], new: Obj) -> list[Obj]:
    """Return a new list with ``new`` at its end. A condition with equal status and reason stays unchanged; with equal
    status only, it keeps its transition time (Kubernetes ``SetDeploymentCondition``)."""
    old = find(conditions, str(new["type"]))
    if old is not None and old.get("status") == new["status"] and old.get("reason") == new.get("reason"):
        return list(conditions)
    if old is not None and old.get("status") == new["status"] and "lastTransitionTime" in old:
        new = new | {"lastTransitionTime": old["lastTransitionTime"]}
    return [*without(conditions, str(new["type"])), new]
