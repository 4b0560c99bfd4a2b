"""Builds the ordered tasks of an operation from its observation.

Called once per reconcile by ``passes.py`` and by the preview. Pure; problems that make the operation invalid are
returned beside the tasks. Rules: gitops-engine ``pkg/sync/sync_context.go`` (getSyncTasks).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from syncline.apply.annotations import (
    HOOK_FINALIZER,
    OPERATION,
    SYNC_OPTIONS,
    HookType,
    has_hook_finalizer,
    has_option,
)
from syncline.gitops.sync.facts import Facts
from syncline.gitops.sync.kinds import KindProblem
from syncline.gitops.sync.model import OperationPhase, Pair, SyncObserved
from syncline.gitops.sync.order import mirror_prune_waves, sort_tasks
from syncline.gitops.sync.phases import SyncPhase
from syncline.gitops.sync.task import Task
from syncline.kube.objects import (
    GVK,
    Obj,
    ObjectRef,
    annotations_of,
    finalizers,
    meta,
    name_of,
    namespace_of,
)

_SHORT_REVISION = 7
_SUFFIX_LENGTH = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a task is invalid; ``state`` is the phase of its row."""

    task: Task
    message: str
    state: OperationPhase = OperationPhase.NONE


@dataclass(frozen=True, slots=True)
class TaskList:
    """``invalid``: tasks that end the operation. ``broken``: tasks that failed while they were built."""

    tasks: tuple[Task, ...]
    invalid: tuple[Problem, ...]
    broken: tuple[Problem, ...]


def build_tasks(observed: SyncObserved) -> TaskList:
    """Return all tasks in order; earlier results (``observed.results``) are not attached yet."""
    grouped = _group(observed)
    tasks = _resource_tasks(observed, grouped)
    if not observed.options.skip_hooks and not observed.options.resources:
        tasks += _hook_tasks(observed)
    created, broken = _namespace_task(observed, grouped)
    tasks += created
    _find_live(tasks, grouped)
    invalid = _check_all(observed, tasks)
    mirror_prune_waves(tasks, observed.options.prune_last)
    return TaskList(tuple(sort_tasks(tasks)), tuple(invalid), tuple(broken))


def phases_of(facts: Facts) -> list[SyncPhase]:
    """Return the phases of an object: its hook types, or Sync."""
    if facts.is_skipped:
        return []
    if not facts.is_hook:
        return [SyncPhase.SYNC]
    return [phase for phase in SyncPhase if HookType(phase.value) in facts.hook_types]


def generated_name(obj: Obj, revision: str, phase: SyncPhase, started: int) -> str:
    """Return the name of a hook without one, reproducible from revision and start of the operation (Unix seconds)."""
    short = revision[:_SHORT_REVISION] if len(revision) > _SHORT_REVISION else revision
    return f"{meta(obj).get('generateName') or ''}" + f"{short}-{phase}-{started}".lower()


def stamp_of(observed: SyncObserved, phase: SyncPhase) -> str:
    return f"{observed.operation}/{phase}"


def _group(observed: SyncObserved) -> dict[ObjectRef, Pair]:
    """Return one pair per key; of several the last wins."""
    grouped: dict[ObjectRef, Pair] = {}
    for index, given in enumerate(observed.pairs):
        pair = _with_name(observed, index, given)
        known = grouped.get(pair.ref)
        if known is not None and known.target is not None and pair.target is None:
            pair = Pair(known.target, pair.live)  # the manifest got its name only here
        grouped[pair.ref] = pair
    return grouped


def _with_name(observed: SyncObserved, index: int, pair: Pair) -> Pair:
    """Name an object that has only ``generateName``, so that a repetition of this attempt finds it."""
    target = pair.target
    if not observed.durable or target is None or pair.facts.ref.name or not meta(target).get("generateName"):
        return pair
    if not (observed.options.replace or has_option(target, "Replace=true")):
        return pair
    digest = hashlib.sha256(f"{observed.operation}/{index}".encode()).hexdigest()
    named = _with_meta(target, name=f"{meta(target)['generateName']}{digest[:_SUFFIX_LENGTH]}")
    return Pair(stamped(named, stamp_of(observed, SyncPhase.SYNC)), pair.live)


def _resource_tasks(observed: SyncObserved, grouped: dict[ObjectRef, Pair]) -> list[Task]:
    chosen = observed.options.resources
    tasks: list[Task] = []
    for ref, pair in grouped.items():
        # A live hook without a manifest is left alone.
        if pair.facts.is_hook or (chosen and not any(one.matches(ref) for one in chosen)):
            continue
        placed = pair.placed(observed.namespace)
        tasks += [Task(phase, placed, pair.live, pair.target is None) for phase in phases_of(pair.facts)]
    return tasks


