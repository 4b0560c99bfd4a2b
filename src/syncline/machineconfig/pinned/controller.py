"""The controller of pinned images: binds the planner to nodes, their pools and the sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.kube.kinds.machineconfiguration import PINNED_IMAGE_SET
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, ref_of
from syncline.machineconfig.agent.hosts import Hosts
from syncline.machineconfig.names import MACHINE_CONFIG_NODE, POOL
from syncline.machineconfig.pinned.plan import DEGRADED, PROGRESSING, PinnedObserved, plan_pinned, settle_pinned
from syncline.machineconfig.pools.membership import MembershipError, belonging

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


def _all(_changed: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(node) for node in cache.objects(NODE))


def pinned_images_controller(hosts: Hosts) -> Controller[PinnedObserved]:
    """Return the controller of kind Node, for nodes whose machine is in ``hosts``."""

    def observe(cache: Snapshot, ref: ObjectRef) -> PinnedObserved | None:
        """Return the input; None also if nothing is or was pinned, so that most nodes cost nothing."""
        node, record = cache.get(ref), cache.get(ObjectRef(*MACHINE_CONFIG_NODE, "", ref.name))
        if node is None or record is None or not (cache.has_synced(POOL) and cache.has_synced(SETS)):
            return None
        try:
            pools = belonging(node, cache.objects(POOL)).pools
        except MembershipError:
            return None  # the agent reports it
        asked = any(dig(pool, "spec", "pinnedImageSets") for pool in pools)
        if not asked and not dig(record, "status", "pinnedImageSets") and not _under_way(record):
            return None
        facts = hosts.facts(ref.name)
        if facts is None:
            return None
        sets = {name_of(each): each for each in cache.objects(SETS)}
        return PinnedObserved(node, pools, sets, record, up=facts.up)

    return Controller(
        name="machine-config-pinned-images",
        kind=NODE,
        watches=(
            Watch(POOL, _all, differ(_asks)),
            Watch(SETS, _all, spec_differs),
            Watch(MACHINE_CONFIG_NODE, _of_record, differ(_says)),
        ),
        predicate=differ(labels_of, _health),
        observe=observe,
        plan=plan_pinned,
        settle=settle_pinned,
    )


def _under_way(record: Obj) -> bool:
    return any(status == "True" for _, status in _says(record)[0])
