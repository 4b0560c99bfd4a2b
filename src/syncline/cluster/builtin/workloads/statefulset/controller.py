"""Define the StatefulSet controller for pods, claims and revisions."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.owners import candidates, claim, selecting_owners
from syncline.cluster.builtin.pods import POD
from syncline.cluster.builtin.workloads.history import REVISION
from syncline.cluster.builtin.workloads.statefulset import plan as planning
from syncline.cluster.builtin.workloads.statefulset.plan import Observed
from syncline.control.cache import Snapshot
from syncline.control.controller import METADATA, Controller, Watch, owner_of_kind
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, ObjectRef, name_of, uid_of

STATEFULSET = GroupKind("apps", "StatefulSet")
CLAIM = GroupKind("", "PersistentVolumeClaim")


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the StatefulSet is deleted, or before claims and revisions are listed."""
    statefulset = cache.get(ref)
    if statefulset is None or not (cache.has_synced(CLAIM) and cache.has_synced(REVISION)):
        return None
    claimed = claim(statefulset, candidates(cache, POD, statefulset))
    claims = {name_of(each): each for each in cache.objects(CLAIM, ref.namespace)}
    revisions = tuple(cache.owned(uid_of(statefulset), REVISION))
    return Observed(statefulset, claimed.owned, claimed.patches, claims, revisions)


def _settle(observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    return planning.settle(observed, results)


STATEFULSET_CONTROLLER = Controller(
    name="statefulset",
    kind=STATEFULSET,
    watches=(
        Watch(POD, selecting_owners(STATEFULSET), reads=METADATA),
        Watch(REVISION, owner_of_kind(STATEFULSET)),
    ),
    reads=(CLAIM,),
    observe=observe,
    plan=planning.plan,
    settle=_settle,
)
"""Runs numbered pods with their claims."""
