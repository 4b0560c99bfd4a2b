"""Reads the input of the planner of ManifestWorkReplicaSets, and finds the sets that a change concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from syncline.control.cache import IndexFn, OfKind, Snapshot
from syncline.fleet.conditions import is_true
from syncline.fleet.hub.budgets.observe import observe_fleet
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL as DECIDED_BY
from syncline.fleet.hub.replicasets.plan import SetObserved
from syncline.fleet.hub.replicasets.status import WAITING
from syncline.fleet.hub.replicasets.works import SET_LABEL, set_key
from syncline.kube.kinds.managedclusters import PLACEMENT, PLACEMENT_DECISION
from syncline.kube.kinds.manifestworks import MANIFEST_WORK, REPLICA_SET
from syncline.kube.objects import Obj, ObjectRef, dig, labels_of, name_of, namespace_of, ref_of
from syncline.kube.selectors import selector_from_labels

SETS, WORKS = REPLICA_SET.group_kind, MANIFEST_WORK.group_kind
PLACEMENTS, DECISIONS = PLACEMENT.group_kind, PLACEMENT_DECISION.group_kind
OF_SET: Final = "works-of-replica-set"
BY_PLACEMENT: Final = "replica-sets-by-placement"


@dataclass(frozen=True, slots=True)
class Looked:
    """A set and what its plan reads. ``unlisted``: kinds without a first list; ``unread``: why kinds cannot be read."""

    observed: SetObserved
    unlisted: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class _SetOfWork:
    """The index of works by the set that their label names."""

    of_metadata = True

    def __call__(self, work: Obj) -> Iterable[str]:
        key = labels_of(work).get(SET_LABEL)
        return (key,) if key else ()


def _placements_of(obj: Obj) -> Iterable[str]:
    names = {str(one.get("name") or "") for one in dig(obj, "spec", "placementRefs") or ()}
    return [f"{namespace_of(obj)}/{name}" for name in sorted(names)]


def indices() -> dict[str, IndexFn]:
    works = OfKind(WORKS, _SetOfWork())
    return {OF_SET: works, BY_PLACEMENT: OfKind(SETS, _placements_of)}


def observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    """Return the set with its works, placements and decisions; None if it is gone."""
    obj = cache.get(ref)
    if obj is None:
        return None
    needed = (WORKS, PLACEMENTS, DECISIONS)
    unread = {kind: why for kind in needed if (why := cache.unread(ObjectRef(*kind, "", "")))}
    unlisted = tuple(kind.kind for kind in needed if kind not in unread and not cache.has_synced(kind))
    if unread or unlisted:
        reasons = tuple(f"cannot read {kind.kind}s: {text}" for kind, text in unread.items())
        return Looked(SetObserved(obj), unlisted, reasons)
    names = sorted({str(one.get("name") or "") for one in dig(obj, "spec", "placementRefs") or ()})
    found = {name: cache.get(ObjectRef(*PLACEMENTS, ref.namespace, name)) for name in names}
    decisions = [
        one
        for name in names
        if found[name] is not None
        for one in cache.selected(DECISIONS, ref.namespace, selector_from_labels({DECIDED_BY: name}))
    ]
    return Looked(
        SetObserved(
            obj,
            tuple(cache.indexed(OF_SET, set_key(obj))),
            {name: one for name, one in found.items() if one is not None},
            tuple(decisions),
            observe_fleet(cache),
        )
    )


def set_of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the set that the label of a work names; a namespace has no dot."""
    namespace, dot, name = labels_of(work).get(SET_LABEL, "").partition(".")
    return (ObjectRef(*SETS, namespace, name),) if dot else ()


def sets_of_placement(placement: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return _by_placement(cache, namespace_of(placement), name_of(placement))


def sets_of_decision(decision: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    name = labels_of(decision).get(DECIDED_BY)
    return _by_placement(cache, namespace_of(decision), name) if name else ()


def _by_placement(cache: Snapshot, namespace: str, name: str) -> list[ObjectRef]:
    return [ref_of(one) for one in cache.indexed(BY_PLACEMENT, f"{namespace}/{name}")]


def every_set(_budget: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(one) for one in cache.objects(SETS)]


def waiting_sets(_budget: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the sets that wait for a place in a budget."""
    return [ref_of(one) for one in cache.objects(SETS) if is_true(dig(one, "status", "conditions") or (), WAITING)]
