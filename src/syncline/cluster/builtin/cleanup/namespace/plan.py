"""Plan the end of a namespace: delete its pods, then all other content, then finalize it.

While a pod exists, nothing else is deleted: pods may need policies, accounts and secrets until they end. Conditions,
reasons and messages are those of Kubernetes' namespaced resources deleter. A namespace is finalized only when the
server, not the cache, confirms that it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.actions import CONTENT_VERBS, ConfirmEmpty
from syncline.cluster.builtin.conditions import find
from syncline.cluster.builtin.pods import POD, is_finished
from syncline.control.cache import Snapshot
from syncline.control.plan import Delete, Done, Outcome, Plan, Replace, Requeue, set_status
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    ResourceInfo,
    dig,
    finalizers,
    is_terminating,
    meta,
    name_of,
)

NAMESPACE = GroupKind("", "Namespace")
FINALIZER = "kubernetes"
MAX_DELETES = 1000
"""Objects deleted per reconcile; the deletions trigger the next one for the rest."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A terminating namespace, and its content by kind in discovery order."""

    namespace: Obj
    content: tuple[tuple[ResourceInfo, tuple[Obj, ...]], ...]


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None unless the namespace is terminating and has our finalizer."""
    namespace = cache.get(ref)
    if namespace is None or not is_terminating(namespace):
        return None
    if FINALIZER not in dig(namespace, "spec", "finalizers", default=[]):
        return None
    content: list[tuple[ResourceInfo, tuple[Obj, ...]]] = []
    for info in cache.mapper.all():
        if info.namespaced and set(info.verbs) >= CONTENT_VERBS:
            found = tuple(cache.objects(info.group_kind, ref.name))
            if found:
                content.append((info, found))
    return Observed(namespace, tuple(content))


def plan(observed: Observed, now: datetime) -> Plan:
    """Delete the pods, then the rest; report what remains; then finalize."""
    name = name_of(observed.namespace)
    pods = next((objects for info, objects in observed.content if info.group_kind == POD), ())
    content = [obj for _, objects in observed.content for obj in objects]
    doomed = [obj for obj in pods or content if not is_terminating(obj)]
    if doomed:
        deletes = tuple(Delete.of(obj, f"namespace {name} is ending") for obj in doomed[:MAX_DELETES])
        return Plan((deletes,), why=f"{len(doomed)} objects are in {name}")
    status = dict(observed.namespace.get("status") or {}) | {"conditions": _conditions(observed, pods, now)}
    if observed.content:
        writes = set_status(observed.namespace, status, "content remains")
        return Plan(outcome=_look_again(observed, pods, now), status=writes, why=f"{name} is not empty yet")
    left = [item for item in dig(observed.namespace, "spec", "finalizers", default=[]) if item != FINALIZER]
    finalized = observed.namespace | {"spec": {"finalizers": left}, "status": status}
    reason = "the namespace is empty"
    return Plan(((ConfirmEmpty(name, reason),), (Replace(finalized, reason, subresource="finalize"),)), why=reason)


def _overdue_at(observed: Observed, pods: tuple[Obj, ...]) -> datetime | None:
    """Return when pods without finalizers should have ended (``estimateGracefulTerminationForPods``)."""
    if not pods or any(finalizers(pod) for pod in pods):
        return None
    graces = [dig(pod, "spec", "terminationGracePeriodSeconds", default=0) for pod in pods if not is_finished(pod)]
    began = time_or_none(meta(observed.namespace).get("deletionTimestamp"))
    return began + timedelta(seconds=int(max(graces, default=0))) if began is not None else None


def _look_again(observed: Observed, pods: tuple[Obj, ...], now: datetime) -> Outcome:
    """Requeue only for pods that do not end in time; other changes trigger a reconcile."""
    due = _overdue_at(observed, pods)
    if due is None or due <= now:
        return Done()
    return Requeue((due - now).total_seconds(), "pods should have ended by then", background=True)


def _failure(observed: Observed, pods: tuple[Obj, ...], now: datetime) -> tuple[str, str, str]:
    due = _overdue_at(observed, pods)
    if due is None or now < due:
        return "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    left = f"unexpected items still remain in namespace: {name_of(observed.namespace)} for gvr: /v1, Resource=pods"
    return "True", "ContentDeletionFailed", f"Failed to delete all resource types, 1 remaining: {left}"


def _conditions(observed: Observed, pods: tuple[Obj, ...], now: datetime) -> list[Obj]:
    """Return the conditions; while pods exist, they report no other content, as in Kubernetes."""
    counted = () if pods else observed.content
    remaining = sorted(f"{info.plural}.{info.group} has {len(objects)} resource instances" for info, objects in counted)
    holding = {} if pods else _finalizer_counts(observed)
    content = ("False", "ContentRemoved", "All content successfully removed")
    if remaining:
        content = ("True", "SomeResourcesRemain", "Some resources are remaining: " + ", ".join(remaining))
    held = ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    if holding:
        text = ", ".join(f"{name} in {number} resource instances" for name, number in sorted(holding.items()))
        held = ("True", "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: " + text)
    fields = {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": _failure(observed, pods, now),
        "NamespaceContentRemaining": content,
        "NamespaceFinalizersRemaining": held,
    }
    old: list[Obj] = dig(observed.namespace, "status", "conditions", default=[])
    return [_condition(old, kind, *verdict, now) for kind, verdict in fields.items()]


def _finalizer_counts(observed: Observed) -> dict[str, int]:
    counts: dict[str, int] = {}
    for _, objects in observed.content:
        for obj in objects:
            for finalizer in finalizers(obj):
                counts[finalizer] = counts.get(finalizer, 0) + 1
    return counts


def _condition(old: list[Obj], kind: str, status: str, reason: str, message: str, now: datetime) -> Obj:
    known = find(old, kind)
    same = known is not None and known.get("status") == status
    since = known["lastTransitionTime"] if known is not None and same else format_time(now)
    return {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
