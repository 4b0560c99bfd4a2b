"""Generates a ContainerRuntimeConfig's files: drop-ins of CRI-O, and storage.conf.

Each field has its own drop-in, so that an unset field keeps the default of the machine's release. Source: reference
machine-config 1.6, ``pkg/controller/container-runtime-config/helpers.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj, dig
from syncline.kube.schema.fieldcauses import quoted
from syncline.kube.text.quantity import Quantity, parse_quantity, text_as_read
from syncline.machineconfig.generating.runtime import toml

STORAGE_PATH = "/etc/containers/storage.conf"
DROPINS = "/etc/crio/crio.conf.d/01-ctrcfg-"
MIN_PIDS = 20
MAX_REFUSED_LOG = 8192
LEVELS = ("error", "fatal", "panic", "warn", "info", "debug", "trace")
RUNTIMES = ("", "runc", "crun")
_STORE = re.compile(r"/[a-zA-Z0-9/._-]+")


@dataclass(frozen=True, slots=True)
class RuntimeFile:
    """A file of the MachineConfig, in the order in which they are written."""

    path: str
    text: str


def _given(config: Obj) -> Obj | None:
    found: Obj | None = dig(config, "spec", "containerRuntimeConfig")
    return found


def _quantity(given: Obj, name: str) -> Quantity | None:
    value = given.get(name)
    return None if value is None else parse_quantity(value)


def _written_size(given: Obj, name: str) -> str:
    return text_as_read(given[name])


def invalid_runtime_config(config: Obj) -> str | None:
    """Return why upstream rejects this ContainerRuntimeConfig, one line per error of stores, or None."""
    given = _given(config)
    if given is None:
        return None
    pids, level, runtime = given.get("pidsLimit"), given.get("logLevel") or "", given.get("defaultRuntime") or ""
    if pids and pids < MIN_PIDS:
        return f"invalid PidsLimit {pids}"
    log, overlay = _quantity(given, "logSizeMax"), _quantity(given, "overlaySize")
    if log is not None and 0 < log.value() <= MAX_REFUSED_LOG:
        return f"invalid LogSizeMax {quoted(_written_size(given, 'logSizeMax'))}, cannot be less than 8kB"
    if overlay is not None and overlay.value() < 0:
        return f"invalid overlaySize {quoted(_written_size(given, 'overlaySize'))}, cannot be less than 0"
    if level and level not in LEVELS:
        return f"invalid LogLevel {quoted(level)}, must be one of {', '.join(LEVELS[:-1])}, or {LEVELS[-1]}"
    if runtime not in RUNTIMES:
        return f"invalid DefaultRuntime {quoted(runtime)}, must be one of crun, runc"
    wrong = list(_wrong_stores(given))
    return "\n".join(wrong) if wrong else None


def _wrong_stores(given: Obj) -> Iterable[str]:
    for field in ("AdditionalLayerStores", "AdditionalImageStores", "AdditionalArtifactStores"):
        for path in _paths(given, field[0].lower() + field[1:]):
            if not path:
                yield f"invalid {field}: path must not be empty"
            elif not _STORE.fullmatch(path):
                rule = "an absolute path containing only alphanumeric characters, '/', '.', '_', and '-'"
                yield f"invalid {field} path {quoted(path)}: must be {rule}"
            elif "//" in path:
                yield f"invalid {field} path {quoted(path)}: must not contain consecutive forward slashes"


def _paths(given: Obj, name: str) -> list[str]:
    return [str(store.get("path") or "") for store in given.get(name) or ()]


def runtime_condition(error: str | None) -> Obj:
    """Return the condition, without its time."""
    if error is None:
        return {"type": "Success", "status": "True", "message": "Success"}
    return {"type": "Failure", "status": "True", "message": f"Error: {error}"}


def dropin_files(config: Obj, *, additional_storage: bool = False) -> list[RuntimeFile]:
    """Return CRI-O's drop-ins; ``additional_storage`` is the feature gate of that name."""
    given = _given(config) or {}
    log = _quantity(given, "logSizeMax")
    artifacts = _paths(given, "additionalArtifactStores") if additional_storage else []
    fields: list[tuple[str, str, Any]] = [
        ("logLevel", "log_level", given.get("logLevel") or None),
        ("pidsLimit", "pids_limit", given.get("pidsLimit")),
        ("logSizeMax", "log_size_max", log.value() if log is not None and log.value() else None),
        ("defaultRuntime", "default_runtime", given.get("defaultRuntime") or None),
        ("additionalArtifactStores", "additional_artifact_stores", artifacts or None),
    ]
    return [
        RuntimeFile(DROPINS + name, toml.write({"crio": {"runtime": {key: value}}}))
        for name, key, value in fields
        if value is not None
    ]


