"""Define the Deployment controller and the kinds it watches."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.cluster.builtin.owners import controller_of, selecting_owners
from syncline.cluster.builtin.pods import POD, condition, is_finished
from syncline.cluster.builtin.workloads.deployment import observe as observing
from syncline.cluster.builtin.workloads.deployment import plan as planning
from syncline.cluster.builtin.workloads.deployment.observe import DEPLOYMENT
from syncline.cluster.builtin.workloads.replicaset.observe import REPLICASET
from syncline.control.cache import Snapshot
from syncline.control.controller import METADATA, Controller, Watch
from syncline.kube.objects import Obj, ObjectRef, dig, generation, namespace_of

_BY_SET = selecting_owners(DEPLOYMENT)


def _deployment_of_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the Deployment of a pod, since Recreate waits for its last pod."""
    controller = controller_of(pod)
    if controller is None or controller.get("kind") != REPLICASET.kind:
        return ()
    name = str(controller.get("name"))
    replicaset = cache.get(ObjectRef(REPLICASET.group, REPLICASET.kind, namespace_of(pod), name))
    return () if replicaset is None else _BY_SET(replicaset, cache)


def _ends(old: Obj | None, new: Obj | None) -> bool:
    """Return True if the number of running pods changes; upstream reacts to deletions."""
    return new is None or (old is not None and is_finished(old) != is_finished(new))


def _at_rest(obj: Obj) -> bool:
    """Return True if the status derives only from the sets and its deadline is scheduled. Recording a pause or resume
    is only the first step of a reconcile."""
    if dig(obj, "status", "observedGeneration") != generation(obj):
        return False
    progress = condition(obj, "Progressing")
    return progress is None or progress.get("reason") not in ("DeploymentPaused", "DeploymentResumed")


DEPLOYMENT_CONTROLLER = Controller(
    name="deployment",
    kind=DEPLOYMENT,
    watches=(Watch(REPLICASET, _BY_SET, reads=METADATA), Watch(POD, _deployment_of_pod, _ends)),
    observe=observing.observe,
    plan=planning.plan,
    at_rest=_at_rest,
)
"""Rolls ReplicaSets from one template to the next."""
