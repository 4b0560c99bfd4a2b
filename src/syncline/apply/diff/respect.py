"""The manifest for ``RespectIgnoreDifferences=true``: ignored fields keep their live values.

Called by the preparation of a sync for each pair. Pure. Rule: Argo CD ``controller/sync.go``
``normalizeTargetResources``: ignored fields are removed from both objects, and their live values are put into the
manifest. Lists of built-in kinds merge by key, other lists are replaced as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from syncline.apply.diff.jq import gathered
from syncline.apply.diff.managers import without_trusted_changes
from syncline.apply.diff.model import DiffSettings
from syncline.apply.diff.normalize import without_ignored
from syncline.apply.diff.typed import builtin_schema
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj
from syncline.kube.patching.strategic import strategic_merge_patch
from syncline.kube.patching.threeway import three_way_strategic
from syncline.kube.patching.typedvalues import same_json
from syncline.kube.schema.model import Schema


def respect_ignored(target: Obj, live: Obj | None, settings: DiffSettings) -> Obj:
    """Return ``target`` with the live values of ignored fields; unchanged without a live object. ``status`` is never
    copied. Raises DiffError and Unknown."""
    if live is None:
        return target
    bare_target, bare_live = without_trusted_changes(target, live, settings)
    bare_target, bare_live = gathered(
        partial(without_ignored, bare_target, settings), partial(without_ignored, bare_live, settings)
    )
    states = _States(target, bare_target, live, bare_live)
    try:
        return _restored(states, builtin_schema(bare_target), left_out=("status",))
    except ApiError:  # list items lack their keys, so nothing can be merged
        return target


@dataclass(frozen=True, slots=True)
class _States:
    """The same field of manifest and live object, each with and without ignored fields."""

    target: Obj
    bare_target: Obj
    live: Obj
    bare_live: Obj

    def at(self, key: str) -> _States:
        parts = (self.target, self.bare_target, self.live, self.bare_live)
        found = (part.get(key) for part in parts)
        return _States(*(one if isinstance(one, dict) else {} for one in found))


def _restored(at: _States, schema: Schema | None, left_out: tuple[str, ...] = ()) -> Obj:
    """Return the bare manifest with the live values of all fields removed from the live object."""
    made = dict(at.bare_target)
    for key, value in at.live.items():
        bare = at.bare_live.get(key)
        if key in left_out or (key in at.bare_live and same_json(bare, value)):
            continue
        if isinstance(value, dict) and isinstance(bare, dict):
            if key not in at.target:
                continue  # it holds fields of other clients too; applying leaves them all alone
            made[key] = _restored(at.at(key), schema.field(key) if schema is not None else None)
        elif isinstance(value, list) and isinstance(bare, list):
            made |= _restored_list(at, key, schema)
        else:
            made[key] = value
    return made


def _restored_list(at: _States, key: str, schema: Schema | None) -> Obj:
    """Return the merged list; a list without ignored parts in the manifest stays as in the manifest."""
    bare = at.bare_target.get(key)
    if same_json(at.target.get(key), bare):
        return {}
    if schema is None or not isinstance(bare, list):
        return {key: at.live[key]}
    live = {key: at.live[key]}
    patch = three_way_strategic(live, live, {key: at.bare_live[key]}, schema)
    return strategic_merge_patch({key: bare}, patch, schema)
