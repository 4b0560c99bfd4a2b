"""Checks a document before its translation, one function per kind of object, parents first: :func:`check_document`.

``ignition/butane/transpile.py`` stops after an error. Source: ``validate.go`` of coreos/butane's base, fcos and
openshift versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from syncline.ignition.butane import messages as m
from syncline.ignition.butane.nodes import quadlet_template
from syncline.ignition.butane.places import Finding, error, warning
from syncline.ignition.butane.schema import Struct
from syncline.ignition.butane.translation import text_bytes
from syncline.ignition.butane.variants import Spec
from syncline.ignition.report import Path, Severity

Value = dict[str, Any]
Check = Callable[[Spec, Value, Path], Iterator[Finding]]


def check_document(spec: Spec, document_type: Struct, document: Value) -> list[Finding]:
    """Return every finding, in upstream's order."""
    return list(_walk(spec, document_type, document, ()))


def _walk(spec: Spec, kind: Struct, value: Value, path: Path) -> Iterator[Finding]:
    check = _CHECKS.get(kind.name)
    if check is not None:
        yield from check(spec, value, path)
    for known in kind.fields:
        if known.struct is None:
            continue
        part = value.get(known.key)
        if known.kind == "list":
            for index, item in enumerate(part or ()):
                yield from _walk(spec, known.struct, item, (*path, known.key, index))
        elif part is not None or known.key == "metadata":
            yield from _walk(spec, known.struct, part or {}, (*path, known.key))


# -- base ------------------------------------------------------------------------------------------------------------


