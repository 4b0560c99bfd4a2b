"""The manifest that is applied with ``RespectIgnoreDifferences=true``: ignored fields keep their live values.

Called by the preparation of a sync for each pair. Pure. Rule: Argo CD ``controller/sync.go``
``normalizeTargetResources``: what ignoring takes out of the live object is put into the manifest from which the same
was taken out. Lists of built-in kinds merge by their keys, those of other kinds are taken as a whole.
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

__all__ = ["respect_ignored"]


def respect_ignored(target: Obj, live: Obj | None, settings: DiffSettings) -> Obj:
    """``target`` with the live values of what the settings ignore; as it is without a live object. ``status`` is never
    taken over. Raises DiffError and Unknown."""
    if live is None:
        return target
    bare_target, bare_live = without_trusted_changes(target, live, settings)
    bare_target, bare_live = gathered(
        partial(without_ignored, bare_target, settings), partial(without_ignored, bare_live, settings)
    )
    states = _States(target, bare_target, live, bare_live)
    try:
        return _restored(states, builtin_schema(bare_target), left_out=("status",))
    except ApiError:  # lists whose items lack their keys: nothing can be taken over
        return target


@dataclass(frozen=True, slots=True)
class _States:
    """One place in the manifest and in the live object, each with and without what is ignored."""

    target: Obj
    bare_target: Obj
    live: Obj
    bare_live: Obj

    def at(self, key: str) -> _States:
        parts = (self.target, self.bare_target, self.live, self.bare_live)
        found = (part.get(key) for part in parts)
        return _States(*(one if isinstance(one, dict) else {} for one in found))


def _restored(at: _States, schema: Schema | None, left_out: tuple[str, ...] = ()) -> Obj:
    """The bare manifest with the live value of everything that was taken out of the live object."""
    made = dict(at.bare_target)
    for key, value in at.live.items():
        bare = at.bare_live.get(key)
        if key in left_out or (key in at.bare_live and same_json(bare, value)):
            continue
        if isinstance(value, dict) and isinstance(bare, dict):
            if key not in at.target:
                continue  # others' fields stand there, too: applying leaves all of them alone
            made[key] = _restored(at.at(key), schema.field(key) if schema is not None else None)
        elif isinstance(value, list) and isinstance(bare, list):
            made |= _restored_list(at, key, schema)
        else:
            made[key] = value
    return made


def _restored_list(at: _States, key: str, schema: Schema | None) -> Obj:
    """A list from which nothing was taken out in the manifest stays the manifest's."""
    bare = at.bare_target.get(key)
    if same_json(at.target.get(key), bare):
        return {}
    if schema is None or not isinstance(bare, list):
        return {key: at.live[key]}
    live = {key: at.live[key]}
    patch = three_way_strategic(live, live, {key: at.bare_live[key]}, schema)
    return strategic_merge_patch({key: bare}, patch, schema)
