"""Prometheus metrics of pools and drains under upstream's names, computed from objects; pure.

Source: Machine Config Operator ``pkg/controller/common/metrics.go``; reference machine-config 6.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.drain.plan import UPSTREAM
from syncline.machineconfig.drain.progress import Progress
from syncline.machineconfig.names import OVERRIDDEN
from syncline.machineconfig.pools.layered import layering_of
from syncline.machineconfig.pools.membership import MembershipError, Pools, members
from syncline.machineconfig.pools.nodestate import target_of

Labels: TypeAlias = tuple[tuple[str, str], ...]
Family: TypeAlias = tuple[str, str, list[tuple[Labels, float]]]
"""Name, help, gauges by labels."""
_COUNTS = (
    ("mco_machine_count", "total number of machines in a specified pool", "machineCount"),
    ("mco_updated_machine_count", "total number of updated machines in specified pool", "updatedMachineCount"),
    ("mco_degraded_machine_count", "total number of degraded machines in specified pool", "degradedMachineCount"),
    (
        "mco_unavailable_machine_count",
        "total number of unavailable machines in specified pool",
        "unavailableMachineCount",
    ),
)


def pool_metrics(pools: Sequence[Obj], nodes: Sequence[Obj], configs: Sequence[Obj], now: datetime) -> list[Family]:
    """Return the metrics of pools. ``configs``: MachineConfigs, to find pools with an overridden OS image."""
    by_name = {name_of(config): config for config in configs}
    found: list[Family] = [
        (name, report, [(_by("pool", pool), float(dig(pool, "status", key, default=0) or 0)) for pool in pools])
        for name, report, key in _COUNTS
    ]
    found.append(("mco_state", "state of a specified pool", list(_states(pools, nodes))))
    known = Pools(pools)
    alerts = [(_by("node", node), value) for node in nodes if (value := _alert(node, known)) is not None]
    found.append(("mcc_pool_alert", "pool status alert", alerts))
    overdue = [(_by("node", node), 1.0) for node in nodes if _drain_fails(node, now)]
    found.append(("mcc_drain_err", "logs failed drain", overdue))
    chosen = [(_by("pool", p), float(_overridden(by_name.get(target_of(p))))) for p in pools if target_of(p)]
    found.append(("os_image_url_override", "state of OS image override", chosen))
    return found


def cluster_metrics(
    setting: Obj | None,
    controller_config: Obj | None,
    pools: Sequence[Obj],
    configs: Sequence[Obj],
    builds: Sequence[Obj],
) -> list[Family]:
    """Return metrics of image mode and boot images. ``setting``: MachineConfiguration ``cluster``; ``configs`` and
    ``builds``: MachineOSConfigs and MachineOSBuilds."""
    states: list[tuple[Labels, float]] = []
    for pool in pools:
        build = layering_of(pool, configs, builds).build
        if build is not None:
            states.append(((*_by("pool", pool), ("state", _build_state(build))), 1.0))
    unmanaged = float(_boot_images_are_anyones(setting, controller_config))
    return [
        ("mco_mosc_count", "number of MachineOSConfig objects in the cluster", [((), float(len(configs)))]),
        ("ocl_build_state", "Current state of OCL build for a pool", states),
        ("mcc_boot_image_skew_enforcement_none", "boot image skew enforcement mode is None", [((), unmanaged)]),
    ]


def _build_state(build: Obj) -> str:
    said = dig(build, "status", "conditions", default=[])
    true = {str(each.get("type")) for each in said if each.get("status") == "True"}
    return next((one for one in ("Failed", "Interrupted", "Succeeded", "Building") if one in true), "Pending").lower()


def _boot_images_are_anyones(setting: Obj | None, controller_config: Obj | None) -> bool:
    """Return whether skew enforcement of boot images is off, except where it does not matter (single node, bare
    metal)."""
    report = dig(setting, "status", "bootImageSkewEnforcementStatus", "mode")
    infra = dig(controller_config, "spec", "infra", "status", default={}) or {}
    alone = infra.get("controlPlaneTopology") == "SingleReplica"
    metal = dig(infra, "platformStatus", "type") == "BareMetal"
    return report == "None" and not alone and not metal


def _by(label: str, obj: Obj) -> Labels:
    return ((label, name_of(obj)),)


def _states(pools: Sequence[Obj], nodes: Sequence[Obj]) -> Iterator[tuple[Labels, float]]:
    """Return for each node the condition of its pool that became true last, with its time."""
    for pool in pools:
        true = [each for each in dig(pool, "status", "conditions", default=[]) if each.get("status") == "True"]
        if not true:
            continue
        last = max(true, key=lambda each: str(each.get("lastTransitionTime") or ""))
        try:
            mine = members(pool, nodes, pools)
        except MembershipError:
            continue
        state, reason = str(last.get("type")), str(last.get("reason") or "")
        at = time_or_none(last.get("lastTransitionTime"))
        since = at.timestamp() if at is not None else 0.0
        for node in mine:
            labels = (("node", name_of(node)), ("pool", name_of(pool)), ("state", state), ("reason", reason))
            yield labels, since


def _alert(node: Obj, pools: Pools) -> float | None:
    """Return 1 if a custom pool is ignored on a master; None for nodes without a pool."""
    try:
        found = pools.belonging(node)
    except MembershipError:
        return None
    return float(found.alert) if found.pools else None


def _drain_fails(node: Obj, now: datetime) -> bool:
    progress = Progress.of(node)
    return progress is not None and now - progress.began > timedelta(seconds=UPSTREAM.limit_s)


def _overridden(config: Obj | None) -> bool:
    return config is not None and OVERRIDDEN in annotations_of(config)
