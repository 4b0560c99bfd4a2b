"""Controllers that keep objects as they should be: what others change or delete is written again; pure plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, differ
from syncline.control.plan import Create, Done, Patch, Plan
from syncline.kube.objects import GroupKind, Obj, ObjectRef, gvk_of, name_of, ref_of, resource_version, uid_of


@dataclass(frozen=True, slots=True)
class Kept:
    """An object as it should be, and as it is; None: it does not exist."""

    wanted: Obj
    live: Obj | None


def pruned(value: Any) -> Any:
    """Return a value without empty parts, which API servers add and leave out."""
    if isinstance(value, dict):
        made = {key: pruned(one) for key, one in value.items()}
        return {key: one for key, one in made.items() if one not in (None, "", {}, [])}
    return [pruned(one) for one in value] if isinstance(value, list) else value


def content(obj: Obj) -> Obj:
    """Return what is kept of an object: all fields but its identity, metadata and status."""
    return {key: one for key, one in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}


def plan_kept(observed: Kept, _now: datetime) -> Plan:
    """Plan one reconcile: create what is missing, replace fields that differ."""
    wanted, live = observed.wanted, observed.live
    if live is None:
        return Plan(((Create(wanted, "the hub needs it"),),), Done(), "it is missing")
    fields = content(wanted)
    if pruned(fields) == pruned({key: live.get(key) for key in fields}):
        return Plan(why="it is as it should be")
    precondition = {"uid": uid_of(live), "resourceVersion": resource_version(live)}
    body = {"metadata": precondition, **{key: _replacing(one, live.get(key)) for key, one in fields.items()}}
    return Plan(((Patch(gvk_of(wanted), "", name_of(wanted), body, "the hub needs it so"),),), Done(), "it was changed")


def _replacing(wanted: Any, live: Any) -> Any:
    """Return a merge patch of a field that leaves nothing of ``live`` beside ``wanted``."""
    if not isinstance(wanted, dict) or not isinstance(live, dict):
        return wanted
    gone = {key: None for key in live if key not in wanted}
    return gone | {key: _replacing(value, live.get(key)) for key, value in wanted.items()}


def keeper(kind: GroupKind, wanted: Callable[[], Iterable[Obj]]) -> Controller[Kept]:
    """Return the controller that keeps the cluster-scoped objects of a kind; ``wanted``: those, at this moment."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Kept | None:
        found = next((one for one in wanted() if ref_of(one) == ref), None)
        return None if found is None or not cache.has_synced(kind) else Kept(found, cache.get(ref))

    return Controller(
        name=f"kept-{kind.kind.lower()}", kind=kind, predicate=differ(content), observe=observe, plan=plan_kept
    )
