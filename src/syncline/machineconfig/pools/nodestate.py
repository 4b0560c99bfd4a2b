"""What the annotations and conditions of one node mean to its pool; pure.

Source: Machine Config Operator ``LayeredNodeState``; reference machine-config 3.2.
"""

from __future__ import annotations

from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_IMAGE,
    DONE,
    FAILED_STATES,
    STATE,
    UPDATE_TAINT,
)
from syncline.machineconfig.pools.layered import Layering

__all__ = [
    "has_update_taint",
    "is_candidate",
    "is_core_os",
    "is_done",
    "is_done_for",
    "is_failing",
    "is_unavailable",
    "mcd_state",
    "not_ready",
    "target_of",
]

_SAID = {"Ready": "NotReady", "DiskPressure": "OutOfDisk", "NetworkUnavailable": "NetworkUnavailable"}
"""The conditions that count, by the word that upstream uses for them."""
CORE_OS = ("Red Hat Enterprise Linux CoreOS", "Fedora Linux", "CentOS Stream CoreOS")


def _notes(node: Obj) -> dict[str, str]:
    """Annotations as they are: pools of thousands of nodes ask for them many times a look."""
    found: dict[str, str] | None = node["metadata"].get("annotations")
    return found or {}


def mcd_state(node: Obj) -> str:
    """What the node's agent says of itself: Done, Working, Degraded, Unreconcilable; empty before it ran."""
    return _notes(node).get(STATE, "")


def target_of(pool: Obj) -> str:
    """The rendered config that the pool is to reach; empty before the first render."""
    return str(dig(pool, "spec", "configuration", "name", default="") or "")


def not_ready(node: Obj) -> str | None:
    """Why workloads cannot be scheduled there, in upstream's words; None if they can. A condition that is missing
    counts as fine."""
    for condition in dig(node, "status", "conditions", default=[]):
        kind, status = condition.get("type"), condition.get("status")
        if kind in _SAID and status != ("True" if kind == "Ready" else "False"):
            return f"node {name_of(node)} is reporting {_SAID[kind]}={status}"
    if dig(node, "spec", "unschedulable"):
        return f"node {name_of(node)} is reporting Unschedulable"
    return None


def is_done(node: Obj) -> bool:
    """Current equals desired, for the config and for the image, and the agent says Done."""
    found = _notes(node)
    current, desired = found.get(CURRENT, ""), found.get(DESIRED, "")
    return bool(current) and current == desired and _image_done(found) and mcd_state(node) == DONE


def _image_done(found: dict[str, str]) -> bool:
    if CURRENT_IMAGE not in found and DESIRED_IMAGE not in found:
        return True
    current, desired = found.get(CURRENT_IMAGE, ""), found.get(DESIRED_IMAGE, "")
    return bool(desired) and current == desired


def is_failing(node: Obj) -> bool:
    """An update was tried and failed. Not so while current equals desired, as after drift."""
    found = _notes(node)
    return found.get(CURRENT, "") != found.get(DESIRED, "") and mcd_state(node) in FAILED_STATES


def is_unavailable(node: Obj) -> bool:
    """Cordoned, not ready, or its agent works or may begin to at any moment."""
    return not_ready(node) is not None or (not is_done(node) and not is_failing(node))


def wants_target(node: Obj, pool: Obj) -> bool:
    return _notes(node).get(DESIRED, "") == target_of(pool)


def wants_build(node: Obj, layering: Layering) -> bool:
    """The node is targeted at what the pool's build made."""
    found = _notes(node)
    image = bool(layering.image) and found.get(DESIRED_IMAGE, "") == layering.image
    return image and layering.build is not None and found.get(DESIRED, "") == layering.rendered


def is_done_for(node: Obj, pool: Obj, layering: Layering) -> bool:
    """Done with what its pool wants now."""
    if not is_done(node) or not wants_target(node, pool):
        return False
    return wants_build(node, layering) if layering.layered else DESIRED_IMAGE not in _notes(node)


def is_candidate(node: Obj, pool: Obj, layering: Layering) -> bool:
    """It is not targeted at what its pool wants now, or has to leave image mode."""
    if layering.layered:
        return not wants_build(node, layering)
    return not wants_target(node, pool) or DESIRED_IMAGE in _notes(node)


def has_update_taint(node: Obj) -> bool:
    taints = dig(node, "spec", "taints", default=[])
    return any((t.get("key"), t.get("effect")) == (UPDATE_TAINT["key"], UPDATE_TAINT["effect"]) for t in taints)


def is_core_os(node: Obj) -> bool:
    text = str(dig(node, "status", "nodeInfo", "osImage", default="") or "")
    return any(name in text for name in CORE_OS)
