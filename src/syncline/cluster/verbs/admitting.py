"""Call webhooks and policies for a request, in Kubernetes' order.

The verbs call it around their own admission, and only if something is configured (:func:`concerned`). A request that
needs an outbound result stops here and ``api`` runs it again with the result, so nothing may be written before. Source:
apiserver ``endpoints/handlers`` (create, update, patch, delete, connect).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.cluster.admission.dynamic.changing import change
from syncline.cluster.admission.dynamic.dispatching import call_mutating, call_validating
from syncline.cluster.admission.dynamic.enforcing import enforce
from syncline.cluster.admission.dynamic.judging import Judging, Round, internal
from syncline.cluster.admission.dynamic.matching import World, exempt
from syncline.cluster.admission.dynamic.subject import Subject
from syncline.cluster.resources.registry import Resource
from syncline.cluster.verbs.body import own_copy
from syncline.cluster.verbs.exchange import Exchange
from syncline.kube.defaults import fill_defaults
from syncline.kube.errors import ApiError
from syncline.kube.objects import GVK, Obj
from syncline.kube.patching.fields import decode as decode_strictly
from syncline.kube.schema.custom.embedded import MetadataError
from syncline.kube.schema.model import schema_for
from syncline.kube.schema.resources import subresource_of
from syncline.kube.transport.elsewhere import aside

META = "meta.k8s.io/v1"
REQUEST_S = 34.0
"""Longest that a write may take, outbound calls included (apiserver ``requestTimeoutUpperBound``)."""

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def too_late() -> ApiError:
    why = "Timeout: request did not complete within requested timeout - context deadline exceeded"
    return ApiError(why, code=504, reason="Timeout", details={})


def concerned(x: Exchange) -> bool:
    """Return whether any webhook or policy is configured; call the other functions only then."""
    return x.asking is not None


def subject_of(x: Exchange, operation: str, name: str, *, options: Obj | None = None, dry_run: bool = False) -> Subject:
    """Return the subject of admission. ``name`` is empty if it will be generated; ``options`` is a deletion's body."""
    resource, route = x.resource, x.route
    sub = subresource_of(resource.info, route.subresource) if route.subresource else None
    kind = sub.gvk if sub is not None else resource.gvk
    namespace = name if resource.storage == "/namespaces" else x.namespace
    given = _options(x, operation) if options is None else {**_typed(operation), **options}
    shown = None if operation == "CONNECT" else given
    return Subject(operation, resource, kind, route.subresource, namespace, name, x.user, shown, dry_run)


def _typed(operation: str) -> Obj:
    return {"kind": _OPTIONS.get(operation, ""), "apiVersion": META}


def _options(x: Exchange, operation: str) -> Obj:
    query = x.request.query or {}
    options = _typed(operation)
    if query.get("dryRun"):
        options["dryRun"] = [query["dryRun"]]
    for name in ("fieldManager", "fieldValidation", "propagationPolicy"):
        if query.get(name) and (name == "propagationPolicy") is (operation == "DELETE"):
            options[name] = query[name]
    return options


def _judging(x: Exchange) -> Judging:
    assert x.asking is not None, "api gives every request something to ask with while anything is configured"
    return Judging(
        World(x.store, x.backend.registry.equivalents, x.backend.registry.of_kind),
        x.backend.authorizer,
        x.asking,
        lambda text: _warn(x, text),
        lambda key, value: x.annotations.update({key: x.annotations.get(key, value)}),
        lambda value, kind: _renewed(x, value, kind),
        lambda: REQUEST_S - (x.backend.clock.now() - x.now).total_seconds(),
    )


def _warn(x: Exchange, text: str) -> None:
    """Add a warning, unless a header cannot hold its text (``net.NewWarningHeader``)."""
    if text and text.isprintable():
        x.warn(text)


def interested(x: Exchange, subject: Subject, obj: Obj | None, old: Obj | None) -> bool:
    """Return whether a mutation may match; match conditions are not evaluated yet."""
    if exempt(subject):
        return False
    world = _judging(x).world
    configured = x.backend.admission.configured
    scopes = [*(policy.scope for policy in configured.changes), *(hook.scope for hook in configured.mutating)]
    return any(scope.match(subject, obj, old, world) is not None for scope in scopes)


