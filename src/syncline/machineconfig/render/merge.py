"""Merges many MachineConfigs into one spec, in order; pure, and byte-identical for the same input.

Source: reference machine-config 2.4, ``MergeMachineConfigs``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syncline.ignition import merging
from syncline.ignition.typed import canonical
from syncline.kube.objects import Obj, annotations_of
from syncline.machineconfig.configs.parsing import NEWEST, NEWEST_VERSION, ConfigError, lifted_config
from syncline.machineconfig.names import GENERATED_BY
from syncline.machineconfig.render.refusal import RenderError
from syncline.machineconfig.render.select import merge_order

DEFAULT_KERNEL = "default"
KERNELS = ("realtime", "64k-pages")


@dataclass(frozen=True, slots=True)
class BaseImages:
    """The images of a pool if no MachineConfig overrides them."""

    os: str = ""
    extensions: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """The rendered spec, and the MachineConfigs in merge order."""

    spec: Obj
    order: tuple[Obj, ...]


def merge_configs(configs: Sequence[Obj], images: BaseImages) -> Merged:
    """Merge MachineConfigs. Raises RenderError, also if there is none.

    A later Ignition file, unit or user is merged over an earlier one of the same name; arguments and extensions are
    concatenated; FIPS is on if any config enables it; the last non-default kernel wins; images of generated
    MachineConfigs do not count.
    """
    if not configs:
        raise RenderError("empty machineconfig object")
    ordered = merge_order(configs)
    specs = [config.get("spec") or {} for config in ordered]
    try:
        ignition = _ignition(specs)
    except ConfigError as error:
        raise RenderError(str(error)) from error
    kernels = [spec["kernelType"] for spec in specs if spec.get("kernelType") in KERNELS]
    kernel = kernels[-1] if kernels else DEFAULT_KERNEL
    extensions = [name for spec in specs for name in spec.get("extensions") or ()]
    if kernel != DEFAULT_KERNEL and "kernel-devel" in extensions:
        raise RenderError(f"installing kernel-devel extension is not supported with kernelType: {kernel}")
    people = [spec for config, spec in zip(ordered, specs, strict=True) if not annotations_of(config).get(GENERATED_BY)]
    extensions_image = _last(people, "baseOSExtensionsContainerImage") or images.extensions
    merged = {
        "baseOSExtensionsContainerImage": extensions_image,
        "config": ignition,
        "extensions": extensions,
        "fips": any(spec.get("fips") for spec in specs),
        "kernelArguments": [one for spec in specs for one in spec.get("kernelArguments") or ()],
        "kernelType": kernel,
        "osImageURL": _last(people, "osImageURL") or images.os,
    }
    return Merged(merged, tuple(ordered))


def _last(specs: Sequence[Obj], field: str) -> str:
    given = [str(spec[field]) for spec in specs if spec.get(field)]
    return given[-1] if given else ""


def _ignition(specs: Sequence[Obj]) -> Obj:
    """Return the first configuration with each later one merged over it; files overwrite by default."""
    first = specs[0].get("config")
    base: Obj = {"ignition": {"version": NEWEST_VERSION}} if first is None else lifted_config(first)
    # The encoding belongs to the contents: a later file without one is not encoded.
    later = [
        _with_files(lifted_config(spec["config"]), _encoded) for spec in specs[1:] if spec.get("config") is not None
    ]
    merged = canonical(NEWEST, base)
    if later:
        merged = _with_files(_laid_over([merged, *later]), _unencoded)
    return canonical(NEWEST, _with_files(merged, _overwriting))


def _laid_over(configs: list[Obj]) -> Obj:
    """Merge all configs, each over those before it.

    Merging neighbours first gives the same result at far lower cost than merging one after the other, unless a name is
    in two lists of one namespace: a directory replaces a file, and later entries start again.
    """
    if _crosses(configs):
        merged = configs[0]
        for config in configs[1:]:
            merged = merging.merge(NEWEST, merged, config)
        return merged
    while len(configs) > 1:
        pairs = zip(configs[::2], configs[1::2], strict=False)
        odd = configs[-1:] if len(configs) % 2 else []
        configs = [merging.merge(NEWEST, left, right) for left, right in pairs] + odd
    return configs[0]


def _crosses(configs: Sequence[Obj]) -> bool:
    """Return whether a name is in several lists of one namespace."""
    for section, lists, key in (
        ("storage", ("directories", "files", "links"), "path"),
        ("kernelArguments", ("shouldExist", "shouldNotExist"), ""),
    ):
        seen: dict[str, str] = {}
        for config in configs:
            for name in lists:
                for item in (config.get(section) or {}).get(name) or ():
                    if seen.setdefault(str(item[key]) if key else str(item), name) != name:
                        return True
    return False


def _with_files(config: Obj, change: Callable[[Obj], Obj]) -> Obj:
    files = (config.get("storage") or {}).get("files")
    if not files:
        return config
    return config | {"storage": config["storage"] | {"files": [change(file) for file in files]}}


def _encoded(file: Obj) -> Obj:
    contents = file.get("contents") or {}
    if contents.get("compression") is not None:
        return file
    return file | {"contents": contents | {"compression": ""}}


def _unencoded(file: Obj) -> Obj:
    contents = file.get("contents") or {}
    if contents.get("compression") != "":
        return file
    return file | {"contents": {key: value for key, value in contents.items() if key != "compression"}}


def _overwriting(file: Obj) -> Obj:
    return file if file.get("overwrite") is not None else file | {"overwrite": True}
