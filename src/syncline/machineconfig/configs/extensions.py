"""Extensions of the operating system: their packages, and what to install and remove; pure.

Source: Machine Config Operator ``pkg/controller/common/helpers.go``, reference machine-config 2.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_PACKAGES: dict[str, tuple[str, ...]] = {
    "two-node-ha": ("pacemaker", "pcs", "fence-agents-all"),
    "ipsec": ("NetworkManager-libreswan", "libreswan", "openvswitch3.5-ipsec"),
    "usbguard": ("usbguard",),
    "kerberos": ("krb5-workstation", "libkadm5"),
    "kernel-devel": ("kernel-devel", "kernel-headers"),
    "sandboxed-containers": ("kata-containers",),
    "sysstat": ("sysstat",),
}
_OLDER = {"ipsec": (("NetworkManager-libreswan", "libreswan"),)}
"""Sets that nodes of earlier releases have; they count as installed."""


class ExtensionsError(ValueError):
    """An extension does not exist; the message is upstream's."""


def invalid_extensions(names: Sequence[str] | None) -> str | None:
    """Return an error that names unknown extensions, or None."""
    unknown = [name for name in names or () if name not in _PACKAGES]
    return f"invalid extensions found: [{' '.join(unknown)}]" if unknown else None


def packages_of(names: Sequence[str] | None) -> list[str]:
    """Return the packages in the order of the extensions. Raises :class:`ExtensionsError`."""
    wrong = invalid_extensions(names)
    if wrong:
        raise ExtensionsError(wrong)
    return [package for name in names or () for package in _PACKAGES[name]]


def package_sets(name: str) -> list[list[str]] | None:
    """Return every package set that an extension ever had, the current one first; None for an unknown extension."""
    if name not in _PACKAGES:
        return None
    return [list(_PACKAGES[name]), *(list(older) for older in _OLDER.get(name, ()))]


def wanted_packages(names: Sequence[str] | None) -> list[str]:
    """Return the packages of the known extensions in order."""
    return [package for name in names or () for package in _PACKAGES.get(name, ())]


def unsupported_packages(packages: Sequence[str]) -> list[str]:
    """Return the packages that belong to no extension."""
    known = {package for each in _PACKAGES.values() for package in each}
    return [package for package in packages if package not in known]


def change_packages(installed: Collection[str], names: Sequence[str] | None) -> list[str]:
    """Return the arguments of ``rpm-ostree update``: missing packages to install, then packages of unwanted extensions
    to remove. Unknown extensions are ignored, as upstream."""
    wanted = set(wanted_packages(names))
    known = {package for packages in _PACKAGES.values() for package in packages}
    found: list[str] = []
    for flag, packages in (("--install", wanted - set(installed)), ("--uninstall", (known - wanted) & set(installed))):
        found += [part for package in sorted(packages) for part in (flag, package)]
    return found
