"""What the Job planner sees: the Job, its pods, and pods that a Job that is gone left behind."""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.builtin.owners import claim, controller_of
from syncline.cluster.builtin.pods import POD, is_active
from syncline.control.cache import Snapshot
from syncline.control.plan import Patch
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, finalizers, is_terminating, uid_of

__all__ = ["COMPLETION_INDEX", "JOB", "TRACKING", "Observed", "Orphans", "holds", "index_of", "observe"]

JOB = GroupKind("batch", "Job")
TRACKING = "batch.kubernetes.io/job-tracking"
"""Finalizer of a pod that its Job has not counted yet."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


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
        """None: the Job is done when one pod succeeded and the others ended (a work queue)."""
        value = dig(self.job, "spec", "completions")
        return None if value is None else int(value)

    @property
    def suspended(self) -> bool:
        return bool(dig(self.job, "spec", "suspend", default=False))

    @property
    def indexed(self) -> bool:
        return bool(dig(self.job, "spec", "completionMode", default="NonIndexed") == "Indexed")

    @property
    def replaces_failed_only(self) -> bool:
        """A pod that is going is replaced only after it ended (``podReplacementPolicy``)."""
        return bool(dig(self.job, "spec", "podReplacementPolicy", default="") == "Failed")


@dataclass(frozen=True, slots=True)
class Orphans:
    """Pods that still wait to be counted by a Job that does not exist any more."""

    pods: tuple[Obj, ...]


def holds(pod: Obj) -> bool:
    return TRACKING in finalizers(pod)


def index_of(pod: Obj) -> int | None:
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdigit() else None


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | Orphans | None:
    """None when neither the Job nor an uncounted pod of it is left."""
    job = cache.get(ref)
    if job is not None:
        claimed = claim(job, (p for p in cache.objects(POD, ref.namespace) if controller_of(p) or is_active(p)))
        return Observed(job, claimed.owned, claimed.patches)
    if not cache.has_synced(JOB):
        return None
    left = tuple(pod for pod in cache.objects(POD, ref.namespace) if holds(pod) and _of_job(pod, ref.name))
    return Orphans(left) if left else None


def _of_job(pod: Obj, name: str) -> bool:
    controller = controller_of(pod)
    return controller is not None and controller.get("kind") == JOB.kind and controller.get("name") == name


def is_going(pod: Obj) -> bool:
    """Being deleted and not finished: it may still run."""
    return is_terminating(pod) and dig(pod, "status", "phase") not in ("Succeeded", "Failed") and bool(uid_of(pod))
