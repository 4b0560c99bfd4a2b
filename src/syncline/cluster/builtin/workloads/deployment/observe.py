"""Observe a Deployment with its ReplicaSets and the number of their running pods."""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.builtin.owners import candidates, claim
from syncline.cluster.builtin.pods import POD, is_finished
from syncline.cluster.builtin.workloads.replicaset.observe import REPLICASET
from syncline.cluster.builtin.workloads.shares import share
from syncline.control.cache import Snapshot
from syncline.control.plan import Patch
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, uid_of

DEPLOYMENT = GroupKind("apps", "Deployment")
NO_DEADLINE_S = 2**31 - 1
"""Value of progressDeadlineSeconds for no deadline (Kubernetes ``HasProgressDeadline``)."""


def spec_replicas(obj: Obj) -> int:
    """Return the replicas in the spec; one if unset."""
    return int(dig(obj, "spec", "replicas", default=1))


@dataclass(frozen=True, slots=True)
class Observed:
    """``sets`` are claimed (adoptions included); ``taken`` are all names of ReplicaSets in the namespace; ``running``
    counts each set's unfinished pods by its uid."""

    deployment: Obj
    sets: tuple[Obj, ...]
    patches: tuple[Patch, ...]
    taken: frozenset[str]
    running: dict[str, int]

    @property
    def replicas(self) -> int:
        return spec_replicas(self.deployment)

    @property
    def recreates(self) -> bool:
        return bool(dig(self.deployment, "spec", "strategy", "type", default="") == "Recreate")

    @property
    def paused(self) -> bool:
        return bool(dig(self.deployment, "spec", "paused", default=False))

    @property
    def deadline_s(self) -> int | None:
        """Seconds until the progress deadline; None if there is no deadline."""
        value = dig(self.deployment, "spec", "progressDeadlineSeconds")
        return None if value is None or int(value) >= NO_DEADLINE_S else int(value)

    @property
    def max_surge(self) -> int:
        """Pods above ``replicas`` during a rolling update; a percentage is rounded up."""
        return 0 if self.recreates else share(self._rolling("maxSurge"), self.replicas, up=True)

    @property
    def max_unavailable(self) -> int:
        """Pods that may be missing during a rolling update; a percentage is rounded down, and one of the two limits is
        at least one (Kubernetes ``ResolveFenceposts``)."""
        if self.recreates or self.replicas == 0:
            return 0
        missing = share(self._rolling("maxUnavailable"), self.replicas, up=False)
        if missing == 0 and self.max_surge == 0:
            missing = 1
        return min(missing, self.replicas)

    def _rolling(self, field: str) -> int | str:
        value: int | str = dig(self.deployment, "spec", "strategy", "rollingUpdate", field, default="25%")
        return value


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the Deployment is deleted."""
    deployment = cache.get(ref)
    if deployment is None:
        return None
    everything = cache.objects(REPLICASET, ref.namespace)
    claimed = claim(deployment, candidates(cache, REPLICASET, deployment))
    running = {
        uid_of(each): sum(not is_finished(pod) for pod in cache.owned(uid_of(each), POD)) for each in claimed.owned
    }
    return Observed(deployment, claimed.owned, claimed.patches, frozenset(name_of(s) for s in everything), running)
