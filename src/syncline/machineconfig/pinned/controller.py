"""Binds the planner of pinned images to nodes, their pools and the sets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Watch, differ, spec_differs
from syncline.control.plan import Plan, Result
from syncline.kube.kinds.machineconfiguration import PINNED_IMAGE_SET
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, ref_of
from syncline.machineconfig.agent.hosts import Hosts
from syncline.machineconfig.names import MACHINE_CONFIG_NODE, POOL
from syncline.machineconfig.pinned.plan import DEGRADED, PROGRESSING, PinnedObserved, plan_pinned, settle_pinned
from syncline.machineconfig.pools.membership import MembershipError, belonging

__all__ = ["PinnedImagesController"]

NODE = GroupKind("", "Node")
SETS = PINNED_IMAGE_SET.group_kind
_HEALTH = ("Ready", "DiskPressure")


def _health(node: Obj) -> Any:
    conditions = dig(node, "status", "conditions") or ()
    return [(each.get("type"), each.get("status")) for each in conditions if each.get("type") in _HEALTH]


def _asks(pool: Obj) -> Any:
    return dig(pool, "spec", "pinnedImageSets"), dig(pool, "spec", "nodeSelector")


def _says(record: Obj) -> Any:
    conditions = dig(record, "status", "conditions") or ()
    mine = [each for each in conditions if each.get("type") in (DEGRADED, PROGRESSING)]
    return [(each.get("type"), each.get("status")) for each in mine], dig(record, "status", "pinnedImageSets")


def _of_record(record: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef(*NODE, "", name_of(record)),)


class PinnedImagesController:
    """Kind Node; only nodes whose machine is one of ``hosts``."""

    name = "machine-config-pinned-images"
    kind = NODE
    reads: tuple[GroupKind, ...] = ()
    concerns = staticmethod(differ(labels_of, _health))

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self.watches = (
            Watch(POOL, self._all, differ(_asks)),
            Watch(SETS, self._all, spec_differs),
            Watch(MACHINE_CONFIG_NODE, _of_record, differ(_says)),
        )

    def observe(self, cache: Snapshot, ref: ObjectRef) -> PinnedObserved | None:
        """None also while nothing is pinned and nothing was, so that most nodes cost nothing."""
        node, record = cache.get(ref), cache.get(ObjectRef(*MACHINE_CONFIG_NODE, "", ref.name))
        if node is None or record is None or not (cache.has_synced(POOL) and cache.has_synced(SETS)):
            return None
        try:
            pools = belonging(node, cache.objects(POOL)).pools
        except MembershipError:
            return None  # the agent says so
        asked = any(dig(pool, "spec", "pinnedImageSets") for pool in pools)
        if not asked and not dig(record, "status", "pinnedImageSets") and not _under_way(record):
            return None
        facts = self._hosts.facts(ref.name)
        if facts is None:
            return None
        sets = {name_of(each): each for each in cache.objects(SETS)}
        return PinnedObserved(node, pools, sets, record, up=facts.up)

    def plan(self, seen: PinnedObserved, now: datetime) -> Plan:
        return plan_pinned(seen, now)

    def settle(
        self, seen: PinnedObserved, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[PinnedObserved, Plan] | None:
        return settle_pinned(seen, plan, results, now)

    def _all(self, _changed: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return (ref_of(node) for node in cache.objects(NODE))


def _under_way(record: Obj) -> bool:
    return any(status == "True" for _, status in _says(record)[0])
