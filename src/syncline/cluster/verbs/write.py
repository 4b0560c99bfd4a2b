"""Store a new or changed object: defaults, admission, strategy, validation, ownership, the store.

Create, update, patch and the subresources call :func:`insert` and :func:`change` with an object of the served version
that the request owns. The order is that of Kubernetes' generic registry; a write without a change is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from syncline.base.clock import format_time
from syncline.cluster.admission import Attempt
from syncline.cluster.resources.registry import Resource
from syncline.cluster.storage.store import Encoded, Key, StoreConflict, Stored, encode_around_version
from syncline.cluster.verbs import admitting
from syncline.cluster.verbs.body import own_copy
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import WriteOptions, unreadable_revision
from syncline.kube.defaults import LABELLED_BY_TEMPLATE, STATUS_BY_SPEC, fill_defaults
from syncline.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    FieldCause,
    already_exists,
    conflict,
    invalid,
)
from syncline.kube.objects import Obj, finalizers, is_terminating, meta, resource_version
from syncline.kube.patching.managedfields import keep_times, track_update, with_managed_fields
from syncline.kube.transport.elsewhere import Overtaken, aside, left_aside

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

GENERATED_NAME_TRIES = 8
"""Attempts to generate a free name (apiserver ``maxNameGenerationCreateAttempts``)."""

MAX_GENERATE_NAME = 58
"""Longest prefix of a generated name; five characters are added (``names.maxGeneratedNameLength``)."""

_UNNAMED_GROUPS = frozenset({"events.k8s.io"})
"""Groups that refusals omit from the kind, because their strategies are those of the core group."""


class Written(msgspec.Struct, frozen=True):
    """``obj`` is in the served version. ``stored`` is None for dry runs and for objects that the write removed."""

    obj: Obj
    stored: Stored | None
    created: bool = False
    revision: int = 0


def check_address(x: Exchange, obj: Obj) -> None:
    """Fill in the namespace from the path; refuse a body with another namespace or name."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        metadata = obj["metadata"] = {}
    space, name = metadata.get("namespace") or "", metadata.get("name") or ""
    if x.resource.info.namespaced:
        if space and space != x.route.namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = x.route.namespace
    elif space:
        del metadata["namespace"]
    if x.route.name and name != x.route.name:
        raise wrong_name(x.route.name, name)


def wrong_name(asked: str, given: str) -> BadRequest:
    """Return the error for a body whose name differs from the path or is absent (handlers ``checkName``)."""
    if not given:
        return BadRequest(f"the name of the object ({asked} based on URL) was undeterminable: name must be provided")
    return BadRequest(f"the name of the object ({given}) does not match the name on the URL ({asked})")


def refuse_invalid(resource: Resource, name: str, causes: list[FieldCause]) -> None:
    if causes:
        group = "" if resource.info.group in _UNNAMED_GROUPS else resource.info.group
        raise invalid(resource.info.kind, name, causes, group)


def attempt_of(x: Exchange, verb: str, name: str, options: WriteOptions | None = None, called: str = "") -> Attempt:
    return Attempt(
        verb,
        x.resource,
        x.user,
        x.namespace,
        name,
        x.route.subresource,
        x.now,
        x.backend.entropy,
        options.dry_run if options else False,
        called,
        x.warn,
        x.annotations.__setitem__,
    )


# --- create --------------------------------------------------------------------------------------------------------


