"""Observe a Job and its pods, or the uncounted pods of a deleted Job."""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.builtin.owners import candidates, claim, controller_of
from syncline.cluster.builtin.pods import POD, condition, is_active, phase
from syncline.cluster.builtin.workloads.job.indexes import index_of
from syncline.control.cache import Snapshot
from syncline.control.plan import Patch
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, finalizers, is_terminating

JOB = GroupKind("batch", "Job")
TRACKING = "batch.kubernetes.io/job-tracking"
"""Finalizer of a pod that its Job has not counted yet."""
OWN_NAME = "kubernetes.io/job-controller"
"""``spec.managedBy`` of Jobs that this controller manages."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``pods`` are claimed (adoptions included); ``patches`` write adoptions and releases."""

    job: Obj
    pods: tuple[Obj, ...]
    patches: tuple[Patch, ...]

    @property
    def active(self) -> list[Obj]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def parallelism(self) -> int:
        return int(dig(self.job, "spec", "parallelism", default=1))

    @property
    def completions(self) -> int | None:
        """Wanted completions; None for a work queue, done when one pod succeeded and the others ended."""
        value = dig(self.job, "spec", "completions")
        return None if value is None else int(value)

    @property
    def suspended(self) -> bool:
        return bool(dig(self.job, "spec", "suspend", default=False))

    @property
    def indexed(self) -> bool:
        return bool(dig(self.job, "spec", "completionMode", default="NonIndexed") == "Indexed")

    @property
    def limit_per_index(self) -> int | None:
        """How often an index may fail and be retried; None without per-index limits."""
        value = dig(self.job, "spec", "backoffLimitPerIndex")
        return None if value is None or not self.indexed else int(value)

    @property
    def replaces_failed_only(self) -> bool:
        """Return whether a terminating pod is replaced, and counted as failed, only after it ended
        (``podReplacementPolicy``; a failure policy implies it, since it needs the pod's end)."""
        spec = self.job.get("spec") or {}
        return bool(spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None)

    @property
    def managed_elsewhere(self) -> bool:
        return bool(dig(self.job, "spec", "managedBy", default=OWN_NAME) != OWN_NAME)

    @property
    def _ends(self) -> bool:
        """Return whether an earlier reconcile announced the end."""
        found = [condition(self.job, kind) for kind in ("SuccessCriteriaMet", "FailureTarget")]
        return any(each is not None and each.get("status") == "True" for each in found)

    def failed(self, pod: Obj) -> bool:
        """Return whether a pod failed, or is deleted before its end, which it may never reach without a kubelet. Pods
        deleted because the Job ends did not fail."""
        if phase(pod) == "Failed":
            return True
        return is_going(pod) and not self.replaces_failed_only and not self._ends

    def index(self, pod: Obj) -> int | None:
        return index_of(pod, self.completions)

    def belongs(self, pod: Obj) -> bool:
        """Return whether a pod counts; in an indexed Job it needs a valid index."""
        return not self.indexed or self.index(pod) is not None


@dataclass(frozen=True, slots=True)
class Orphans:
    """Uncounted pods of a Job that no longer exists."""

    pods: tuple[Obj, ...]


def holds(pod: Obj) -> bool:
    return TRACKING in finalizers(pod)


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | Orphans | None:
    """Return None if neither the Job nor an uncounted pod of it exists."""
    job = cache.get(ref)
    if job is not None:
        claimed = claim(job, candidates(cache, POD, job), finalizer=TRACKING)
        return Observed(job, claimed.owned, claimed.patches)
    if not cache.has_synced(JOB):
        return None
    left = tuple(pod for pod in cache.objects(POD, ref.namespace) if holds(pod) and _of_job(pod, ref.name))
    return Orphans(left) if left else None


def _of_job(pod: Obj, name: str) -> bool:
    controller = controller_of(pod)
    return controller is not None and controller.get("kind") == JOB.kind and controller.get("name") == name


def is_going(pod: Obj) -> bool:
    """Return True for a terminating, unfinished pod, which may still run."""
    return is_terminating(pod) and phase(pod) not in ("Succeeded", "Failed")
