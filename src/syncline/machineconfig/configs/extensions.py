"""Extensions of the operating system: which packages they are, and what has to be installed and removed; pure.

Source: Machine Config Operator ``pkg/controller/common/helpers.go``, reference machine-config 2.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["change_packages", "invalid_extensions", "package_sets", "unsupported_packages", "wanted_packages"]

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
    """An extension that there is not; the text is upstream's."""


def invalid_extensions(names: Sequence[str] | None) -> str | None:
    """Names that there are not, in one sentence; None: all are known."""
    unknown = [name for name in names or () if name not in _PACKAGES]
    return f"invalid extensions found: [{' '.join(unknown)}]" if unknown else None


def packages_of(names: Sequence[str] | None) -> list[str]:
    """The packages, in the order of the extensions. Raises :class:`ExtensionsError`."""
    wrong = invalid_extensions(names)
    if wrong:
        raise ExtensionsError(wrong)
    return [package for name in names or () for package in _PACKAGES[name]]


def package_sets(name: str) -> list[list[str]] | None:
    """Every set of packages that an extension may be installed as, today's first; None: there is no such extension."""
    if name not in _PACKAGES:
        return None
    return [list(_PACKAGES[name]), *(list(older) for older in _OLDER.get(name, ()))]


def wanted_packages(names: Sequence[str] | None) -> list[str]:
    """The packages of those extensions that there are, in their order."""
    return [package for name in names or () for package in _PACKAGES.get(name, ())]


def unsupported_packages(packages: Sequence[str]) -> list[str]:
    """Those that no extension brings."""
    known = {package for each in _PACKAGES.values() for package in each}
    return [package for package in packages if package not in known]


def change_packages(installed: Collection[str], names: Sequence[str] | None) -> list[str]:
    """Arguments of ``rpm-ostree update``: packages of the wanted extensions that are missing, then packages of other
    extensions that are there. Unknown extensions are passed over, as upstream."""
    wanted = set(wanted_packages(names))
    known = {package for packages in _PACKAGES.values() for package in packages}
    found: list[str] = []
    for flag, packages in (("--install", wanted - set(installed)), ("--uninstall", (known - wanted) & set(installed))):
        found += [part for package in sorted(packages) for part in (flag, package)]
    return found