def _hook_tasks(observed: SyncObserved) -> list[Task]:
    started = int(observed.started_at.timestamp())
    tasks: list[Task] = []
    for hook in observed.hooks:
        for phase in phases_of(Facts.of(hook)):
            target = hook if namespace_of(hook) else _with_meta(hook, namespace=observed.namespace)
            if not name_of(target):
                target = _with_meta(target, name=generated_name(hook, observed.revision, phase, started))
            if not has_hook_finalizer(target):
                target = _with_meta(target, finalizers=[*finalizers(target), HOOK_FINALIZER])
            if observed.durable:
                target = stamped(target, stamp_of(observed, phase))
            tasks.append(Task(phase, Facts.of(target), None))
    return tasks


def _with_meta(obj: Obj, **fields: object) -> Obj:
    return {**obj, "metadata": {**meta(obj), **fields}}


def stamped(obj: Obj, stamp: str) -> Obj:
    """Return a copy with the operation's stamp."""
    return _with_meta(obj, annotations={**annotations_of(obj), OPERATION: stamp})


def _namespace_task(observed: SyncObserved, grouped: dict[ObjectRef, Pair]) -> tuple[list[Task], list[Problem]]:
    """Return the task that creates or labels the destination Namespace, if the application requests it."""
    if not observed.options.create_namespace or not observed.namespace or _is_declared(observed, grouped):
        return [], []
    managed = observed.options.managed_namespace_metadata
    manifest = namespace_manifest(observed.namespace, managed)
    if observed.namespace_error:
        task = Task(SyncPhase.PRE_SYNC, Facts.of(manifest), None)
        why = f"namespace auto creation failed: {observed.namespace_error}"
        return [task], [Problem(task, why, OperationPhase.ERROR)]
    live = observed.namespace_live
    made_now = observed.durable and (
        live is None or annotations_of(live).get(OPERATION) == stamp_of(observed, SyncPhase.PRE_SYNC)
    )
    if managed is None and live is not None and not made_now:
        return [], []
    if made_now:
        manifest = stamped(manifest, stamp_of(observed, SyncPhase.PRE_SYNC))
    return [Task(SyncPhase.PRE_SYNC, Facts.of(manifest), live)], []


def namespace_manifest(name: str, managed: Mapping[str, Mapping[str, str]] | None) -> Obj:
    """Return the Namespace for ``CreateNamespace``; with managed metadata it is applied server-side.

    The comparison also uses it as target if the application tracks the live Namespace.
    """
    manifest: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    if managed is None:
        return manifest
    annotations = {**(managed.get("annotations") or {}), SYNC_OPTIONS: "ServerSideApply=true"}
    return _with_meta(manifest, labels=dict(managed.get("labels") or {}), annotations=annotations)


def _is_declared(observed: SyncObserved, grouped: dict[ObjectRef, Pair]) -> bool:
    """Return whether the manifests declare the Namespace. Upstream skips hooks: it creates, then deletes theirs."""
    manifests = [pair.facts for pair in grouped.values() if pair.target is not None]
    if observed.durable:
        manifests += map(Facts.of, observed.hooks)
    return any(one.makes_namespace and one.ref.name == observed.namespace for one in manifests)


def _find_live(tasks: Iterable[Task], grouped: dict[ObjectRef, Pair]) -> None:
    """Set ``live`` by key: hooks get their leftover, cluster-scoped objects match in any manifest namespace."""
    for task in tasks:
        if task.is_prune or task.live is not None:
            continue
        for ref in (task.ref._replace(namespace=""), task.ref):
            if ref in grouped:
                task.live = grouped[ref].live
                break


def _check_all(observed: SyncObserved, tasks: Iterable[Task]) -> list[Problem]:
    """Return all problems. Permission is checked once per kind and namespace, per name for cluster-scoped objects."""
    problems: list[Problem] = []
    judged: dict[tuple[GVK, str, str], str] = {}
    for task in tasks:
        found = observed.kinds.find(task.gvk)
        if not isinstance(found, KindProblem):
            key = task.gvk, task.ref.namespace, "" if found.namespaced else task.ref.name
            refusal = judged.get(key)
            if refusal is None:
                refusal = judged[key] = observed.rules.permits(task.obj, found)
            if refusal:
                problems.append(Problem(task, refusal))
        elif found.not_found and _may_skip_dry_run(observed, task):
            task.skip_dry_run = True
        else:
            problems.append(Problem(task, found.message))
    return problems


def _may_skip_dry_run(observed: SyncObserved, task: Task) -> bool:
    return (
        observed.options.skip_dry_run_on_missing
        or has_option(task.target, "SkipDryRunOnMissingResource=true")
        or (task.gvk.group, task.gvk.kind) in observed.defined_kinds
    )
