"""Counting every finished pod exactly once, whatever crashes in between.

Three steps, each evidence for the next: the uid of a finished pod is written into ``status.uncountedTerminatedPods``;
then its tracking finalizer goes; then, when no pod of that uid holds the finalizer, the counter grows and the uid is
struck out (Kubernetes' job tracking with finalizers).
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.builtin.job.failure_policy import rule
from syncline.cluster.builtin.job.observe import Observed, holds, index_of
from syncline.cluster.builtin.pods import phase
from syncline.control.plan import Patch
from syncline.kube.objects import (
    Obj,
    dig,
    finalizers,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

__all__ = ["Tally", "format_indexes", "let_go", "parse_indexes", "tally"]

MAX_UNCOUNTED = 500
"""Most uids listed in a status at once, as in Kubernetes: a status must stay far below the size limit of objects."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counters as they are to be written, uids still to be counted, and the pods that may go now.

    ``fatal`` says why the failure policy ends the Job. ``indexes`` are the completed ones of an indexed Job.
    """

    counted_succeeded: int
    counted_failed: int
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    release: tuple[Obj, ...]
    indexes: frozenset[int]
    fatal: str
    new_failures: int

    @property
    def failed(self) -> int:
        return self.counted_failed + len(self.uncounted_failed)

    @property
    def succeeded(self) -> int:
        return self.counted_succeeded + len(self.uncounted_succeeded)

    @property
    def settled(self) -> bool:
        return not self.uncounted_succeeded and not self.uncounted_failed


def tally(seen: Observed, *, ending: bool) -> Tally:
    """``ending``: the Job failed or is being deleted, so pods that never finished count as failed and may go."""
    status = seen.job.get("status") or {}
    old = {side: tuple(dig(status, "uncountedTerminatedPods", side, default=())) for side in ("succeeded", "failed")}
    holding = {uid_of(pod) for pod in seen.pods if holds(pod)}
    listed = set(old["succeeded"]) | set(old["failed"])
    left = {side: tuple(uid for uid in uids if uid in holding) for side, uids in old.items()}
    counted = {side: int(status.get(side) or 0) + len(old[side]) - len(left[side]) for side in old}
    new: dict[str, list[str]] = {"succeeded": [], "failed": []}
    release: list[Obj] = []
    fatal = ""
    for pod in seen.pods:
        side = _side(seen, pod, ending)
        if side is None or not holds(pod):
            continue
        ruling = rule(seen.job, pod) if side == "failed" else None
        fatal = fatal or (ruling.fatal if ruling is not None else "")
        if uid_of(pod) in listed or (ruling is not None and not ruling.counts):
            release.append(pod)
        elif len(new["succeeded"]) + len(new["failed"]) < MAX_UNCOUNTED:
            new[side].append(uid_of(pod))
    return Tally(
        counted["succeeded"],
        counted["failed"],
        (*left["succeeded"], *new["succeeded"]),
        (*left["failed"], *new["failed"]),
        tuple(release),
        _completed(seen),
        fatal,
        len(new["failed"]),
    )


def _side(seen: Observed, pod: Obj, ending: bool) -> str | None:
    """How a pod ended; None while it goes on. One that is deleted before it could fail counts as failed, unless the
    Job waits for real ends (``podReplacementPolicy: Failed``) and a kubelet is there to bring them."""
    match phase(pod):
        case "Succeeded":
            return "succeeded"
        case "Failed":
            return "failed"
        case _:
            waits = seen.replaces_failed_only and bool(dig(pod, "spec", "nodeName"))
            return "failed" if is_terminating(pod) and (ending or not waits) else None


def let_go(pod: Obj, why: str) -> Patch:
    """Take the tracking finalizer off."""
    left = [each for each in finalizers(pod) if each != "batch.kubernetes.io/job-tracking"]
    metadata = {"uid": uid_of(pod), "resourceVersion": resource_version(pod), "finalizers": left or None}
    return Patch(gvk_of(pod), namespace_of(pod), name_of(pod), {"metadata": metadata}, why)


def _completed(seen: Observed) -> frozenset[int]:
    if not seen.indexed:
        return frozenset()
    done = parse_indexes(str(dig(seen.job, "status", "completedIndexes", default="")))
    fresh = {index_of(pod) for pod in seen.pods if phase(pod) == "Succeeded"}
    limit = seen.completions or 0
    return frozenset(index for index in done | fresh if index is not None and index < limit)


def parse_indexes(text: str) -> set[int]:
    """``0-2,4`` → {0, 1, 2, 4}; unreadable parts are left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: frozenset[int]) -> str:
    """{0, 1, 2, 4} → ``0-2,4``; two neighbours are joined too, as Kubernetes writes them."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for at, index in enumerate(ordered):
        if at + 1 == len(ordered) or ordered[at + 1] != index + 1:
            parts.append(str(index) if at == start else f"{ordered[start]}-{index}")
            start = at + 1
    return ",".join(parts)
