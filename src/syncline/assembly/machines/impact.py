"""Forecasts the effect of a change on nodes, with the controllers and settings that manage the pools.

Called by ``syncline mc impact`` and ``syncline plan`` with a snapshot of the cluster; nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from syncline.assembly.machines.role import MachineConfigSettings, rendering_controllers
from syncline.control.cache import Snapshot
from syncline.kube.objects import GroupKind, Obj, ObjectRef, gvk_of, name_of, ref_of
from syncline.machineconfig.ansible.controller import ansible_controller
from syncline.machineconfig.ansible.reading import Found, PlaybookStore, Wanted
from syncline.machineconfig.impact.forecast import EVENTS, Change, Forecaster, kinds_read
from syncline.machineconfig.impact.report import PoolImpact
from syncline.machineconfig.names import CONTROLLER_CONFIG, CONTROLLER_CONFIG_NAME, MACHINE_CONFIG, POOL
from syncline.machineconfig.render.controller import RENDER
from syncline.machineconfig.render.naming import PREFIX
from syncline.machineconfig.render.observe import RenderSettings
from syncline.machineconfig.render.rendering import release_of


def forecaster(
    snapshot: Snapshot,
    settings: MachineConfigSettings | None = None,
    *,
    playbooks: Mapping[Wanted, Found] | None = None,
) -> Forecaster:
    """Return a forecaster with this cluster's render settings, including its release. ``playbooks``: what was read for
    AnsibleConfigs; those of which nothing was read keep their MachineConfigs."""
    configs = [one for one in snapshot.objects(MACHINE_CONFIG) if not name_of(one).startswith(PREFIX)]
    release = release_of(snapshot.get(ObjectRef(*CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME)), configs)
    mine = replace(settings or MachineConfigSettings(), release=release, kept=None)
    store = PlaybookStore()
    for wanted, found in (playbooks or {}).items():
        store.end(wanted, found)
    more = (ansible_controller(store, release),) if playbooks else ()
    controllers = sorted((*more, *rendering_controllers(mine)), key=lambda one: one.name == RENDER)
    return Forecaster(snapshot, tuple(controllers), RenderSettings(release, None), mine.pools)


def impact_kinds() -> Collection[GroupKind]:
    """Return the kinds that a snapshot must list for a forecast."""
    return kinds_read(rendering_controllers(MachineConfigSettings())) | {EVENTS}


def planned_impact(
    snapshot: Snapshot,
    applied: Sequence[Obj],
    put: Sequence[Obj],
    gone: Sequence[ObjectRef],
    origin: str,
    now: datetime,
) -> tuple[PoolImpact, ...]:
    """Return the impact of one sync's changes, all waves together: its own Hold keeps nodes from updating before its
    end. Objects that do not affect machines are skipped."""
    if not snapshot.objects(POOL):
        return ()
    kinds = impact_kinds()
    mine, kept = ([one for one in some if gvk_of(one).group_kind in kinds] for some in (applied, put))
    deleted = [ref for ref in gone if ref.group_kind in kinds]
    origins = dict.fromkeys((*map(ref_of, (*mine, *kept)), *deleted), origin)
    return forecaster(snapshot).forecast(Change(mine, kept, deleted, origins), now).pools
