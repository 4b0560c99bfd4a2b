"""Validates one MachineConfig before rendering, since no admission does so when it is written.

Source: reference machine-config 2.6, ``ValidateMachineConfig``.
"""

from __future__ import annotations

from syncline.kube.objects import Obj
from syncline.machineconfig.configs.extensions import invalid_extensions
from syncline.machineconfig.configs.parsing import invalid_config

KERNEL_TYPES = ("", "default", "realtime", "64k-pages")


def invalid_spec(spec: Obj | None) -> str | None:
    """Return why this spec must not be rendered, or None. Extensions are only checked beside a ``config``."""
    given = spec or {}
    kernel = given.get("kernelType") or ""
    if kernel not in KERNEL_TYPES:
        return f"kernelType={kernel} is invalid"
    if given.get("config") is None:
        return None
    return invalid_config(given["config"]) or invalid_extensions(given.get("extensions") or [])
