"""Kinds that an installation ignores (``resource.exclusions``, ``resource.inclusions``).

Called by the comparison (excluded manifests are dropped with a warning) and by observation (excluded kinds are never
live). Pure. Rules: Argo CD ``util/settings/resources_filter.go`` (reference argocd-app §5.11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.kube.text.glob import glob_matches


@dataclass(frozen=True, slots=True)
class FilterEntry:
    """Groups and clusters are globs; a kind is literal or ``*``; an empty list matches everything."""

    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> FilterEntry:
        """Parse an entry of ``resource.exclusions`` or ``resource.inclusions``."""
        lists = (tuple(str(item) for item in entry.get(key) or ()) for key in ("apiGroups", "kinds", "clusters"))
        return cls(*lists)

    def matches(self, group: str, kind: str, cluster: str) -> bool:
        named = not self.kinds or kind in self.kinds or "*" in self.kinds
        return named and _globbed(self.groups, group) and self.covers(cluster)

    def covers(self, cluster: str) -> bool:
        return _globbed(self.clusters, cluster)


def _globbed(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(glob_matches(pattern, text) for pattern in patterns)


ALWAYS_EXCLUDED = (
    FilterEntry(("events.k8s.io", "metrics.k8s.io")),
    FilterEntry(("",), ("Event",)),
    FilterEntry(("coordination.k8s.io",), ("Lease",)),
)


@dataclass(frozen=True, slots=True)
class ResourceFilter:
    """``resource.exclusions`` and ``resource.inclusions``; exclusion wins."""

    exclusions: tuple[FilterEntry, ...] = ()
    inclusions: tuple[FilterEntry, ...] = ()

    @classmethod
    def parse(cls, exclusions: Iterable[Mapping[str, Any]], inclusions: Iterable[Mapping[str, Any]]) -> ResourceFilter:
        return cls(tuple(map(FilterEntry.parse, exclusions)), tuple(map(FilterEntry.parse, inclusions)))

    def excludes(self, group: str, kind: str, cluster: str) -> bool:
        """Return whether a kind is excluded; if inclusions cover ``cluster`` (its URL), it must be in one of them."""
        if any(entry.matches(group, kind, cluster) for entry in (*ALWAYS_EXCLUDED, *self.exclusions)):
            return True
        including = [entry for entry in self.inclusions if entry.covers(cluster)]
        return bool(including) and not any(entry.matches(group, kind, cluster) for entry in including)
