"""The controllers of add-ons in an agent: :class:`AddOns` connects planners with hub and cluster; it plans nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Handler
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.fleet.addons import MANAGED, install_namespace, stored_view
from syncline.fleet.spoke.addons.credentials import Access, wanted_of
from syncline.fleet.spoke.addons.keeping import Keep, Keeping, Sweep
from syncline.fleet.spoke.addons.leases import LeaseReader, ReadLease, plan_lease, settle_lease
from syncline.fleet.spoke.addons.registering import (
    Kept,
    plan_registration,
    plan_sweep,
    settle_registration,
)
from syncline.fleet.spoke.link import Link
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating

CLUSTERS: Final = MANAGED_CLUSTER.group_kind


def _registers(addon: Obj) -> Any:
    view = stored_view(addon)
    return wanted_of(view), dig(view, "status", "kubeClientDriver")


def _mode(addon: Obj) -> Any:
    return dig(addon, "status", "healthCheck", "mode"), install_namespace(stored_view(addon))


@dataclass(slots=True)
class AddOns:
    """Controllers and handlers of one agent. ``authority``: PEM of who signs the hub's certificate."""

    link: Link
    now: Callable[[], datetime]
    authority: str = ""
    _keeping: Keeping = field(init=False)

    def __post_init__(self) -> None:
        self._keeping = Keeping(Access(self.link.hub_url, self.authority), self.now, self.link.draw)

    def handlers(self) -> Mapping[type, Handler]:
        """Return the handlers of its actions, at home."""
        return {Keep: _Handler(self._keeping.keep), Sweep: _Handler(self._keeping.sweep), ReadLease: LeaseReader()}

    def controllers(self) -> tuple[Controller[Any], ...]:
        return self._registration(), self._leases(), self._sweeping()

    def _registration(self) -> Controller[Obj]:
        return Controller(
            name="addon-registration",
            kind=MANAGED,
            predicate=differ(_registers, is_terminating, annotations_of),
            observe=self._own,
            plan=plan_registration,
            settle=settle_registration,
        )

    def _leases(self) -> Controller[Obj]:
        return Controller(
            name="addon-lease",
            kind=MANAGED,
            predicate=differ(_mode, annotations_of),
            observe=self._own,
            plan=plan_lease,
            settle=settle_lease,
        )

    def _sweeping(self) -> Controller[Kept]:
        def observe(cache: Snapshot, ref: ObjectRef) -> Kept | None:
            if ref.name != self.link.cluster or cache.get(ref) is None:
                return None
            addons = tuple(stored_view(one) for one in cache.objects(MANAGED, self.link.cluster))
            return Kept(addons, cache.has_synced(MANAGED))

        def key(_addon: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
            return (self.link.cluster_ref(*CLUSTERS),)

        return Controller(
            name="addon-secrets",
            kind=CLUSTERS,
            predicate=differ(is_terminating),
            watches=(Watch(MANAGED, key, differ(_registers)),),
            observe=observe,
            plan=plan_sweep,
        )

    def _own(self, cache: Snapshot, ref: ObjectRef) -> Obj | None:
        live = cache.get(ref) if ref.namespace == self.link.cluster else None
        return None if live is None else stored_view(live)


@dataclass(frozen=True, slots=True)
class _Handler:
    """One method as the handler of an action."""

    handle: Callable[[Any], Any]
