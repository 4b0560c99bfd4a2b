"""delete and deletecollection.

``api``, eviction and the clean-up of custom resources call it. An object with finalizers or a grace period is marked
and stays; any other is removed at once. Rules: apiserver ``rest.BeforeDelete`` and the generic registry.
"""

from __future__ import annotations

from datetime import timedelta

from syncline.base.clock import format_time, parse_time
from syncline.cluster.resources.registry import CRDS, Resource
from syncline.cluster.serving.answers import fresh_answer, list_answer, object_answer, success
from syncline.cluster.storage.store import Key, Stored
from syncline.cluster.verbs import admitting
from syncline.cluster.verbs.body import decode, fitted, own_copy, untyped
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import DeleteOptions, delete_options, list_options
from syncline.cluster.verbs.read import Matcher
from syncline.cluster.verbs.write import attempt_of
from syncline.kube.client import Response
from syncline.kube.errors import BadRequest, conflict
from syncline.kube.objects import GVK, Obj, dig, finalizers, is_terminating, meta
from syncline.kube.schema.custom.crd import PENDING, terminating
from syncline.kube.transport.elsewhere import aside, weigh
from syncline.kube.transport.outbound import Awaiting, Computation, OutboundCall

DELETE_OPTIONS = GVK("", "v1", "DeleteOptions")
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer that keeps a CustomResourceDefinition until its objects are deleted."""

_ANSWERS_OBJECT = frozenset(
    {
        "/pods",
        "/services",
        "/serviceaccounts",
        "/persistentvolumes",
        "/persistentvolumeclaims",
        "/podtemplates",
        "/resourcequotas",
        "storage.k8s.io/storageclasses",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/csinodes",
        "storage.k8s.io/volumeattachments",
        "storage.k8s.io/volumeattributesclasses",
        "resource.k8s.io/deviceclasses",
        "resource.k8s.io/resourceclaims",
        "resource.k8s.io/resourceclaimtemplates",
        "resource.k8s.io/resourceslices",
    }
)
"""Storage whose deletions return the object (``ReturnDeletedObject``)."""

_ORPHANS_BY_DEFAULT = frozenset({"/replicationcontrollers", "batch/jobs"})
"""Kinds that orphan their Pods by default, as their first versions did (``DefaultGarbageCollectionPolicy``)."""

JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)

_DEFAULT_GRACE_S = 30


class Removal:
    """Result of a deletion: ``gone`` with the ``last`` object, or the object that stays ``marked``."""

    __slots__ = ("gone", "last", "marked", "revision")

    def __init__(self, last: Obj, *, gone: bool, marked: Stored | None = None, revision: int = 0) -> None:
        self.last = last
        self.gone = gone
        self.marked = marked
        self.revision = revision


def _options(x: Exchange) -> DeleteOptions:
    if x.request.body in (None, b"", ""):
        return delete_options(x.request.query, None)
    body = decode(x.request)
    wrong = untyped(body)
    if wrong:
        raise BadRequest(wrong)
    body = body or {}
    kind = body.get("kind") or DELETE_OPTIONS.kind
    if kind != DELETE_OPTIONS.kind:
        version = body.get("apiVersion") or "meta.k8s.io/v1"
        raise BadRequest(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    return delete_options(x.request.query, fitted(body, DELETE_OPTIONS, unhandled=BadRequest))


def delete(x: Exchange) -> Response:
    options = _options(x)
    current = x.current()
    weigh(len(current.raw))
    aside(x.resource.shown_of, current)
    current = x.current()
    x.backend.admission.check_delete(attempt_of(x, "delete", x.route.name))
    if admitting.concerned(x):
        check_preconditions(x.resource, current, options)
        _judge(x, current, options)
    if x.resource.storage == "batch/jobs" and not options.propagation and options.orphan is None:
        x.warn(JOB_WARNING)
    removal = remove(x, current, options)
    # 202 tells a client of the deprecated orphanDependents that dependents are deleted first.
    status = 202 if not removal.gone and options.orphan is False else 200
    if removal.marked is not None:
        return object_answer(x, status, removal.marked)
    if not removal.gone or x.resource.storage in _ANSWERS_OBJECT:
        return fresh_answer(x, status, x.resource.shown(removal.last), removal.revision)
    response = success(200, _details(x.resource, current))
    response.revision = removal.revision
    return response


def _details(resource: Resource, stored: Stored) -> Obj:
    info = resource.info
    details: Obj = {"name": stored.key.name, "kind": info.plural, "uid": stored.uid}
    if info.group:
        details["group"] = info.group
    return details


def delete_collection(x: Exchange) -> Response:
    selection = list_options(x.request.query, fits=x.resource.fields.check)
    options = _options(x)
    matcher = Matcher(x.resource, selection.labels, selection.fields)
    found = [stored for stored in x.store.list(x.resource.storage, x.namespace) if matcher(stored)]
    if selection.limit:
        found = found[: selection.limit]
    if admitting.concerned(x):
        _judge_all(x, found, options)
    for stored in found:
        if x.store.get(stored.key) is not None:
            remove(x, stored, options)
    return list_answer(x, found, {"resourceVersion": str(x.store.revision)}, x.store.revision)


def _judge(x: Exchange, stored: Stored, options: DeleteOptions) -> None:
    """Call webhooks and policies with the object to delete and the options."""
    fields: Obj = {"gracePeriodSeconds": options.grace_s, "propagationPolicy": options.propagation or None}
    fields |= {"orphanDependents": options.orphan, "dryRun": ["All"] if options.dry_run else None}
    named = {"uid": options.uid, "resourceVersion": options.revision}
    fields["preconditions"] = {key: value for key, value in named.items() if value is not None} or None
    shown = {key: value for key, value in fields.items() if value is not None}
    old = x.resource.shown(stored.obj)
    admitting.admitted(x, "DELETE", None, old, options=shown, dry_run=options.dry_run)


CALLS_AT_ONCE = 256
"""Concurrent webhook calls for one collection; the others follow when these have finished."""


def _judge_all(x: Exchange, found: list[Stored], options: DeleteOptions) -> None:
    """Judge all objects of a collection before deleting any, with concurrent webhook calls."""
    calls: list[tuple[str, OutboundCall | Computation]] = []
    for stored in found:
        if len(calls) >= CALLS_AT_ONCE:
            break
        try:
            _judge(x, stored, options)
        except Awaiting as awaiting:
            calls += awaiting.calls
    if calls:
        raise Awaiting(calls)


def remove(x: Exchange, stored: Stored, options: DeleteOptions) -> Removal:
    """Delete or mark ``stored``; raises Conflict when a precondition does not hold."""
    check_preconditions(x.resource, stored, options)
    if x.resource.storage == "/namespaces":
        return _end_namespace(x, stored, options)
    obj = stored.obj
    grace = _grace(x.resource, obj, options)
    held = _finalizers(x.resource, obj, options)
    if held or grace:
        return _mark(x, stored, options, held, grace)
    last = _ended(x, obj, 0) if x.resource.storage == "/pods" else obj
    if options.dry_run:
        return Removal(last, gone=True)
    event = x.store.delete(stored.key, expect=None)
    return Removal(last, gone=True, revision=event.revision)


def check_preconditions(resource: Resource, stored: Stored, options: DeleteOptions) -> None:
    info = resource.info
    if resource.storage == "/namespaces" and options.uid is not None and options.uid != stored.uid:
        why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {stored.uid}"
        raise conflict(info.plural, stored.key.name, why)
    if options.uid is not None and options.uid != stored.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({stored.uid}). The object "
            "might have been deleted and then recreated"
        )
        raise conflict(info.kind, stored.key.name, why, info.group)
    if options.revision is not None and options.revision != str(stored.revision):
        why = (
            f"the ResourceVersion in the precondition ({options.revision}) does not match the ResourceVersion in "
            f"record ({stored.revision}). The object might have been modified"
        )
        raise conflict(info.kind, stored.key.name, why, info.group)


# --- finalizers ----------------------------------------------------------------------------------------------------


def _finalizers(resource: Resource, obj: Obj, options: DeleteOptions) -> list[str]:
    """Return the finalizers after this deletion request (``deletionFinalizersForGarbageCollection``)."""
    held = finalizers(obj)
    if resource.storage == "/events":
        return held  # Nothing depends on an event.
    orphan = _wants(options, "Orphan", ORPHAN, held, options.orphan) or _orphans_unasked(resource, held, options)
    foreground = _wants(options, "Foreground", FOREGROUND, held, None if options.orphan is None else False)
    kept = [name for name in held if name not in (ORPHAN, FOREGROUND)]
    if orphan:
        kept.append(ORPHAN)
    if foreground:
        kept.append(FOREGROUND)
    if resource.storage == CRDS and not is_terminating(obj) and CLEANUP_FINALIZER not in kept:
        kept.append(CLEANUP_FINALIZER)
    return held if set(kept) == set(held) else kept


def _orphans_unasked(resource: Resource, held: list[str], options: DeleteOptions) -> bool:
    if options.propagation or options.orphan is not None or FOREGROUND in held:
        return False
    return resource.storage in _ORPHANS_BY_DEFAULT


def _wants(options: DeleteOptions, policy: str, finalizer: str, held: list[str], old_style: bool | None) -> bool:
    if old_style is not None:
        return old_style
    if options.propagation:
        return options.propagation == policy
    return finalizer in held


# --- time to end ---------------------------------------------------------------------------------------------------


def _grace(resource: Resource, obj: Obj, options: DeleteOptions) -> int:
    """Return a Pod's grace period in seconds; 0 for all other kinds (pod strategy ``CheckGracefulDelete``)."""
    if resource.storage != "/pods":
        return 0
    grace = options.grace_s
    if grace is None:
        grace = dig(obj, "spec", "terminationGracePeriodSeconds", default=_DEFAULT_GRACE_S)
    if not dig(obj, "spec", "nodeName") or dig(obj, "status", "phase") in ("Succeeded", "Failed"):
        grace = 0
    return 1 if grace < 0 else int(grace)