def insert(x: Exchange, obj: Obj, options: WriteOptions, *, owned: bool = False) -> Written:
    """Store ``obj``, owned by the request and with its address checked. ``owned``: an apply set managedFields."""
    versioned = resource_version(obj) not in ("", "0")
    resource, strategy = x.resource, x.resource.strategy
    aside(merge_owners, x, obj["metadata"])
    ownership = _strip_server_fields(x, obj)
    sent = aside(_filled, resource, obj)
    metadata = obj["metadata"]
    attempt = attempt_of(x, "create", metadata.get("name") or "", options, str(metadata.get("generateName") or ""))
    admission = x.backend.admission
    if not owned:
        # Fields that admission adds have no owner.
        with _as_sent(sent):
            ownership = aside(_owners, x, None, obj, options, ownership)
    admission.admit_create(attempt, obj)
    asked = admitting.concerned(x)
    if asked:
        subject = admitting.subject_of(x, "CREATE", metadata.get("name") or "", dry_run=options.dry_run)
        if admitting.reshaped(
            *(x, subject, obj, None),
            lambda new: with_managed_fields(new, ownership),
            lambda new: admission.admit_create(attempt, new),
        ):
            check_address(x, obj)
            metadata = obj["metadata"]
            ownership = metadata.pop("managedFields", None)
    allocated = x.store.revision
    admission.allocate(attempt, obj, None)
    generated = _generate_name(x, metadata)
    aside(strategy.prepare_create, obj, x.context)
    name = metadata.get("name") or ""
    causes = aside(_judged, obj, sent, strategy.validate_create)
    refuse_invalid(resource, name, admission.causes_of_create(attempt, obj) + causes)
    if not attempt.name:
        attempt = msgspec.structs.replace(attempt, called=name)
    admission.check_create(attempt, obj)
    if asked:
        subject = admitting.subject_of(x, "CREATE", name, dry_run=options.dry_run)
        admitting.validated(x, subject, with_managed_fields(obj, ownership), None)
    warnings = aside(strategy.warnings, obj, None)
    made = with_managed_fields(obj, ownership)
    kept = _Kept(made) if options.dry_run else aside(_kept, resource, made)
    _check_still(x, attempt, None, allocated)
    admission.count(attempt, obj, None)
    for warning in warnings:
        x.warn(warning)
    if versioned:  # the storage checks this last
        raise ApiError("resourceVersion should not be set on objects to be created", reason="")
    return _store_new(x, made, kept, options, generated)


def _strip_server_fields(x: Exchange, obj: Obj) -> Any:
    """Set the metadata that only the server writes; return the managedFields of the request's object."""
    metadata: Obj = obj["metadata"]
    for name in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(name, None)
    metadata.pop("resourceVersion", None)
    ownership = metadata.pop("managedFields", None)
    metadata["uid"] = x.backend.entropy.uid()
    metadata["creationTimestamp"] = format_time(x.now)
    return ownership


Sent = list[tuple[Obj, str, Any]]
"""Maps and lists that were sent empty: their parent, field and value."""


def _empties(value: Any, found: Sent, known: Any = None) -> Sent:
    """Collect what was sent empty; ``known``: the stored value, whose own parts were not sent."""
    if isinstance(value, dict):
        before = known if isinstance(known, dict) else {}
        for key, part in value.items():
            if isinstance(part, (dict, list)) and part is not (was := before.get(key)):
                if part:
                    _empties(part, found, was)
                else:
                    found.append((value, key, part))
    elif isinstance(value, list):
        listed = known if isinstance(known, list) else []
        for at, part in enumerate(value):
            if isinstance(part, (dict, list)) and part is not (was := listed[at] if at < len(listed) else None):
                _empties(part, found, was)
    return found


def _filled(resource: Resource, obj: Obj, old: Obj | None = None, *, rest: bool = False) -> Sent:
    """Fill in the kind's defaults, which removes empty values; return these. ``old``: the stored object, which is
    filled in already. ``rest``: as for :func:`fill_defaults`."""
    found = _empties(obj, [], old) if resource.custom is None else []
    _fill(resource, obj, old, rest=rest)
    resource.strategy.convert(obj)
    return found


@contextmanager
def _as_sent(sent: Sent) -> Iterator[None]:
    """Restore the empty lists of required fields while ownership is computed; they are null when stored."""
    nulls = [(holder, key, empty) for holder, key, empty in sent if key in holder and holder[key] is None]
    for holder, key, empty in nulls:
        holder[key] = empty
    try:
        yield
    finally:
        for holder, key, _ in nulls:
            holder[key] = None


def _judged(obj: Obj, sent: Sent, judge: Callable[[Obj], list[FieldCause]]) -> list[FieldCause]:
    """Return what is wrong with an object. A refusal shows a map or list that was sent empty as such, not as null: the
    object is validated a second time with these restored, only for the wording."""
    causes = judge(obj)
    if not causes or not sent:
        return causes
    for holder, key, empty in sent:
        if holder.get(key) is None:
            holder[key] = empty
    worded = judge(obj)
    return worded if [cause.field for cause in worded] == [cause.field for cause in causes] else causes


