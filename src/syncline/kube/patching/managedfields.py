"""Who owns which field: server-side apply, and the bookkeeping of every other write.

Called by the embedded API for each write, and by planners that predict an apply. Takes the live object, what is to be
written, the manager's name and the kind's schema (None for an unknown kind: deduced); out comes the merged object with
its ``metadata.managedFields``, or a refusal in Kubernetes' words. Never changes its inputs, never stores anything,
never applies defaults and never converts between versions (all versions of a kind are taken to have the same fields).

Source of the rules: structured-merge-diff ``merge.Updater`` and apimachinery ``util/managedfields``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from syncline.base.clock import format_time, parse_time
from syncline.kube.defaults.typed import as_typed
from syncline.kube.errors import ApiError, BadRequest, Conflict, FieldCause
from syncline.kube.objects import Obj, annotations_of, gvk_of, meta, name_of, namespace_of, uid_of
from syncline.kube.patching import fieldset
from syncline.kube.patching.fieldset import FieldSet
from syncline.kube.patching.typedvalues import (
    compare,
    fields_of,
    merge,
    named_fields,
    remove_items,
    same_json,
    type_errors,
)
from syncline.kube.schema.model import Schema, schema_for

__all__ = [
    "ApplyResult",
    "apply",
    "fields_of",
    "keep_times",
    "reset_fields",
    "track_update",
    "upgrade_managed_fields",
    "with_managed_fields",
]

MAX_UPDATE_MANAGERS = 10
"""More entries of plain writers than this are merged, oldest first (apimachinery ``DefaultMaxUpdateManagers``)."""

ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS_BYTES = 256 * 1024
"""All annotations of an object together (apimachinery ``TotalAnnotationSizeLimitB``)."""

STRIPPED = fieldset.field_set(
    [("apiVersion",), ("kind",), ("metadata",)]
    + [
        ("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ]
)
"""Fields without an owner (apimachinery ``stripMeta``)."""


class _Owner(NamedTuple):
    """Identity of an entry. An applier is the same whatever version it wrote, so its ``api_version`` is empty."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def describe(self) -> str:
        """As conflict messages name a manager."""
        text = _quoted(self.manager)
        if self.subresource:
            text += f" with subresource {_quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


class _Owned(NamedTuple):
    """What one owner holds; ``time`` is RFC 3339, or empty for an entry that never changed the object. ``entry`` is
    how a live object says it: most of its owners stay as they are, and their entries are stored again."""

    fields: FieldSet
    api_version: str
    time: str = ""
    entry: Obj | None = None

    def holding(self, fields: FieldSet) -> _Owned:
        return self if fields is self.fields else _Owned(fields, self.api_version, self.time)


_Managed = dict[_Owner, _Owned]


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """``obj`` is the object to store; when ``changed`` is False it is the very live object that was given."""

    obj: Obj
    changed: bool
    created: bool = False


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


# --- entries -------------------------------------------------------------------------------------------------------


def _owner(manager: str, operation: str, api_version: str, subresource: str) -> _Owner:
    return _Owner(manager, operation, "" if operation == "Apply" else api_version, subresource)


def _stored(entries: Any) -> _Managed:
    """Read what :func:`_encode` wrote: the field sets are taken as they are."""
    managed: _Managed = {}
    for entry in entries or ():
        version, fields = entry["apiVersion"], entry.get("fieldsV1") or {}
        owner = _owner(entry.get("manager", ""), entry["operation"], version, entry.get("subresource", ""))
        managed[owner] = _Owned(fields, version, entry.get("time", ""), entry)
    return managed


def _decode(entries: Any) -> _Managed:
    """Read ``metadata.managedFields``; raises ValueError as apimachinery words it."""
    managed: _Managed = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if not isinstance(entry, dict):
            raise ValueError(f"managed fields entry {index} is not an object")
        operation, version, kind = (str(entry.get(name) or "") for name in ("operation", "apiVersion", "fieldsType"))
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        if not kind:
            raise ValueError(f"missing fieldsType in managed fields entry {index}")
        if kind != "FieldsV1":
            raise ValueError(f'invalid fieldsType "{kind}" in managed fields entry {index}')
        owner = _owner(str(entry.get("manager") or ""), operation, version, str(entry.get("subresource") or ""))
        given = entry.get("fieldsV1") or {}
        fields = fieldset.parse(given)
        managed[owner] = _Owned(fields, version, str(entry.get("time") or ""), entry if fields is given else None)
    return managed