def mutated(x: Exchange, subject: Subject, obj: Obj | None, old: Obj | None, turn: Round) -> Obj | None:
    """Return the mutated object, owned by the request. Raises the first refusal, or Awaiting."""
    if exempt(subject):
        return obj
    configured, judging = x.backend.admission.configured, _judging(x)
    obj = change(judging, configured.changes, subject, obj, old, turn)
    return call_mutating(judging, configured.mutating, subject, obj, old, turn)


_SYSTEM = ("uid", "creationTimestamp")
"""Metadata that a new object gets only after mutation (``WipeObjectMetaSystemFields``)."""


def reshaped(
    x: Exchange,
    subject: Subject,
    obj: Obj,
    old: Obj | None,
    tracked: Callable[[Obj], Obj],
    admit: Callable[[Obj], None],
) -> bool:
    """Mutate ``obj`` in place; return False, without a change, if no mutation matches. Mutations see field ownership,
    so the object leaves with its managedFields. ``admit`` is built-in admission, repeated before a second round. Raises
    the first refusal, or Awaiting."""
    if not interested(x, subject, obj, old):
        return False
    system = {key: obj["metadata"].pop(key) for key in _SYSTEM if old is None and key in obj["metadata"]}
    shown = tracked(obj)
    owners = shown["metadata"].get("managedFields")
    turn = Round()
    after = mutated(x, subject, shown, old, turn)
    assert after is not None, "a mutation gives back what it was given"
    if turn.changed:
        admit(after)
        turn.number = 1
        after = mutated(x, subject, after, old, turn)
        assert after is not None, "a mutation gives back what it was given"
    metadata = {**after["metadata"], **system}
    if not _are_owners(metadata.get("managedFields")):
        metadata["managedFields"] = owners
    after = {**after, "metadata": metadata}
    obj.clear()
    obj.update(after)
    return True


def _are_owners(entries: Any) -> bool:
    """Return whether managedFields are valid; invalid ones are dropped
    (``NewManagedFieldsValidatingAdmissionController``)."""
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and entry.get("fieldsType") == "FieldsV1"
        and isinstance(entry.get("fieldsV1"), dict)
        for entry in entries
    )


def admitted(
    x: Exchange,
    operation: str,
    obj: Obj | None,
    old: Obj | None = None,
    *,
    name: str = "",
    options: Obj | None = None,
    dry_run: bool = False,
) -> Obj | None:
    """Mutate, then validate an object that is not stored (an eviction, a review, a connection) or that is deleted.
    Returns the mutated object."""
    subject = subject_of(x, operation, name or x.route.name, options=options, dry_run=dry_run)
    turn = Round()
    obj = mutated(x, subject, obj, old, turn)
    if turn.changed:
        turn.number = 1
        obj = mutated(x, subject, obj, old, turn)
    validated(x, subject, obj, old)
    return obj


def validated(x: Exchange, subject: Subject, obj: Obj | None, old: Obj | None) -> None:
    """Call validating webhooks and policies. Raises the first refusal, or Awaiting."""
    if exempt(subject):
        return
    configured, judging = x.backend.admission.configured, _judging(x)
    enforce(judging, configured.policies, subject, obj, old)
    call_validating(judging, configured.validating, subject, obj, old)


def _renewed(x: Exchange, value: Any, kind: GVK) -> Obj:
    """Decode a mutated value as the API does: drop unknown fields, check types, fill in defaults."""
    if not isinstance(value, dict):
        raise internal(f"json: cannot unmarshal {type(value).__name__} into Go value of type {kind.kind}")
    return aside(_read_again, own_copy(value), kind, x.backend.registry.of_kind(kind))


def _read_again(value: Obj, kind: GVK, resource: Resource | None) -> Obj:
    if resource is not None and resource.custom is not None:
        try:
            pruned, _ = resource.custom.pruned(value)
        except MetadataError as error:
            raise internal(str(error)) from None
        resource.custom.fill_defaults(pruned)
        return pruned
    schema = schema_for(kind)
    assert schema is not None, f"{kind} is a built-in kind"
    found = decode_strictly(value, schema)
    if found.errors:
        raise internal(found.errors[0])
    obj: Obj = found.obj
    fill_defaults(kind, obj)
    return obj
