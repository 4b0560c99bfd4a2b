"""What the specification demands of each object, 3.0 to 3.7: one function per object, upstream's sentences.

Called by :mod:`syncline.ignition.checking` for every object that a configuration holds, parents before their parts. A
rule gets the canonical object, reads nothing else, and yields findings whose paths begin at that object. What changed
between versions is an ``if`` on ``Spec``. Source: coreos/ignition ``config/v3_*/types/*.go``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from syncline.ignition.dataurl import DataUrlError, check_data_url
from syncline.ignition.golang import UrlError, clean, extension, joined, parse_url, parse_version, quoted
from syncline.ignition.report import Path, Severity
from syncline.ignition.schema import version_text
from syncline.ignition.searching import Prefixes, Span, first_overlap
from syncline.ignition.unitfile import UnitError, sections_with_options

Value: TypeAlias = "dict[str, Any]"
Finding: TypeAlias = "tuple[Severity, Path, str]"
Rule: TypeAlias = "Callable[[Spec, Value], Iterator[Finding]]"

ERROR, WARNING = Severity.ERROR, Severity.WARNING


@dataclass(frozen=True, slots=True)
class Spec:
    """Which rules hold. ``minor``: of 3.y. ``release_2_26``: as Ignition 2.26 judged, which Butane 0.29 and the Machine
    Config Operator carry: deleting a partition beside one without a number is refused, ``virtiofs`` is unknown."""

    minor: int
    release_2_26: bool = False


def _said(path: Path, problem: str, severity: Severity = ERROR) -> Iterator[Finding]:
    if problem:
        yield severity, path, problem


def _truth(value: Value, name: str) -> bool:
    return value.get(name) is True


# -- parts that several objects share --------------------------------------------------------------------------------


def path_problem(path: str) -> str:
    """Return what is wrong with a path; empty if valid."""
    if not path:
        return "path not specified"
    if not path.startswith("/"):
        return "path not absolute"
    return "" if clean(path) == path else "path is not fully simplified"


_REMEMBERED_MAX = 16 * 1024
"""Signs of a source whose verdict is remembered: the same contents are judged at every step between versions."""


def _url_problem(spec: Spec, source: str) -> str:
    if source.startswith("data:") and "#" not in source and source[5:6] != "/":
        return data_problem(source)
    try:
        url = parse_url(source)
    except UrlError:
        return "unable to parse url"
    match url.scheme:
        case "http" | "https" | "tftp":
            return ""
        case "gs" if spec.minor >= 2:
            return ""
        case "s3":
            return "" if _has_version(url.values("versionId")) else "invalid S3 object VersionId"
        case "arn" if spec.minor >= 4:
            return _arn_problem(f"arn:{url.opaque}") or (
                "" if _has_version(url.values("versionId")) else "invalid S3 object VersionId"
            )
        case "data":
            return _data_sentence(source)
    return "invalid url scheme"


def data_problem(source: str) -> str:
    """Return what is wrong with a data URL without fragment; empty if valid."""
    return _known_data_problem(source) if len(source) <= _REMEMBERED_MAX else _data_problem(source)


def _data_problem(source: str) -> str:
    """Without fragment such a text is a URL for Go, whatever it holds but control characters. They may only stand in
    a quoted attribute or between lines of base64, elsewhere they fail both."""
    problem = _data_sentence(source)
    suspect = problem or '"' in source or "\n" in source
    return "unable to parse url" if suspect and _CONTROL.search(source) else problem


def _data_sentence(source: str) -> str:
    try:
        check_data_url(source)
    except DataUrlError as problem:
        return str(problem)
    return ""


_known_data_problem = lru_cache(maxsize=2048)(_data_problem)
_CONTROL = re.compile("[\x00-\x1f\x7f]")


def _has_version(values: list[str] | None) -> bool:
    return values is None or values[0] != ""


def _arn_problem(arn: str) -> str:
    """An S3 object or an access point's object: ``arn:PARTITION:s3:REGION:ACCOUNT:RESOURCE``."""
    sections = arn.split(":", 5)
    if len(sections) < 6 or sections[2] != "s3":
        return "invalid S3 ARN format"
    slashes = arn.count("/")
    if slashes < (2 if sections[5].startswith("accesspoint/") else 1):
        return "invalid S3 ARN format"
    return ""


