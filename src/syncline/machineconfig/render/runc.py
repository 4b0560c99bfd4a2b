"""Refuses pools that would run runc on RHEL 10, which does not have it.

Source: reference machine-config 2.4, ``DetectRuncInMachineConfig``.
"""

from __future__ import annotations

from syncline.ignition.payload import PayloadError, decode_file_contents
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.configs.parsing import ConfigError, lifted_config
from syncline.machineconfig.generating.runtime import toml

DROPINS = "/etc/crio/crio.conf.d/"
RHEL10_STREAMS = ("rhel-10", "centos-10")
_SHAPE: toml.Shape = {"crio": {"runtime": {"default_runtime": str}}}


class RuncError(ValueError):
    """A drop-in is unreadable; the message is upstream's."""


def runs_runc(config: Obj) -> bool:
    """Return whether runc is the default runtime by a MachineConfig's drop-ins of CRI-O. Raises RuncError."""
    raw, name = dig(config, "spec", "config"), name_of(config)
    if raw is None:
        return False
    try:
        lifted = lifted_config(raw)
    except ConfigError as error:
        raise RuncError(f"failed to parse Ignition config for MC {quoted(name)}: {error}") from error
    files = [one for one in dig(lifted, "storage", "files", default=[]) or [] if one["path"].startswith(DROPINS)]
    effective = ""
    for file in sorted(files, key=lambda one: str(one["path"]).encode()):
        effective = _default_runtime(file, name) or effective
    return effective == "runc"


def _default_runtime(file: Obj, name: str) -> str:
    where = f"CRI-O drop-in {quoted(file['path'])} in MC {quoted(name)}"
    contents = file.get("contents") or {}
    try:
        data = decode_file_contents(contents.get("source"), contents.get("compression"))
    except PayloadError as error:
        raise RuncError(f"failed to decode {where}: {error}") from error
    try:
        found = toml.read(data.decode(), _SHAPE)
    except (toml.TomlError, UnicodeDecodeError) as error:
        raise RuncError(f"failed to parse TOML from {where}: {error}") from error
    return str(((found.get("crio") or {}).get("runtime") or {}).get("default_runtime") or "")


def refused_for_stream(pool: str, config: Obj, stream: str) -> str | None:
    """Return why a pool with images of ``stream`` must not get this configuration, or None."""
    if stream not in RHEL10_STREAMS:
        return None
    try:
        if not runs_runc(config):
            return None
    except RuncError as error:
        return f"failed to check runc in generated MachineConfig for pool {pool}: {error}"
    return refusal(pool)


def refusal(pool: str) -> str:
    """Return upstream's message, which contains the fix."""
    return (
        f"MachineConfigPool {pool} targets a RHEL 10 OS image where runc is not available. To unblock, migrate to crun "
        "by removing any ContainerRuntimeConfig that sets defaultRuntime to runc, and removing any MachineConfig that "
        'sets default_runtime = "runc" in CRI-O configuration under /etc/crio/crio.conf.d/'
    )
