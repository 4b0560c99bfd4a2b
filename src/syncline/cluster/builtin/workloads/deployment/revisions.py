"""Map templates to ReplicaSets: hashes, revisions and their annotations."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.cluster.builtin.owners import owner_reference
from syncline.cluster.builtin.pods import created_at
from syncline.cluster.builtin.workloads.templates import template_hash, without_label
from syncline.cluster.validation.engine.integers import natural
from syncline.kube.objects import Obj, annotations_of, dig, name_of, namespace_of

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"
MAX_HISTORY_CHARS = 2000
"""Longest revision history in an annotation, as in Kubernetes; the oldest numbers are dropped."""
ROLLBACK_TO = "deprecated.deployment.rollback.to"
COPY_NEVER = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    ROLLBACK_TO,
}


def revision_of(obj: Obj) -> int:
    """Return the revision annotation as a number; 0 if it is missing or malformed."""
    text = annotations_of(obj).get(REVISION, "")
    return natural(text) or 0


def oldest_first(sets: Iterable[Obj]) -> list[Obj]:
    return sorted(sets, key=lambda each: (created_at(each), name_of(each)))


def current_set(deployment: Obj, sets: Iterable[Obj]) -> Obj | None:
    """Return the set with the Deployment's template, the oldest of several."""
    wanted = without_label(dig(deployment, "spec", "template"), HASH_LABEL)
    for each in oldest_first(sets):
        if without_label(dig(each, "spec", "template"), HASH_LABEL) == wanted:
            return each
    return None


def next_revision(old_sets: Iterable[Obj]) -> int:
    return max((revision_of(each) for each in old_sets), default=0) + 1


def _hash(deployment: Obj) -> str:
    return template_hash(dig(deployment, "spec", "template"), dig(deployment, "status", "collisionCount"))


def set_name(deployment: Obj) -> str:
    return f"{name_of(deployment)}-{_hash(deployment)}"


def collides(deployment: Obj, taken: frozenset[str]) -> bool:
    """Return whether the new set's name is already taken."""
    return set_name(deployment) in taken


def annotations_for(deployment: Obj, existing: Obj | None, revision: int) -> dict[str, str]:
    """Return a set's annotations: the Deployment's, and the revision, which only grows; the number it replaces is added
    to the history (Kubernetes ``SetNewReplicaSetAnnotations``)."""
    copied = {key: text for key, text in annotations_of(deployment).items() if key not in COPY_NEVER}
    if existing is None:
        return copied | {REVISION: str(revision)}
    wanted = annotations_of(existing) | copied
    old = revision_of(existing)
    if old < revision:
        wanted[REVISION] = str(revision)
        if old:
            numbers = [number for number in wanted.get(HISTORY, "").split(",") if number] + [str(old)]
            while len(",".join(numbers)) > MAX_HISTORY_CHARS:
                numbers = numbers[1:]
            wanted[HISTORY] = ",".join(numbers)
    return wanted


def new_set(deployment: Obj, replicas: int, annotations: dict[str, str]) -> Obj:
    """Return the ReplicaSet for the Deployment's template, named and labelled by its hash."""
    digest = _hash(deployment)
    template = dict(dig(deployment, "spec", "template", default={}))
    labels = dict(dig(template, "metadata", "labels", default={})) | {HASH_LABEL: digest}
    template["metadata"] = dict(template.get("metadata") or {}) | {"labels": labels}
    selector = dict(dig(deployment, "spec", "selector", default={}))
    selector["matchLabels"] = dict(selector.get("matchLabels") or {}) | {HASH_LABEL: digest}
    spec: Obj = {"replicas": replicas, "selector": selector, "template": template}
    if min_ready_s := dig(deployment, "spec", "minReadySeconds", default=0):
        spec["minReadySeconds"] = min_ready_s
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{digest}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": spec,
    }
