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
from syncline.kube.objects import GroupKind, Obj, ObjectRef, owner_references, ref_of, split_api_version

__all__ = ["Controller", "Watch", "owner_of_kind", "settles"]

MapToKeys = Callable[[Obj, Snapshot], Iterable[ObjectRef]]
"""From a changed object to the keys that should look again. Called with the old and with the new state."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Look at ``kind`` too (None: every kind that can be listed and watched) and map its changes to keys of ours."""

    kind: GroupKind | None
    keys: MapToKeys


class Controller(Protocol):
    """One kind, one plan function.

    ``name`` appears in journals and events. ``reads`` are kinds that ``observe`` looks at without being woken by them.
    A controller may also have ``indices`` (name to IndexFn), which its loop declares on the cache.
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
