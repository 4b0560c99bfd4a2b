"""What a controller is: a kind, watches, an observer and a planner.

Bound to the world by a :class:`~syncline.control.loop.ControlLoop`. A controller holds frozen settings at most; all
else lives in API objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from syncline.control.cache import Snapshot
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, Obj, ObjectRef, meta, owner_references, ref_of, split_api_version

__all__ = ["Concerns", "Controller", "Watch", "differ", "owner_of_kind", "settles", "spec_differs"]

MapToKeys = Callable[[Obj, Snapshot], Iterable[ObjectRef]]
"""From a changed object to the keys that should look again. Called with the old and with the new state."""


Concerns = Callable[[Obj | None, Obj | None], bool]
"""Whether a change from old (None: an arrival) to new (None: a departure) may make a difference."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Look at ``kind`` too (None: every kind that can be listed and watched) and map its changes to keys of ours.

    ``when`` leaves out changes that make no difference to the controller (None: all may).
    """

    kind: GroupKind | None
    keys: MapToKeys
    when: Concerns | None = None


def differ(*reads: Callable[[Obj], Any]) -> Concerns:
    """True for arrivals and departures, and where one of ``reads`` tells the new state from the old."""

    def concerns(old: Obj | None, new: Obj | None) -> bool:
        return old is None or new is None or any(read(old) != read(new) for read in reads)

    return concerns


def _metadata_part(name: str) -> Callable[[Obj], Any]:
    return lambda obj: meta(obj).get(name)


spec_differs = differ(*map(_metadata_part, ("generation", "uid", "deletionTimestamp", "labels", "ownerReferences")))
"""Everything but status and annotations, for kinds that count generations."""


class Controller(Protocol):
    """One kind, one plan function.

    ``name`` appears in journals and events. ``reads`` are kinds that ``observe`` looks at without being woken by them.
    A controller may also have ``indices`` (name to IndexFn), which its loop declares on the cache; ``concerns`` (as
    :class:`Watch` ``when``, for its own kind); and ``at_rest(obj)``: whether a pass that ended with writing
    nothing but this status of its own object leaves nothing to another one, so that its own write does not wake it;
    and ``gathers_s``: how long after the first of several changes it looks, so that what arrives together is one look;
    and ``hurries(obj)``: whether an object of its kind in this state comes before those that wait for no more than a
    look, since something that was begun goes on;
    and ``stimulus(seen)``: what can change the fate of a pass that failed. While it stays equal the back-off holds,
    whoever wakes the key, so that a pass that undoes what it did does not wake itself.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> GroupKind: ...

    @property
    def watches(self) -> tuple[Watch, ...]: ...

    @property
    def reads(self) -> tuple[GroupKind, ...]: ...

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Any | None:
        """Everything the plan needs, frozen; None: there is nothing to plan for."""
        ...

    def plan(self, seen: Any, now: datetime) -> Plan:
        """Pure."""
        ...


class Settling(Controller, Protocol):
    """A controller that wants to record what its actions answered before the next pass."""

    def settle(self, seen: Any, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Any, Plan] | None:
        """Pure: what is known now and a further plan made from the answers, performed at once and settled again;
        None when there is nothing to add."""
        ...


def settles(controller: Controller) -> bool:
    return hasattr(controller, "settle")


def owner_of_kind(kind: GroupKind) -> MapToKeys:
    """Map an object to its controlling owner of ``kind``."""

    def keys(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        namespace = ref_of(obj).namespace
        for owner in owner_references(obj):
            group, _ = split_api_version(str(owner.get("apiVersion") or ""))
            if owner.get("controller") and owner.get("kind") == kind.kind and group == kind.group:
                yield ObjectRef(group, kind.kind, namespace, str(owner.get("name")))

    return keys
