"""Binds the Deployment planner to the kinds it watches."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.cluster.builtin.deployment import observe as observing
from syncline.cluster.builtin.deployment import plan as planning
from syncline.cluster.builtin.deployment.observe import DEPLOYMENT, Observed
from syncline.cluster.builtin.owners import controller_of, selecting_owners
from syncline.cluster.builtin.pods import POD
from syncline.cluster.builtin.replicaset.observe import REPLICASET
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan
from syncline.kube.objects import GroupKind, Obj, ObjectRef, namespace_of

__all__ = ["DeploymentController"]

_BY_SET = selecting_owners(DEPLOYMENT)


def _deployment_of_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """The Deployment two levels up: a Recreate waits for its last pod."""
    controller = controller_of(pod)
    if controller is None or controller.get("kind") != REPLICASET.kind:
        return ()
    name = str(controller.get("name"))
    replicaset = cache.get(ObjectRef(REPLICASET.group, REPLICASET.kind, namespace_of(pod), name))
    return () if replicaset is None else _BY_SET(replicaset, cache)


class DeploymentController:
    """Rolls ReplicaSets from one template to the next."""

    name = "deployment"
    kind = DEPLOYMENT
    watches: tuple[Watch, ...] = (Watch(REPLICASET, _BY_SET), Watch(POD, _deployment_of_pod))
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observing.observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return planning.plan(seen, now)
