"""Chooses the nodes that a pool updates next; pure. Entry point: :func:`choose_targets`.

The capacity is ``maxUnavailable`` less the nodes that are down; if there are more candidates, they are taken by zone,
oldest first (source: Machine Config Operator node controller; reference machine-config 3.4). Ours, by annotation: an
order of nodes, canaries that must succeed first, and nodes that are deferred (docs/extensions.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of, owner_references
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.names import (
    ARBITER,
    DESIRED,
    DESIRED_IMAGE,
    FIRST_PIVOT,
    LABELS_APPLIED,
    MASTER,
    WORKER,
)
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.nodestate import (
    candidates_of,
    facts_of_all,
    finished_for,
    target_of,
)
from syncline.machineconfig.pools.waits import Reason, Wait

ZONE = "topology.kubernetes.io/zone"
OPERATOR = ("k8s-app", "machine-config-operator")
"""Label of the single pod whose node is updated last among the masters."""
ORDER = "syncline.dev/update-order"
"""Annotation of a Node: an integer; smaller ones are updated earlier, the default is 0."""
CANARIES = "syncline.dev/canaries"
"""Annotation of a pool: number or share of nodes that must be updated before any other begins."""
COUNT_OR_SHARE = "give a whole number, or a percentage such as 10%"
MAX_INT = 2**63 - 1
MAX_DIGITS = 64
"""Maximum characters of a percentage that is parsed."""
_GO_INTEGER = re.compile(r"[+-]?[0-9]+")
_INTEGER = re.compile(r"-?[0-9]{1,6}")


class LimitError(ValueError):
    """An invalid limit; the message about ``spec.maxUnavailable`` is upstream's. ``fix``: which field to correct, and
    the allowed values."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(text)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Said:
    """An Event about the pool."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class NodeWrite:
    """Changes of a node; a None value removes. ``taints`` None: no change."""

    node: str
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Obj, ...] | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice. ``writes`` in order; ``targeted``: nodes that get a new target; ``waits``: why candidates were passed
    over."""

    writes: tuple[NodeWrite, ...] = ()
    targeted: tuple[str, ...] = ()
    events: tuple[Said, ...] = ()
    waits: tuple[Wait, ...] = ()


def max_unavailable(pool: Obj, nodes: int) -> int:
    """Return how many nodes may be down at a time. A percentage is rounded down, and 0 means 1; negative limits are
    kept and stop updates. Raises :class:`LimitError`."""
    if name_of(pool) == ARBITER:
        return 1
    limit = dig(pool, "spec", "maxUnavailable")
    try:
        found = _scaled(1 if limit is None else limit, nodes)
    except ValueError as error:
        fix = f"spec.maxUnavailable of MachineConfigPool {name_of(pool)} is {limit!r}; {COUNT_OR_SHARE}"
        raise LimitError(f"maxUnavailable: invalid value for IntOrString: {error}", fix) from None
    return found if found != 0 else 1


def _scaled(limit: Any, total: int) -> int:
    """Return a count, or a percentage of ``total`` rounded down. Raises ValueError with Go's message."""
    if isinstance(limit, int):
        return limit
    text = str(limit)
    if not text.endswith("%"):
        raise ValueError("invalid type: string is not a percentage")
    digits = text[:-1]
    parsing = f"invalid value {quoted(text)}: strconv.Atoi: parsing {quoted(digits)}"
    if not _GO_INTEGER.fullmatch(digits):
        raise ValueError(f"{parsing}: invalid syntax")
    if len(digits) > MAX_DIGITS or abs(int(digits)) > MAX_INT:
        raise ValueError(f"{parsing}: value out of range")
    return int(digits) * total // 100


def unavailable(nodes: Sequence[Obj]) -> list[Obj]:
    return [node for node, facts in zip(nodes, facts_of_all(nodes), strict=True) if facts.unavailable]


def all_candidates(pool: Obj, nodes: Sequence[Obj], limit: int, layering: Layering) -> tuple[list[Obj], int]:
    """Return all candidates and the capacity. A node that failed at this target uses capacity, since two nodes would be
    down if it continued."""
    facts = facts_of_all(nodes)
    capacity = limit - sum(each.unavailable for each in facts)
    if capacity <= 0:
        return [], 0
    found: list[Obj] = []
    failing = 0
    candidate = candidates_of(pool, layering)
    for node, each in zip(nodes, facts, strict=True):
        if not candidate(each):
            failing += each.failing
        elif each.not_ready is None:
            found.append(node)
    if failing >= capacity:
        return [], 0
    return found, capacity - failing


def choose_targets(
    pool: Obj,
    candidates: Sequence[Obj],
    capacity: int,
    layering: Layering,
    *,
    operator_pods: Sequence[Obj] = (),
    pools: Sequence[Obj] = (),
    rendered: Mapping[str, Obj] | None = None,
) -> Chosen:
    """Return the writes that target the next nodes. ``rendered``: rendered configs by name."""
    events: list[Said] = []
    left = list(candidates)
    waits: list[Wait] = []
    if name_of(pool) == MASTER:
        left = _without_operator(left, operator_pods, events, waits)
    writes: list[NodeWrite] = []
    staying: list[Obj] = []
    for node in left:
        born = _labels_of_provisioning(node, pools, rendered or {})
        if born is None:
            staying.append(node)
        elif born:
            writes.append(NodeWrite(name_of(node), {LABELS_APPLIED: ""}, born))
        else:
            text = "it was born in a custom pool whose nodeSelector names no label that could be given to it"
            waits.append(Wait(Reason.UNLABELLED, text, (name_of(node),)))
    if not staying:
        return Chosen(tuple(writes), (), tuple(events), tuple(waits))
    if len(staying) > capacity:
        events += [said for node in staying if (said := _unreadable_order(node)) is not None]
        staying = sorted(staying, key=update_order)[:capacity]
    targets = [write for node in staying if (write := _target(node, pool, layering)) is not None]
    events.append(_targeted(staying, pool, layering))
    return Chosen((*writes, *targets), tuple(write.node for write in targets), tuple(events), tuple(waits))


