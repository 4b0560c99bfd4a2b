"""Define the ReplicaSet controller and the kinds it watches."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from syncline.cluster.builtin.owners import selecting_owners
from syncline.cluster.builtin.pods import POD
from syncline.cluster.builtin.workloads.replicaset import observe as observing
from syncline.cluster.builtin.workloads.replicaset import plan as planning
from syncline.cluster.builtin.workloads.replicaset.observe import REPLICASET, REPLICATION_CONTROLLER, Observed
from syncline.control.controller import METADATA, Controller, Watch
from syncline.control.plan import Plan, Result
from syncline.kube.objects import Obj


def _at_rest(obj: Obj) -> bool:
    """Return True: the status derives only from the pods."""
    return True


def _settle(observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    return planning.settle(observed, results, now)


REPLICASET_CONTROLLER = Controller(
    name="replicaset",
    kind=REPLICASET,
    watches=(Watch(POD, selecting_owners(REPLICASET), reads=METADATA),),
    observe=observing.observe,
    plan=planning.plan,
    settle=_settle,
    at_rest=_at_rest,
)
"""Runs the number of pods in a ReplicaSet's spec."""


REPLICATIONCONTROLLER_CONTROLLER = replace(
    REPLICASET_CONTROLLER,
    name="replicationcontroller",
    kind=REPLICATION_CONTROLLER,
    watches=(Watch(POD, selecting_owners(REPLICATION_CONTROLLER), reads=METADATA),),
)
"""The same for ReplicationControllers."""