def _optional_url(spec: Spec, source: str | None) -> str:
    return _url_problem(spec, source) if source else ""


def _required_source(spec: Spec, resource: Value) -> str:
    source = resource.get("source")
    return _url_problem(spec, source) if source else "source is required"


# -- ignition --------------------------------------------------------------------------------------------------------


def _config(spec: Spec, config: Value) -> Iterator[Finding]:
    folder = "/etc/systemd/system/"
    taken: set[str] = set()
    for unit in config.get("systemd", {}).get("units", ()):
        if unit.get("contents"):
            taken.add(folder + unit["name"])
        for dropin in unit.get("dropins", ()):
            if dropin.get("contents"):
                taken.add(f"{folder}{unit['name']}.d/{dropin['name']}")
    storage = config.get("storage", {})
    for kind in ("files", "directories", "links"):
        for index, node in enumerate(storage.get(kind, ())):
            if node["path"] in taken:
                yield ERROR, ("storage", kind, index, "path"), "path conflicts with systemd unit or dropin"


def _ignition(spec: Spec, ignition: Value) -> Iterator[Finding]:
    version = parse_version(ignition.get("version", ""))
    if version is None:
        yield ERROR, ("version",), "invalid config version (couldn't parse)"
    elif str(version) != version_text(spec.minor):
        yield ERROR, ("version",), "unsupported config version"


def _ignition_config(spec: Spec, config: Value) -> Iterator[Finding]:
    if spec.minor >= 1:
        for index, resource in enumerate(config.get("merge", ())):
            yield from _said(("merge", index), _required_source(spec, resource))


def _tls(spec: Spec, tls: Value) -> Iterator[Finding]:
    if spec.minor >= 1:
        for index, resource in enumerate(tls.get("certificateAuthorities", ())):
            yield from _said(("certificateAuthorities", index), _required_source(spec, resource))


def _config_reference(spec: Spec, reference: Value) -> Iterator[Finding]:
    yield from _said(("source",), _optional_url(spec, reference.get("source")))


def _ca_reference(spec: Spec, reference: Value) -> Iterator[Finding]:
    yield from _said(("source",), _url_problem(spec, reference["source"]))


def _resource(spec: Spec, resource: Value) -> Iterator[Finding]:
    source = resource.get("source")
    if resource.get("compression") not in (None, "", "gzip"):
        yield ERROR, ("compression",), "invalid compression method"
    if source is None and resource.get("verification", {}).get("hash") is not None:
        yield ERROR, ("verification", "hash"), "source must be specified if verification is specified"
    yield from _said(("source",), _optional_url(spec, source))
    if resource.get("httpHeaders"):
        yield from _said(("httpHeaders",), _header_scheme_problem(source))


def _header_scheme_problem(source: str | None) -> str:
    if not source:
        return "unable to parse url"
    try:
        scheme = parse_url(source).scheme
    except UrlError:
        return "unable to parse url"
    return "" if scheme in ("http", "https") else "cannot use HTTP headers with this source scheme"


def _header(spec: Spec, header: Value) -> Iterator[Finding]:
    if not header["name"]:
        yield ERROR, ("name",), "HTTP header name can't be empty"
    if header.get("value") == "":
        yield ERROR, ("value",), "unable to parse HTTP header"


_HASHES = {"sha512": 128, "sha256": 64}


def _verification(spec: Spec, verification: Value) -> Iterator[Finding]:
    text = verification.get("hash")
    if text is None:
        return
    function, dash, digest = text.partition("-")
    if not dash:
        yield ERROR, ("hash",), "malformed hash specifier"
    elif function not in _HASHES or (function == "sha256" and spec.minor < 1):
        yield ERROR, ("hash",), "unrecognized hash function"
    elif len(digest.encode()) != _HASHES[function]:
        yield ERROR, ("hash",), "incorrect size for hash sum"


