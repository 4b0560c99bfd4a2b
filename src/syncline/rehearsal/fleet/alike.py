"""Which clusters a hub cannot tell apart but by their names; pure. Entry point: :func:`alike`.

Of clusters that are alike only some are on the rehearsed hub that makes Applications; what the others get is that with
another name. This holds as long as templates use names whole: :func:`uses_names_whole`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from syncline.fleet.pull import names
from syncline.fleet.pull.order.model import GroupSeen, Target
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, meta
from syncline.rehearsal.fleet.classes import Mentions, with_name, without_name
from syncline.rehearsal.fleet.given import FleetWorld

PAGE = "cluster.open-cluster-management.io/decision-group"
"""How the labels of the groups of a Placement's decisions begin."""
_ACTION = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
_NAMES = re.compile(r"\.(?:name|nameNormalized|clusterName|server|url)\b|(?<![\w.$])[.$](?![\w(])")
_WHOLE = re.compile(r"\s*\.(?:name|clusterName|server)\s*")


def alike(
    world: FleetWorld, mentions: Iterable[Mentions], decisions: Iterable[Sequence[Obj]]
) -> tuple[tuple[str, ...], ...]:
    """Return clusters that are alike, in the order of the file: of one entry, equally mentioned by the repository, and
    chosen by the same Placements. ``decisions``: PlacementDecisions before and after."""
    chosen: dict[str, list[object]] = {}
    for number, pages in enumerate(decisions):
        for page in pages:
            of = sorted((key, value) for key, value in labels_of(page).items() if "/placement" in key or PAGE in key)
            for one in dig(page, "status", "decisions") or ():
                chosen.setdefault(str(one.get("clusterName")), []).append((number, of))
    said = list(mentions)
    found: dict[str, list[str]] = {}
    for name, group in world.clusters().items():
        key = repr((group.place, [each.of(name) for each in said], sorted(map(repr, chosen.get(name, ())))))
        found.setdefault(key, []).append(name)
    return tuple(map(tuple, found.values()))


def uses_names_whole(objects: Iterable[Obj]) -> bool:
    """Return whether the ApplicationSets use names of clusters only as they are: no part of one, nothing that depends
    on one. Without Go templates there are no functions."""
    for one in objects:
        if one.get("kind") != APPLICATION_SET.kind or not dig(one, "spec", "goTemplate"):
            continue
        for text in _texts(one.get("spec")):
            for action in _ACTION.findall(text):
                if _NAMES.search(action) and not _WHOLE.fullmatch(action):
                    return False
    return True


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (str(key), *_texts(one))
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def spread(seen: GroupSeen, others: Mapping[str, Sequence[str]]) -> GroupSeen:
    """Return the group with the targets of all clusters. ``others``: by the name of a cluster that the group knows
    those that are alike, and that it does not know."""
    found: list[Target] = []
    for target in seen.targets:
        found.append(target)
        name = target.cluster.name
        bare = without_name(target.name, name) if name in others else ""
        found += (_renamed(target, other, with_name(bare, other)) for other in others.get(name, ()))
    return replace(seen, targets=tuple(found))


def _renamed(target: Target, cluster: str, app: str) -> Target:
    """Return the target for another cluster. What an order is decided by are names, not what the works carry."""
    annotations = {**annotations_of(target.app), names.CLUSTER: cluster}
    metadata = {**meta(target.app), "name": app, "annotations": annotations}
    return replace(
        target,
        app={**target.app, "metadata": metadata},
        cluster=replace(target.cluster, name=cluster),
    )