def _fill(resource: Resource, obj: Obj, old: Obj | None, *, rest: bool) -> None:
    if resource.custom is not None:
        resource.custom.fill_defaults(obj)
    else:
        fill_defaults(resource.gvk, obj, known=old, rest=rest)


def _fill_changed(resource: Resource, new: Obj, old: Obj) -> Sent:
    """As :func:`_fill`, but skip what the stored object already has, since it was filled in before.

    Kubernetes' defaults of metadata and status do not depend on the spec, except for certain kinds.
    """
    if resource.custom is not None:
        resource.custom.fill_defaults(new, old)
        resource.strategy.convert(new)
        return []
    kept: Obj = {key: new[key] for key in ("spec", "status") if key in new and new[key] is old.get(key)}
    kind = resource.gvk.group_kind
    if kind in STATUS_BY_SPEC or (kind in LABELLED_BY_TEMPLATE and not new["metadata"].get("labels")):
        new.update({key: own_copy(value) for key, value in kept.items()})
        kept = {}
    if not kept:
        return _filled(resource, new, old)
    fresh = {key: value for key, value in new.items() if key not in kept}
    sent = _filled(resource, fresh, old, rest="spec" in kept)
    order = [*new, *(key for key in fresh if key not in new)]
    filled = {key: kept.get(key, fresh.get(key)) for key in order if key in kept or key in fresh}
    new.clear()
    new.update(filled)
    return [(new if holder is fresh else holder, key, empty) for holder, key, empty in sent]


def _check_still(x: Exchange, attempt: Attempt, current: Stored | None, allocated: int) -> None:
    """Check that the results computed for a large request still hold; from here on it runs without pauses.

    ``allocated``: the revision at which it got addresses. Raises Overtaken, and the errors of a new namespace.
    """
    if not left_aside():
        return
    route, store = x.route, x.store
    if (x.backend.clock.now() - x.now).total_seconds() >= admitting.REQUEST_S:
        raise admitting.too_late()
    if (
        (current is not None and store.get(current.key) is not current)
        or x.backend.registry.find(route.group, route.version, route.resource) is not x.resource
        or (attempt.concerns("/services") and store.changed("/services", allocated))
    ):
        raise Overtaken
    if current is None:
        x.backend.admission.require_living(attempt)


def _generate_name(x: Exchange, metadata: Obj) -> bool:
    prefix = metadata.get("generateName")
    if not prefix or metadata.get("name"):
        return False
    metadata["name"] = prefix[:MAX_GENERATE_NAME] + x.backend.entropy.suffix()
    return True


def _tracked(x: Exchange, old: Obj | None, new: Obj, options: WriteOptions, given: Any) -> Obj:
    """Return ``new`` with ownership moved to the writer. ``given``: managedFields of the request's body."""
    return with_managed_fields(new, _owners(x, old, new, options, given))


def _owners(x: Exchange, old: Obj | None, new: Obj, options: WriteOptions, given: Any) -> list[Obj] | None:
    if given is not None:
        new = with_managed_fields(new, given)
    return track_update(
        old,
        new,
        options.manager,
        schema=x.resource.schema,
        api_version=x.resource.info.api_version,
        now=x.now,
        subresource=x.route.subresource,
        reset=x.resource.reset_fields(x.route.subresource),
    )


class _Kept(msgspec.Struct, frozen=True):
    """An object in its stored version, already encoded if that takes long."""

    obj: Obj
    encoded: Encoded | None = None


def _kept(resource: Resource, obj: Obj) -> _Kept:
    stored = resource.to_stored(obj)
    return _Kept(stored, encode_around_version(stored) if left_aside() else None)


def _store_new(x: Exchange, obj: Obj, kept: _Kept, options: WriteOptions, generated: bool) -> Written:
    """Store a new object; ``kept`` is ``obj`` in its stored version."""
    resource = x.resource
    name = meta(obj)["name"]
    for attempt in range(GENERATED_NAME_TRIES):
        existing = x.store.get(x.key(name))
        if existing is None:
            break
        if not generated or attempt == GENERATED_NAME_TRIES - 1:
            if x.verb == "patch" and left_aside():
                raise Overtaken  # applied when the object did not exist yet
            raise _exists(resource, existing)
        name = meta(obj)["generateName"][:MAX_GENERATE_NAME] + x.backend.entropy.suffix()
        obj, named = ({**each, "metadata": {**meta(each), "name": name}} for each in (obj, kept.obj))
        kept = _Kept(named)
    if options.dry_run:
        return Written(obj, None, created=True)
    stored = x.store.put(x.key(name), kept.obj, expect=0, encoded=kept.encoded)
    return Written(aside(resource.shown_of, stored), stored, created=True, revision=stored.revision)


