"""What is kept from one reconcile to the next so that one changed cluster costs little: :class:`Memory`.

It is bounded and may be lost; results are the same without it. Everything kept is compared by identity with what it was
found of: objects of the cache are never changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from syncline.fleet.hub.placement.model import Cluster, Hub
from syncline.fleet.hub.sets import member_selector
from syncline.kube.objects import Obj, ObjectRef

MAX_PLACEMENTS: Final = 2_000
"""The most Placements whose verdicts are kept."""


class Verdicts:
    """What predicates said of clusters, kept from one reconcile of a Placement to the next while both are unchanged.

    Without it the result is the same and takes longer.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[Any, ...], bool]] = {}
        self._selectors: object = None

    def use(self, selectors: object, names: Mapping[str, Any]) -> None:
        """Forget everything if the predicates have changed, and clusters that are gone."""
        if self._selectors is not selectors:
            self._selectors, self._known = selectors, {}
        elif len(self._known) > 2 * len(names) + 100:
            self._known = {name: one for name, one in self._known.items() if name in names}

    def of(self, cluster: Cluster, stamp: tuple[Any, ...]) -> bool | None:
        """Return what was said of the cluster when everything in ``stamp`` was the same object."""
        known = self._known.get(cluster.name)
        if (
            known is None
            or len(known[0]) != len(stamp)
            or any(a is not b for a, b in zip(*(known[0], stamp), strict=True))
        ):
            return None
        return known[1]

    def keep(self, cluster: Cluster, stamp: tuple[Any, ...], passes: bool) -> None:
        self._known[cluster.name] = (stamp, passes)


class Memory:
    """The members of sets, shared by all Placements, and the verdicts of each Placement."""

    def __init__(self) -> None:
        self._members: tuple[Mapping[str, Cluster] | None, dict[str, tuple[Obj, tuple[Cluster, ...]]]] = (None, {})
        self._verdicts: dict[ObjectRef, Verdicts] = {}

    def members(self, hub: Hub, name: str) -> tuple[Cluster, ...]:
        """Return the members of a set. Raises :class:`~syncline.fleet.hub.sets.SetError`."""
        kept = self._members  # one value, since Placements may be planned in several threads
        if kept[0] is not hub.clusters:
            kept = self._members = (hub.clusters, {})
        cluster_set = hub.sets[name]
        known = kept[1].get(name)
        if known is None or known[0] is not cluster_set:
            selector = member_selector(cluster_set)
            found = tuple(one for one in hub.clusters.values() if selector.matches(one.labels))
            known = kept[1][name] = (cluster_set, found)
        return known[1]

    def verdicts(self, ref: ObjectRef) -> Verdicts:
        """Return what is kept for a Placement."""
        found = self._verdicts.get(ref)
        if found is None:
            if len(self._verdicts) >= MAX_PLACEMENTS:
                self._verdicts.clear()
            found = self._verdicts[ref] = Verdicts()
        return found

    def forget(self, ref: ObjectRef) -> None:
        """Forget a Placement that is gone."""
        self._verdicts.pop(ref, None)
