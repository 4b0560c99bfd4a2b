"""Define the DaemonSet controller for pods, nodes and revisions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.cluster.builtin.owners import candidates, claim, selecting_owners
from syncline.cluster.builtin.pods import POD
from syncline.cluster.builtin.workloads.daemonset import plan as planning
from syncline.cluster.builtin.workloads.daemonset.observe import Observed
from syncline.cluster.builtin.workloads.history import REVISION
from syncline.control.cache import Snapshot
from syncline.control.controller import METADATA, Controller, Watch, differ, owner_of_kind
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, ref_of, uid_of

DAEMONSET = GroupKind("apps", "DaemonSet")
NODE = GroupKind("", "Node")


def _everyone(_node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(each) for each in cache.objects(DAEMONSET))


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the DaemonSet is deleted, or before nodes and revisions are listed."""
    daemonset = cache.get(ref)
    if daemonset is None or not (cache.has_synced(NODE) and cache.has_synced(REVISION)):
        return None
    claimed = claim(daemonset, candidates(cache, POD, daemonset))
    revisions = tuple(cache.owned(uid_of(daemonset), REVISION))
    return Observed(daemonset, claimed.owned, claimed.patches, tuple(cache.objects(NODE)), revisions)


def _at_rest(obj: Obj) -> bool:
    """Return True: the status derives only from pods and nodes."""
    return True


def _settle(observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    return planning.settle(observed, results)


DAEMONSET_CONTROLLER = Controller(
    name="daemonset",
    kind=DAEMONSET,
    watches=(
        Watch(POD, selecting_owners(DAEMONSET), reads=METADATA),
        Watch(NODE, _everyone, differ(labels_of, lambda node: dig(node, "spec", "taints"))),
        Watch(REVISION, owner_of_kind(DAEMONSET)),
    ),
    observe=observe,
    plan=planning.plan,
    settle=_settle,
    at_rest=_at_rest,
)
"""Runs one pod on each eligible node."""
