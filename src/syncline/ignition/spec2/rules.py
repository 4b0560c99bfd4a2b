"""What specifications 1 and 2.0 to 2.4 demand: rules of whole objects, of single fields, and of types.

A rule yields severity and sentence; the walker knows the place. A fatal rule of an object keeps the walker from looking
into it, rules of fields do not. Source: coreos/ignition v0.35.0 ``config/v2_*/types``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from syncline.ignition.dataurl import DataUrlError, check_data_url
from syncline.ignition.golang import UrlError, extension, parse_url, quoted
from syncline.ignition.report import Severity
from syncline.ignition.rules import data_problem
from syncline.ignition.searching import Span, first_overlap
from syncline.ignition.unitfile import UnitError, sections_with_options

Value: TypeAlias = "dict[str, Any]"
Said: TypeAlias = "tuple[Severity, str]"
Rule: TypeAlias = "Callable[[int, Value], Iterator[Said]]"
TypeRule: TypeAlias = "Callable[[int, Any], Iterator[Said]]"

ERROR, WARNING, DEPRECATED = Severity.ERROR, Severity.WARNING, Severity.DEPRECATED


def _say(problem: str, severity: Severity = ERROR) -> Iterator[Said]:
    if problem:
        yield severity, problem


# -- texts -----------------------------------------------------------------------------------------------------------


def _url_problem(minor: int, source: str) -> str:
    if not source:
        return ""
    if source.startswith("data:") and "#" not in source and source[5:6] != "/":
        return data_problem(source)
    try:
        url = parse_url(source)
    except UrlError:
        return "unable to parse url"
    match url.scheme:
        case "http" | "https" | "oem":
            return ""
        case "tftp" if minor >= 1:
            return ""
        case "s3" if minor >= 1:
            versions = url.values("versionId")
            return "" if versions is None or versions[0] else "invalid S3 object VersionId"
        case "data":
            try:
                check_data_url(source)
            except DataUrlError as problem:
                return str(problem)
            return ""
    return "invalid url scheme"


def _header_scheme_problem(source: str) -> str:
    try:
        scheme = parse_url(source).scheme
    except UrlError:
        return "unable to parse url"
    return "" if scheme in ("http", "https") else "cannot use HTTP headers with this source scheme"


def _path_problem(path: str) -> str:
    return "" if path.startswith("/") else "path not absolute"


_GUID = re.compile(r"(?:|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})")
_UNIT = re.compile(r"\.(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)")


def _guid(minor: int, guid: str) -> Iterator[Said]:
    if _GUID.fullmatch(guid):
        return
    form = '"01234567-89AB-CDEF-EDCB-A98765432101"'
    if minor < 0:
        yield ERROR, f"partition type-guid must have the form {form}, got: {quoted(guid)}"
    else:
        yield ERROR, f"doesn't match the form {form}"


def _part_label(minor: int, label: str) -> Iterator[Said]:
    """Before 2.1 the colon is not looked for in a label that is too long, in 1 not at all."""
    long = len(label.encode()) > 36
    if long:
        yield ERROR, "partition labels may not exceed 36 characters"
    if ":" in label and minor >= 0 and not (long and minor == 0):
        yield WARNING, "partition label will be truncated to text before the colon"


def _hash(minor: int, text: str) -> Iterator[Said]:
    function, dash, digest = text.partition("-")
    if not dash:
        yield ERROR, "malformed hash specifier"
    elif function != "sha512":
        yield ERROR, "unrecognized hash function"
    elif len(digest.encode()) != 128:
        yield ERROR, "incorrect size for hash sum"


def _mode_problem(mode: int) -> str:
    return "" if 0 <= mode <= 0o7777 else "illegal file mode"


def _compression(minor: int, compression: str) -> Iterator[Said]:
    yield from _say("" if compression in ("", "gzip") else "invalid compression method")


_FORMATS = ("ext4", "btrfs", "xfs", "swap", "vfat")


def _format(minor: int, fs_format: str) -> Iterator[Said]:
    known = _FORMATS if minor >= 1 else _FORMATS[:3]
    yield from _say("" if fs_format in known else "invalid filesystem format")


def _unit_name(minor: int, name: str) -> Iterator[Said]:
    yield from _say("" if _UNIT.fullmatch(extension(name)) else "invalid systemd unit extension")


def _dropin_name(minor: int, name: str) -> Iterator[Said]:
    yield from _say("" if extension(name) == ".conf" else "invalid systemd drop-in extension")


def _network_name(minor: int, name: str) -> Iterator[Said]:
    known = extension(name) in (".link", ".netdev", ".network")
    yield from _say("" if known else "invalid networkd unit extension")


TYPE_RULES: dict[str, TypeRule] = {
    "dropinname": _dropin_name,
    "filemode": lambda minor, mode: _say(_mode_problem(mode)),
    "fsformat": _format,
    "guid": _guid,
    "gzip": _compression,
    "hash": _hash,
    "networkname": _network_name,
    "partlabel": _part_label,
    "path": lambda minor, path: _say(_path_problem(path)),
    "unitname": _unit_name,
    "url": lambda minor, url: _say(_url_problem(minor, url)),
}
"""Rules of the types that 1 and 2.0 have for texts and numbers; they also judge what is absent."""


# -- units -----------------------------------------------------------------------------------------------------------


def _content_problem(contents: str) -> str:
    try:
        sections_with_options(contents)
    except UnitError as problem:
        text = str(problem)
        if problem.garbage:  # this old reader printed the bytes as numbers
            text = f"found garbage after section name : [{' '.join(str(byte) for byte in problem.garbage)}]"
        return f"invalid unit content: {text}"
    return ""


def _contents(minor: int, unit: Value) -> Iterator[Said]:
    """A unit without any option passes as installable: this old reader could not tell it from an unreadable one."""
    contents = unit.get("contents", "")
    problem = _content_problem(contents)
    if problem:
        yield ERROR, problem
        return
    enabled = unit.get("enable", False) or unit.get("enabled") is True
    if enabled and contents and (sections := sections_with_options(contents)) and "Install" not in sections:
        name = quoted(unit.get("name", ""))
        yield WARNING, f"unit {name} is enabled, but has no install section so enable does nothing"


def _unit(minor: int, unit: Value) -> Iterator[Said]:
    if minor == 0:
        yield from _contents(minor, unit)


def _dropin(minor: int, dropin: Value) -> Iterator[Said]:
    if minor < 0:
        return
    yield from _say(_content_problem(dropin.get("contents", "")))
    if minor >= 1:
        yield from _dropin_name(minor, dropin.get("name", ""))


def _networkd_unit(minor: int, unit: Value) -> Iterator[Said]:
    if minor < 0:
        return
    yield from _say(_content_problem(unit.get("contents", "")))
    if minor >= 1:
        yield from _network_name(minor, unit.get("name", ""))


def _networkd_dropin(minor: int, dropin: Value) -> Iterator[Said]:
    yield from _say(_content_problem(dropin.get("contents", "")))
    if extension(dropin.get("name", "")) != ".conf":
        yield ERROR, "invalid networkd drop-in extension"


# -- disks -----------------------------------------------------------------------------------------------------------


def _disk(minor: int, disk: Value) -> Iterator[Said]:
    if minor <= 0:
        if not disk.get("device"):
            yield ERROR, "disk device is required"
        yield from _partitions(minor, disk)


def _partitions(minor: int, disk: Value) -> Iterator[Said]:
    partitions = disk.get("partitions", ())
    numbers = [partition.get("number", 0) for partition in partitions]
    used = [number for number in numbers if number or minor < 0]
    if len(set(used)) < len(used):
        yield ERROR, "partition numbers collide"
    if _overlap(minor, partitions):
        yield ERROR, "partitions overlap"
    if any((partition.get("start") or 0) & 2047 for partition in partitions):
        yield ERROR, "partitions misaligned"
    if minor < 3:
        return
    if 0 in numbers and any(partition.get("shouldExist") is False for partition in partitions):
        yield ERROR, "shouldExist is false for a partition and other partition(s) has start or size 0"
    if any(map(_in_sectors, partitions)) and any(map(_in_mebibytes, partitions)):
        yield ERROR, "cannot mix MBs and sectors within a disk"


def _in_sectors(partition: Value) -> bool:
    return partition.get("size") is not None or partition.get("start") is not None


def _in_mebibytes(partition: Value) -> bool:
    return partition.get("sizeMiB") is not None or partition.get("startMiB") is not None


def _overlap(minor: int, partitions: list[Value]) -> bool:
    """Return True if a partition with a given start overlaps another; before 2.3 equal partitions count as one."""
    if minor < 3:
        partitions = list({tuple(sorted(partition.items())): partition for partition in partitions}.values())
    return first_overlap([_span(minor, partition) for partition in partitions]) is not None


def _span(minor: int, partition: Value) -> Span | None:
    start, size = partition.get("start"), partition.get("size")
    if not start or (size is None and minor >= 3):
        return None
    return start, start + size - 1 if size else start


def _partition(minor: int, partition: Value) -> Iterator[Said]:
    if minor < 3:
        return
    if _in_sectors(partition) and _in_mebibytes(partition):
        yield ERROR, "cannot mix MBs and sectors within a disk"
    described = partition.get("label") is not None or partition.get("typeGuid") or partition.get("guid")
    if partition.get("shouldExist") is False and (described or _in_sectors(partition)):
        yield ERROR, "shouldExist specified false with other options also specified"


def _partition_label(minor: int, partition: Value) -> Iterator[Said]:
    if (label := partition.get("label")) is not None:
        yield from _part_label(minor, label)


def _raid(minor: int, raid: Value) -> Iterator[Said]:
    if minor <= 0:
        yield from _raid_level(minor, raid)


_LEVELS = ("raid1", "1", "mirror", "raid4", "4", "raid5", "5", "raid6", "6", "raid10", "10")


def _raid_level(minor: int, raid: Value) -> Iterator[Said]:
    level = raid.get("level", "")
    if level in ("linear", "raid0", "0", "stripe"):
        if raid.get("spares"):
            yield ERROR, "spares unsupported for arrays with a level greater than 0"
    elif level not in _LEVELS:
        yield ERROR, "unrecognized raid level"


def _raid_devices(minor: int, raid: Value) -> Iterator[Said]:
    for device in raid.get("devices") or ():
        yield from _say(_path_problem(device))


# -- filesystems -----------------------------------------------------------------------------------------------------


def _filesystem(minor: int, filesystem: Value) -> Iterator[Said]:
    if minor < 0:
        return
    mount, path = filesystem.get("mount"), filesystem.get("path")
    if mount is None and path is None:
        yield ERROR, "filesystem is missing mount or path"
    if mount is None:
        return
    if path is not None:
        yield ERROR, "filesystem has both mount and path defined"
    if minor >= 1 and mount.get("create") is not None:
        if mount.get("wipeFilesystem"):
            yield ERROR, "cannot use both create object and wipeFilesystem field"
        if mount.get("options"):
            yield ERROR, "cannot use both create object and mount-level options field"
        yield WARNING, "the create object has been deprecated in favor of mount-level options"


def _filesystem_path(minor: int, filesystem: Value) -> Iterator[Said]:
    path = filesystem.get("path")
    if path is not None and _path_problem(path):
        name = f"filesystem {quoted(filesystem.get('name', ''))}: " if minor >= 3 else ""
        yield ERROR, f"{name}path not absolute"


def _mount(minor: int, mount: Value) -> Iterator[Said]:
    if minor >= 1:
        yield from _format(minor, mount.get("format", ""))


_LABEL_MAX = {"ext4": 16, "btrfs": 256, "xfs": 12, "swap": 15, "vfat": 11}


def _mount_label(minor: int, mount: Value) -> Iterator[Said]:
    label, fs_format = mount.get("label"), mount.get("format", "")
    most = _LABEL_MAX.get(fs_format)
    if label is not None and most is not None and len(label.encode()) > most:
        yield ERROR, f"filesystem labels cannot be longer than {most} characters when using {fs_format}"


# -- files, users, references ----------------------------------------------------------------------------------------


def _config(minor: int, config: Value) -> Iterator[Said]:
    if minor < 0:
        return
    storage = config.get("storage", {})
    filesystems = storage.get("filesystems", ())
    known = {"root", "", *(filesystem.get("name", "") for filesystem in filesystems)}
    for kind, noun in (("files", "File"), ("links", "Link"), ("directories", "Directory")):
        for node in storage.get(kind, ()):
            name = node.get("filesystem", "")
            if name not in known:
                yield (
                    WARNING,
                    f"{noun} {quoted(node.get('path', ''))} references nonexistent filesystem {quoted(name)}. "
                    "(This is ok if it is defined in a referenced config)",
                )
    seen = {"root"}
    for filesystem in filesystems:
        name = filesystem.get("name", "")
        if name in seen:
            yield WARNING, f"Filesystem {quoted(name)} shadows exising filesystem definition"
        seen.add(name)


def _file(minor: int, file: Value) -> Iterator[Said]:
    if minor == 0:
        yield from _node_filesystem(minor, file)
    elif file.get("overwrite") is True and file.get("append"):
        yield ERROR, "cannot set both append and overwrite to true"


def _node_filesystem(minor: int, node: Value) -> Iterator[Said]:
    yield from _say("" if node.get("filesystem") else "no filesystem specified")


def _node_path(minor: int, node: Value) -> Iterator[Said]:
    yield from _say(_path_problem(node.get("path", "")))


def _node_mode(minor: int, node: Value) -> Iterator[Said]:
    mode = node.get("mode")
    if mode is not None:
        yield from _say(_mode_problem(mode))
    elif minor >= 2:
        yield WARNING, "permissions unset, defaulting to 0000"


def _owner(minor: int, owner: Value) -> Iterator[Said]:
    if owner.get("id") is not None and owner.get("name"):
        yield ERROR, "cannot set both id and name"


def _source(minor: int, reference: Value) -> Iterator[Said]:
    yield from _say(_url_problem(minor, reference.get("source", "")))


def _file_source(minor: int, contents: Value) -> Iterator[Said]:
    source = contents.get("source", "")
    problem = _url_problem(minor, source)
    if problem:
        yield ERROR, f"invalid url {quoted(source)}: {problem}" if minor >= 3 else problem


def _headers(minor: int, reference: Value) -> Iterator[Said]:
    if reference.get("httpHeaders"):
        yield from _say(_header_scheme_problem(reference.get("source", "")))


def _header_names(minor: int, headers: list[Value]) -> Iterator[Said]:
    found: set[str] = set()
    for header in headers:
        name = header.get("name", "")
        if not name:
            yield ERROR, "HTTP header name can't be empty"
        elif name in found:
            yield ERROR, f"Found duplicate HTTP header: {quoted(name)}"
        found.add(name)


def _verification(minor: int, verification: Value) -> Iterator[Said]:
    if minor >= 1 and (text := verification.get("hash")) is not None:
        yield from _hash(minor, text)


_ACCOUNT = "gecos groups homeDir noCreateHome noLogInit noUserGroup primaryGroup shell system".split()  # noqa: SIM905


def _user(minor: int, user: Value) -> Iterator[Said]:
    if minor < 1 or user.get("create") is None:
        return
    yield WARNING, "the create object has been deprecated in favor of user-level options"
    for name in _ACCOUNT:
        if user.get(name):
            yield ERROR, f"cannot use both the create object and the user-level {name} field"
    if user.get("uid") is not None:
        yield ERROR, "cannot use both the create object and the user-level uid field"


def _device(minor: int, disk: Value) -> Iterator[Said]:
    device = disk.get("device", "")
    yield from _say(_path_problem(device) if device else "disk device is required")


OBJECT_RULES: dict[str, Rule] = {
    "Config": _config,
    "Disk": _disk,
    "Dropin": _dropin,
    "File": _file,
    "Filesystem": _filesystem,
    "Mount": _mount,
    "NetworkdDropin": _networkd_dropin,
    "NetworkdUnit": _networkd_unit,
    "NodeOwner": _owner,
    "Partition": _partition,
    "PasswdUser": _user,
    "Raid": _raid,
    "Unit": _unit,
    "Verification": _verification,
}

LIST_RULES: dict[str, TypeRule] = {"HTTPHeader": _header_names}
"""Rules of whole lists, by the type of their items; a fatal one keeps the walker out of the items."""

_SINCE_2_1: dict[tuple[str, str], Rule] = {
    ("CaReference", "httpHeaders"): _headers,
    ("CaReference", "source"): _source,
    ("ConfigReference", "httpHeaders"): _headers,
    ("ConfigReference", "source"): _source,
    ("Directory", "mode"): _node_mode,
    ("Disk", "device"): _device,
    ("Disk", "partitions"): _partitions,
    ("File", "mode"): _node_mode,
    ("FileContents", "compression"): lambda minor, contents: _compression(minor, contents.get("compression", "")),
    ("FileContents", "httpHeaders"): _headers,
    ("FileContents", "source"): _file_source,
    ("Filesystem", "path"): _filesystem_path,
    ("Mount", "device"): lambda minor, mount: _say(_path_problem(mount.get("device", ""))),
    ("Mount", "label"): _mount_label,
    ("Partition", "guid"): lambda minor, partition: _guid(minor, partition.get("guid", "")),
    ("Partition", "label"): _partition_label,
    ("Partition", "size"): lambda minor, partition: _sectors(minor, partition, "size"),
    ("Partition", "start"): lambda minor, partition: _sectors(minor, partition, "start"),
    ("Partition", "typeGuid"): lambda minor, partition: _guid(minor, partition.get("typeGuid", "")),
    ("Raid", "devices"): _raid_devices,
    ("Raid", "level"): _raid_level,
    ("Unit", "contents"): _contents,
    ("Unit", "name"): lambda minor, unit: _unit_name(minor, unit.get("name", "")),
}
FIELD_RULES = _SINCE_2_1 | {
    (kind, name): rule
    for kind in ("Directory", "File", "Link")
    for name, rule in (("filesystem", _node_filesystem), ("path", _node_path))
}
"""Rules of fields since 2.1; they also judge fields that are absent."""


def _sectors(minor: int, partition: Value, name: str) -> Iterator[Said]:
    if minor >= 3 and partition.get(name) is not None:
        yield DEPRECATED, f"{name} is deprecated; use {name}MB instead"
