"""Decision groups: the selected clusters as PlacementDecisions of at most 100 clusters; pure.

Rules: ``generateDecisionGroups`` and ``generateDecision`` of upstream (reference ocm-pull-model §4.6, §5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from syncline.fleet.hub.placement.model import (
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
    SUCCESS,
    Cluster,
    Misconfigured,
    Status,
)
from syncline.fleet.hub.placement.selectors import group_selector
from syncline.kube.gotemplate.strconv import parse_float
from syncline.kube.objects import Obj, dig, name_of, namespace_of, uid_of

MAX_DECISIONS: Final = 100
"""The most clusters of one PlacementDecision."""
VERSION: Final = "cluster.open-cluster-management.io/v1beta1"


@dataclass(frozen=True, slots=True)
class Group:
    """One decision group; its clusters by name."""

    name: str
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grouped:
    """All groups of a Placement; ``status`` says if its strategy is misconfigured. Then groups are missing."""

    groups: tuple[Group, ...]
    status: Status = SUCCESS


def grouped(placement: Obj, selected: Sequence[Cluster]) -> Grouped:
    """Divide the selected clusters: each goes to the first group that matches it, the rest to groups without name."""
    strategy = dig(placement, "spec", "decisionStrategy", "groupStrategy") or {}
    groups: list[Group] = []
    left = {one.name: one for one in selected}
    try:
        length = group_length(strategy.get("clustersPerDecisionGroup"), len(selected))
        for wanted in strategy.get("decisionGroups") or ():
            selector = group_selector(wanted.get("groupClusterSelector") or {})
            matched = [name for name, one in left.items() if selector.matches(one, {})]
            groups += _divided(str(wanted.get("groupName") or ""), matched, length)
            for name in matched:
                del left[name]
    except Misconfigured as error:
        return Grouped(tuple(groups), error.status)
    groups += _divided("", list(left), length)
    return Grouped(tuple(groups) or (Group("", ()),))


def group_length(given: Any, total: int) -> int:
    """Return the size of a group: a number or a percentage of ``total``, rounded up; all if it is not between 1 and
    ``total``. Raises :class:`Misconfigured`."""
    if given is None or isinstance(given, int):
        length = int(given or 0)
    else:
        text = str(given)
        percent = parse_float(text[:-1]) if text.endswith("%") else None
        if percent is None:
            raise Misconfigured("", f"{text} invalid type: string is not a percentage")
        share = percent / 100 * total
        length = math.ceil(share) if math.isfinite(share) else 0
    return length if 0 < length <= total else total


def _divided(name: str, matched: list[str], length: int) -> list[Group]:
    names = sorted(matched)
    return [Group(name, tuple(names[at : at + length])) for at in range(0, len(names), max(length, 1))]


@dataclass(frozen=True, slots=True)
class Pages:
    """The PlacementDecisions to have, and the ``decisionGroups`` of the Placement's status."""

    decisions: tuple[Obj, ...]
    groups: list[Obj]


def pages(placement: Obj, groups: Sequence[Group]) -> Pages:
    """Return the PlacementDecisions of these groups, numbered from 1 over all groups, with their status."""
    decisions: list[Obj] = []
    status: list[Obj] = []
    for index, group in enumerate(groups):
        starts = range(0, max(len(group.clusters), 1), MAX_DECISIONS)
        made = [
            _decision(placement, group, index, len(decisions) + count + 1, group.clusters[at : at + MAX_DECISIONS])
            for count, at in enumerate(starts)
        ]
        decisions += made
        status.append(
            {
                "decisionGroupIndex": index,
                "decisionGroupName": group.name,
                "decisions": [name_of(one) for one in made],
                "clusterCount": len(group.clusters),
            }
        )
    return Pages(tuple(decisions), status)


def _decision(placement: Obj, group: Group, index: int, number: int, names: Sequence[str]) -> Obj:
    owner = {
        "apiVersion": VERSION,
        "kind": "Placement",
        "name": name_of(placement),
        "uid": uid_of(placement),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labels = {
        PLACEMENT_LABEL: name_of(placement),
        GROUP_NAME_LABEL: group.name,
        GROUP_INDEX_LABEL: str(index),
    }
    metadata = {
        "name": f"{name_of(placement)}-decision-{number}",
        "namespace": namespace_of(placement),
        "labels": labels,
        "ownerReferences": [owner],
    }
    decided = [{"clusterName": name, "reason": ""} for name in names]
    return {"apiVersion": VERSION, "kind": "PlacementDecision", "metadata": metadata, "status": {"decisions": decided}}
