"""Computes the status of an Application after a comparison or a reconcile of an operation; pure.

A status is computed whole and written only if different, in one patch together with ``operation`` (this kind has no
status subresource).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from syncline.argo.application import REFRESH, AppView
from syncline.argo.conditions import Condition, merge_conditions
from syncline.base.clock import format_time
from syncline.control.plan import Patch
from syncline.gitops.application.manifests import Manifests
from syncline.gitops.application.observing.masking import masked_status, timeless
from syncline.gitops.comparison.compare import Comparison
from syncline.gitops.comparison.health import ApplicationHealth
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig, resource_version
from syncline.kube.objects import finalizers as finalizers_of
from syncline.kube.patching.patches import create_merge_patch

SOURCE_WAIT = "SourceWaitWarning"
"""Reading the source takes long; the status is from before."""
EVALUATION_WAIT = "EvaluationWaitWarning"
"""Evaluating user expressions takes long; the status is from before."""
EVALUATED = (
    "InvalidSpecError",
    "UnknownError",
    "ComparisonError",
    "SharedResourceWarning",
    "PoolNotHeldWarning",
    "RepeatedResourceWarning",
    "ExcludedResourceWarning",
    "OrphanedResourceWarning",
    "SourceWarning",
    SOURCE_WAIT,
    EVALUATION_WAIT,
)
"""Conditions that a comparison decides; it leaves others (SyncError, DeletionError) alone."""


def compared_status(
    view: AppView,
    comparison: Comparison,
    manifests: Manifests,
    conditions: Iterable[Condition],
    now: datetime,
    evaluated: tuple[str, ...] = EVALUATED,
) -> Obj:
    """Return the status after a successful comparison."""
    status: Obj = dict(view.status)
    status["sync"] = _sync(view, str(comparison.status), manifests)
    status["health"] = _health(view, str(comparison.health.status), comparison.health.message, now)
    status["resources"] = [dict(row) for row in comparison.resources]
    status["summary"] = {"images": sorted(comparison.images)} if comparison.images else {}
    status.pop("sourceType", None)
    status.pop("sourceTypes", None)
    if view.multi_source:
        status["sourceTypes"] = list(manifests.source_types)
    elif manifests.source_types:
        status["sourceType"] = manifests.source_types[0]
    return _with_conditions(view, status, conditions, evaluated, now)


def without_new_commit(view: AppView, status: Obj) -> Obj:
    """Return the old status if ``status`` differs in the commit only, i.e. the commit touched nothing of the
    application. So a commit to one of a thousand applications in a repository writes one status."""
    sync, before = status["sync"], dig(view.status, "sync", default={})
    named = {key: before[key] for key in ("revision", "revisions") if key in before}
    rest = {key: value for key, value in sync.items() if key not in ("revision", "revisions")}
    same = status | {"sync": rest | named}
    return view.status if timeless(same) == timeless(view.status) else status


def failed_status(
    view: AppView,
    conditions: Iterable[Condition],
    now: datetime,
    manifests: Manifests | None = None,
    *,
    health: ApplicationHealth | None = None,
) -> Obj:
    """Return the status if nothing could be compared: sync Unknown, and the problems as conditions. ``health``: that of
    the live objects, which an unreadable source does not affect; None: unknown."""
    status: Obj = dict(view.status)
    status["sync"] = _sync(view, "Unknown", manifests)
    found = ("Unknown", "") if health is None else (str(health.status), health.message)
    status["health"] = _health(view, *found, now)
    return _with_conditions(view, status, conditions, EVALUATED, now)


def waiting_status(view: AppView, text: str, now: datetime, condition: str = SOURCE_WAIT) -> Obj:
    """Return the current status with the condition that the source is waited for (or another ``condition``), or without
    it if ``text`` is empty."""
    found = [Condition(condition, text)] if text else []
    merged = merge_conditions(view.status.get("conditions") or [], (condition,), found, now)
    rest = {key: value for key, value in view.status.items() if key != "conditions"}
    return rest | ({"conditions": merged} if merged else {})


def _sync(view: AppView, code: str, manifests: Manifests | None) -> Obj:
    compared: Obj = {"destination": dict(view.destination)}
    if view.multi_source:
        compared["sources"] = list(view.sources)
    elif view.sources:
        compared["source"] = dict(view.sources[0])
    if view.spec.get("ignoreDifferences"):
        compared["ignoreDifferences"] = view.spec["ignoreDifferences"]
    sync: Obj = {"status": code, "comparedTo": compared}
    if manifests is not None and manifests.revisions:
        if view.multi_source:
            sync["revisions"] = list(manifests.revisions)
        else:
            sync["revision"] = manifests.revision
    return sync


def _health(view: AppView, code: str, message: str, now: datetime) -> Obj:
    """Return the health; its transition time changes only with the code."""
    before = dig(view.status, "health", default={})
    since = before.get("lastTransitionTime") if before.get("status") == code else format_time(now)
    health: Obj = {"status": code}
    if since:
        health["lastTransitionTime"] = since
    if message:
        health["message"] = message
    return health


def _with_conditions(
    view: AppView, status: Obj, conditions: Iterable[Condition], evaluated: tuple[str, ...], now: datetime
) -> Obj:
    merged = merge_conditions(view.status.get("conditions") or [], evaluated, list(conditions), now)
    status.pop("conditions", None)
    if merged:
        status["conditions"] = merged
    status["controllerNamespace"] = view.control_namespace or view.namespace
    if view.refresh or compared_before_end(view.obj) or timeless(status) != timeless(view.status):
        status["reconciledAt"] = format_time(now)
    return status


def compared_before_end(app: Obj) -> bool:
    """Return whether an operation has ended since the last comparison: ``argocd app sync`` and ``app wait`` go on until
    ``reconciledAt`` is not before ``finishedAt``."""
    ended = str(dig(app, "status", "operationState", "finishedAt", default="") or "")
    return bool(ended) and ended > str(dig(app, "status", "reconciledAt", default="") or "")


def app_patch(
    view: AppView,
    status: Obj,
    reason: str,
    *,
    operation: Any = ...,
    annotations: Mapping[str, str | None] | None = None,
    finalizers: list[str] | None = None,
    processed: bool = True,
) -> tuple[Patch, ...]:
    """Return one conditional merge patch of ``status`` (and ``operation``: an object, or None to remove it), or nothing
    if nothing differs. It includes a ``processed`` refresh annotation, ``annotations`` (None removes) and
    ``finalizers`` (the full list; None: unchanged)."""
    body: Obj = {}
    status = masked_status(view, status)
    if status != view.status:
        body["status"] = create_merge_patch(view.status, status)
    if operation is not ... and operation != view.operation:
        body["operation"] = create_merge_patch(view.operation, operation) if view.operation and operation else operation
    known = annotations_of(view.obj)
    changed = {key: value for key, value in (annotations or {}).items() if known.get(key) != value}
    if processed and view.answered and view.refresh and REFRESH in known:
        changed[REFRESH] = None
    metadata: Obj = {"annotations": changed} if changed else {}
    if finalizers is not None and finalizers != finalizers_of(view.obj):
        metadata["finalizers"] = finalizers or None
    if not body and not metadata:
        return ()
    body["metadata"] = metadata | {"resourceVersion": resource_version(view.obj)}
    return (Patch(APPLICATION, view.namespace, view.name, body, view.mask(reason)),)
