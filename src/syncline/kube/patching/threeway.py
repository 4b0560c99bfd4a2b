"""Computes patches from three states like ``kubectl apply``: :func:`three_way_strategic`.

Called by client-side apply in the sync engine and by the predicting differ with the last applied (``original``), the
desired (``modified``) and the live state (``current``). The patch sets what differs between current and modified, and
removes what the last apply set and this one does not; fields of other clients stay. Pure; rules of apimachinery's
``strategicpatch`` and ``jsonmergepatch``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.patching.patches import check_depth, create_merge_patch, same_json
from syncline.kube.patching.strategic import (
    DELETE_FROM_LIST,
    ELEMENT_ORDER,
    PATCH,
    RETAIN_KEYS,
    element_key,
    element_token,
    in_stated_order,
    same_element,
    strategy_of,
)
from syncline.kube.schema.model import Schema


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The differences to include in a patch."""

    changes: bool = True
    deletions: bool = True


def three_way_strategic(original: Obj, modified: Obj, current: Obj, schema: Schema | None) -> Obj:
    """The strategic merge patch for a built-in kind; ``{}`` if there is nothing to do.

    Raises ApiError where a list element lacks its merge key.
    """
    for state in (original, modified, current):
        check_depth(state)
    delta = _diff_maps(current, modified, schema, _Wanted(deletions=False))
    removals = _diff_maps(original, modified, schema, _Wanted(changes=False))
    return _combine(removals, delta, schema)


def three_way_json_merge(original: Obj, modified: Obj, current: Obj) -> Obj:
    """The merge patch for custom resources, whose lists have no keys for a client; ``{}`` if there is nothing to do."""
    for state in (original, modified, current):
        check_depth(state)
    changes = _only(create_merge_patch(current, modified), nulls=False)
    removals = _only(create_merge_patch(original, modified), nulls=True)
    return _join(removals, changes)


def _only(patch: Obj, *, nulls: bool) -> Obj:
    """The removals of a merge patch, or everything else."""
    made: Obj = {}
    for key, value in patch.items():
        if value is None:
            if nulls:
                made[key] = None
        elif isinstance(value, dict):
            inner = _only(value, nulls=nulls)
            if inner or (not value and not nulls):
                made[key] = inner
        elif not nulls:
            made[key] = value
    return made


def _join(below: Obj, above: Obj) -> Obj:
    made = dict(below)
    for key, value in above.items():
        under = made.get(key)
        made[key] = _join(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return made


def _diff_maps(old: Obj, new: Obj, schema: Schema | None, wanted: _Wanted, retain: bool = False) -> Obj:
    patch: Obj = {}
    for key, value in new.items():
        before: Any = old.get(key)
        if key not in old or type(before) is not type(value):
            if wanted.changes:
                patch[key] = value
            continue
        field = schema.field(key) if schema is not None else None
        if isinstance(value, dict) and strategy_of(field)[0] != "replace":
            inner = _diff_maps(before, value, field, wanted, strategy_of(field)[1])
            if inner:
                patch[key] = inner
        elif isinstance(value, list) and strategy_of(field)[0] == "merge":
            patch |= _diff_lists(key, before, value, field, wanted)
        elif wanted.changes and not same_json(before, value):
            patch[key] = value
    if wanted.deletions:
        patch |= {key: None for key in old if key not in new}
    kept = sorted(key for key, value in new.items() if value is not None)
    if retain and kept and (patch or any(old[key] is not None and key not in new for key in old)):
        patch[RETAIN_KEYS] = kept
    return patch


def _diff_lists(name: str, old: list[Any], new: list[Any], schema: Schema | None, wanted: _Wanted) -> Obj:
    """The entries of a patch for one list with strategy ``merge``: the list itself, deletions and order."""
    if not old:
        return {name: new} if new and wanted.changes else {}
    if any(isinstance(item, dict) for item in (*old, *new)):
        return _diff_keyed_lists(name, old, new, schema, wanted)
    there, wished = (frozenset(element_token(item, "") for item in items) for items in (old, new))
    added = [item for item in new if element_token(item, "") not in there] if wanted.changes else []
    gone = sorted((i for i in old if element_token(i, "") not in wished), key=str) if wanted.deletions else []
    patch: Obj = {}
    if added:
        patch[name] = added
    if gone:
        patch[DELETE_FROM_LIST + name] = gone
    if new and (gone or (wanted.changes and not same_json(old, new))):
        patch[ELEMENT_ORDER + name] = new
    return patch


def _diff_keyed_lists(name: str, old: list[Any], new: list[Any], schema: Schema | None, wanted: _Wanted) -> Obj:
    key = schema.merge_key if schema is not None else ""
    items = schema.items if schema is not None else None
    retain = strategy_of(schema)[1]
    before: dict[tuple[str, str], deque[Any]] = {}
    for item in old:
        before.setdefault(_hashable(element_key(item, key)), deque()).append(item)
    entries: list[Any] = []
    for item in new:
        same = before.get(_hashable(element_key(item, key)))
        known = same.popleft() if same else None  # repeated keys pair up in order
        if known is None:
            entries += [item] if wanted.changes else []
            continue
        inner = _diff_maps(known, item, items, wanted, retain)
        if inner:
            entries.append({**inner, key: item[key]})
    if wanted.deletions:
        wished = frozenset(element_token(item, key) for item in new)
        gone = sorted((item[key] for item in old if element_token(item, key) not in wished), key=str)
        entries += [{PATCH: "delete", key: value} for value in gone]
    same_order = len(old) == len(new) and all(same_element(a, b, key) for a, b in zip(old, new))
    patch: Obj = {name: entries} if entries else {}
    if new and (entries or (wanted.changes and not same_order)):
        patch[ELEMENT_ORDER + name] = [{key: item[key]} for item in new]
    return patch


def _hashable(value: Any) -> tuple[str, str]:
    return type(value).__name__, str(value)


def _combine(removals: Obj, delta: Obj, schema: Schema | None) -> Obj:
    """One patch of two: deletions of one, changes of the other; directives and nulls of both stay."""
    made = dict(removals)
    for key, value in delta.items():
        under = made.get(key)
        field = schema.field(key) if schema is not None else None
        if key.startswith("$"):
            made[key] = value
        elif isinstance(under, dict) and isinstance(value, dict) and strategy_of(field)[0] != "replace":
            made[key] = _combine(under, value, field)
        elif isinstance(under, list) and isinstance(value, list) and strategy_of(field)[0] == "merge":
            made[key] = _combine_lists(under, value, field, delta.get(ELEMENT_ORDER + key) or value)
        else:
            made[key] = value
    return made


def _combine_lists(removals: list[Any], delta: list[Any], schema: Schema | None, order: list[Any]) -> list[Any]:
    key = schema.merge_key if schema is not None else ""
    items = schema.items if schema is not None else None
    merged = list(removals)
    places: dict[tuple[str, str], int] = {}
    for index, item in enumerate(merged):
        places.setdefault(element_token(item, key), index)
    for item in delta:
        place = places.setdefault(element_token(item, key), len(merged))
        if place == len(merged):
            merged.append(item)
        elif isinstance(item, dict):
            merged[place] = _combine(merged[place], item, items)
    doomed = [item for item in merged if _is_deletion(item)]
    return [*in_stated_order([item for item in merged if not _is_deletion(item)], order, removals, key), *doomed]


def _is_deletion(item: Any) -> bool:
    return isinstance(item, dict) and PATCH in item
