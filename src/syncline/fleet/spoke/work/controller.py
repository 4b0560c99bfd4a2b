"""The controllers of the work agent: they connect its plans with the caches and watches of the hub and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from syncline.apply.asking import Evaluator
from syncline.base.action import Handler
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Plan, Result
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.fleet.spoke.work.deletion import hub_hash
from syncline.fleet.spoke.work.eviction import AppliedObserved, observe_applied, plan_applied, settle_applied
from syncline.fleet.spoke.work.manifests.actions import Drop, Follow, Look
from syncline.fleet.spoke.work.manifests.handler import DropHandler, LookHandler
from syncline.fleet.spoke.work.manifests.memory import Memory, without
from syncline.fleet.spoke.work.missing import missing_controller
from syncline.fleet.spoke.work.observe import APPLIED, DEFAULTS, WORKS, WorkObserved, WorkSettings, observe_work
from syncline.fleet.spoke.work.plan import plan_work, settle_work
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    finalizers,
    generation,
    is_terminating,
    labels_of,
    name_of,
    ref_of,
    uid_of,
)

CONTROLLER: Final = "work"
INVENTORY: Final = "applied-work"
APPS: Final = APPLICATION.group_kind
GATHER_S: Final = 1.0
"""Seconds from a change of an Application to its feedback: a sync changes its status some five times in a moment."""

_work_differs = differ(generation, uid_of, finalizers, is_terminating, labels_of, lambda one: one.get("status"))


class WorkAgent:
    """The controllers of works of one link, and what they remember. All of the memory may be lost."""

    def __init__(self, link: Link, settings: WorkSettings = DEFAULTS) -> None:
        self._link, self._settings = link, settings
        self.memory = Memory()

    def controllers(self) -> tuple[Controller[Any], ...]:
        return self._works(), self._inventory(), missing_controller(self._link, self._settings.eviction_s)

    def handlers(self, evaluator: Evaluator | None = None) -> Mapping[type, Handler]:
        """Return the handlers of the agent's actions on its cluster, but for :class:`Follow`. ``evaluator``: of jq
        expressions."""
        return {Look: LookHandler(evaluator), Drop: DropHandler()}

    def _works(self) -> Controller[WorkObserved]:
        def observe(cache: Snapshot, ref: ObjectRef) -> WorkObserved | None:
            return observe_work(cache, ref, self._link, self.memory, self._settings)

        return Controller(
            name=CONTROLLER,
            kind=WORKS,
            predicate=_work_differs,
            watches=(
                Watch(APPLIED, self._work_of, _goes, cluster=SPOKE),
                Watch(None, self._works_with, self._at_once, cluster=SPOKE, wanted=False),
                Watch(APPS, self._works_with, self.memory.changed, cluster=SPOKE, wanted=False, gather_s=GATHER_S),
            ),
            observe=observe,
            plan=plan_work,
            settle=self._settle,
            at_rest=lambda _work: True,
            reaches=self._all_works,
        )

    def _settle(
        self, observed: WorkObserved, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[WorkObserved, Plan] | None:
        for one in results:
            if isinstance(one.action, Follow) and one.ok:
                self.memory.followed = one.action.kinds
        if observed.after is not None:
            written = all(one.ok for one in results)
            kept = observed.after if written else without(observed.after, observed.looked_at)
            self.memory.keep(ref_of(observed.work), kept, observed.taken if written else {})
        return settle_work(observed, plan, results, now)

    def _work_of(self, applied: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        """Return the work of an AppliedManifestWork of this hub."""
        mine, _, name = name_of(applied).partition("-")
        return (ObjectRef(*WORKS, self._link.cluster, name),) if mine == hub_hash(self._link.hub_url) else ()

    def _at_once(self, old: Obj | None, new: Obj | None) -> bool:
        if old is not None and new is not None and ref_of(new).group_kind == APPS:
            return False
        return self.memory.changed(old, new)

    def _works_with(self, obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return self.memory.works_of(obj)

    def _all_works(self, cluster: str, hub: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in hub.objects(WORKS, self._link.cluster)] if cluster == SPOKE else ()

    def _inventory(self) -> Controller[AppliedObserved]:
        def observe(cache: Snapshot, ref: ObjectRef) -> AppliedObserved | None:
            return observe_applied(cache, ref, self._link, self._settings)

        def keys(applied: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
            return (ref_of(applied),)

        def of_work(work: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
            return (ObjectRef(*APPLIED, "", f"{hub_hash(self._link.hub_url)}-{name_of(work)}"),)

        def reaches(cluster: str, _hub: Snapshot) -> Iterable[ObjectRef]:
            spoke = self._link.spoke()
            return map(ref_of, spoke.objects(APPLIED)) if cluster == SPOKE and spoke is not None else ()

        return Controller(
            name=INVENTORY,
            kind=APPLIED,
            watches=(Watch(APPLIED, keys, _is_or_goes, cluster=SPOKE), Watch(WORKS, of_work, comes_or_goes)),
            observe=observe,
            plan=plan_applied,
            settle=settle_applied,
            reaches=reaches,
        )


def _goes(_old: Obj | None, new: Obj | None) -> bool:
    """An AppliedManifestWork concerns its work when it begins to go, and when it is gone."""
    return new is None or is_terminating(new)


_is_or_goes: Callable[[Obj | None, Obj | None], bool] = differ(uid_of, is_terminating, lambda one: one.get("spec"))


def comes_or_goes(old: Obj | None, new: Obj | None) -> bool:
    return old is None or new is None
