"""Computes the difference between a node's current and desired configuration; pure.

:func:`changes_between` compares two MachineConfigs: parts, files and units. Lists compare in order, as in Go. Source:
Machine Config Operator ``newMachineConfigDiff``, ``CalculateConfigFileDiffs``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.staging.imagemode import own_image
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.configs.reconcile import stated_config

KERNELS = ("realtime", "64k-pages")
EMPTY: Obj = {"ignition": {"version": "3.5.0"}}


@dataclass(frozen=True, slots=True)
class Changes:
    """The parts that differ. ``os_update``: the image differs, or a full rewrite is requested."""

    os_update: bool = False
    kargs: bool = False
    fips: bool = False
    passwd: bool = False
    files: bool = False
    units: bool = False
    kernel_type: bool = False
    extensions: bool = False
    image_mode: bool = False
    """Whether one config has an image of image mode, which contains extensions and kernel."""
    from_image_mode: bool = False
    """Whether only the old config has one: the new image needs its extensions and kernel on top."""

    @property
    def empty(self) -> bool:
        return self == Changes()

    @property
    def os_changes(self) -> str:
        """Return the changes of the system in the words of upstream's events."""
        report = (
            (self.os_update, "Upgrading OS"),
            (self.extensions, "Installing extensions"),
            (self.kernel_type, "Changing kernel type"),
            (self.kargs, "Changing kernel arguments"),
        )
        return "; ".join(text for there, text in report if there)

    @property
    def of_system(self) -> bool:
        """Return whether a part differs that needs a reboot."""
        return self.os_update or self.kargs or self.fips or self.kernel_type or self.extensions


@dataclass(frozen=True, slots=True)
class Units:
    """Names of units, sorted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()


def config_of(config: Obj | None) -> Obj:
    """Return the Ignition config of a MachineConfig at 3.5, empty for None. Raises ConfigError."""
    return EMPTY if config is None else stated_config(config)


def kernel_type(config: Obj | None) -> str:
    found = str(dig(config, "spec", "kernelType") or "")
    return found if found in KERNELS else "default"


def changes_between(old: Obj | None, new: Obj, *, forced: bool = False) -> Changes:
    """Return the changes. ``old`` None: the node has no config. ``forced``: rewrite everything. The configs carry the
    images of image mode (``machineconfig/agent/staging/imagemode.py``). Raises ConfigError."""
    try:
        before = config_of(old)
    except ConfigError as error:
        raise ConfigError(f"parsing old Ignition config failed with error: {error}") from error
    try:
        after = config_of(new)
    except ConfigError as error:
        raise ConfigError(f"parsing new Ignition config failed with error: {error}") from error

    def differs(*path: str) -> bool:
        return bool((dig(old, "spec", *path) or None) != (dig(new, "spec", *path) or None))

    was, will = (own_image(config) for config in (old, new))
    return Changes(
        os_update=(was != will if was or will else differs("osImageURL")) or forced,
        kargs=differs("kernelArguments"),
        fips=differs("fips"),
        passwd=(before.get("passwd") or {}) != (after.get("passwd") or {}),
        files=_part(before, "storage", "files") != _part(after, "storage", "files"),
        units=_part(before, "systemd", "units") != _part(after, "systemd", "units"),
        kernel_type=kernel_type(old) != kernel_type(new),
        extensions=differs("extensions"),
        image_mode=bool(was or will),
        from_image_mode=bool(was) and not will,
    )


def _part(config: Obj, section: str, name: str) -> Any:
    return (config.get(section) or {}).get(name)


def changed_files(old: Obj, new: Obj) -> list[str]:
    """Return sorted paths of files that are added, removed or changed."""
    before, after = (_by(_part(config, "storage", "files"), "path") for config in (old, new))
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def changed_units(old: Obj, new: Obj) -> Units:
    before, after = (_by(_part(config, "systemd", "units"), "name") for config in (old, new))
    return Units(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        updated=tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name])),
    )


def _by(entries: Iterable[Obj] | None, key: str) -> dict[str, Obj]:
    return {str(entry.get(key, "")): entry for entry in entries or ()}
