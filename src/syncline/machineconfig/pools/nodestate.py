"""Evaluates the annotations and conditions of a node for its pool; pure.

Source: Machine Config Operator ``LayeredNodeState``; reference machine-config 3.2. A reconcile of a pool with thousands
of nodes needs these facts several times, so an :class:`ObservedNode` reads them once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.ansible.journal import FAILED, NOT_IDEMPOTENT, REPORT, reported
from syncline.machineconfig.drain.progress import BLOCKED
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_IMAGE,
    DONE,
    FAILED_STATES,
    LAST_DRAIN,
    STATE,
    TOPOLOGY,
    UPDATE_TAINT,
)
from syncline.machineconfig.pools.layered import Layering

_SAID = {"Ready": "NotReady", "DiskPressure": "OutOfDisk", "NetworkUnavailable": "NetworkUnavailable"}
"""The conditions that count, with upstream's word for each."""
CORE_OS = ("Red Hat Enterprise Linux CoreOS", "Fedora Linux", "CentOS Stream CoreOS")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts of a node that its pool needs. ``notes``: its annotations as they are; ``readable``: the same for a typed
    client (one non-text value makes them empty). ``image``: it is targeted at an image; ``between_images``: and has
    one. ``not_ready``: why workloads cannot be scheduled there. ``blocked``: its drain may be blocked. ``unplayed``: it
    is cordoned for its update, in which Ansible failed."""

    name: str
    notes: dict[str, str]
    readable: dict[str, str]
    state: str
    desired: str
    image: bool
    between_images: bool
    topology: str | None
    not_ready: str | None
    done: bool
    failing: bool
    unavailable: bool
    tainted: bool
    blocked: bool
    unplayed: bool


class ObservedNode(dict[str, Any]):
    """An immutable node, equal to its object, with its facts. ``asked``: the selectors of all pools at the last lookup,
    and ``home``: the pool found, both set by ``membership.py``."""

    __slots__ = ("asked", "facts", "home")

    def __init__(self, node: Obj) -> None:
        super().__init__(node)
        self.facts = _read(node)
        self.asked: object = None
        self.home = ""


class Nodes(tuple[Obj, ...]):
    """Nodes of one pool, with the facts of each in the same order."""

    @cached_property
    def facts(self) -> list[NodeFacts]:
        return [node.facts if type(node) is ObservedNode else _read(node) for node in self]


def facts_of_all(nodes: Sequence[Obj]) -> list[NodeFacts]:
    return nodes.facts if type(nodes) is Nodes else [facts_of(node) for node in nodes]


def facts_of(node: Obj) -> NodeFacts:
    return node.facts if type(node) is ObservedNode else _read(node)


def _read(node: Obj) -> NodeFacts:
    notes: dict[str, str] = node["metadata"].get("annotations") or {}
    state, desired = notes.get(STATE, ""), notes.get(DESIRED, "")
    ready = _not_ready(node)
    # Current equals desired, for the config and for the image, and the agent says Done.
    current = notes.get(CURRENT, "")
    done = bool(current) and current == desired and _image_done(notes) and state == DONE
    failing = current != desired and state in FAILED_STATES
    readable = annotations_of(node)
    return NodeFacts(
        name_of(node),
        notes,
        readable,
        state,
        desired,
        DESIRED_IMAGE in notes,
        CURRENT_IMAGE in readable and DESIRED_IMAGE in readable,
        readable.get(TOPOLOGY),
        ready,
        done,
        failing,
        ready is not None or (not done and not failing),
        _tainted(node),
        BLOCKED in readable,
        failing and bool(dig(node, "spec", "unschedulable")) and _unplayed(readable),
    )


def _unplayed(notes: dict[str, str]) -> bool:
    drained = notes.get(LAST_DRAIN, "").startswith("drain-")
    return drained and any(one.phase in (FAILED, NOT_IDEMPOTENT) for one in reported(notes.get(REPORT, "")).values())


def mcd_state(node: Obj) -> str:
    """Return the agent's state: Done, Working, Degraded, Unreconcilable; empty before its first run."""
    return facts_of(node).state


def target_of(pool: Obj) -> str:
    """Return the rendered config that the pool must reach; empty before the first render."""
    return str(dig(pool, "spec", "configuration", "name", default="") or "")


def not_ready(node: Obj) -> str | None:
    """Return in upstream's words why workloads cannot be scheduled on the node, or None. A missing condition is
    fine."""
    return node.facts.not_ready if type(node) is ObservedNode else _not_ready(node)


def _not_ready(node: Obj) -> str | None:
    for condition in dig(node, "status", "conditions", default=[]):
        kind, status = condition.get("type"), condition.get("status") or ""
        if kind in _SAID and status != ("True" if kind == "Ready" else "False"):
            return f"node {name_of(node)} is reporting {_SAID[kind]}={status}"
    if dig(node, "spec", "unschedulable"):
        return f"node {name_of(node)} is reporting Unschedulable"
    return None


def is_done(node: Obj) -> bool:
    """Return whether config and image are the desired ones and the agent reports Done."""
    return facts_of(node).done


def _image_done(found: dict[str, str]) -> bool:
    if CURRENT_IMAGE not in found and DESIRED_IMAGE not in found:
        return True
    current, desired = found.get(CURRENT_IMAGE, ""), found.get(DESIRED_IMAGE, "")
    return bool(desired) and current == desired


def is_failing(node: Obj) -> bool:
    """Return whether an update failed; False while current equals desired, as after drift."""
    return facts_of(node).failing


def is_unavailable(node: Obj) -> bool:
    """Cordoned, not ready, or its agent works or may begin to at any moment."""
    return facts_of(node).unavailable


def wants_build(node: NodeFacts, layering: Layering) -> bool:
    """Return whether the node is targeted at the result of the pool's build."""
    image = bool(layering.image) and node.notes.get(DESIRED_IMAGE, "") == layering.image
    return image and layering.build is not None and node.desired == layering.rendered


def finished_for(pool: Obj, layering: Layering) -> Callable[[NodeFacts], bool]:
    """Return a predicate: the node is done with the pool's target."""
    wanted = target_of(pool)
    if layering.layered:
        return lambda node: node.done and node.desired == wanted and wants_build(node, layering)
    return lambda node: node.done and node.desired == wanted and not node.image


def candidates_of(pool: Obj, layering: Layering) -> Callable[[NodeFacts], bool]:
    """Return a predicate: the node is not targeted at the pool's target, or must leave image mode."""
    if layering.layered:
        return lambda node: not wants_build(node, layering)
    wanted = target_of(pool)
    return lambda node: node.desired != wanted or node.image


def is_done_for(node: Obj, pool: Obj, layering: Layering) -> bool:
    return finished_for(pool, layering)(facts_of(node))


def is_candidate(node: Obj, pool: Obj, layering: Layering) -> bool:
    return candidates_of(pool, layering)(facts_of(node))


def has_update_taint(node: Obj) -> bool:
    return facts_of(node).tainted


def _tainted(node: Obj) -> bool:
    taints = dig(node, "spec", "taints", default=[])
    return any((t.get("key"), t.get("effect")) == (UPDATE_TAINT["key"], UPDATE_TAINT["effect"]) for t in taints)


def is_core_os(node: Obj) -> bool:
    text = str(dig(node, "status", "nodeInfo", "osImage", default="") or "")
    return any(name in text for name in CORE_OS)
