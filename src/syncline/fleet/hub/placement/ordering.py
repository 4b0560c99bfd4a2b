"""In which order pages of decisions are written, so that a reader never misses a cluster that stays selected; pure.

Clusters are listed by name over pages of 100: one that joins or leaves moves others from page to page. A page that
gains such a cluster is written before the page that loses it; in between the cluster is in both. A reader of all pages
of a Placement then sees every cluster that was selected before and still is.
"""

from __future__ import annotations

from collections.abc import Mapping

Pages = Mapping[str, frozenset[str]]
"""The clusters of each page, by the page's name."""
_EMPTY: frozenset[str] = frozenset()


def layers(before: Pages, after: Pages) -> list[dict[str, frozenset[str]]]:
    """Return the pages that change and the clusters they get, in layers: all of a layer are written before any of the
    next. A page that is only in ``before`` gets none: it is deleted.

    Where clusters change places between pages in a circle (decision groups exchange clusters) no order serves: there a
    layer comes first in which the pages have both what they had and what they get.
    """
    left = {name: after.get(name, _EMPTY) for name in {**after, **before} if before.get(name) != after.get(name)}
    needs = _needs(before, after)
    found: list[dict[str, frozenset[str]]] = []
    while left:
        free = [name for name in left if not needs.get(name, _EMPTY) & left.keys()]
        if not free:
            found.append({name: left[name] | before.get(name, _EMPTY) for name in left if name in after})
            free = list(left)
        found.append({name: left.pop(name) for name in free})
    return found


def _needs(before: Pages, after: Pages) -> dict[str, set[str]]:
    """Return for each page those that must be written first: they gain what it loses."""
    had = {cluster: name for name, clusters in before.items() for cluster in clusters}
    needs: dict[str, set[str]] = {}
    for new, clusters in after.items():
        for cluster in clusters - before.get(new, _EMPTY):
            if cluster in had:
                needs.setdefault(had[cluster], set()).add(new)
    return needs
