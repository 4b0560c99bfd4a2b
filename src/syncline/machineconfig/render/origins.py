"""Finds the MachineConfigs that each part of a rendered configuration comes from; pure. Use :func:`parts_of`.

It answers «which MachineConfig put this file here», which the rendered object does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.configs.parsing import ConfigError, lifted_config
from syncline.machineconfig.render.select import merge_order

_SECTIONS = (
    ("file", "storage", "files", "path"),
    ("directory", "storage", "directories", "path"),
    ("link", "storage", "links", "path"),
    ("disk", "storage", "disks", "device"),
    ("filesystem", "storage", "filesystems", "device"),
    ("raid", "storage", "raid", "name"),
    ("luks", "storage", "luks", "name"),
    ("unit", "systemd", "units", "name"),
    ("user", "passwd", "users", "name"),
    ("group", "passwd", "groups", "name"),
)
_LISTS = (("argument", "kernelArguments"), ("extension", "extensions"))
_VALUES = (
    ("kernel", "kernelType"),
    ("fips", "fips"),
    ("image", "osImageURL"),
    ("extensions image", "baseOSExtensionsContainerImage"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the configuration. ``sources``: MachineConfigs that set it, in merge order; the last one wins a
    conflict. Dropins are named ``UNIT/DROPIN``."""

    kind: str
    name: str
    sources: tuple[str, ...]


def parts_of(configs: Sequence[Obj]) -> list[Part]:
    """Return the parts of the merged MachineConfigs, by kind and in the order of their first occurrence.

    Unreadable MachineConfigs are left out. Raises RenderError for one without labels.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for config in merge_order(configs):
        for key in parts_of_spec(config.get("spec") or {}):
            names = found.setdefault(key, [])
            if name_of(config) not in names:
                names.append(name_of(config))
    order = {kind: index for index, (kind, *_) in enumerate((*_SECTIONS, *_LISTS, *_VALUES))}
    parts = [Part(kind, name, tuple(names)) for (kind, name), names in found.items()]
    return sorted(parts, key=lambda part: order.get(part.kind, order["unit"]))


def parts_of_spec(spec: Obj) -> Iterable[tuple[str, str]]:
    """Yield kind and name of every part that a spec sets."""
    try:
        config: Obj = lifted_config(spec["config"]) if spec.get("config") is not None else {}
    except ConfigError:
        config = {}
    for kind, section, field, key in _SECTIONS:
        for item in (config.get(section) or {}).get(field) or ():
            yield kind, str(item.get(key) or "")
            for dropin in item.get("dropins") or () if kind == "unit" else ():
                yield "dropin", f"{item.get('name', '')}/{dropin.get('name', '')}"
    for kind, field in _LISTS:
        for name in spec.get(field) or ():
            yield kind, str(name)
    for kind, field in _VALUES:
        if spec.get(field) and spec.get(field) != "default":
            yield kind, str(spec[field]).lower() if kind == "fips" else str(spec[field])