def _encode(managed: _Managed) -> list[Obj]:
    """Entries in stored order: appliers first, then by time, manager, version and subresource."""
    if len(managed) == 1:
        return [_entry(*each) for each in managed.items()]
    return [_entry(owner, owned) for owner, owned in sorted(managed.items(), key=_order)]


def _order(item: tuple[_Owner, _Owned]) -> tuple[str, str, str, str, str]:
    owner, owned = item
    return (owner.operation, owned.time, owner.manager, owned.api_version, owner.subresource)


def _entry(owner: _Owner, owned: _Owned) -> Obj:
    known = owned.entry
    if known is not None:
        if known.get("time", "") == owned.time:
            return known
        if "time" in known:
            return {**known, "time": owned.time}
    entry: Obj = {"manager": owner.manager, "operation": owner.operation, "apiVersion": owned.api_version}
    if not owner.manager:
        del entry["manager"]
    if owned.time:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = _serialised(owned.fields)
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


SHARED_BYTES = 4096
"""Larger field sets are mostly of one object alone."""


def _serialised(fields: FieldSet) -> FieldSet:
    """Return a set in Kubernetes' order, as a value that all objects share: those of one kind by one writer mostly have
    the same fields."""
    raw = _encode_set(fields)
    return _decoded_set(_ordered(raw)) if len(raw) <= SHARED_BYTES else fieldset.serialise(fields)


_encode_set = msgspec.json.Encoder().encode


@lru_cache(maxsize=4096)
def _ordered(raw: bytes) -> bytes:
    return _encode_set(fieldset.serialise(msgspec.json.decode(raw)))


@lru_cache(maxsize=2048)
def _decoded_set(raw: bytes) -> FieldSet:
    found: FieldSet = msgspec.json.decode(raw)
    return found