def _proxy(spec: Spec, proxy: Value) -> Iterator[Finding]:
    for name in ("httpProxy", "httpsProxy"):
        text = proxy.get(name)
        if text is None:
            continue
        try:
            scheme = parse_url(text).scheme
        except UrlError:
            yield ERROR, (name,), "unable to parse url"
            continue
        if scheme not in ("http", "https"):
            yield ERROR, (name,), "proxies must be http(s)"
        elif scheme == "http" and name == "httpsProxy":
            yield WARNING, (name,), "insecure plaintext HTTP proxy specified for HTTPS resources"


# -- storage: nodes --------------------------------------------------------------------------------------------------


def _storage(spec: Spec, storage: Value) -> Iterator[Finding]:
    links = storage.get("links", ())
    if links:
        prefixes = Prefixes(link["path"] + "/" for link in links)
        directories = Counter(directory["path"] for directory in storage.get("directories", ()))
        for kind, noun in (("directories", "directory"), ("files", "file")):
            for index, node in enumerate(storage.get(kind, ())):
                for _ in prefixes.of(node["path"]):
                    yield ERROR, (kind, index), f"{noun} path includes link in config"
        for index, link in enumerate(links):
            yield from _link(spec, directories, index, link, prefixes)
    yield from _filesystems(storage)


def _link(spec: Spec, directories: Counter[str], index: int, link: Value, prefixes: Prefixes) -> Iterator[Finding]:
    for _ in prefixes.of(link["path"]):
        yield ERROR, ("links", index), "link path includes link in config"
    target = link.get("target") or ""
    if not target and spec.minor >= 3:
        yield ERROR, ("links", index, "target"), "link target is required"
        return
    if not _truth(link, "hard"):
        return
    resolved = clean(target) if clean(target).startswith("/") else joined(link["path"], target)
    for _ in range(directories[resolved]):
        yield ERROR, ("links", index), "hard link target is a directory"
    for owner in ("user", "group"):
        for name in ("id", "name"):
            if link.get(owner, {}).get(name) is not None:
                yield WARNING, ("links", index, owner, name), "user/group ignored for hard link"


def _filesystems(storage: Value) -> Iterator[Finding]:
    disks = {disk["device"]: disk for disk in storage.get("disks", ())}
    for index, filesystem in enumerate(storage.get("filesystems", ())):
        disk = disks.get(filesystem["device"])
        if disk is None:
            continue
        where: Path = ("filesystems", index, "device")
        if disk.get("partitions"):
            yield WARNING, where, "filesystem overwrites partitioned device"
        elif _truth(disk, "wipeTable") and not _truth(filesystem, "wipeFilesystem"):
            yield WARNING, where, "device matches disk with wipeTable enabled; filesystem will be wiped"


def _node(spec: Spec, node: Value) -> Iterator[Finding]:
    yield from _said(("path",), path_problem(node["path"]))


def _mode(spec: Spec, node: Value) -> Iterator[Finding]:
    mode = node.get("mode")
    if mode is None:
        return
    if not 0 <= mode <= 0o7777:
        yield ERROR, ("mode",), "illegal file mode"
    if spec.minor < 6 and mode & 0o7000:
        message = "setuid/setgid/sticky bits are not supported or functional in spec versions older than 3.6.0"
        yield WARNING, ("mode",), message


def _directory(spec: Spec, directory: Value) -> Iterator[Finding]:
    yield from _node(spec, directory)
    yield from _mode(spec, directory)


def _file(spec: Spec, file: Value) -> Iterator[Finding]:
    yield from _directory(spec, file)
    if _truth(file, "overwrite") and file.get("contents", {}).get("source") is None:
        yield ERROR, ("overwrite",), "overwrite must be false if source is unspecified"