def _mark(x: Exchange, stored: Stored, options: DeleteOptions, held: list[str], grace: int) -> Removal:
    """Set the deletion timestamp, or shorten an earlier grace period."""
    obj = stored.obj if x.resource.custom is None else x.resource.custom.reread(stored.obj)
    if is_terminating(obj):
        before = meta(obj).get("deletionGracePeriodSeconds") or 0
        if grace >= before and held == finalizers(obj):
            return Removal(obj, gone=False, marked=stored)
        marked = _shortened(obj, min(grace, before), before)
    else:
        marked = _ended(x, obj, grace)
    metadata = marked["metadata"]
    if held:
        metadata["finalizers"] = held
    else:
        metadata.pop("finalizers", None)
    if x.resource.storage == CRDS:
        marked = {**marked, "status": terminating(marked, PENDING, x.now)}
    if options.dry_run:
        return Removal(marked, gone=False)
    new = x.store.put(stored.key, marked, expect=stored.revision)
    return Removal(marked, gone=False, marked=new, revision=new.revision)


def _ended(x: Exchange, obj: Obj, grace: int) -> Obj:
    ended = {**obj, "metadata": dict(meta(obj))}
    metadata = ended["metadata"]
    metadata["deletionTimestamp"] = format_time(x.now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1
    return ended


def _shortened(obj: Obj, grace: int, before: int) -> Obj:
    metadata = dict(meta(obj))
    began = parse_time(metadata["deletionTimestamp"]) - timedelta(seconds=before)
    metadata["deletionTimestamp"] = format_time(began + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    return {**obj, "metadata": metadata}


# --- namespaces ----------------------------------------------------------------------------------------------------


def _end_namespace(x: Exchange, stored: Stored, options: DeleteOptions) -> Removal:
    """Mark a namespace Terminating; its controller then empties and finalizes it."""
    obj = stored.obj
    if not is_terminating(obj):
        marked = own_copy(obj)
        marked["metadata"]["deletionTimestamp"] = format_time(x.now)
        marked.setdefault("status", {})["phase"] = "Terminating"
        if options.propagation or options.orphan is not None:
            held = _finalizers(x.resource, obj, options)
            if held:
                marked["metadata"]["finalizers"] = held
        if options.dry_run:
            return Removal(marked, gone=False)
        new = x.store.put(stored.key, marked, expect=stored.revision)
        return Removal(marked, gone=False, marked=new, revision=new.revision)
    if dig(obj, "spec", "finalizers") or finalizers(obj):
        return Removal(obj, gone=False, marked=stored)
    event = x.store.delete(Key(*stored.key), expect=stored.revision)
    return Removal(obj, gone=True, revision=event.revision)
