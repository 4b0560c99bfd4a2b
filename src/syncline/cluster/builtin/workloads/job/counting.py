"""Count every finished pod exactly once, despite crashes.

Three steps, each evidence for the next: write a finished pod's uid to ``status.uncountedTerminatedPods``; remove its
tracking finalizer; when no pod of that uid has the finalizer, increment the counter and remove the uid (Kubernetes' job
tracking with finalizers). A success in an indexed Job needs no uid: its index in ``status.completedIndexes`` is the
evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.builtin.pods import phase
from syncline.cluster.builtin.workloads.job.backoff import IGNORED_FAILURES, failures_of, finished_at
from syncline.cluster.builtin.workloads.job.failure_policy import Ruling, rule
from syncline.cluster.builtin.workloads.job.indexes import parse_indexes
from syncline.cluster.builtin.workloads.job.observe import TRACKING, Observed, holds
from syncline.control.plan import Patch
from syncline.kube.objects import Obj, dig, finalizers, gvk_of, name_of, namespace_of, resource_version, uid_of

MAX_UNCOUNTED = 500
"""Limit of uids in a status, as in Kubernetes: a status must stay far below the size limit of objects."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The result of counting pods. ``succeeded`` and ``failed`` include those not yet written.

    ``written`` are the completed indexes of the status, ``done`` those and the new ones; ``broken`` the failed indexes
    (None without per-index limits); ``kept`` the last failed pod of each index that will be retried; ``fatal`` why the
    failure policy ends the Job.
    """

    succeeded: int
    failed: int
    written: frozenset[int]
    done: frozenset[int]
    broken: frozenset[int] | None
    kept: dict[int, Obj]
    fatal: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counters to write, uids still to count, and the pods that can be released now."""

    succeeded: int
    failed: int
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    release: tuple[Obj, ...]

    @property
    def settled(self) -> bool:
        return not self.uncounted_succeeded and not self.uncounted_failed


def tally(observed: Observed) -> Tally:
    """Count the pods."""
    rulings = {uid_of(pod): rule(observed.job, pod) for pod in observed.pods if observed.failed(pod)}
    old = {side: _uncounted(observed.job, side) for side in ("succeeded", "failed")}
    fresh = [pod for pod in observed.pods if holds(pod) and observed.belongs(pod)]
    wins = [pod for pod in fresh if phase(pod) == "Succeeded" and uid_of(pod) not in old["succeeded"]]
    losses = [uid for pod in fresh if (uid := uid_of(pod)) in rulings and uid not in old["failed"]]
    written, done = _completed(observed)
    broken = _broken(observed, fresh, rulings)
    status = observed.job.get("status") or {}
    succeeded = int(status.get("succeeded") or 0) + len(old["succeeded"]) + len(wins)
    return Tally(
        succeeded=len(done) if observed.indexed else succeeded,
        failed=int(status.get("failed") or 0) + len(old["failed"]) + sum(rulings[uid].counts for uid in losses),
        written=written,
        done=done,
        broken=broken,
        kept=_kept(observed, fresh, done, broken) if broken is not None else {},
        fatal=next((found.fatal for found in rulings.values() if found.fatal), ""),
    )


def _uncounted(job: Obj, side: str) -> tuple[str, ...]:
    return tuple(dig(job, "status", "uncountedTerminatedPods", side, default=()))


def _completed(observed: Observed) -> tuple[frozenset[int], frozenset[int]]:
    if not observed.indexed:
        return frozenset(), frozenset()
    text = str(dig(observed.job, "status", "completedIndexes", default=""))
    written = frozenset(parse_indexes(text, observed.completions or 0))
    fresh = {observed.index(pod) for pod in observed.pods if phase(pod) == "Succeeded" and holds(pod)}
    return written, written | {index for index in fresh if index is not None}


def _broken(observed: Observed, fresh: list[Obj], rulings: dict[str, Ruling]) -> frozenset[int] | None:
    """Return the failed indexes: above their limit, or by a rule."""
    limit = observed.limit_per_index
    if limit is None:
        return None
    broken = parse_indexes(str(dig(observed.job, "status", "failedIndexes", default="")), observed.completions or 0)
    for pod in fresh:
        ruling, index = rulings.get(uid_of(pod)), observed.index(pod)
        if ruling is None or index is None:
            continue
        if ruling.fails_index or (ruling.counts and failures_of(pod) >= limit):
            broken.add(index)
    return frozenset(broken)


def _kept(observed: Observed, fresh: list[Obj], done: frozenset[int], broken: frozenset[int]) -> dict[int, Obj]:
    """Return the last failed pod of each index without a successor, which needs its failure count."""
    settled = done | broken | {observed.index(pod) for pod in observed.active}
    kept: dict[int, Obj] = {}
    for pod in sorted(fresh, key=lambda each: (failures_of(each) + failures_of(each, IGNORED_FAILURES), name_of(each))):
        index = observed.index(pod)
        if index is None or index in settled or not observed.failed(pod):
            continue
        if index not in kept or finished_at(pod) >= finished_at(kept[index]):
            kept[index] = pod
    return kept


def ledger(observed: Observed, counted: Tally, success: bool | None) -> Ledger:
    """``success``: how the Job ends; None while it continues. An ending Job releases every pod; if it failed, its
    unfinished pods count as failed."""
    status = observed.job.get("status") or {}
    sides = {side: _uncounted(observed.job, side) for side in ("succeeded", "failed")}
    holding = {uid_of(pod) for pod in observed.pods if holds(pod)}
    left = {side: [uid for uid in uids if uid in holding] for side, uids in sides.items()}
    numbers = {side: int(status.get(side) or 0) + len(uids) - len(left[side]) for side, uids in sides.items()}
    release: list[Obj] = []
    awaited = {uid_of(pod) for pod in counted.kept.values()} if success is None else set()
    for pod in sorted(observed.pods, key=name_of):
        failed = observed.failed(pod)
        ended = failed or phase(pod) == "Succeeded" or (success is not None and pod not in observed.active)
        if not holds(pod) or not ended or uid_of(pod) in awaited:
            continue
        side = _side(observed, pod, counted, failed or success is False)
        if side is None or uid_of(pod) in left[side]:
            release.append(pod)
        elif side == "succeeded" and observed.indexed:
            continue  # its index is written first
        elif len(left["succeeded"]) + len(left["failed"]) < MAX_UNCOUNTED:
            left[side].append(uid_of(pod))
    succeeded = len(counted.done) if observed.indexed else numbers["succeeded"]
    return Ledger(succeeded, numbers["failed"], tuple(left["succeeded"]), tuple(left["failed"]), tuple(release))


def _side(observed: Observed, pod: Obj, counted: Tally, failed: bool) -> str | None:
    """Return the counter that a finished pod waits for; None if it can be released."""
    if not observed.belongs(pod):
        return None
    if phase(pod) == "Succeeded":
        return None if observed.indexed and observed.index(pod) in counted.written else "succeeded"
    return "failed" if failed and rule(observed.job, pod).counts else None


def let_go(pod: Obj, why: str) -> Patch:
    """Return a patch that removes the tracking finalizer."""
    left = [each for each in finalizers(pod) if each != TRACKING]
    metadata = {"uid": uid_of(pod), "resourceVersion": resource_version(pod), "finalizers": left or None}
    return Patch(gvk_of(pod), namespace_of(pod), name_of(pod), {"metadata": metadata}, why)
