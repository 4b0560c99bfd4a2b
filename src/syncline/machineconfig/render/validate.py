"""Whether one MachineConfig may be rendered: nothing judges it when it is written, so the render does.

Source: reference machine-config 2.6, ``ValidateMachineConfig``.
"""

from __future__ import annotations

from syncline.kube.objects import Obj
from syncline.machineconfig.configs import invalid_config

__all__ = ["EXTENSIONS", "KERNEL_TYPES", "invalid_extensions", "invalid_spec"]

KERNEL_TYPES = ("", "default", "realtime", "64k-pages")
EXTENSIONS: dict[str, tuple[str, ...]] = {
    "two-node-ha": ("pacemaker", "pcs", "fence-agents-all"),
    "ipsec": ("NetworkManager-libreswan", "libreswan", "openvswitch3.5-ipsec"),
    "usbguard": ("usbguard",),
    "kerberos": ("krb5-workstation", "libkadm5"),
    "kernel-devel": ("kernel-devel", "kernel-headers"),
    "sandboxed-containers": ("kata-containers",),
    "sysstat": ("sysstat",),
}
"""Extension to the packages it stands for."""


def invalid_spec(spec: Obj | None) -> str | None:
    """Why this spec may not be rendered; None: it is fine. Extensions are only looked at beside a ``config``."""
    given = spec or {}
    kernel = given.get("kernelType") or ""
    if kernel not in KERNEL_TYPES:
        return f"kernelType={kernel} is invalid"
    if given.get("config") is None:
        return None
    return invalid_config(given["config"]) or invalid_extensions(given.get("extensions") or [])


def invalid_extensions(extensions: list[str]) -> str | None:
    """Upstream's sentence about names that are no extensions."""
    unknown = [name for name in extensions if name not in EXTENSIONS]
    return f"invalid extensions found: [{' '.join(unknown)}]" if unknown else None