def _owner(spec: Spec, owner: Value) -> Iterator[Finding]:
    if owner.get("id") is not None and owner.get("name"):
        yield ERROR, (), "cannot set both id and name"


# -- storage: devices ------------------------------------------------------------------------------------------------


def _disk(spec: Spec, disk: Value) -> Iterator[Finding]:
    if not disk["device"]:
        yield ERROR, ("device",), "disk device is required"
        return
    yield from _said(("device",), path_problem(disk["device"]))
    partitions = disk.get("partitions", ())
    numbers: set[int] = set()
    for index, partition in enumerate(partitions):
        number = partition.get("number", 0)
        if number and number in numbers:
            yield ERROR, ("partitions", index), "partition numbers collide"
            break
        numbers.add(number)
    overlap = first_overlap([_span(partition) for partition in partitions])
    if overlap is not None:
        yield ERROR, ("partitions", overlap), "partitions overlap"
    unnumbered = any(not partition.get("number") for partition in partitions)
    if spec.release_2_26 and unnumbered and any(one.get("shouldExist") is False for one in partitions):
        message = "shouldExist is false for a partition and other partition(s) has start or size 0"
        yield ERROR, ("partitions",), message
    labels: set[str] = set()
    for index, partition in enumerate(partitions):
        label = partition.get("label")
        if label is not None and label in labels:
            yield ERROR, ("partitions", index), "cannot use the same partition label twice"
            break
        labels.add(label)


def _span(partition: Value) -> Span | None:
    """First and last MiB; a size of 0 fills what is free and counts as its first MiB. None where the disk decides."""
    start, size = partition.get("startMiB"), partition.get("sizeMiB")
    if not start or size is None:
        return None
    return start, start + size - 1 if size else start


_GUID = re.compile(r"(?:|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})")


def _partition(spec: Spec, partition: Value) -> Iterator[Finding]:
    label = partition.get("label")
    placed = any(partition.get(name) is not None for name in ("label", "startMiB", "sizeMiB"))
    if partition.get("shouldExist") is False and (placed or partition.get("typeGuid") or partition.get("guid")):
        yield ERROR, (), "shouldExist specified false with other options also specified"
    if label is None and not partition.get("number"):
        yield ERROR, (), "a partition number >= 1 or a label must be specified"
    if label is not None:
        if len(label.encode()) > 36:
            yield ERROR, ("label",), "partition labels may not exceed 36 characters"
        elif ":" in label:
            yield ERROR, ("label",), "partition label will be truncated to text before the colon"
    for name in ("guid", "typeGuid"):
        if not _GUID.fullmatch(partition.get(name) or ""):
            yield ERROR, (name,), 'doesn\'t match the form "01234567-89AB-CDEF-EDCB-A98765432101"'


_LABEL_MAX = {"ext4": 16, "btrfs": 256, "xfs": 12, "swap": 15, "vfat": 11}


def _formats(spec: Spec) -> set[str]:
    formats = set(_LABEL_MAX)
    if spec.minor >= 3:
        formats.add("none")
    if spec.minor >= 7 and not spec.release_2_26:
        formats.add("virtiofs")
    return formats


def _filesystem(spec: Spec, filesystem: Value) -> Iterator[Finding]:
    fs_format = filesystem.get("format") or ""
    tagged = fs_format == "virtiofs" and "virtiofs" in _formats(spec)
    path, device = filesystem.get("path"), filesystem["device"]
    yield from _said(("path",), path_problem(path) if path else "")
    yield from _said(("device",), _tag_problem(device) if tagged else path_problem(device))
    if fs_format:
        if fs_format not in _formats(spec):
            yield ERROR, ("format",), "invalid filesystem format"
    elif _truth(filesystem, "wipeFilesystem") or any(filesystem.get(name) for name in _NEED_FORMAT):
        message = "format cannot be empty when path, label, uuid, wipeFilesystem, options, or mountOptions is specified"
        yield ERROR, ("format",), message
    yield from _said(("label",), _label_problem(filesystem.get("label") or "", fs_format, tagged))
    if tagged:
        yield from _tagged(filesystem)


