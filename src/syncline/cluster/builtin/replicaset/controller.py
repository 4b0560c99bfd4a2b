"""Binds the ReplicaSet planner to the kinds it watches."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.owners import selecting_owners
from syncline.cluster.builtin.pods import POD
from syncline.cluster.builtin.replicaset import observe as observing
from syncline.cluster.builtin.replicaset import plan as planning
from syncline.cluster.builtin.replicaset.observe import REPLICASET, REPLICATION_CONTROLLER, Observed
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, Obj, ObjectRef

__all__ = ["ReplicaSetController", "ReplicationControllerController"]


class ReplicaSetController:
    """Keeps as many pods as a ReplicaSet asks for."""

    name = "replicaset"
    kind = REPLICASET
    watches: tuple[Watch, ...] = (Watch(POD, selecting_owners(REPLICASET)),)
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observing.observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return planning.plan(seen, now)

    def at_rest(self, obj: Obj) -> bool:
        """The status follows from the pods alone."""
        return True

    def settle(
        self, seen: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Observed, Plan] | None:
        return planning.settle(seen, results, now)


class ReplicationControllerController(ReplicaSetController):
    """The same for the older kind."""

    name = "replicationcontroller"
    kind = REPLICATION_CONTROLLER
    watches: tuple[Watch, ...] = (Watch(POD, selecting_owners(REPLICATION_CONTROLLER)),)
