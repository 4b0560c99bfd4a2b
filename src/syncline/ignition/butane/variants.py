"""The variants and versions of Butane with their rules, as data: :func:`find_spec`.

``ignition/butane/transpile.py`` gets a :class:`Spec` by the two header keys of a document. Rules that differ between
versions are fields of it, so that translation never compares versions.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final, NamedTuple

from syncline.ignition.butane import messages as m

Filters = MappingProxyType[tuple[str, ...], str]
_NONE: Final[Filters] = MappingProxyType({})


class NoTranslator(ValueError):
    """The header names no known variant and version; the text is upstream's."""


class Spec(NamedTuple):
    """One version of one variant. ``base`` is the minor number of the Butane base version, ``fcos`` the minor number of
    the fcos version whose keys are known (-1: none), ``openshift`` the minor number of 4.x (-1: another variant)."""

    variant: str
    version: str
    base: int
    fcos: int = -1
    openshift: int = -1
    filters: Filters = _NONE
    ignored_zeros: frozenset[tuple[str, ...]] = frozenset()
    """Filtered fields in which an empty text is fine, since sugar makes it."""

    auto_compression: bool = True

    @property
    def ignition_version(self) -> str:
        minor = self.base - 1
        return f"3.{minor}.0-experimental" if minor == 7 else f"3.{minor}.0"


_LUKS_CLEVIS: Final[Filters] = MappingProxyType({("storage", "luks", "clevis"): m.CLEVIS_SUPPORT})
_LUKS_CEX: Final[Filters] = MappingProxyType({("storage", "luks", "cex"): m.CEX_NOT_SUPPORTED})
_EDGE: Final[Filters] = MappingProxyType(
    {
        ("kernelArguments",): m.GENERAL_KERNEL_ARGUMENT_SUPPORT,
        ("storage", "disks"): m.DISK_SUPPORT,
        ("storage", "filesystems"): m.FILESYSTEM_SUPPORT,
        ("storage", "luks"): m.LUKS_SUPPORT,
        ("storage", "raid"): m.RAID_SUPPORT,
    }
)

_USER_FIELDS: Final = (
    *("gecos", "groups", "homeDir", "noCreateHome", "noLogInit", "noUserGroup", "primaryGroup", "shell"),
    *("shouldExist", "system", "uid"),
)
_COMPRESSION: Final = ("spec", "config", "storage", "files", "contents", "compression")


def _machine_config_filters(minor: int) -> Filters:
    """Return the fields that OpenShift 4.``minor`` refuses: MachineConfigDaemon and MachineConfigController."""
    config = ("spec", "config")
    found: dict[tuple[str, ...], str] = {}
    if minor >= 14:
        found[*config, "kernelArguments"] = m.KERNEL_ARGUMENT_SUPPORT
    found[*config, "passwd", "groups"] = m.GROUP_SUPPORT
    for name in _USER_FIELDS if minor >= 13 else (*_USER_FIELDS, "passwordHash"):
        found[*config, "passwd", "users", name] = m.USER_FIELD_SUPPORT
    found[*config, "storage", "directories"] = m.DIRECTORY_SUPPORT
    found[*config, "storage", "files", "append"] = m.FILE_APPEND_SUPPORT
    found[*config, "storage", "files", "contents", "httpHeaders"] = m.FILE_HEADER_SUPPORT
    found[*config, "storage", "links"] = m.LINK_SUPPORT
    if minor < 10:
        found[_COMPRESSION] = m.FILE_COMPRESSION_SUPPORT
    return MappingProxyType(found)


def _openshift(minor: int) -> Spec:
    version = "4.23.0-experimental" if minor == 23 else f"4.{minor}.0"
    base, fcos = (3, 3) if minor <= 13 else (5, 5) if minor <= 18 else (6, 6) if minor <= 22 else (8, 8)
    return Spec(
        "openshift",
        version,
        base,
        fcos,
        minor,
        _machine_config_filters(minor),
        frozenset({_COMPRESSION}) if minor < 10 else frozenset(),
        auto_compression=minor >= 10,
    )


_SPECS: Final[tuple[Spec, ...]] = (
    *(Spec("fcos", f"1.{minor}.0", base, minor) for minor, base in enumerate((1, 2, 3, 3, 4, 5, 6, 7))),
    Spec("fcos", "1.8.0-experimental", 8, 8),
    Spec("flatcar", "1.0.0", 4, filters=_LUKS_CLEVIS),
    Spec("flatcar", "1.1.0", 5, filters=_LUKS_CLEVIS),
    Spec("flatcar", "1.2.0-experimental", 8, filters=_LUKS_CEX),
    *(_openshift(minor) for minor in range(8, 24)),
    Spec("r4e", "1.0.0", 4, filters=_EDGE),
    Spec("r4e", "1.1.0", 5, filters=_EDGE),
    Spec("r4e", "1.2.0-experimental", 8, filters=_EDGE),
    Spec("fiot", "1.0.0", 5, filters=_EDGE),
    Spec("fiot", "1.1.0-experimental", 8, filters=_EDGE),
)
_BY_NAME: Final = {(spec.variant, spec.version): spec for spec in _SPECS}

_IDENTIFIERS: Final = re.compile(r"(?:[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")
_INT64_MAX: Final = 2**63 - 1


def find_spec(variant: str, version: str) -> Spec:
    """Return the spec for a header; versions are compared by value, so ``01.4.0`` is 1.4.0. Raises
    :class:`NoTranslator`."""
    if not variant:
        raise NoTranslator(m.NO_VARIANT)
    canonical = _canonical(version)
    if canonical is None:
        raise NoTranslator(m.INVALID_VERSION)
    if (variant, canonical) == ("rhcos", "0.1.0"):
        raise NoTranslator(m.RHCOS_VARIANT)
    spec = _BY_NAME.get((variant, canonical))
    if spec is None:
        raise NoTranslator(f"No translator exists for variant {variant} with version {canonical}")
    return spec


def supported_versions(variant: str) -> tuple[str, ...]:
    """Return all versions of ``variant``, oldest first; empty for an unknown one."""
    return tuple(spec.version for spec in _SPECS if spec.variant == variant)


def _canonical(version: str) -> str | None:
    """Return the version in go-semver's form; None if it is invalid."""
    rest, _, metadata = version.partition("+")
    core, dash, prerelease = rest.partition("-")
    parts = core.split(".", 2)
    if len(parts) != 3 or any(not _IDENTIFIERS.fullmatch(text) for text in (prerelease, metadata)):
        return None
    numbers = []
    for part in parts:
        if not re.fullmatch(r"[0-9]{1,40}", part) or int(part) > _INT64_MAX:
            return None
        numbers.append(str(int(part)))
    text = ".".join(numbers)
    if dash and prerelease:
        text += f"-{prerelease}"
    return f"{text}+{metadata}" if metadata else text