_NEED_FORMAT = ("path", "label", "uuid", "mountOptions", "options")


def _tag_problem(tag: str) -> str:
    if not tag:
        return "device not specified"
    return "virtiofs device tag cannot be longer than 36 bytes" if len(tag.encode()) > 36 else ""


def _label_problem(label: str, fs_format: str, tagged: bool) -> str:
    if not label:
        return ""
    if not fs_format:
        return "filesystem must specify format if label is specified"
    if tagged:
        return "filesystem labels cannot be set when using virtiofs"
    most = _LABEL_MAX.get(fs_format)
    if most is None or len(label.encode()) <= most:
        return ""
    return f"filesystem labels cannot be longer than {most} characters when using {fs_format}"


def _tagged(filesystem: Value) -> Iterator[Finding]:
    """A filesystem without a block device has nothing to make."""
    if filesystem.get("uuid"):
        yield ERROR, ("uuid",), "filesystem uuid cannot be set for non-block-device filesystems"
    if _truth(filesystem, "wipeFilesystem"):
        yield ERROR, ("wipeFilesystem",), "wipeFilesystem cannot be set for non-block-device filesystems"
    if filesystem.get("options"):
        yield ERROR, ("options",), "filesystem options (mkfs) cannot be set for non-block-device filesystems"


def _raid(spec: Spec, raid: Value) -> Iterator[Finding]:
    level = raid.get("level") or ""
    if not level and spec.minor >= 3:
        yield ERROR, ("level",), "raid level is required"
    elif level in ("linear", "raid0", "0", "stripe"):
        if raid.get("spares"):
            yield ERROR, ("level",), "spares unsupported for linear and raid0 arrays"
    elif level not in _RAID_LEVELS:
        yield ERROR, ("level",), "unrecognized raid level"
    if not raid.get("devices"):
        yield ERROR, ("devices",), "raid devices required"


_RAID_LEVELS = ("raid1", "1", "mirror", "raid4", "4", "raid5", "5", "raid6", "6", "raid10", "10")


def _luks(spec: Spec, luks: Value) -> Iterator[Finding]:
    if "/" in luks["name"]:
        yield ERROR, ("name",), "device names cannot contain slashes"
    if len((luks.get("label") or "").encode()) > 47:
        yield ERROR, ("label",), "luks device labels cannot be longer than 47 characters"
    device = luks.get("device")
    yield from _said(("device",), path_problem(device) if device else "disk device is required")
    clevis = luks.get("clevis") or {}
    custom = clevis.get("custom")
    own = bool(custom.get("pin")) if custom is not None and spec.minor >= 3 else custom is not None
    if own and (clevis.get("tang") or _truth(clevis, "tpm2") or clevis.get("threshold")):
        yield ERROR, ("clevis",), "cannot use custom clevis config with tpm2, tang, or threshold"
    key_file = luks.get("keyFile", {}).get("source")
    if _optional_url(spec, key_file):
        yield ERROR, ("keys",), "invalid key-file source"
    if not _truth(luks.get("cex", {}), "enabled"):
        return
    if (custom or {}).get("pin") or clevis.get("tang") or _truth(clevis, "tpm2") or clevis.get("threshold"):
        yield ERROR, ("cex",), "cannot use cex with clevis"
    if key_file:
        yield ERROR, ("cex",), "cannot use key file with cex"


def _clevis_custom(spec: Spec, custom: Value) -> Iterator[Finding]:
    pin, config = custom.get("pin"), custom.get("config")
    if not pin and not config and not (spec.minor >= 3 and _truth(custom, "needsNetwork")):
        return
    if pin or spec.minor < 3:
        if spec.minor < 6 and pin not in ("tpm2", "tang", "sss"):
            yield ERROR, ("pin",), "unsupported clevis pin"
    else:
        yield ERROR, ("pin",), "missing required custom clevis pin"
    if not config:
        yield ERROR, ("config",), "missing required custom clevis config"


