"""Create a Job's pods, and choose the surplus ones."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.pods import phase
from syncline.cluster.builtin.workloads.job.backoff import (
    FAILURES,
    IGNORED_FAILURES,
    failures_of,
    remaining_for_index_s,
    remaining_s,
)
from syncline.cluster.builtin.workloads.job.counting import Tally
from syncline.cluster.builtin.workloads.job.failure_policy import rule
from syncline.cluster.builtin.workloads.job.indexes import COMPLETION_INDEX
from syncline.cluster.builtin.workloads.job.observe import TRACKING, Observed, is_going
from syncline.cluster.builtin.workloads.replicaset.ranking import deletion_order
from syncline.cluster.builtin.workloads.slow_start import slow_start
from syncline.cluster.builtin.workloads.templates import pod_from_template
from syncline.control.plan import Create
from syncline.kube.objects import Obj, dig, name_of

MAX_PER_PASS = 500
"""Pods created or deleted per reconcile, as in Kubernetes."""
MAX_GENERATE_NAME = 58
"""Longest prefix that the API server does not truncate, so that the index stays in the name."""
_REASON = "the Job is not complete"


def surplus(observed: Observed, want: int) -> list[Obj]:
    """Return surplus active pods: first without a valid index, then duplicates, then by deletion order."""
    ordered = deletion_order(tuple(observed.active), {})
    too_many = max(len(ordered) - want, 0)
    if not observed.indexed:
        return ordered[:too_many][:MAX_PER_PASS]
    kept: dict[int, Obj] = {}
    for pod in reversed(ordered):
        index = observed.index(pod)
        if index is not None:
            kept.setdefault(index, pod)
    left = {name_of(pod) for pod in kept.values()}
    doomed = [pod for pod in ordered if name_of(pod) not in left]
    rest = [pod for pod in ordered if name_of(pod) in left]
    return (doomed + rest[: max(too_many - len(doomed), 0)])[:MAX_PER_PASS]


def wanted_pods(
    observed: Observed, counted: Tally, missing: int, now: datetime
) -> tuple[tuple[tuple[Create, ...], ...], float]:
    """Return creates in growing batches, or the seconds to wait because of failures. An indexed Job fills its lowest
    free indexes."""
    missing = min(missing, MAX_PER_PASS)
    if counted.broken is None:
        wait_s = remaining_s(_ended(observed, "Succeeded"), [pod for pod in observed.pods if observed.failed(pod)], now)
        if wait_s > 0:
            return (), wait_s
    if not observed.indexed:
        return slow_start(Create(_pod(observed.job), _REASON), missing), 0.0
    free = _free_indexes(observed, counted)[:missing]
    waits = {index: remaining_for_index_s(counted.kept.get(index), now) for index in free}
    due = [index for index in free if waits[index] <= 0]
    if free and not due:
        return (), min(waits.values())
    steps: list[tuple[Create, ...]] = []
    for copies in slow_start(None, len(due)):
        made, due = due[: len(copies)], due[len(copies) :]
        steps.append(tuple(Create(_indexed_pod(observed, counted, index), _REASON) for index in made))
    return tuple(steps), 0.0


def _ended(observed: Observed, how: str) -> list[Obj]:
    return [pod for pod in observed.pods if phase(pod) == how]


def _free_indexes(observed: Observed, counted: Tally) -> list[int]:
    taken = {observed.index(pod) for pod in observed.active} | counted.done | (counted.broken or frozenset())
    if observed.replaces_failed_only:
        taken |= {observed.index(pod) for pod in observed.pods if is_going(pod)}
    return [index for index in range(observed.completions or 0) if index not in taken]


def _pod(job: Obj) -> Obj:
    template = dig(job, "spec", "template", default={})
    return pod_from_template(job, template, finalizers=(TRACKING,))


def _indexed_pod(observed: Observed, counted: Tally, index: int) -> Obj:
    """Return a pod with its index in label, annotation, host name and the environment of every container."""
    job = observed.job
    template = dig(job, "spec", "template", default={})
    mark = {COMPLETION_INDEX: str(index)}
    notes = mark | (_failures(job, counted.kept.get(index)) if counted.broken is not None else {})
    pod = pod_from_template(job, template, labels=mark, annotations=notes, finalizers=(TRACKING,))
    tail = f"-{index}-"
    pod["metadata"]["generateName"] = name_of(job)[: MAX_GENERATE_NAME - len(tail)] + tail
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    for field in ("initContainers", "containers"):
        if field in pod["spec"]:
            pod["spec"][field] = [_with_variable(container, variable) for container in pod["spec"][field]]
    pod["spec"]["hostname"] = f"{name_of(job)}-{index}"
    return pod


def _failures(job: Obj, last: Obj | None) -> dict[str, str]:
    """Return the failure counts for a new pod of an index."""
    if last is None:
        return {FAILURES: "0"}
    counts = rule(job, last).counts
    ignored = failures_of(last, IGNORED_FAILURES) + (not counts)
    return {FAILURES: str(failures_of(last) + counts)} | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


def _with_variable(container: Obj, variable: Obj) -> Obj:
    known = container.get("env") or []
    if any(each.get("name") == variable["name"] for each in known):
        return container
    return container | {"env": [*known, variable]}
