"""Selects the pods that leave a drained node; pure. Entry point: :func:`departures`.

Same rules as upstream's use of kubectl's drain: pods of DaemonSets and static pods stay; pods with an emptyDir or
without a controller are evicted (source: kubectl ``pkg/drain`` filters; reference machine-config 5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of, namespace_of, owner_references

MIRROR = "kubernetes.io/config.mirror"
UNMANAGED = "deleting Pods that declare no controller"
DAEMON_SETS = "ignoring DaemonSet-managed Pods"
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Departure:
    """The decision about one pod. ``warning``: kubectl's warning, or empty."""

    pod: Obj
    leaves: bool
    warning: str = ""


def departures(node: str, pods: Iterable[Obj], daemon_sets: Collection[ObjectRef]) -> list[Departure]:
    """Return the decisions for the node's pods, in order. ``daemon_sets``: those that exist."""
    return [_departure(pod, daemon_sets) for pod in pods if dig(pod, "spec", "nodeName", default="") == node]


def leaves(pod: Obj, daemon_sets: Collection[ObjectRef]) -> bool:
    return _departure(pod, daemon_sets).leaves


def _departure(pod: Obj, daemon_sets: Collection[ObjectRef]) -> Departure:
    """Apply the filters in kubectl's order; the last warning is kept."""
    controller = next((each for each in owner_references(pod) if each.get("controller")), None)
    finished = dig(pod, "status", "phase") in FINISHED
    daemon = controller is not None and controller.get("kind") == "DaemonSet"
    if daemon and controller is not None and controller.get("apiVersion") == "apps/v1" and not finished:
        owner = ObjectRef("apps", "DaemonSet", namespace_of(pod), str(controller.get("name")))
        if owner in daemon_sets:
            return Departure(pod, False, DAEMON_SETS)
    if MIRROR in annotations_of(pod):
        return Departure(pod, False)
    return Departure(pod, True, UNMANAGED if controller is None and not finished else "")


def warning_line(found: Iterable[Departure]) -> str:
    """Return the warnings on one line as kubectl prints them: pods by warning; empty if there is none."""
    by_text: dict[str, list[str]] = {}
    for each in found:
        if each.warning:
            by_text.setdefault(each.warning, []).append(f"{namespace_of(each.pod)}/{name_of(each.pod)}")
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in by_text.items())