def _tang(spec: Spec, tang: Value) -> Iterator[Finding]:
    try:
        scheme = parse_url(tang.get("url", "")).scheme
        yield from _said(("url",), "" if scheme in ("http", "https") else "invalid url scheme")
    except UrlError:
        yield ERROR, ("url",), "unable to parse url"
    if not tang.get("thumbprint"):
        yield ERROR, ("thumbprint",), "thumbprint is required"
    advertisement = tang.get("advertisement")
    if advertisement and not _is_json(advertisement):
        yield ERROR, ("advertisement",), "advertisement is not valid JSON"


def _is_json(text: str) -> bool:
    def refused(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refused)
    except (ValueError, RecursionError):
        return False
    return True


# -- systemd ---------------------------------------------------------------------------------------------------------

_UNIT_KINDS = "(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)"
_UNIT_EXTENSION = re.compile(rf"\.{_UNIT_KINDS}")


def _template(name: str) -> str:
    """Return the template ``a@.service`` of an instance ``a@b.service``; empty for other names."""
    rest = name.removesuffix(".service")
    at = rest.find("@", 1)
    if rest == name or at < 0 or at == len(rest) - 1 or "\n" in name:
        return ""
    return f"{rest[:at]}@.service"


def _systemd(spec: Spec, systemd: Value) -> Iterator[Finding]:
    units = systemd.get("units", ())
    by_name = {unit["name"]: unit for unit in units}
    for index, unit in enumerate(units):
        template = _template(unit["name"]) if _truth(unit, "enabled") else ""
        contents = by_name.get(template, {}).get("contents") if template else None
        if not contents or _installs(contents) is not False:
            continue
        message = f"template unit {quoted(template)} for {quoted(unit['name'])} doesn't have Install section"
        yield WARNING, ("units", index, "contents"), message


def _installs(contents: str) -> bool | None:
    """Return True if an Install section has an option; None if the unit cannot be parsed."""
    try:
        return "Install" in sections_with_options(contents)
    except UnitError:
        return None


def _unit_problem(contents: str | None) -> str:
    try:
        sections_with_options(contents or "")
    except UnitError as problem:
        return f"invalid unit content: {problem}"
    return ""


def _unit(spec: Spec, unit: Value) -> Iterator[Finding]:
    if not _UNIT_EXTENSION.fullmatch(extension(unit["name"])):
        yield ERROR, ("name",), "invalid systemd unit extension"
    contents = unit.get("contents")
    yield from _said(("contents",), _unit_problem(contents))
    if _truth(unit, "enabled") and contents and _installs(contents) is False:
        message = f"unit {quoted(unit['name'])} is enabled, but has no install section so enable does nothing"
        yield WARNING, ("contents",), message


def _dropin(spec: Spec, dropin: Value) -> Iterator[Finding]:
    yield from _said(("contents",), _unit_problem(dropin.get("contents")))
    if extension(dropin["name"]) != ".conf":
        yield ERROR, ("name",), "invalid systemd drop-in extension"


RULES: dict[str, Rule] = {
    "CaReference": _ca_reference,
    "ClevisCustom": _clevis_custom,
    "Config": _config,
    "ConfigReference": _config_reference,
    "Directory": _directory,
    "Disk": _disk,
    "Dropin": _dropin,
    "File": _file,
    "Filesystem": _filesystem,
    "HTTPHeader": _header,
    "Ignition": _ignition,
    "IgnitionConfig": _ignition_config,
    "Link": _node,
    "Luks": _luks,
    "NodeOwner": _owner,
    "Partition": _partition,
    "Proxy": _proxy,
    "Raid": _raid,
    "Resource": _resource,
    "Storage": _storage,
    "Systemd": _systemd,
    "TLS": _tls,
    "Tang": _tang,
    "Unit": _unit,
    "Verification": _verification,
}
"""The rule of each object that has one."""
