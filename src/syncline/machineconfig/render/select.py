"""Selects the MachineConfigs of a pool and their merge order. Entry points: :func:`select`, :func:`merge_order`.

Names compare as bytes, so ``100-x`` precedes ``99-x``. Source: reference machine-config 2.1 and 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG
from syncline.kube.objects import Obj, dig, labels_of, meta, name_of
from syncline.kube.selectors import Selector, SelectorError, label_selector_from
from syncline.machineconfig.names import ROLE, WORKER
from syncline.machineconfig.render.refusal import RenderError


@dataclass(frozen=True, slots=True)
class Selection:
    """The MachineConfigs of a pool by name, and the selector that matched them."""

    selector: Selector
    configs: tuple[Obj, ...]


def by_name(configs: Iterable[Obj]) -> list[Obj]:
    """Return configs sorted by name as Go sorts strings: by their bytes."""
    return sorted(configs, key=lambda config: name_of(config).encode())


def select(pool: Obj, configs: Iterable[Obj]) -> Selection:
    """Return the selection: an absent selector matches nothing, an empty one everything. Raises SelectorError."""
    selector = label_selector_from(dig(pool, "spec", "machineConfigSelector"))
    return Selection(selector, tuple(by_name(one for one in configs if selector.matches(labels_of(one)))))


def bootstrap_configs(pool: Obj, configs: Iterable[Obj]) -> list[Obj]:
    """What an installer renders, in the order given: an empty selector finds nothing. Raises RenderError."""
    selector = _selector(pool)
    if selector.empty:
        return []
    found = [one for one in configs if selector.matches(labels_of(one))]
    if not found:
        raise RenderError(f"couldn't find any MachineConfigs for pool: {name_of(pool)}")
    return found


def pools_of(config: Obj, pools: Iterable[Obj]) -> list[Obj]:
    """The pools that a MachineConfig belongs to; absent and empty selectors match nothing.

    Raises RenderError if there is none, or if the selector of any pool is wrong.
    """
    labels = labels_of(config)
    if not labels:
        raise RenderError(f"no MachineConfigPool found for MachineConfig {name_of(config)} because it has no labels")
    found = []
    for pool in pools:
        selector = _selector(pool)
        if not selector.empty and selector.matches(labels):
            found.append(pool)
    if not found:
        listed = " ".join(f"{key}:{labels[key]}" for key in sorted(labels, key=str.encode))
        message = f"could not find any MachineConfigPool set for MachineConfig {name_of(config)}"
        raise RenderError(f"{message} with labels: map[{listed}]")
    return found


def may_select(pool: Obj, config: Obj) -> bool:
    """Return whether a change of this MachineConfig may affect the pool: by its labels, owner, or an invalid
    selector."""
    if any(owner.get("uid") == meta(pool).get("uid") for owner in meta(config).get("ownerReferences") or ()):
        return True
    try:
        return label_selector_from(dig(pool, "spec", "machineConfigSelector")).matches(labels_of(config))
    except SelectorError:
        return True


def _selector(pool: Obj) -> Selector:
    try:
        return label_selector_from(dig(pool, "spec", "machineConfigSelector"))
    except SelectorError as error:
        raise RenderError(f"invalid label selector: {error}") from error


def merge_order(configs: Sequence[Obj]) -> list[Obj]:
    """Return MachineConfigs in merge order: those of role ``worker`` by name, then all others by name.

    Raises RenderError for a MachineConfig without labels.
    """
    for config in configs:
        if dig(config, "metadata", "labels") is None:
            raise RenderError(f"cannot find label in MachineConfig {name_of(config)}", name_of(config))
    return by_name(one for one in configs if _is_workers(one)) + by_name(one for one in configs if not _is_workers(one))


def _is_workers(config: Obj) -> bool:
    return bool(labels_of(config).get(ROLE) == WORKER)


def references(configs: Iterable[Obj]) -> list[Obj]:
    """Return ``spec.configuration.source`` of a pool."""
    kind = {"apiVersion": MACHINE_CONFIG.api_version, "kind": MACHINE_CONFIG.kind}
    return [kind | {"name": name_of(config)} for config in configs]
