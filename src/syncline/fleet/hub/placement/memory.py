"""What is kept from one reconcile to the next so that one changed cluster costs little: :class:`Memory`.

It is bounded and may be lost; results are the same without it. Everything kept is compared by identity with what it was
found of: objects of the cache are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Final

from syncline.fleet.hub.placement.model import Cluster, Hub
from syncline.fleet.hub.sets import member_selector
from syncline.kube.objects import Obj, ObjectRef, name_of

MAX_PLACEMENTS: Final = 2_000
"""The most Placements whose verdicts are kept."""

_Candidates = tuple[list[Obj], tuple["Cluster", ...]]


class Verdicts:
    """What predicates said of clusters, kept from one reconcile of a Placement to the next while both are unchanged.

    Without it the result is the same and takes longer.
    """

    def __init__(self) -> None:
        self._known: dict[Cluster, tuple[bool, tuple[Obj, ...]]] = {}
        self._passed: dict[Cluster, bool] = {}
        self._selectors: object = None

    def use(self, selectors: object, clusters: int) -> None:
        """Forget everything if the predicates have changed, or if most of it is of older states of ``clusters``."""
        if self._selectors is not selectors or len(self._passed) > 2 * clusters + 100:
            self._selectors, self._known, self._passed = selectors, {}, {}

    def passing(self, clusters: Sequence[Cluster], passes: Callable[[Cluster], bool]) -> tuple[Cluster, ...]:
        """Return the clusters that pass; only those of which nothing is known are looked at."""
        known = self._passed
        for cluster in clusters:
            if cluster not in known:
                known[cluster] = passes(cluster)
        return tuple(filter(known.__getitem__, clusters))

    def passing_with(
        self, clusters: Sequence[Cluster], read: Mapping[str, Sequence[Obj]], passes: Callable[[Cluster], bool]
    ) -> tuple[Cluster, ...]:
        """As :meth:`passing`, where what was said also depends on objects that are ``read`` of each cluster."""
        known = self._known
        found = []
        for cluster in clusters:
            objects = tuple(read.get(cluster.name, ()))
            before = known.get(cluster)
            if before is None or len(before[1]) != len(objects) or not all(map(is_, before[1], objects)):
                before = known[cluster] = (passes(cluster), objects)
                self._passed[cluster] = before[0]
            if before[0]:
                found.append(cluster)
        return tuple(found)


class Memory:
    """The members of sets, shared by all Placements, and the verdicts of each Placement."""

    def __init__(self) -> None:
        self._members: dict[str, tuple[Obj, Mapping[str, Cluster], frozenset[Cluster]]] = {}
        """By name of a set: its spec, the clusters that were looked at, its members."""
        self._candidates: tuple[Mapping[str, Cluster] | None, dict[tuple[str, ...], _Candidates]] = (None, {})
        self._verdicts: dict[ObjectRef, Verdicts] = {}

    def candidates(self, hub: Hub, names: Sequence[str]) -> tuple[Cluster, ...]:
        """Return the members of these sets that are not being deleted, by name. Raises
        :class:`~syncline.fleet.hub.sets.SetError`."""
        kept = self._candidates  # one value, since Placements may be planned in several threads
        if kept[0] is not hub.clusters or len(kept[1]) > MAX_PLACEMENTS:
            kept = self._candidates = (hub.clusters, {})
        specs = [hub.sets[name].get("spec") or {} for name in names]
        known = kept[1].get(tuple(names))
        if known is None or known[0] != specs:
            members = set[Cluster]().union(*(self._members_of(hub.sets[name], hub) for name in names))
            listed = sorted((one for one in members if not one.terminating), key=lambda one: one.name)
            known = kept[1][tuple(names)] = (specs, tuple(listed))
        return known[1]

    def _members_of(self, cluster_set: Obj, hub: Hub) -> frozenset[Cluster]:
        """Return the members of a set; only clusters that have changed since the last time are looked at."""
        name, spec, clusters = name_of(cluster_set), cluster_set.get("spec") or {}, hub.clusters
        selector = member_selector(cluster_set)
        before = self._members.get(name)
        if before is None or before[0] != spec:
            before = (spec, {}, frozenset())
        changed = [one for one in clusters.values() if before[1].get(one.name) is not one]
        stay = [one for one in before[2] if clusters.get(one.name) is one]
        found = frozenset((*stay, *(one for one in changed if selector.matches(one.labels))))
        if len(self._members) > 2 * len(hub.sets) + 100:
            self._members.clear()  # most of them are gone
        self._members[name] = (spec, clusters, found)
        return found

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
