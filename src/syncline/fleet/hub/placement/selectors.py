"""The filter Predicate: a cluster passes if one predicate matches its labels, its claims and all CEL expressions; pure.

Rules: ``pkg/placement/plugins/predicate`` of upstream (reference ocm-pull-model §4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from syncline.fleet.hub.placement.expressions import as_seen, compiled, holds, reads_scores
from syncline.fleet.hub.placement.memory import Verdicts
from syncline.fleet.hub.placement.model import Cluster, Misconfigured
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import Program
from syncline.kube.objects import Obj, dig
from syncline.kube.selectors import Selector, SelectorError, label_selector_from

PREDICATE: Final = "Predicate"
"""Name of the filter."""


@dataclass(frozen=True, slots=True)
class ClusterSelector:
    """One predicate, or the selector of a decision group (without expressions)."""

    labels: Selector
    claims: Selector
    programs: tuple[Program, ...] = ()

    def matches(self, cluster: Cluster, scores: Mapping[tuple[str, str], Obj]) -> bool:
        return self._by_names(cluster) and (not self.programs or not self._expressions_refuse(cluster, scores))

    def refuses(self, cluster: Cluster, scores: Mapping[tuple[str, str], Obj]) -> str:
        """Return why a cluster does not match; empty if it does."""
        if not self.labels.matches(cluster.labels):
            return f"its labels do not match {self.labels}"
        if not self.claims.matches(cluster.claims):
            return f"its claims do not match {self.claims}"
        return self._expressions_refuse(cluster, scores)

    def _by_names(self, cluster: Cluster) -> bool:
        return self.labels.matches(cluster.labels) and self.claims.matches(cluster.claims)

    def _expressions_refuse(self, cluster: Cluster, scores: Mapping[tuple[str, str], Obj]) -> str:
        seen = as_seen(cluster) if self.programs else {}
        return next(filter(None, (holds(program, seen, scores) for program in self.programs)), "")


def predicates_of(placement: Obj) -> tuple[ClusterSelector, ...]:
    """Return the predicates of a Placement. Raises :class:`Misconfigured` for the first one that is invalid."""
    listed = dig(placement, "spec", "predicates") or ()
    return _predicates(tuple(_frozen(one.get("requiredClusterSelector") or {}) for one in listed))


def expressions_of(placement: Obj) -> list[str]:
    """Return the CEL expressions of a Placement."""
    return [
        str(text)
        for one in dig(placement, "spec", "predicates") or ()
        for text in dig(one, "requiredClusterSelector", "celSelector", "celExpressions") or ()
    ]


def group_selector(selector: Obj) -> ClusterSelector:
    """Return the selector of a decision group: labels and claims. Raises :class:`Misconfigured`."""
    try:
        return ClusterSelector(*_name_selectors(selector))
    except SelectorError as error:
        raise Misconfigured("", str(error)) from None


@lru_cache(maxsize=500)
def _predicates(given: tuple[Any, ...]) -> tuple[ClusterSelector, ...]:
    """Return the same selectors for the same predicates: programs are compiled once, verdicts are kept for them."""
    return tuple(map(_predicate, map(_thawed, given)))


def _predicate(selector: Obj) -> ClusterSelector:
    try:
        labels, claims = _name_selectors(selector)
    except SelectorError as error:
        raise Misconfigured(PREDICATE, str(error)) from None
    try:
        programs = [compiled(str(text)) for text in dig(selector, "celSelector", "celExpressions") or ()]
    except CelError as error:
        raise Misconfigured(PREDICATE, f"compilation failed: {error}") from None
    return ClusterSelector(labels, claims, tuple(programs))


def _name_selectors(selector: Obj) -> tuple[Selector, Selector]:
    labels = label_selector_from(selector.get("labelSelector") or {})
    claims = label_selector_from({"matchExpressions": dig(selector, "claimSelector", "matchExpressions") or []})
    return labels, claims


def passing(
    placement: Obj,
    clusters: Sequence[Cluster],
    scores: Mapping[tuple[str, str], Obj],
    verdicts: Verdicts,
) -> tuple[Cluster, ...]:
    """Return the clusters that pass the filter. Raises :class:`Misconfigured`; a Placement without candidates or
    without predicates is not checked."""
    if not clusters or not dig(placement, "spec", "predicates"):
        return tuple(clusters)
    selectors = predicates_of(placement)

    def passes(cluster: Cluster) -> bool:
        return any(one.matches(cluster, scores) for one in selectors)

    verdicts.use(selectors, len(clusters))
    if not reads_scores(expressions_of(placement)):
        return verdicts.passing(clusters, passes)
    of_cluster: dict[str, list[Obj]] = {}
    for (name, _), score in scores.items():
        of_cluster.setdefault(name, []).append(score)
    return verdicts.passing_with(clusters, of_cluster, passes)


def refusals(placement: Obj, cluster: Cluster, scores: Mapping[tuple[str, str], Obj]) -> list[str]:
    """Return for each predicate why it does not match; empty if one does. Raises :class:`Misconfigured`."""
    found = []
    for index, selector in enumerate(predicates_of(placement)):
        why = selector.refuses(cluster, scores)
        if not why:
            return []
        found.append(f"predicate {index + 1}: {why}")
    return found


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return ("{}", *((str(key), _frozen(one)) for key, one in value.items()))
    return ("[]", *map(_frozen, value)) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    if value[0] == "{}":
        return {key: _thawed(one) for key, one in value[1:]}
    return [_thawed(one) for one in value[1:]]
