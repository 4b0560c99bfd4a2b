"""Refuse creation in a missing or terminating namespace (plug-in NamespaceLifecycle)."""

from __future__ import annotations

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.storage.store import Key, Store
from syncline.kube.errors import FieldCause, not_found
from syncline.kube.objects import dig

NAMESPACES = "/namespaces"
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})

_REVIEWS = frozenset({"localsubjectaccessreviews"})


def require_living(store: Store, attempt: Attempt) -> None:
    """Raise NotFound or Forbidden."""
    namespace = attempt.namespace
    if not namespace or attempt.resource.info.plural in _REVIEWS:
        return
    stored = store.get(Key(NAMESPACES, "", namespace))
    if stored is None:
        raise not_found("namespaces", namespace)
    if dig(stored.obj, "status", "phase") == "Terminating" or dig(stored.obj, "metadata", "deletionTimestamp"):
        cause = FieldCause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbid(attempt, why, [cause])


def refuse_immortal(attempt: Attempt) -> None:
    if attempt.concerns(NAMESPACES) and attempt.name in IMMORTAL:
        raise forbid(attempt, "this namespace may not be deleted")
