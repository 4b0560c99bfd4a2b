"""What the work agent remembers between reconciles: :class:`Memory`; all of it may be lost.

Of each object that a work has applied it keeps the version at which it was right. A change of that object, seen by a
watch of the metadata of its kind, makes it dirty; nothing else is looked at again. After a restart every object is
looked at once. Bounded by the manifests of the works that exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from syncline.fleet.spoke.work.manifests.actions import Known
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ref_of, resource_version

NOISY: Final = frozenset(
    (
        *(GroupKind("", kind) for kind in ("Pod", "Event", "Node", "Endpoints")),
        *(GroupKind("events.k8s.io", "Event"), GroupKind("coordination.k8s.io", "Lease")),
        *(GroupKind("discovery.k8s.io", "EndpointSlice"), GroupKind("metrics.k8s.io", "PodMetrics")),
    )
)
"""Kinds that change all the time: their objects are read at intervals, unless a work asks for a watch."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of one work."""

    generation: int = 0
    """Of the work when it was looked at last; 0: not yet. The status of a hub that was restored from a backup says that
    an older one is applied."""
    known: Mapping[ObjectRef, Known] = field(default_factory=dict)
    """By the reference to the object of a manifest. One that is missing is looked at."""
    drifted: frozenset[ObjectRef] = frozenset()
    """Objects that are to be corrected, but not yet: see ``corrections``."""
    added: frozenset[ObjectRef] = frozenset()
    """Objects to whose content others have added, which is replaced at the resync."""
    polled: datetime | None = None
    """When the objects of kinds that are not followed are read next."""
    resync: datetime | None = None
    """When everything is applied again that a change of rights or of others can concern."""
    refused: frozenset[ObjectRef] = frozenset()
    """Objects that the executor may not have."""
    refused_until: datetime | None = None
    """When those are tried again."""
    contested: frozenset[ObjectRef] = frozenset()
    """Objects with fields of other managers, tried again at the resync."""
    failures: int = 0
    """Failed attempts in a row at other manifests."""
    retry: datetime | None = None
    """When those are tried again."""
    corrections: int = 0
    """Writes in a row that undid changes of others; each waits twice as long as the one before."""
    corrected: datetime | None = None
    tokens: float = 0.0
    """How often changes may still be looked at at once; see ``due.py``."""
    spent: datetime | None = None


EMPTY = Remembered()


def without(remembered: Remembered, refs: frozenset[ObjectRef]) -> Remembered:
    """Return the memory without what is known of some objects: they are looked at again."""
    return replace(remembered, known={ref: one for ref, one in remembered.known.items() if ref not in refs})


@dataclass(slots=True)
class _Entry:
    remembered: Remembered = EMPTY
    refs: frozenset[ObjectRef] = frozenset()
    watched: frozenset[GroupKind] = frozenset()
    dirty: dict[ObjectRef, str] = field(default_factory=dict)
    """Versions of objects that changed since they were looked at; empty: they were deleted."""


class Memory:
    """What is remembered of all works of one agent."""

    def __init__(self) -> None:
        self._works: dict[ObjectRef, _Entry] = {}
        self._tracked: dict[ObjectRef, tuple[ObjectRef, ...]] = {}
        """For each object of the cluster the works that have it."""
        self._kinds: Counter[GroupKind] = Counter()
        self._watched: Counter[GroupKind] = Counter()
        self.followed: frozenset[GroupKind] = frozenset()
        """The kinds that the driver was asked to watch last."""

    def of(self, work: ObjectRef) -> tuple[Remembered, dict[ObjectRef, str]]:
        """Return what is known of a work, and which of its objects changed since, with their versions."""
        entry = self._works.get(work)
        return (EMPTY, {}) if entry is None else (entry.remembered, dict(entry.dirty))

    def track(self, work: ObjectRef, refs: frozenset[ObjectRef], watched: frozenset[GroupKind]) -> None:
        """Note the objects of a work, before they are read: changes from now on count. ``watched``: the kinds that are
        followed although they are :data:`NOISY`."""
        entry = self._works.setdefault(work, _Entry())
        self._watched.subtract(entry.watched)
        self._watched.update(watched)
        entry.watched = watched
        for ref in entry.refs - refs:
            self._untrack(work, ref)
            entry.dirty.pop(ref, None)
        for ref in refs - entry.refs:
            self._tracked[ref] = (*self._tracked.get(ref, ()), work)
            self._kinds[ref.group_kind] += 1
        entry.refs = refs

    def keep(self, work: ObjectRef, remembered: Remembered, taken: Mapping[ObjectRef, str]) -> None:
        """Replace what is known of a work. ``taken``: the changes that were looked at and reported."""
        entry = self._works.setdefault(work, _Entry())
        entry.remembered = remembered
        for ref, version in list(entry.dirty.items()):
            known = remembered.known.get(ref)
            if taken.get(ref) == version or (known is not None and known.version == version):
                del entry.dirty[ref]

    def forget(self, work: ObjectRef) -> None:
        entry = self._works.pop(work, None)
        if entry is None:
            return
        self._watched.subtract(entry.watched)
        for ref in entry.refs:
            self._untrack(work, ref)

    def _untrack(self, work: ObjectRef, ref: ObjectRef) -> None:
        left = tuple(one for one in self._tracked.get(ref, ()) if one != work)
        if left:
            self._tracked[ref] = left
        else:
            self._tracked.pop(ref, None)
        self._kinds[ref.group_kind] -= 1
        if self._kinds[ref.group_kind] <= 0:
            del self._kinds[ref.group_kind]

    # -- changes of the cluster ----------------------------------------------------------------------------------

    def tracks(self, ref: ObjectRef) -> bool:
        """Return whether a work has the object."""
        return ref in self._tracked

    def kinds(self, most: int) -> frozenset[GroupKind]:
        """Return the kinds to follow: those of the most objects, at most so many."""
        fit = (kind for kind in self._kinds if kind not in NOISY or self._watched[kind] > 0)
        return frozenset(sorted(fit, key=lambda kind: (-self._kinds[kind], kind))[:most])

    def changed(self, old: Obj | None, new: Obj | None) -> bool:
        """Note a change of an object; return whether it matters to a work."""
        known = new if new is not None else old
        assert known is not None, "a change has an old or a new state"
        ref, version = ref_of(known), resource_version(new) if new is not None else ""
        matters = False
        for work in self._tracked.get(ref, ()):
            entry = self._works[work]
            seen = entry.remembered.known.get(ref)
            if seen is None or seen.version != version:
                entry.dirty[ref] = version
                matters = True
        return matters

    def works_of(self, obj: Obj) -> tuple[ObjectRef, ...]:
        """Return the works that have an object."""
        return self._tracked.get(ref_of(obj), ())