def update_order(node: Obj) -> tuple[Any, ...]:
    """Return the sort key: the user's order, then upstream's: by zone, nodes without one last, oldest first."""
    zone = labels_of(node).get(ZONE)
    return _given_order(node), zone is None, zone or "", str(dig(node, "metadata", "creationTimestamp", default=""))


def _given_order(node: Obj) -> int:
    text = annotations_of(node).get(ORDER, "")
    return int(text) if _INTEGER.fullmatch(text) else 0


def _unreadable_order(node: Obj) -> Said | None:
    text = annotations_of(node).get(ORDER)
    if text is None or _INTEGER.fullmatch(text):
        return None
    message = f"node {name_of(node)}: annotation {ORDER} is {text[:MAX_DIGITS]!r} and counts as 0"
    return Said("UpdateOrderIgnored", f"{message}; give an integer of at most six digits", warning=True)


def canaries_left(pool: Obj, nodes: Sequence[Obj], layering: Layering) -> int | None:
    """Return how many more nodes may be targeted before the canaries are done; None without canaries left.

    Raises :class:`LimitError` for an annotation that is neither a count nor a percentage.
    """
    text = annotations_of(pool).get(CANARIES)
    if text is None:
        return None
    value: Any = int(text) if _INTEGER.fullmatch(text) else text
    try:
        wanted = min(_scaled(value, len(nodes)) or 1, len(nodes))
    except ValueError:
        wanted = -1
    if wanted < 0:
        wrong = f"MachineConfigPool {name_of(pool)}: annotation {CANARIES} is {text!r}"
        raise LimitError(f"{wrong}; {COUNT_OR_SHARE}", f"correct annotation {CANARIES}: {COUNT_OR_SHARE}")
    finished = finished_for(pool, layering)
    done = sum(finished(facts) for facts in facts_of_all(nodes))
    if done >= wanted:
        return None
    candidate = candidates_of(pool, layering)
    out = sum(not candidate(facts) for facts in facts_of_all(nodes))
    return max(wanted - out, 0)


def _without_operator(candidates: list[Obj], pods: Sequence[Obj], events: list[Said], waits: list[Wait]) -> list[Obj]:
    """Remove the node of the operator's only pod while there are other candidates."""
    key, value = OPERATOR
    mine = [pod for pod in pods if labels_of(pod).get(key) == value]
    if len(candidates) <= 1 or len(mine) != 1:
        return candidates
    home = dig(mine[0], "spec", "nodeName", default="")
    if any(name_of(node) == home for node in candidates):
        text = f"Deferring update of machine config operator node {home}"
        events.append(Said("DeferringOperatorNodeUpdate", text))
        waits.append(Wait(Reason.OPERATOR, "it runs the machine config operator", (home,)))
    return [node for node in candidates if name_of(node) != home]


def _labels_of_provisioning(node: Obj, pools: Sequence[Obj], rendered: Mapping[str, Obj]) -> dict[str, str] | None:
    """Return the labels that put a node into the custom pool whose config it was installed with; None: no such pool;
    empty: the pool's selector has no label to set, and the node waits."""
    found = annotations_of(node)
    config = rendered.get(found.get(FIRST_PIVOT, "")) if LABELS_APPLIED not in found else None
    owners = owner_references(config) if config is not None else []
    owner = str(owners[0].get("name")) if owners else ""
    pool = next((pool for pool in pools if name_of(pool) == owner), None)
    if pool is None or owner in (MASTER, WORKER):
        return None
    labels = {str(k): str(v) for k, v in dig(pool, "spec", "nodeSelector", "matchLabels", default={}).items()}
    for term in dig(pool, "spec", "nodeSelector", "matchExpressions", default=[]):
        values = term.get("values") or []
        if term.get("operator") == "In" and len(values) == 1:
            labels.setdefault(str(term.get("key")), str(values[0]))
        elif term.get("operator") == "Exists":
            labels.setdefault(str(term.get("key")), "")
    return labels


def _target(node: Obj, pool: Obj, layering: Layering) -> NodeWrite | None:
    """Return the write that targets the node, or None if it has the target."""
    wanted: dict[str, str | None] = {DESIRED: target_of(pool), DESIRED_IMAGE: None}
    if layering.layered:
        wanted = {DESIRED: layering.rendered, DESIRED_IMAGE: layering.image or None}
    have = annotations_of(node)
    changes = {key: value for key, value in wanted.items() if have.get(key) != value}
    return NodeWrite(name_of(node), changes) if changes else None


def _targeted(nodes: Sequence[Obj], pool: Obj, layering: Layering) -> Said:
    what = f"MachineConfig: {target_of(pool)}"
    reason = "SetDesiredConfig"
    if layering.layered:
        reason, what = "SetDesiredConfigAndOSImage", f"{what} / Image: {layering.image}"
    if len(nodes) == 1:
        return Said(reason, f"Targeted node {name_of(nodes[0])} to {what}")
    return Said(reason, f"Set target for {len(nodes)} nodes to {what}")
