"""Selects the PinnedImageSets of a pool by its ``machineConfigSelector``.

The names are written into the pool's spec for machines and users. Source: Machine Config Operator
``pkg/controller/pinnedimageset``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Patch, Plan, Stalled
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_POOL, PINNED_IMAGE_SET
from syncline.kube.objects import Obj, ObjectRef, dig, labels_of, name_of, ref_of
from syncline.kube.selectors import SelectorError, label_selector_from


@dataclass(frozen=True)
class PoolSets:
    """The planner's input. ``sets``: all PinnedImageSets of the cluster."""

    pool: Obj
    sets: tuple[Obj, ...]


def plan_selection(observed: PoolSets) -> Plan:
    """Return the plan of one reconcile; a pool that selects everything is skipped, as upstream."""
    pool = name_of(observed.pool)
    if dig(observed.pool, "spec", "machineConfigSelector") == {}:
        return Plan(why=f"pool {pool} selects everything: no image set is meant for it")
    try:
        selector = label_selector_from(dig(observed.pool, "spec", "machineConfigSelector"))
    except SelectorError as error:
        fix = f"change spec.machineConfigSelector of MachineConfigPool {pool}"
        return Plan(outcome=Stalled(f"invalid label selector: {error}", fix), why=str(error))
    names = sorted(name_of(one) for one in observed.sets if selector.matches(labels_of(one)))
    wanted = [{"name": name} for name in names]
    if (dig(observed.pool, "spec", "pinnedImageSets") or []) == wanted:
        return Plan(why=f"pool {pool} names its {len(names)} image sets")
    why = f"{', '.join(names) or 'no image set'} for pool {pool}"
    body = {"spec": {"pinnedImageSets": wanted or None}}
    return Plan(((Patch(MACHINE_CONFIG_POOL, "", pool, body, why),),), why=why)


def _observe(cache: Snapshot, ref: ObjectRef) -> PoolSets | None:
    pool = cache.get(ref)
    if pool is None or not cache.has_synced(PINNED_IMAGE_SET.group_kind):
        return None
    return PoolSets(pool, tuple(cache.objects(PINNED_IMAGE_SET.group_kind)))


def _plan(observed: PoolSets, now: datetime) -> Plan:
    return plan_selection(observed)


def _all(_set: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(pool) for pool in cache.objects(MACHINE_CONFIG_POOL.group_kind))


PINNED_SELECTION_CONTROLLER = Controller(
    name="machine-config-pinned-selection",
    kind=MACHINE_CONFIG_POOL.group_kind,
    watches=(Watch(PINNED_IMAGE_SET.group_kind, _all, spec_differs),),
    predicate=differ(lambda pool: pool.get("spec")),
    observe=_observe,
    plan=_plan,
)
"""Kind MachineConfigPool."""
