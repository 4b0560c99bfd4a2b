"""``spreadPolicy``: how the selected clusters are spread over topologies; pure.

Upstream has the field and does not implement it, so it counts only with the annotation. The meaning is the one that the
field's documentation gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from syncline.fleet.hub.placement.model import Cluster
from syncline.kube.objects import Obj, annotations_of, dig

SPREAD: Final = "syncline.dev/spread"
"""Annotation of a Placement: ``"true"`` makes its spreadPolicy count."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One term: the numbers of selected clusters for the values of ``key`` differ by at most ``max_skew``."""

    key: str
    of_claim: bool
    max_skew: int
    strict: bool
    """DoNotSchedule: rather select fewer clusters."""

    def value_of(self, cluster: Cluster) -> str | None:
        return (cluster.claims if self.of_claim else cluster.labels).get(self.key)

    def __str__(self) -> str:
        return f"{'claim' if self.of_claim else 'label'} {self.key}, maxSkew {self.max_skew}"


def constraints_of(placement: Obj) -> list[Constraint]:
    """Return the constraints in order of importance; none without the annotation."""
    if annotations_of(placement).get(SPREAD) != "true":
        return []
    return [
        Constraint(
            str(one.get("topologyKey") or ""),
            one.get("topologyKeyType") == "Claim",
            max(int(one.get("maxSkew") or 1), 1),
            one.get("whenUnsatisfiable") == "DoNotSchedule",
        )
        for one in dig(placement, "spec", "spreadPolicy", "spreadConstraints") or ()
    ]


@dataclass(slots=True)
class _Counts:
    """How many selected clusters each topology of a constraint has."""

    constraint: Constraint
    chosen: dict[str, int] = field(default_factory=dict)

    def excess(self, topologies: tuple[str | None, ...], index: int) -> int:
        """Return by how much one more cluster there would exceed the skew; 0 or less: it fits."""
        value = topologies[index]
        if value is None:
            return 0
        return self.chosen[value] + 1 - min(self.chosen.values()) - self.constraint.max_skew


def spread(
    constraints: Sequence[Constraint], ranked: Sequence[Cluster], most: int
) -> tuple[tuple[Cluster, ...], Mapping[str, str]]:
    """Choose up to ``most`` clusters of those ``ranked`` by score; also return why others were left out.

    One after the other the best cluster is chosen that fits all strict constraints, and exceeds the others least, those
    with a smaller index first. A cluster without the label or claim of a strict constraint is not chosen.
    """
    if not constraints:
        return tuple(ranked[:most]), {}
    groups: dict[tuple[str | None, ...], list[tuple[int, Cluster]]] = {}
    left_out: dict[str, str] = {}
    for place, cluster in enumerate(ranked):
        topologies = tuple(one.value_of(cluster) for one in constraints)
        lacks = next(
            (one for one, value in zip(constraints, topologies, strict=True) if one.strict and value is None), None
        )
        if lacks is not None:
            left_out[cluster.name] = f"it has no {'claim' if lacks.of_claim else 'label'} {lacks.key} to spread by"
            continue
        groups.setdefault(topologies, []).append((place, cluster))
    counts = [_Counts(one) for one in constraints]
    for topologies in groups:
        for one, value in zip(counts, topologies, strict=True):
            if value is not None:
                one.chosen[value] = 0
    for waiting in groups.values():
        waiting.reverse()
    chosen: list[tuple[int, Cluster]] = []
    while len(chosen) < most:
        best = _best(groups, counts)
        if best is None:
            break
        chosen.append(groups[best].pop())
        if not groups[best]:
            del groups[best]
        for one, value in zip(counts, best, strict=True):
            if value is not None:
                one.chosen[value] += 1
    if len(chosen) < most:
        _explain(groups, counts, left_out)
    return tuple(cluster for _, cluster in sorted(chosen, key=lambda one: one[0])), left_out


def _best(
    groups: Mapping[tuple[str | None, ...], list[tuple[int, Cluster]]], counts: Sequence[_Counts]
) -> tuple[str | None, ...] | None:
    """Return the topologies from which the next cluster is chosen; None: no cluster fits."""
    found: list[tuple[tuple[int, ...], int, tuple[str | None, ...]]] = []
    for topologies, waiting in groups.items():
        excesses = [max(one.excess(topologies, index), 0) for index, one in enumerate(counts)]
        if not any(excess and one.constraint.strict for one, excess in zip(counts, excesses, strict=True)):
            found.append((tuple(excesses), waiting[-1][0], topologies))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _explain(
    groups: Mapping[tuple[str | None, ...], list[tuple[int, Cluster]]],
    counts: Sequence[_Counts],
    left_out: dict[str, str],
) -> None:
    for topologies, waiting in groups.items():
        for index, one in enumerate(counts):
            if one.constraint.strict and one.excess(topologies, index) > 0:
                text = f"spreadPolicy ({one.constraint}) allows no more clusters with {topologies[index]}"
                left_out.update((cluster.name, text) for _, cluster in waiting)
                break