def with_managed_fields(obj: Obj, entries: list[Obj] | None) -> Obj:
    """``obj`` with these entries as ``metadata.managedFields``; none or empty removes the field."""
    metadata = {name: value for name, value in meta(obj).items() if name != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def keep_times(old: Obj, new: Obj) -> Obj:
    """``old`` itself when ``new`` differs from it in only the times of its managed fields, else ``new``.

    Source: apiserver ``IgnoreManagedFieldsTimestampsTransformer``; it is why a repeated write is no write.
    """
    if old is new or not _timeless(old, new):
        return new if old is not new else old
    return old


def _timeless(old: Obj, new: Obj) -> bool:
    if old.keys() != new.keys():
        return False
    for name, value in new.items():  # what a write is about differs first, and ends it
        if name != "metadata" and not same_json(old[name], value):
            return False
    one, other = dict(meta(old)), dict(meta(new))
    mine, theirs = one.pop("managedFields", None) or [], other.pop("managedFields", None) or []
    if len(mine) != len(theirs) or not same_json(one, other):
        return False
    return all(a is b or same_json(_without_time(a), _without_time(b)) for a, b in zip(mine, theirs, strict=True))


def _without_time(entry: Any) -> Any:
    return {k: v for k, v in entry.items() if k != "time"} if isinstance(entry, dict) else entry


# --- plain writes --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def reset_fields(*paths: str) -> FieldSet:
    """The set of dotted paths that an endpoint resets, such as ``reset_fields("status")`` for a main endpoint."""
    return fieldset.field_set(path.split(".") for path in paths)


def track_update(
    old: Obj | None,
    new: Obj,
    manager: str,
    *,
    schema: Schema | None,
    api_version: str,
    now: datetime,
    subresource: str = "",
    reset: FieldSet | None = None,
) -> list[Obj] | None:
    """``managedFields`` after a create (``old`` is None), update or patch; None where none are kept.

    ``new`` is what will be stored, with whatever ``managedFields`` the request brought: ``[]`` and ``[{}]`` reset them,
    unreadable ones are ignored for the live ones. ``reset`` holds the fields that the endpoint does not write. An
    object whose fields no one tracks stays untracked until it is applied to.
    """
    managed = _live_or_sent(old or {}, new, subresource)
    if not managed and old is not None and uid_of(old):
        return None
    owner = _owner(manager or "unknown", "Update", api_version, subresource)
    before = _empty_object(new, schema) if old is None else _bare(old)
    managed = _track(managed, before, _bare(new), owner, schema, api_version, now, reset or {})
    return _encode(_capped(managed)) or None


def _bare(obj: Obj) -> Obj:
    return with_managed_fields(obj, None) if "managedFields" in meta(obj) else obj


def _live_or_sent(old: Obj, new: Obj, subresource: str) -> _Managed:
    live = meta(old).get("managedFields")
    sent = meta(new).get("managedFields")
    if not subresource:
        if isinstance(sent, list) and (not sent or sent == [{}]):
            return {}
        if sent is not None and sent is not live and (managed := _decoded_or_empty(sent)):
            return managed
    return _stored(live)


def _decoded_or_empty(entries: Any) -> _Managed:
    try:
        return _decode(entries)
    except ValueError:
        return {}


def _track(
    managed: _Managed,
    old: Obj,
    new: Obj,
    owner: _Owner,
    schema: Schema | None,
    api_version: str,
    now: datetime,
    reset: FieldSet,
) -> _Managed:
    """Ownership of what changed moves to ``owner``; what was removed belongs to no one."""
    change = compare(old, new, schema).without(reset)
    taken = fieldset.union(change.modified, change.added)
    lost = fieldset.union(taken, change.removed)
    result: _Managed = {}
    for other, owned in managed.items():
        # What the owner takes again is not first taken from it: mostly it keeps the very set that it has.
        left = fieldset.difference(owned.fields, change.removed if other == owner else lost)
        if left:
            result[other] = owned.holding(left)
    taken = fieldset.difference(taken, STRIPPED)
    if taken:
        previous = result.get(owner)
        fields = fieldset.union(previous.fields, taken) if previous else taken
        kept = managed.get(owner)
        same = kept is not None and kept.fields is fields and kept.api_version == api_version
        result[owner] = _Owned(fields, api_version, format_time(now), kept.entry if kept and same else None)
    return result


def _capped(managed: _Managed) -> _Managed:
    """At most ten entries of plain writers; the oldest of a version are merged into one (``capManagersManager``)."""
    if len(managed) <= MAX_UPDATE_MANAGERS:
        return managed
    writers = sorted(
        (owner for owner in managed if owner.operation == "Update"), key=lambda owner: (managed[owner].time, owner)
    )
    excess = len(writers) - MAX_UPDATE_MANAGERS
    result = dict(managed)
    first: dict[str, _Owner] = {}
    for owner in writers:
        if excess <= 0:
            break
        version = managed[owner].api_version
        if version not in first:
            first[version] = owner
            continue
        bucket = _owner(ANCIENT, "Update", version, "")
        if bucket not in result:
            result[bucket] = result.pop(first[version])
        merged = fieldset.union(result[bucket].fields, managed[owner].fields)
        if owner != bucket:
            del result[owner]
        result[bucket] = _Owned(merged, version, managed[owner].time)
        excess -= 1
    return result


def _empty_object(obj: Obj, schema: Schema | None) -> Obj:
    """What an object is compared with when it is created: built-in kinds start with their empty structs."""
    head: Obj = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
    if schema is None or schema_for(gvk_of(obj)) is None:
        return head
    return {**_zero(schema.name), **head}


@lru_cache(maxsize=1024)
def _zero(definition: str) -> Obj:
    """Go's empty structure as JSON. Read-only: it is shared by all objects of a kind."""
    result: Obj = {}
    as_typed(definition, result)
    return result


# --- server-side apply ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Application:
    """One apply, with everything that stays the same while it is worked out."""

    live: Obj
    applied: Obj
    owner: _Owner
    schema: Schema | None
    api_version: str
    now: datetime
    reset: FieldSet


def apply(
    live: Obj | None,
    applied: Obj,
    manager: str,
    *,
    schema: Schema | None,
    api_version: str,
    now: datetime,
    force: bool = False,
    subresource: str = "",
    reset: FieldSet | None = None,
) -> ApplyResult:
    """Merge an applied configuration into the live object (None: it will be created).

    Fields that ``manager`` applied before, no longer applies and no other client owns are removed. ``reset`` holds the
    fields that the endpoint does not write: they are not owned and keep their live values. Raises :class:`Conflict`
    with one ``FieldManagerConflict`` cause per field that another manager owns with another value (unless ``force``),
    :class:`BadRequest` for a wrong kind or sent managedFields, :class:`ApiError` 500 for what does not fit the schema.
    """
    _check_request(live, applied, api_version)
    errors = type_errors(applied, schema)
    if errors:
        raise _untyped("patch", applied, errors)
    task = _Application(
        live=_bare(live) if live is not None else {},
        applied=_bare(applied),
        owner=_owner(manager, "Apply", api_version, subresource),
        schema=schema,
        api_version=api_version,
        now=now,
        reset=reset or {},
    )
    managed = _managed_before(live, task)
    merged, after = _applied_with_upgrade(task, managed, force)
    if live is None:
        return ApplyResult(with_managed_fields(merged, _encode(after)), changed=True, created=True)
    merged = _last_applied_synced(merged, applied, manager)
    result = with_managed_fields(merged, _encode(after))
    if keep_times(live, result) is live:
        return ApplyResult(live, changed=False)
    return ApplyResult(result, changed=True)


def _check_request(live: Obj | None, applied: Obj, api_version: str) -> None:
    if meta(applied).get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    gvk = gvk_of(applied)
    if applied.get("apiVersion") != api_version or (live is not None and gvk.kind != gvk_of(live).kind):
        raise BadRequest(f"invalid object type: {gvk.group}/{gvk.version}, Kind={gvk.kind}")


def _untyped(which: str, obj: Obj, errors: list[str]) -> ApiError:
    gvk = gvk_of(obj)
    named = f"{namespace_of(obj)}/{name_of(obj)}; {gvk.group}/{gvk.version}, Kind={gvk.kind}"
    listed = errors[0] if len(errors) == 1 else "\n".join(["errors:", *(f"  {error}" for error in errors)])
    return ApiError(f"failed to create typed {which} object ({named}): {listed}", code=500, reason="")


def _managed_before(live: Obj | None, task: _Application) -> _Managed:
    """The live entries; an object without field owners is first credited to ``before-first-apply``."""
    try:
        managed = _decode(meta(live or {}).get("managedFields"))
    except ValueError as error:
        raise ApiError(f"failed to decode managed fields: {error}", code=500, reason="") from error
    if managed or live is None:
        return managed
    owner = _owner(BEFORE_FIRST_APPLY, "Update", task.api_version, task.owner.subresource)
    empty = _empty_object(task.live, task.schema)
    return _track({}, empty, task.live, owner, task.schema, task.api_version, task.now, task.reset)


def _applied_with_upgrade(task: _Application, managed: _Managed, force: bool) -> tuple[Obj, _Managed]:
    """As asked; or by force where kubectl meets only conflicts with its own client-side apply.

    Source: apimachinery ``lastAppliedManager``.
    """
    merged, after, conflicts = _applied(task, managed)
    if not conflicts or force:
        return merged, after
    if task.owner.manager == KUBECTL:
        allowed = _client_side_applied(task)
        conflicts = {owner: fieldset.difference(fields, allowed) for owner, fields in conflicts.items()}
        if not any(conflicts.values()):
            return merged, after
    raise _conflict({owner: fields for owner, fields in conflicts.items() if fields})


def _applied(task: _Application, managed: _Managed) -> tuple[Obj, _Managed, dict[_Owner, FieldSet]]:
    """(merged object, ownership after a forced apply, what others would lose)."""
    merged = merge(task.live, task.applied, task.schema)
    mine = fieldset.recursive_difference(fields_of(task.applied, task.schema), task.reset)
    last = managed.get(task.owner)
    current = {**managed, task.owner: _Owned(mine, task.api_version, last.time if last else "")}
    if last is not None:
        # A map that lost its last entry is gone; if it is applied as an empty one, it is stated again.
        pruned = _pruned(merged, last.fields, current, task.schema)
        merged = merged if pruned is merged else merge(pruned, task.applied, task.schema)
    # What the endpoint resets counts for the time of the entry all the same, as upstream resets it later.
    stated = merged
    merged = _restored(merged, task.live, task.reset) if task.live else merged
    change = compare(task.live, merged, task.schema).without(task.reset)
    taken = fieldset.union(change.modified, change.added)
    after: _Managed = {}
    conflicts: dict[_Owner, FieldSet] = {}
    for owner, owned in current.items():
        fields = owned.fields
        if owner != task.owner:
            lost = fieldset.intersection(fields, taken)
            if lost:
                conflicts[owner] = lost
            fields = fieldset.difference(fieldset.difference(fields, lost), change.removed)
        if fields:
            after[owner] = owned.holding(fields)
    mine = fieldset.difference(mine, STRIPPED)
    after.pop(task.owner, None)
    if mine:
        changed = stated is not task.live and not same_json(stated, task.live)
        time = format_time(task.now) if changed else (last.time if last else "")
        after[task.owner] = _Owned(mine, task.api_version, time)
    return merged, after, conflicts


def _pruned(merged: Obj, last: FieldSet, current: _Managed, schema: Schema | None) -> Obj:
    """``merged`` without what the applier set last time, does not set now, and no other client owns.

    Source: structured-merge-diff ``prune``, ``addBackOwnedItems`` and ``addBackDanglingItems``.
    """
    owned: FieldSet = {}
    for entry in current.values():
        owned = fieldset.union(owned, entry.fields)
    if not fieldset.difference(last, owned):
        return merged
    last = named_fields(last, schema)
    everything = named_fields(fields_of(merged, schema), schema)
    kept = named_fields(fields_of(remove_items(merged, last, schema, nulls=True), schema), schema)
    kept = fieldset.union(kept, named_fields(owned, schema))
    pruned = remove_items(merged, fieldset.difference(everything, kept), schema, nulls=True)
    left = named_fields(fields_of(pruned, schema), schema)
    return remove_items(merged, fieldset.intersection(fieldset.difference(everything, left), last), schema)


def _restored(obj: Any, live: Any, reset: FieldSet) -> Any:
    """``obj`` with the live values at the members of ``reset``."""
    for element, below in reset.items():
        name = element[2:]
        if not isinstance(obj, dict):
            break
        was = live.get(name) if isinstance(live, dict) else None
        value = was if fieldset.is_member(below) else _restored(obj.get(name), was, below)
        if value is not obj.get(name):
            obj = {key: item for key, item in obj.items() if key != name or value is not None}
            if value is not None:
                obj[name] = value
    return obj


def _conflict(conflicts: Mapping[_Owner, FieldSet]) -> Conflict:
    """``Apply failed with 1 conflict: …``; several are listed below the name of each manager."""
    found = [
        (owner.describe(), fieldset.path_text(path))
        for owner in sorted(conflicts)
        for path in fieldset.members(conflicts[owner])
    ]
    causes = [FieldCause("FieldManagerConflict", f"conflict with {who}", path) for who, path in found]
    if len(found) == 1:
        return Conflict(f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}", causes=causes)
    lines: list[str] = []
    for who in dict.fromkeys(who for who, _ in found):
        lines.append(f"conflicts with {who}:")
        lines += [f"- {path}" for name, path in found if name == who]
    return Conflict(f"Apply failed with {len(found)} conflicts: " + "\n".join(lines), causes=causes)


# --- from client-side to server-side apply -------------------------------------------------------------------------


def _client_side_applied(task: _Application) -> FieldSet:
    """Fields that the last-applied annotation vouches for: stated there and still so in the live object."""
    try:
        stated = msgspec.json.decode(annotations_of(task.live).get(LAST_APPLIED, ""))
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(stated, dict) or stated.get("apiVersion") != task.api_version:
        return {}
    change = compare(stated, task.live, task.schema)
    fields = fields_of(stated, task.schema)
    for part in (change.modified, change.added, change.removed):
        fields = fieldset.difference(fields, part)
    return fields


def _last_applied_synced(merged: Obj, applied: Obj, manager: str) -> Obj:
    """kubectl's server-side apply keeps the annotation of its client-side apply up to date."""
    annotations = annotations_of(merged)
    if manager != KUBECTL or LAST_APPLIED not in annotations:
        return merged
    plain = {name: value for name, value in annotations_of(applied).items() if name != LAST_APPLIED}
    stated = {**applied, "metadata": {**meta(applied), "annotations": plain}}
    if not plain:
        del stated["metadata"]["annotations"]
    text = msgspec.json.encode(stated, order="sorted").decode() + "\n"
    size = sum(len(name) + len(value) for name, value in {**annotations, LAST_APPLIED: text}.items())
    value = text if size <= MAX_ANNOTATIONS_BYTES else ""
    metadata = {**meta(merged), "annotations": {**annotations, LAST_APPLIED: value}}
    return {**merged, "metadata": metadata}


def upgrade_managed_fields(obj: Obj, client_side_managers: frozenset[str], manager: str) -> Obj:
    """``obj`` with the Update entries of client-side appliers handed over to ``manager``'s Apply entry.

    Source: client-go ``util/csaupgrade``; kubectl writes the result before its first server-side apply. Entries of
    subresources are left alone. An object without such entries is returned as it is.
    """
    managed = _decoded_or_empty(meta(obj).get("managedFields"))
    handed = [
        owner
        for owner in sorted(managed)
        if owner.manager in client_side_managers and owner.operation == "Update" and not owner.subresource
    ]
    if not handed:
        return obj
    target = _owner(manager, "Apply", "", "")
    newest = max(handed, key=lambda owner: _instant(managed[owner].time))
    owned = managed.get(target) or _Owned({}, managed[newest].api_version, managed[newest].time)
    fields = owned.fields
    for owner in handed:
        fields = fieldset.union(fields, managed.pop(owner).fields)
    managed[target] = _Owned(fieldset.difference(fields, _LAST_APPLIED_FIELD), owned.api_version, owned.time)
    return with_managed_fields(obj, _encode(managed))


_LAST_APPLIED_FIELD = fieldset.field_set([("metadata", "annotations", LAST_APPLIED)])


def _instant(text: str) -> float:
    return parse_time(text).timestamp() if text else 0.0