def _resource(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    given = [name for name in ("local", "inline", "source") if name in value]
    if len(given) > 1:
        yield error((*path, given[-1]), m.TOO_MANY_SOURCES)
    elif given == ["inline"] and path[:2] == ("ignition", "config"):
        yield from _embedded(spec, text_bytes(value["inline"]), path)


def _embedded(spec: Spec, raw: bytes, path: Path) -> Iterator[Finding]:
    """Check an Ignition config inside the document by the version of the output."""
    from syncline.ignition.checking import check
    from syncline.ignition.jsontext import JsonError, read
    from syncline.ignition.parsing import INVALID, UNKNOWN_VERSION
    from syncline.ignition.rules import RULES
    from syncline.ignition.rules import Spec as Rules
    from syncline.ignition.typed import decode

    rules = Rules(spec.base - 1, release_2_26=True)
    try:
        source = read(raw)
    except JsonError as problem:
        yield error((), problem.older[0])
        yield error((*path, "inline"), INVALID)
        return
    config, mistype = decode(rules.minor, source.value)
    if mistype is not None:
        yield error((), mistype.sentence(source))
        yield error((*path, "inline"), INVALID)
        return
    ignition = config["ignition"] = config.get("ignition") or {"version": ""}  # judged even when nothing is in it
    if any(message == UNKNOWN_VERSION for _, _, message in RULES["Ignition"](rules, ignition)):
        yield warning((*path, "version"), m.UNKNOWN_IGNITION_VERSION)
        return
    for entry in check(rules, config, source).entries:
        yield Finding(entry.severity, entry.message, entry.path)


def _file_contents(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if "inline" in value and "source" in value:
        yield error((*path, "inline"), m.TOO_MANY_SOURCES)


def _filesystem(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if not value.get("with_mount_unit"):
        return
    format_, where = value.get("format"), value.get("path")
    if spec.base < 4 and not where:
        yield error((*path, "path"), m.MOUNT_NO_PATH)
    if not format_:
        yield error((*path, "format"), m.MOUNT_NO_FORMAT)
    elif spec.base >= 4 and format_ != "swap" and not where:
        yield error((*path, "path"), m.MOUNT_NO_PATH)


def _directory(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if is_decimal_mode(value.get("mode"), directory=True):
        yield warning((*path, "mode"), m.DECIMAL_MODE)


def _file(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if is_decimal_mode(value.get("mode"), directory=False):
        yield warning((*path, "mode"), m.DECIMAL_MODE)


def _tree(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if not value.get("local"):
        yield error(path, m.TREE_NO_LOCAL)


def _two_contents(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if "contents" in value and "contents_local" in value:
        yield error((*path, "contents_local"), m.TOO_MANY_SYSTEMD_SOURCES)


_QUADLETS: Final = (".container", ".volume", ".network", ".kube", ".image", ".build", ".pod", ".artifact")


def _quadlet(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    name = value.get("name", "")
    if not name.endswith(_QUADLETS):
        yield error((*path, "name"), m.QUADLET_EXTENSION)
    elif quadlet_template(name) is None:
        yield from _two_contents(spec, value, path)
    else:
        for key in ("contents", "contents_local"):
            if key in value:
                yield error((*path, key), m.TEMPLATE_INSTANCE_CONTENTS)


# -- modes -----------------------------------------------------------------------------------------------------------


def is_decimal_mode(mode: int | None, *, directory: bool) -> bool:
    """Return True for an odd mode that would be usual if its digits were octal: ``644`` for ``0644``."""
    if mode is None or not 0 <= mode <= 7777 or re.search("[89]", str(mode)):
        return False
    return not _is_usual(mode, directory=directory) and _is_usual(int(str(mode), 8), directory=directory)


def _is_usual(mode: int, *, directory: bool) -> bool:
    if mode == 0:
        return True
    owner, group, other = mode >> 6 & 7, mode >> 3 & 7, mode & 7
    observed = 0
    for bits in (other, group, owner):
        if observed & ~bits:  # the owner class decides alone, as in POSIX
            return False
        if bits & 1 and observed & 4 and not observed & 1:
            return False
        if bits & 3 and not bits & 4:
            return False
        observed |= bits
    if not observed & 4:
        return False
    if directory:
        return bool(observed & 1) and not mode & 0o4000 and (not mode & 0o3000 or bool(observed & 2))
    if mode & 0o6000 and (not observed & 1 or mode & 2):
        return False
    return not mode & 0o1000


# -- fcos ------------------------------------------------------------------------------------------------------------

_BOOT_DISK: Final = "/dev/disk/by-id/coreos-boot-disk"
_MOUNTABLE: Final = re.compile(r"/(?:etc|var)(?:/|\Z)")
_LAYOUTS: Final = ("aarch64", "ppc64le", "x86_64")
_DEVICES: Final = {
    "s390x-eckd": re.compile(r"/dev/dasd[a-z]\Z"),
    "s390x-zfcp": re.compile(r"/dev/sd[a-z]\Z"),
}


def _config(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    """Check the whole document. The rules of openshift replace those of fcos, as by upstream's embedding."""
    if spec.openshift >= 19:
        yield from _cex_argument(value)
    elif spec.openshift < 0 and spec.fcos >= 6:
        yield from _fcos_config(value)


def _fcos_config(value: Value) -> Iterator[Finding]:
    mirrored = value.get("boot_device", {}).get("mirror", {}).get("devices") or ()
    storage = value.get("storage", {})
    for number, disk in enumerate(storage.get("disks") or ()):
        device = disk.get("device", "")
        if device == _BOOT_DISK or disk.get("wipe_table") or device in mirrored:
            continue
        for index, partition in enumerate(disk.get("partitions") or ()):
            if not partition.get("number") and "label" in partition:
                at = ("storage", "disks", number, "partitions", index, "number")
                yield warning(at, m.REUSE_BY_LABEL)
    for number, filesystem in enumerate(storage.get("filesystems") or ()):
        where = filesystem.get("path")
        if where is not None and filesystem.get("with_mount_unit") and not _MOUNTABLE.match(where):
            yield error(("storage", "filesystems", number, "path"), m.MOUNT_POINT_FORBIDDEN)


def _boot_device(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    layout = value.get("layout")
    mirror = value.get("mirror", {})
    devices = mirror.get("devices") or ()
    luks = value.get("luks", {})
    if devices and layout is None:
        severity = Severity.ERROR if spec.fcos >= 7 else Severity.WARNING
        yield Finding(severity, m.MIRROR_REQUIRES_LAYOUT, (*path, "mirror"))
    if layout is not None and layout not in _LAYOUTS:
        if spec.fcos < 6:
            yield error((*path, "layout"), m.LAYOUT_LEGACY)
        else:
            yield from _s390x(layout, luks.get("device"), (*path, "layout"))
    if layout is not None and spec.fcos >= 6 and layout.startswith("s390x") and devices:
        yield error((*path, "layout"), m.MIRROR_NOT_SUPPORTED)
    if luks.get("cex", {}).get("enabled"):
        if layout is None:
            yield error((*path, "luks", "cex"), m.CEX_ARCHITECTURE)
        elif not layout.startswith("s390x"):
            yield error((*path, "layout"), m.CEX_ARCHITECTURE)
        if luks.get("tang") or luks.get("tpm2"):
            yield error((*path, "luks"), m.CEX_WITH_CLEVIS)
    # Upstream calls this check here and again for the object itself, so its message appears twice.
    yield from _mirror(spec, mirror, (*path, "mirror"))


def _s390x(layout: str, device: str | None, path: Path) -> Iterator[Finding]:
    wanted = _DEVICES.get(layout)
    if wanted is None:
        if layout != "s390x-virt":
            yield error(path, m.LAYOUT)
    elif not device:
        yield error(path, m.NO_LUKS_DEVICE)
    elif not wanted.search(device):
        yield error(path, m.LUKS_DEVICE_NAME)


def _boot_luks(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if spec.fcos < 7 or not value.get("device"):
        return
    named = any(any(part or key != "url" for key, part in tang.items()) for tang in value.get("tang") or ())
    if not named and not value.get("tpm2") and not value.get("cex", {}).get("enabled"):
        yield error((*path, "luks"), m.NO_LUKS_METHOD)


def _mirror(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if len(value.get("devices") or ()) == 1:
        yield error((*path, "devices"), m.TOO_FEW_MIRROR_DEVICES)


def _grub_user(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if not value.get("name"):
        yield error((*path, "name"), m.GRUB_NO_NAME)
    if not value.get("password_hash"):
        yield error((*path, "password_hash"), m.GRUB_NO_PASSWORD)


# -- openshift -------------------------------------------------------------------------------------------------------

_ROLE: Final = "machineconfiguration.openshift.io/role"
_CEX_ARGUMENT: Final = "rd.luks.key=/etc/luks/cex.key"


def _metadata(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if not value.get("name"):
        yield error((*path, "name"), m.NAME_REQUIRED)
    if not value.get("labels", {}).get(_ROLE):
        yield error((*path, "labels"), m.ROLE_REQUIRED)


def _openshift(spec: Spec, value: Value, path: Path) -> Iterator[Finding]:
    if value.get("kernel_type") not in (None, "", "default", "realtime"):
        yield error((*path, "kernel_type"), m.KERNEL_TYPE)


def _cex_argument(value: Value) -> Iterator[Finding]:
    if _CEX_ARGUMENT in (value.get("openshift", {}).get("kernel_arguments") or ()):
        return
    at = ("openshift", "kernel_arguments")
    if value.get("boot_device", {}).get("luks", {}).get("cex", {}).get("enabled"):
        yield error(at, m.MISSING_CEX_ARGUMENT)
    volumes = value.get("storage", {}).get("luks") or ()
    if any(luks.get("name") == "root" and luks.get("cex", {}).get("enabled") for luks in volumes):
        yield error(at, m.MISSING_CEX_ARGUMENT)


_CHECKS: Final[dict[str, Check]] = {
    "BootDevice": _boot_device,
    "BootDeviceLuks": _boot_luks,
    "BootDeviceMirror": _mirror,
    "Config": _config,
    "Directory": _directory,
    "Dropin": _two_contents,
    "File": _file,
    "FileContents": _file_contents,
    "Filesystem": _filesystem,
    "GrubUser": _grub_user,
    "Metadata": _metadata,
    "OpenShift": _openshift,
    "Quadlet": _quadlet,
    "Resource": _resource,
    "Tree": _tree,
    "Unit": _two_contents,
}