def _exists(resource: Resource, existing: Stored) -> AlreadyExists:
    info = resource.info
    error = already_exists(info.plural, existing.key.name, info.group)
    if is_terminating(existing.obj):
        return AlreadyExists(f"object is being deleted: {error.message}", details=error.details)
    return error


def merge_owners(x: Exchange, metadata: Obj, *, late: bool = False) -> None:
    """Drop repeated owner references, with a warning (handlers ``dedupOwnerReferences``). ``late``: a patch, whose
    owners are checked only after admission."""
    owners = metadata.get("ownerReferences")
    if not isinstance(owners, list) or len(owners) < 2:
        return
    seen: dict[bytes, Any] = {}
    again: list[str] = []
    for owner in owners:
        if seen.setdefault(msgspec.json.encode(owner, order="sorted"), owner) is not owner:
            again.append(str(owner.get("uid", "")))
    kept = list(seen.values())
    if again:
        metadata["ownerReferences"] = kept
        when = " after mutating admission happens" if late else ""
        x.warn(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            f"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            f"{', '.join(again)}"
        )


# --- change --------------------------------------------------------------------------------------------------------


def change(
    x: Exchange,
    current: Stored,
    new: Obj,
    options: WriteOptions,
    *,
    owned: bool = False,
    judged: tuple[Obj, Obj] | None = None,
) -> Written:
    """Replace ``current`` by ``new``. ``owned``: an apply set managedFields from the stored object, so no
    resourceVersion is needed. ``judged``: the new and old object for webhooks and policies, if mutation already ran (a
    Scale)."""
    resource, strategy = x.resource, x.resource.strategy
    old = aside(resource.shown_of, current)
    _check_preconditions(x, current, new, owned)
    aside(merge_owners, x, new["metadata"], late=x.verb == "patch")
    given = new["metadata"].pop("managedFields", None)
    sent = aside(_fill_changed, resource, new, old)
    _keep_server_fields(new["metadata"], old["metadata"])
    subresource = x.route.subresource
    attempt = attempt_of(x, "update", current.key.name, options)
    admission = x.backend.admission
    admission.admit_update(attempt, new, old)
    asked = admitting.concerned(x)
    if asked and judged is None:
        subject = admitting.subject_of(x, "UPDATE", current.key.name, dry_run=options.dry_run)
        entries = aside(_resent, given, old)
        if admitting.reshaped(
            *(x, subject, new, old),
            lambda made: with_managed_fields(made, given) if owned else aside(_tracked, x, old, made, options, entries),
            lambda made: admission.admit_update(attempt, made, old),
        ):
            check_address(x, new)
            owned, given = True, new["metadata"].pop("managedFields", None)
    allocated = x.store.revision
    admission.allocate(attempt, new, old)
    aside(strategy.prepare_update, new, old, x.context, subresource)
    causes = aside(_judged, new, sent, lambda made: strategy.validate_update(made, old, subresource))
    refuse_invalid(resource, current.key.name, causes)
    admission.check_update(attempt, new, old)
    if asked:
        _judge(x, current, judged or (new, old), given if owned else meta(old).get("managedFields"), options)
    report = subresource != "status" or strategy.warns_of_status
    warnings = aside(strategy.warnings, new, old) if report else []
    if owned:
        made = with_managed_fields(new, given)
    else:
        made = aside(_tracked, x, old, new, options, aside(_resent, given, old))
    made = aside(keep_times, old, made)
    kept = _Kept(made) if made is old or options.dry_run else aside(_kept, resource, made)
    _check_still(x, attempt, current, allocated)
    admission.count(attempt, new, old)
    for warning in warnings:
        x.warn(warning)
    return _store_changed(x, current, old, made, kept, options)


