"""The order in which tasks run.

By phase, wave, kind and name; then a Namespace or CRD moves in front of the first task that needs it and takes over its
phase and wave. Waves of prunes are reversed, so that what was created last is deleted first. Rules: gitops-engine
``pkg/sync/sync_tasks.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from syncline.apply.annotations import has_option
from syncline.gitops.sync.facts import Facts
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.task import Task

KIND_ORDER = (
    "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
    "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
    "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding", "ClusterRoleBindingList",
    "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod", "ReplicationController",
    "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "IngressClass", "Ingress",
    "APIService",
)  # fmt: skip
"""Kinds in Helm's install order; all other kinds come last, without an order among them."""

_KIND_RANK = {kind: rank for rank, kind in enumerate(KIND_ORDER)}
_PHASE_RANK = {phase: rank for rank, phase in enumerate(SyncPhase)}


def _rank(task: Task) -> tuple[int, int, int, str, str, bool, str]:
    kind = _KIND_RANK.get(task.gvk.kind, len(KIND_ORDER))
    # Group and namespace only break ties, which upstream leaves random.
    where = task.ref.namespace
    return _PHASE_RANK[task.phase], task.wave, kind, task.ref.name, task.gvk.group, not where, where


def turn(task: Task) -> tuple[int, int, bool, int]:
    """Return the sort key of a task's turn: lower turns run first, equal ones together."""
    kind = _KIND_RANK.get(task.gvk.kind, len(KIND_ORDER))
    return _PHASE_RANK[task.phase], task.wave, not task.is_prune, kind


def sort_tasks(tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks in order; moved ones get their new phase and wave."""
    ordered = sorted(tasks, key=_rank)
    ordered = _bring_forward(ordered, _namespace_made, lambda facts: facts.ref.namespace or None)
    return _bring_forward(ordered, lambda facts: facts.defines, lambda facts: (facts.gvk.group, facts.gvk.kind))


def _namespace_made(facts: Facts) -> str | None:
    return facts.ref.name if facts.makes_namespace else None


def _bring_forward(tasks: list[Task], makes: Callable[[Facts], object], needs: Callable[[Facts], object]) -> list[Task]:
    """Move each task that creates something in front of the first task that needs it."""
    manifests = [task for task in tasks if not task.is_prune]
    if not any(makes(task.facts) is not None for task in manifests):
        return tasks
    ordered: list[Task] = []
    first: dict[object, Task] = {}
    for task in tasks:
        made = None if task.is_prune else makes(task.facts)
        if made is None:
            if not task.is_prune:
                first.setdefault(needs(task.facts), task)
            ordered.append(task)
        elif made in first:
            dependent = first[made]
            task.wave_override = dependent.wave
            task.phase = dependent.phase
            ordered.insert(ordered.index(dependent), task)
        else:
            ordered.append(task)
    return ordered


def mirror_prune_waves(tasks: Iterable[Task], prune_last: bool) -> None:
    """Reverse the waves of prune tasks; those with ``PruneLast`` go one wave after everything else of phase Sync (at
    least wave 1)."""
    listed = list(tasks)
    prunes = [task for task in listed if task.is_prune]
    waves = sorted({task.wave for task in prunes})
    mirrored = dict(zip(waves, reversed(waves)))
    for task in prunes:
        if mirrored[task.wave] != task.wave:
            task.wave_override = mirrored[task.wave]
    last = max((task.wave for task in listed if task.phase is SyncPhase.SYNC), default=0)
    for task in prunes:
        if prune_last or has_option(task.live, "PruneLast=true"):
            task.wave_override = max(last, 0) + 1
