"""Pods that a Job makes, and which of them it gives up when it has too many."""

from __future__ import annotations

from syncline.cluster.builtin.job.counting import Tally
from syncline.cluster.builtin.job.observe import COMPLETION_INDEX, TRACKING, Observed, index_of
from syncline.cluster.builtin.replicaset.ranking import deletion_order
from syncline.cluster.builtin.slow_start import slow_start
from syncline.cluster.builtin.templates import pod_from_template
from syncline.control.plan import Create, Delete
from syncline.kube.objects import Obj, dig, name_of

__all__ = ["MAX_PER_PASS", "surplus", "wanted_pods"]

MAX_PER_PASS = 500
"""Most pods made in one pass, as in Kubernetes."""
_REASON = "the Job is not complete"


def surplus(seen: Observed, counted: Tally, want: int) -> list[Obj]:
    """Active pods that are too many: of completed or doubled indexes first, then by deletion order."""
    ordered = deletion_order(tuple(seen.active), {})
    if not seen.indexed:
        return ordered[: max(len(ordered) - want, 0)]
    kept: dict[int, Obj] = {}
    doomed: list[Obj] = []
    for pod in reversed(ordered):
        index = index_of(pod)
        if index is None or index in counted.indexes or index in kept or index >= (seen.completions or 0):
            doomed.append(pod)
        else:
            kept[index] = pod
    too_many = max(len(kept) - want, 0)
    return doomed + [kept[index] for index in sorted(kept, reverse=True)[:too_many]]


def wanted_pods(seen: Observed, counted: Tally, missing: int) -> tuple[tuple[Create | Delete, ...], ...]:
    """Creations in growing batches; an indexed Job fills its lowest free indexes."""
    missing = min(missing, MAX_PER_PASS)
    if not seen.indexed:
        return slow_start(Create(_pod(seen.job), _REASON), missing)
    taken = {index_of(pod) for pod in seen.active} | set(counted.indexes)
    free = [index for index in range(seen.completions or 0) if index not in taken][:missing]
    return (tuple(Create(_indexed_pod(seen.job, index), _REASON) for index in free),) if free else ()


def _pod(job: Obj) -> Obj:
    template = dig(job, "spec", "template", default={})
    return pod_from_template(job, template, finalizers=(TRACKING,))


def _indexed_pod(job: Obj, index: int) -> Obj:
    """Its index is in label, annotation, host name and the environment of every container."""
    template = dig(job, "spec", "template", default={})
    mark = {COMPLETION_INDEX: str(index)}
    pod = pod_from_template(job, template, labels=mark, annotations=mark, finalizers=(TRACKING,))
    pod["metadata"]["generateName"] = f"{name_of(job)}-{index}-"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    for field in ("initContainers", "containers"):
        if field in pod["spec"]:
            pod["spec"][field] = [_with_variable(container, variable) for container in pod["spec"][field]]
    pod["spec"].setdefault("hostname", f"{name_of(job)}-{index}")
    return pod


def _with_variable(container: Obj, variable: Obj) -> Obj:
    known = container.get("env") or []
    if any(each.get("name") == variable["name"] for each in known):
        return container
    return container | {"env": [*known, variable]}