def needs_storage(config: Obj, *, additional_storage: bool = False) -> bool:
    """Return whether storage.conf must be rewritten."""
    given = _given(config) or {}
    stores = _paths(given, "additionalLayerStores") + _paths(given, "additionalImageStores")
    return bool(_quantity(given, "overlaySize")) or bool(additional_storage and stores)


_STORAGE: toml.Shape = {
    "storage": {
        "driver": str,
        "runroot": str,
        "graphroot": str,
        "options": {
            "additionalimagestores": [str],
            "imagestore": str,
            "additionallayerstores": [str],
            "size": str,
            "ignore_chown_errors": str,
            "use_composefs": str,
            "force_mask": int,
            "root-auto-userns-user": str,
            "auto-userns-min-size": int,
            "auto-userns-max-size": int,
            "skip_mount_home": str,
            "mount_program": str,
            "mountopt": str,
            "disable-volatile": bool,
            "aufs": {"mountopt": str},
            "btrfs": {"min_space": str, "size": str},
            "overlay": {
                "ignore_chown_errors": str,
                "mountopt": str,
                "mount_program": str,
                "size": str,
                "inodes": str,
                "skip_mount_home": str,
                "use_composefs": str,
                "force_mask": str,
            },
            "vfs": {"ignore_chown_errors": str},
            "zfs": {"mountopt": str, "fsname": str, "size": str},
            "pull_options": dict,
        },
    }
}
"""The fields that the container tools' storage library knows, in its order; all others are lost upstream."""


def storage_file(template: str, config: Obj, *, additional_storage: bool = False) -> RuntimeFile:
    """Return the templates' storage.conf with the object's values. Raises TomlError."""
    given = _given(config) or {}
    try:
        storage = toml.read(template, _STORAGE).get("storage") or {}
    except toml.TomlError as error:
        raise toml.TomlError(f"error decoding crio config: {error}") from error
    options = dict(storage.get("options") or {})
    size = _quantity(given, "overlaySize")
    if size is not None and size.value() < 0:
        written = quoted(_written_size(given, "overlaySize"))
        raise toml.TomlError(f"invalid overlaySize config {written}: the overlaySize should be larger than 0")
    if size:
        options["size"] = _written_size(given, "overlaySize")
    layers, images = _paths(given, "additionalLayerStores"), _paths(given, "additionalImageStores")
    if additional_storage and layers:
        options["additionallayerstores"] = [one if one.endswith(":ref") else f"{one}:ref" for one in layers]
    if additional_storage and images:
        options["additionalimagestores"] = images
    whole = _written(storage | {"options": options}, _STORAGE["storage"], always=("driver", "runroot", "graphroot"))
    return RuntimeFile(STORAGE_PATH, toml.write({"storage": whole}))


def _written(found: dict[str, Any], shape: Any, always: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields that Go's library writes: no empty texts, lists, tables and false values, but all numbers."""
    written: dict[str, Any] = {}
    for name, kind in shape.items():
        value = found.get(name)
        if isinstance(kind, dict):
            table = _written(value or {}, kind)
            if table:
                written[name] = table
        elif kind is int:
            written[name] = value or 0
        elif kind is dict:
            if value:
                written[name] = {key: value[key] for key in sorted(value)}
        elif value or name in always:
            written[name] = value or ""
    return written
