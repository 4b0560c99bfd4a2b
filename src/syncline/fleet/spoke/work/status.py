"""The status of a ManifestWork and of its inventory, after a look at the cluster; pure.

Rules: ``manifestwork_reconciler.go`` and ``availablestatus_controller.go`` of upstream (reference ocm-pull-model §6.4,
6.5). Upstream writes the two parts one after the other; here they are one write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from syncline.fleet.conditions import condition, find_condition, is_true, with_condition, with_conditions
from syncline.fleet.spoke.work.aggregation import AVAILABLE, aggregate, is_from_rule, pruned
from syncline.fleet.spoke.work.conditionrules import COMPLETE, conditions_of
from syncline.fleet.spoke.work.deletion import identity, next_inventory
from syncline.fleet.spoke.work.feedback import SYNCED, feedback
from syncline.fleet.spoke.work.manifests.actions import Looked
from syncline.fleet.spoke.work.manifests.applying import applied_condition
from syncline.fleet.spoke.work.observe import Manifest, WorkObserved
from syncline.fleet.spoke.work.ownership import other_works
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, dig, generation, gvk_of, uid_of

SHARED: Final = "syncline.dev/Shared"
"""Condition of a manifest, ours: other works have its object, too, and write their content into it."""
MOST_FEEDBACK: Final = 512 << 10
"""Limit of the values of one work together, in bytes of JSON; a cluster must not fill the storage of its hub."""
_NAMES: Final = ("group", "version", "kind", "resource", "name", "namespace")


def entries_of(observed: WorkObserved) -> dict[int, Obj]:
    """Return the entries of ``status.resourceStatus`` by the ordinal of their manifests: that of the same object at
    this place, else the only one of the same object."""
    known: list[Obj] = dig(observed.work, "status", "resourceStatus", "manifests") or []
    placed = {(dig(one, "resourceMeta", "ordinal"), _names(one.get("resourceMeta") or {})): one for one in known}
    by_name: dict[tuple[str, ...], list[Obj]] = {}
    for one in known:
        by_name.setdefault(_names(one.get("resourceMeta") or {}), []).append(one)
    found = {}
    for manifest in observed.manifests:
        names = _names(manifest.meta)
        same = by_name.get(names, [])
        entry = placed.get((manifest.ordinal, names)) or (same[0] if len(same) == 1 and any(names) else None)
        if entry is not None:
            found[manifest.ordinal] = entry
    return found


def _names(meta: Obj) -> tuple[str, ...]:
    return tuple(str(meta.get(name) or "") for name in _NAMES)


def is_applied(entry: Obj | None, wanted: int) -> bool | None:
    """Return whether a manifest of this generation is applied, None before the first attempt."""
    applied = find_condition((entry or {}).get("conditions") or (), "Applied")
    if applied is None or applied.get("observedGeneration") != wanted:
        return None
    return applied.get("status") == "True"


def is_complete(entry: Obj | None) -> bool:
    """Return whether a manifest is not updated any more."""
    return is_true((entry or {}).get("conditions") or (), COMPLETE)


def work_status(observed: WorkObserved, waiting: frozenset[int], now: datetime) -> Obj:
    """Return ``status`` of the work. ``waiting``: manifests whose kind this work brings and that is not served yet."""
    before, number = entries_of(observed), generation(observed.work)
    made = [
        _entry(one, before.get(one.ordinal), observed, waiting, now)
        for one in observed.manifests
        if not observed.complete or one.ordinal in before
    ]
    if observed.complete:
        made += _left_over(observed, before.values(), number)
    _bound(made, now)
    conditions = observed.conditions
    if not observed.complete:
        conditions = with_conditions(conditions, _applied(made, number, bool(waiting)), now)
    conditions = pruned(with_conditions(conditions, aggregate(number, made), now), number)
    status: Obj = {**(observed.work.get("status") or {}), "conditions": conditions}
    return {**status, "resourceStatus": {**(status.get("resourceStatus") or {}), "manifests": made}}


def _left_over(observed: WorkObserved, current: Iterable[Obj], number: int) -> list[Obj]:
    """Return the entries of manifests that a completed work has no more: it reports what it applied, and nothing that
    it does not apply any more."""
    known = list(current)
    return [
        {
            **entry,
            "conditions": [
                {**one, "observedGeneration": number} if is_from_rule(one) else one
                for one in entry.get("conditions") or ()
            ],
        }
        for entry in dig(observed.work, "status", "resourceStatus", "manifests") or ()
        if entry not in known
    ]


def _applied(entries: Sequence[Obj], number: int, waiting: bool) -> Iterable[Obj]:
    found = [one for entry in entries for one in entry["conditions"] if one.get("type") == "Applied"]
    if any(one.get("status") == "False" for one in found):
        text = "Failed to apply manifest work"
        yield condition("Applied", "False", "AppliedManifestWorkFailed", text, number)
    elif found and not waiting:
        yield condition("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete", number)


def _entry(
    manifest: Manifest, before: Obj | None, observed: WorkObserved, waiting: frozenset[int], now: datetime
) -> Obj:
    looked, number = observed.looked.get(manifest.ordinal), generation(observed.work)
    conditions: list[Obj] = list((before or {}).get("conditions") or ())
    values: list[Obj] = list(dig(before or {}, "statusFeedback", "values") or ())
    applied = _applied_condition(manifest, before, looked, number, observed.complete)
    if applied is not None and manifest.ordinal not in waiting:
        last = find_condition(conditions, "Applied")
        if last is not None and last.get("observedGeneration") != number:
            conditions = [one for one in conditions if one is not last]
        conditions = with_condition(conditions, applied, now)
    if manifest.info is None or looked is not None:
        conditions = with_condition(conditions, _available(manifest, looked), now)
    if looked is not None and looked.obj is not None:
        if not looked.refused:
            values, conditions = _read(looked.obj, manifest, values, conditions, observed, now)
        conditions = _shared(looked.obj, conditions, observed.applied or {}, now)
    return {
        "resourceMeta": manifest.meta,
        "conditions": conditions,
        "statusFeedback": {"values": values} if values else {},
    }


def _applied_condition(
    manifest: Manifest, before: Obj | None, looked: Looked | None, number: int, complete: bool
) -> Obj | None:
    if complete:
        return None
    if manifest.info is None:
        return applied_condition(ValueError(manifest.error), number)
    if is_complete(before):
        return applied_condition(None, number)
    return applied_condition(looked.error, number) if looked is not None and looked.tried else None


def _available(manifest: Manifest, looked: Looked | None) -> Obj:
    if looked is None:
        if manifest.unknown or not manifest.meta["name"]:
            return condition(AVAILABLE, "Unknown", "IncompleteResourceMeta", "Resource meta is incomplete")
        return condition(AVAILABLE, "Unknown", "FetchingResourceFailed", f"Failed to fetch resource: {manifest.error}")
    if looked.unread:
        return condition(AVAILABLE, "Unknown", "FetchingResourceFailed", f"Failed to fetch resource: {looked.unread}")
    if looked.obj is None:
        return condition(AVAILABLE, "False", "ResourceNotAvailable", "Resource is not available")
    return condition(AVAILABLE, "True", "ResourceAvailable", "Resource is available")


def _read(
    obj: Obj, manifest: Manifest, before: list[Obj], conditions: list[Obj], observed: WorkObserved, now: datetime
) -> tuple[list[Obj], list[Obj]]:
    """Return the values of feedback rules, and the conditions with those of rules."""
    config, settings, number = manifest.config or {}, observed.settings, generation(observed.work)
    values, synced = feedback(obj, config.get("feedbackRules") or (), raw=settings.raw, max_raw=settings.max_raw)
    if values != before:
        conditions = [one for one in conditions if one.get("type") != SYNCED]
    made = [{**one, "observedGeneration": number} for one in conditions_of(obj, config.get("conditionRules") or ())]
    kinds = {str(one["type"]) for one in made}
    kept = [one for one in conditions if not is_from_rule(one) or one.get("type") in kinds]
    return values, with_conditions(kept, (synced, *made), now)


def _shared(obj: Obj, conditions: list[Obj], applied: Obj, now: datetime) -> list[Obj]:
    others = other_works(obj, uid_of(applied))
    if not others:
        return [one for one in conditions if one.get("type") != SHARED]
    is_application = gvk_of(obj).group_kind == APPLICATION.group_kind
    text = (
        f"{', '.join(others)} have this object, too: {_WHO[is_application]}; take the manifest out of all but one work"
    )
    return with_condition(conditions, condition(SHARED, "True", "OwnedByOtherWorks", text), now)


_WHO: Final = ("each writes its own content into it", "the first one decides what is in it")


def _bound(entries: Iterable[Obj], now: datetime) -> None:
    """Leave out values beyond :data:`MOST_FEEDBACK`, and say so."""
    left = MOST_FEEDBACK
    for entry in entries:
        values = entry["statusFeedback"].get("values")
        left -= len(msgspec.json.encode(values)) if values else 0
        if values and left < 0:
            text = f"Sync status feedback failed with error the values of this work exceed {MOST_FEEDBACK} bytes"
            entry["statusFeedback"] = {}
            failed = condition(SYNCED, "False", "StatusFeedbackSyncFailed", text)
            entry["conditions"] = with_condition(entry["conditions"], failed, now)


# -- the inventory ------------------------------------------------------------------------------------------------


def inventory_of(observed: WorkObserved) -> list[Obj]:
    """Return ``status.appliedResources`` after this reconcile."""
    known: Mapping[tuple[str, ...], Obj] = {identity(one): one for one in observed.inventory}
    applied = [_resource(one, observed, known.get(identity(one.meta))) for one in observed.manifests if one.info]
    gone = {key for key, one in observed.dropped.items() if not one.pending}
    current = {identity(one.meta) for one in observed.manifests if one.info}
    pending = [one for key, one in known.items() if key not in current and key not in gone]
    return next_inventory([one for one in applied if one is not None], pending)


def _resource(manifest: Manifest, observed: WorkObserved, before: Obj | None) -> Obj | None:
    looked = observed.looked.get(manifest.ordinal)
    if looked is None or looked.unread:
        return before
    return resource_of(manifest, uid_of(looked.obj)) if looked.obj is not None else None


def resource_of(manifest: Manifest, uid: str) -> Obj:
    """Return the entry of an object in the inventory."""
    named = {name: manifest.meta[name] for name in ("version", "group", "resource", "name", "namespace")}
    return {**named, "uid": uid} if uid else named


def planned_inventory(observed: WorkObserved, manifests: Iterable[Manifest]) -> list[Obj]:
    """Return the inventory with what is about to be created, so that nothing is created that it lacks."""
    known = {identity(one) for one in observed.inventory}
    new = [resource_of(one, "") for one in manifests if one.owned and identity(one.meta) not in known]
    return next_inventory(observed.inventory, new) if new else observed.inventory
