"""Compute the status of a ReplicaSet from its pods (Kubernetes ``calculateStatus``)."""

from __future__ import annotations

from datetime import datetime

from syncline.base.clock import format_time
from syncline.cluster.builtin.conditions import find, put, without
from syncline.cluster.builtin.pods import is_active, is_available, is_finished, is_ready
from syncline.cluster.builtin.workloads.replicaset.observe import REPLICASET, Observed
from syncline.kube.objects import Obj, dig, generation, gvk_of, is_terminating, labels_of

Failure = tuple[str, str]
"""Reason and message of a failed create or delete of pods."""


def replicaset_status(observed: Observed, now: datetime, failure: Failure | None = None) -> Obj:
    """Return the whole status; ``failure`` sets the condition ReplicaFailure, None removes it."""
    active = [pod for pod in observed.pods if is_active(pod)]
    wanted = dig(observed.replicaset, "spec", "template", "metadata", "labels", default={}).items()
    counts = {
        "fullyLabeledReplicas": sum(wanted <= labels_of(pod).items() for pod in active),
        "readyReplicas": sum(is_ready(pod) for pod in active),
        "availableReplicas": sum(is_available(pod, observed.min_ready_s, now) for pod in active),
    }
    terminating = sum(is_terminating(pod) and not is_finished(pod) for pod in observed.pods)
    status: Obj = {"replicas": len(active)} | {name: count for name, count in counts.items() if count}
    if gvk_of(observed.replicaset).kind == REPLICASET.kind:
        status["terminatingReplicas"] = terminating
    if generation(observed.replicaset):
        status["observedGeneration"] = generation(observed.replicaset)
    conditions = _conditions(dig(observed.replicaset, "status", "conditions", default=[]), now, failure)
    return status | ({"conditions": conditions} if conditions else {})


def _conditions(old: list[Obj], now: datetime, failure: Failure | None) -> list[Obj]:
    if failure is None:
        return without(old, "ReplicaFailure")
    if find(old, "ReplicaFailure") is not None:
        return old
    reason, message = failure
    new: Obj = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": format_time(now)}
    return put(old, new | {"reason": reason, "message": message})
