"""One generator element: which kinds it has, its rows after the selector, and when it should run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from syncline.appset.generators import clusters, decisions, git, hosts, listing, plugin
from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.errors import GenerationError
from syncline.appset.generators.reading import Element
from syncline.appset.rendering.goforms import flattened, shown
from syncline.kube.selectors import Selector, SelectorError, label_selector_from

Interval: TypeAlias = Callable[[Element, Context], float]
"""Seconds after which a generator should run again; 0: never."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of generator; ``rows`` is None for those that combine others."""

    rows: Callable[[Element, Context], Rows] | None
    interval: Interval


def _never(element: Element, context: Context) -> float:
    return 0.0


KINDS: dict[str, Kind] = {
    "list": Kind(listing.rows_of_list, _never),
    "clusters": Kind(clusters.rows_of_clusters, _never),
    "git": Kind(git.rows_of_git, git.interval),
    "scmProvider": Kind(hosts.rows_of_repositories, hosts.interval),
    "clusterDecisionResource": Kind(decisions.rows_of_decisions, decisions.interval),
    "pullRequest": Kind(hosts.rows_of_pull_requests, hosts.interval),
    "matrix": Kind(None, _never),
    "merge": Kind(None, _never),
    "plugin": Kind(plugin.rows_of_plugin, plugin.interval),
}
"""In upstream's order, which is that of rows of an element with several kinds."""
COMBINING = ("matrix", "merge")
MAX_DEPTH = 2
"""How deep matrix and merge may nest: one within another."""


def kinds_of(element: Element, depth: int = 0) -> list[str]:
    """Return the kinds of generators that an element has; below the second level no combining ones count."""
    return [
        kind for kind in KINDS if element.raw.get(kind) is not None and not (kind in COMBINING and depth >= MAX_DEPTH)
    ]


def intervals(element: Element, context: Context, depth: int = 0) -> list[float]:
    """Return the interval of each kind of an element; that of a combining one is the smallest of its children."""
    return [_interval(element, kind, context, depth) for kind in kinds_of(element, depth)]


def _interval(element: Element, kind: str, context: Context, depth: int) -> float:
    below = element.below(kind)
    assert below is not None  # kinds_of saw it
    if kind not in COMBINING:
        return KINDS[kind].interval(below, context)
    children = below.elements("generators")
    return least(seconds for child in children for seconds in intervals(child, context, depth + 1))


def least(intervals: Any) -> float:
    """Return the smallest interval, 0 if there is none."""
    return min((seconds for seconds in intervals if seconds > 0), default=0.0)


def selector_of(element: Element) -> Selector | None:
    """Return the selector for rows, None if there is none; raises :class:`GenerationError`."""
    given = element.selector("selector")
    if given is None:
        return None
    try:
        return label_selector_from(given, any_value=True)
    except SelectorError as error:
        raise GenerationError(f"error parsing label selector: {error}") from None


def selected(rows: Rows, selector: Selector | None) -> Rows:
    """Return the rows whose parameters, flattened and as texts, match."""
    if selector is None or selector.empty:
        return rows
    return [row for row in rows if selector.matches(_texts(row))]


def _texts(row: Row) -> dict[str, str]:
    return {key: shown(value) for key, value in flattened(row, typed=True).items()}