def _resent(given: Any, old: Obj) -> Any:
    """Return the managedFields of the request's body if they differ from the object's."""
    return given if given != meta(old).get("managedFields") else None


def _judge(x: Exchange, current: Stored, pair: tuple[Obj, Obj], owners: Any, options: WriteOptions) -> None:
    subject = admitting.subject_of(x, "UPDATE", current.key.name, dry_run=options.dry_run)
    admitting.validated(x, subject, with_managed_fields(pair[0], owners), pair[1])


_KEPT_AS = {"/services": "services/specs", "/endpoints": "services/endpoints", "/nodes": "minions"}
_KEPT_BY_GROUP = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})


def storage_conflict(x: Exchange, uid: str, found: str) -> Conflict:
    """Return the Conflict for a different uid, in the words of Kubernetes' storage, with the etcd key."""
    resource, name = x.resource, x.route.name
    info = resource.info
    place = _KEPT_AS.get(resource.storage, info.plural)
    if resource.custom is not None or info.group in _KEPT_BY_GROUP:
        place = f"{info.group}/{info.plural}"
    key = "/".join(part for part in ("/registry", place, x.namespace, name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: UID in precondition: {uid}, UID in object meta: {found}"
    )
    return conflict(info.plural, name, why, info.group)


def _check_preconditions(x: Exchange, current: Stored, new: Obj, owned: bool) -> None:
    info, metadata = x.resource.info, new["metadata"]
    uid = metadata.get("uid") or current.uid
    if uid != current.uid and x.verb != "patch":
        # In a patch, validation refuses the changed uid as an immutable field.
        raise storage_conflict(x, uid, current.uid)
    given = metadata.get("resourceVersion") or ""
    if given and given != "0":
        wrong = unreadable_revision(given)
        if wrong:
            raise ApiError(wrong.partition(": ")[2].partition(": ")[2], reason="")
        if given != str(current.revision):
            raise conflict(info.plural, current.key.name, MODIFIED, info.group)
    elif not owned and not x.resource.unconditional_update:
        cause = FieldCause(
            "FieldValueInvalid", "Invalid value: 0: must be specified for an update", "metadata.resourceVersion"
        )
        raise invalid(info.plural, current.key.name, [cause], info.group)


_NEVER_TAKEN = frozenset({"generation", "creationTimestamp"})


def _keep_server_fields(new: Obj, old: Obj) -> None:
    """Restore what an update may omit (genericvalidation ``ValidateObjectMetaAccessorUpdate``)."""
    new["resourceVersion"] = old.get("resourceVersion", "")
    for name in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        if old.get(name) is not None and (name in _NEVER_TAKEN or not new.get(name)):
            new[name] = old[name]
    new.pop("selfLink", None)


def _store_changed(x: Exchange, current: Stored, old: Obj, new: Obj, kept: _Kept, options: WriteOptions) -> Written:
    """Store a changed object; ``kept`` is ``new`` in its stored version."""
    if new is old:
        return Written(old, current, revision=current.revision)
    if _may_go(x.resource, new):
        if not options.dry_run:
            event = x.store.delete(current.key, expect=current.revision)
            return Written(new, None, revision=event.revision)
        return Written(new, None)
    if options.dry_run:
        return Written(new, None)
    try:
        stored = x.store.put(current.key, kept.obj, expect=current.revision, encoded=kept.encoded)
    except StoreConflict:
        raise _modified(x.resource, current.key) from None
    return Written(aside(x.resource.shown_of, stored), stored, revision=stored.revision)


def _modified(resource: Resource, key: Key) -> Conflict:
    return conflict(resource.info.plural, key.name, MODIFIED, resource.info.group)


def _may_go(resource: Resource, obj: Obj) -> bool:
    """Return whether a terminating object can be removed now: no finalizers or time left
    (``ShouldDeleteDuringUpdate``)."""
    if not is_terminating(obj) or finalizers(obj):
        return False
    if resource.storage == "/namespaces":
        return not (obj.get("spec") or {}).get("finalizers")
    return not meta(obj).get("deletionGracePeriodSeconds")


def editable(x: Exchange, stored: Stored) -> Obj:
    """Return a copy of a stored object, in the served version, that the request may change."""
    copied: Obj = own_copy(x.resource.shown(stored.obj))
    return copied
