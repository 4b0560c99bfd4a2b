"""Prioritizers: which there are for a Placement, with which weight, and what they give each cluster; pure.

Rules: ``getWeights`` and ``pkg/placement/plugins/{balance,steady,resource,addon}`` of upstream (reference
ocm-pull-model §4.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.base.clock import time_or_none
from syncline.fleet.hub.placement.model import SUCCESS, Cluster, Code, Hub, Misconfigured, Prioritized, Status
from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import QuantityError, parse_quantity

MAX_SCORE: Final = 100
BALANCE, STEADY = "Balance", "Steady"
RESOURCES: Final = {"ResourceAllocatableCPU": "cpu", "ResourceAllocatableMemory": "memory"}
_DEFAULTS: Final = (BALANCE, STEADY)
BUILT_IN: Final = "BuiltIn"


@dataclass(frozen=True, slots=True)
class Prioritizer:
    """A prioritizer that counts. ``name`` is upstream's; ``resource``, ``score``: where an add-on score is found."""

    name: str
    weight: int
    resource: str = ""
    score: str = ""


def prioritizers_of(placement: Obj) -> list[Prioritizer]:
    """Return the prioritizers with a weight, sorted by name. Raises :class:`Misconfigured`.

    Configured weights replace those of the defaults; with mode Exact there are no defaults.
    """
    policy = dig(placement, "spec", "prioritizerPolicy") or {}
    mode = str(policy.get("mode") or "Additive")
    if mode not in ("Additive", "Exact"):
        raise Misconfigured("", f"incorrect prioritizer policy mode: {mode}")
    weights: dict[tuple[Any, ...], tuple[Obj, int]] = {}
    if mode == "Additive":
        weights = {(BUILT_IN, name): ({"type": BUILT_IN, "builtIn": name}, 1) for name in _DEFAULTS}
    for index, one in enumerate(policy.get("configurations") or ()):
        coordinate = one.get("scoreCoordinate")
        if coordinate is None:
            raise Misconfigured("", "scoreCoordinate field is required")
        # Upstream compares coordinates with a reference to an add-on by identity: each counts for itself.
        own = (index,) if coordinate.get("addOn") is not None else ()
        key = (str(coordinate.get("type") or ""), str(coordinate.get("builtIn") or ""), *own)
        weights[key] = (coordinate, int(one.get("weight") or 0))
    found = [_prioritizer(coordinate, weight) for coordinate, weight in weights.values() if weight]
    return sorted(found, key=lambda one: one.name)


def _prioritizer(coordinate: Obj, weight: int) -> Prioritizer:
    if coordinate.get("type") == BUILT_IN:
        name = str(coordinate.get("builtIn") or "")
        if name not in _DEFAULTS and name not in RESOURCES:
            raise Misconfigured("", f"incorrect builtin prioritizer: {name}")
        return Prioritizer(name, weight)
    addon = coordinate.get("addOn")
    if addon is None:
        raise Misconfigured("", "addOn should not be empty")
    resource, score = str(addon.get("resourceName") or ""), str(addon.get("scoreName") or "")
    return Prioritizer(f"AddOn/{resource}/{score}", weight, resource, score)


def scored(
    prioritizer: Prioritizer, clusters: Sequence[Cluster], hub: Hub, now: datetime
) -> tuple[Prioritized, Status]:
    """Return the scores of clusters that passed all filters, and a warning if some of them are outdated."""
    status = SUCCESS
    if prioritizer.name == BALANCE:
        scores = balance(clusters, hub.elsewhere)
    elif prioritizer.name == STEADY:
        before = hub.selected_before
        scores = {one.name: MAX_SCORE if one.name in before else 0 for one in clusters}
    elif prioritizer.name in RESOURCES:
        scores = by_resource(clusters, RESOURCES[prioritizer.name])
    else:
        scores, expired = _by_addon(prioritizer, clusters, hub, now)
        if expired:
            text = "".join(f" {name}/{prioritizer.resource}" for name in expired)
            status = Status(Code.WARNING, prioritizer.name, f"AddOnPlacementScores{text} expired")
    return Prioritized(prioritizer.name, prioritizer.weight, scores), status


def balance(clusters: Sequence[Cluster], counts: Mapping[str, int]) -> dict[str, int]:
    """Return 100 for clusters that no other Placement has selected, down to -100 for the most selected one."""
    most = max(counts.values(), default=0)
    return {
        one.name: 2 * int(MAX_SCORE * (0.5 - counts[one.name] / most)) if counts.get(one.name) else MAX_SCORE
        for one in clusters
    }


def by_resource(clusters: Sequence[Cluster], resource: str) -> dict[str, int]:
    """Return -100 for the least allocatable, 100 for the most; clusters without allocatable or capacity have none."""
    found = {one.name: amount for one in clusters if (amount := _allocatable(one, resource)) is not None}
    if not found:
        return {}
    least, most = min(found.values()), max(found.values())
    if most == least:
        return dict.fromkeys(found, MAX_SCORE)
    return {name: int(((amount - least) / (most - least) - 0.5) * 2.0 * 100.0) for name, amount in found.items()}


def _allocatable(cluster: Cluster, resource: str) -> float | None:
    status = cluster.obj.get("status") or {}
    allocatable, capacity = status.get("allocatable") or {}, status.get("capacity") or {}
    if resource not in allocatable or resource not in capacity:
        return None
    try:
        return approximate(str(allocatable[resource]))
    except QuantityError:
        return None


_DECIMAL: Final = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([numkMGTPE]?)|[eE]([+-]?\d+))")
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def approximate(text: str) -> float:
    """Return a quantity as a float, rounded as Go does: the digits times a power of ten. Raises QuantityError."""
    quantity = parse_quantity(text)
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return quantity.nano / 10**9
    sign, whole, fraction, suffix, exponent = found.groups()
    power = (int(exponent) if exponent else _POWERS[suffix or ""]) - len(fraction or "")
    digits = int((whole + (fraction or "")) or 0) * (-1 if sign == "-" else 1)
    if power < -9 or len(whole + (fraction or "")) > 18:
        return quantity.nano / 10**9
    return float(digits) if power == 0 else float(digits) * float(f"1e{power}")


def _by_addon(
    prioritizer: Prioritizer, clusters: Sequence[Cluster], hub: Hub, now: datetime
) -> tuple[dict[str, int], list[str]]:
    """Return the scores that add-ons have written, and the clusters whose scores have expired and count 0."""
    scores: dict[str, int] = {}
    expired: list[str] = []
    for cluster in clusters:
        scores[cluster.name] = 0
        found = hub.scores.get((cluster.name, prioritizer.resource))
        if found is None:
            continue
        valid_until = time_or_none(dig(found, "status", "validUntil"))
        if valid_until is not None and now > valid_until:
            expired.append(cluster.name)
            continue
        for one in dig(found, "status", "scores") or ():
            if (one.get("name") or "") == prioritizer.score:
                scores[cluster.name] = int(one.get("value") or 0)
    return scores, expired
