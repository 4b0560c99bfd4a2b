"""A configuration of 2.3 as 3.0, or of 2.4 as 3.1, as coreos/ign-converter translates it.

3.x has no named filesystems: paths of nodes are joined with where their filesystem is mounted, and the caller says
where that is. What 3.x cannot express is refused; so is what upstream's converter refuses by mistake, with its words: a
link ``/foo`` beside a file ``/foobar``, and two referenced configurations, of which it repeats the last. Values that
2.x does not tell from absent become absent, but a file without ``overwrite`` overwrites. Source:
coreos/ign-converter ``translate/v23tov30``, ``translate/v24tov31``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from syncline.ignition.checking import check
from syncline.ignition.golang import joined, quoted
from syncline.ignition.report import Severity
from syncline.ignition.rules import Spec
from syncline.ignition.schema import version_text
from syncline.ignition.searching import Prefixes
from syncline.ignition.spec2.checking import check as check2
from syncline.ignition.spec2.tables import spec2
from syncline.ignition.typed import canonical

Value: TypeAlias = "dict[str, Any]"


class TranslationError(ValueError):
    """Upstream's sentence about what cannot be translated."""


def translate(config: Value, minor: int, filesystems: dict[str, str] | None = None) -> Value:
    """``config`` of 2.``minor`` (3 or 4) as 3.0 or 3.1. ``filesystems``: where each named filesystem is mounted, beside
    ``root``. Raises :class:`TranslationError`."""
    mounts = {**(filesystems or {}), "root": "/"}
    _check(config, minor, mounts)
    target = minor - 3
    translated = canonical(target, _translated(config, target, mounts))
    report = check(Spec(target, release_2_26=True), translated)
    if report.fatal:
        raise TranslationError(str(report) if target == 0 else str(report).replace(*_OLDER_WORDS))
    return translated


_OLDER_WORDS = (
    "bits are not supported or functional in spec versions older than 3.6.0",
    "bits are not supported in spec versions older than 3.4.0",
)
"""The converter to 3.1 carries an older Ignition than the Machine Config Operator, which goes over 3.0."""


def report_lines(entries: Any) -> str:
    """Entries of a 2.x report without places, a newline between them."""
    return "\n".join(f"{entry.severity.value}: {entry.message}" for entry in entries)


# -- what is refused -------------------------------------------------------------------------------------------------


def _check(config: Value, minor: int, mounts: dict[str, str]) -> None:
    report = check2(spec2(minor), config)
    if report.fatal or any(entry.severity is Severity.DEPRECATED for entry in report.entries):
        raise TranslationError(f"Invalid input config:\n{report_lines(report.entries)}")
    if config.get("networkd", {}).get("units"):
        raise TranslationError("config includes deprecated networkd section - use Files instead")
    for filesystem in config.get("storage", {}).get("filesystems", ()):
        name = filesystem.get("name", "")
        if name not in mounts:
            raise TranslationError(
                f"Config defined filesystem {quoted(name)} but no mapping was defined."
                "Please specify a path to be used as the filesystem mountpoint."
            )
    _check_nodes(config.get("storage", {}), mounts)
    _check_units(config.get("systemd", {}).get("units", ()))


def _check_nodes(storage: Value, mounts: dict[str, str]) -> None:
    links = [_absolute(link, mounts) for link in storage.get("links", ())]
    prefixes = Prefixes(links)
    taken: dict[str, str] = {}
    for kind, noun in (("files", "File"), ("directories", "Directory"), ("links", "Link")):
        for node in storage.get(kind, ()):
            path = _absolute(node, mounts)
            name = f"{noun}: {path}"
            if path in taken:
                raise TranslationError(
                    f"Config has conflicting inodes: {quoted(taken[path])} and {quoted(name)}.  All files, directories "
                    "and links must specify a unique `path`."
                )
            used = min((index for index in prefixes.of(path) if links[index] != path), default=None)
            if used is not None:
                raise TranslationError(
                    f"{name} uses link defined in config {quoted(links[used])}. Please use a link not defined in "
                    "Storage:Links"
                )
            taken[path] = name


def _absolute(node: Value, mounts: dict[str, str]) -> str:
    return joined("/", mounts.get(node.get("filesystem", ""), ""), node.get("path", ""))


def _check_units(units: list[Value]) -> None:
    names: set[str] = set()
    for unit in units:
        name = unit.get("name", "")
        if name in names:
            raise TranslationError(
                f"Config has duplicate unit name {quoted(name)}.  All units must specify a unique `name`."
            )
        names.add(name)
        dropins: set[str] = set()
        for dropin in unit.get("dropins", ()):
            inner = dropin.get("name", "")
            if inner in dropins:
                raise TranslationError(
                    f"Config has duplicate dropin name {quoted(inner)} in unit {quoted(name)}.  All dropins must "
                    "specify a unique `name`."
                )
            dropins.add(inner)


# -- what becomes of each object -------------------------------------------------------------------------------------


def _some(value: Value, *names: str) -> Value:
    """Fields that 2.x has as plain values: zero means absent."""
    return {name: value[name] for name in names if value.get(name)}


def _given(value: Value, *names: str) -> Value:
    """Fields that are there."""
    return {name: value[name] for name in names if value.get(name) is not None}


def _translated(config: Value, target: int, mounts: dict[str, str]) -> Value:
    storage = config.get("storage", {})
    passwd = config.get("passwd", {})
    return {
        "ignition": _ignition(config["ignition"], target),
        "passwd": {
            "users": [_user(user) for user in passwd.get("users", ())],
            "groups": [
                {"name": group.get("name", ""), **_given(group, "gid"), **_some(group, "passwordHash", "system")}
                for group in passwd.get("groups", ())
            ],
        },
        "storage": {
            "disks": [_disk(disk) for disk in storage.get("disks", ())],
            "raid": [_raid(raid) for raid in storage.get("raid", ())],
            "filesystems": [
                _filesystem(filesystem, mounts)
                for filesystem in storage.get("filesystems", ())
                if filesystem.get("name", "") != "root"
            ],
            "files": [_file(file, target, mounts) for file in storage.get("files", ())],
            "directories": [
                {**_node(directory, mounts), **_given(directory, "mode")}
                for directory in storage.get("directories", ())
            ],
            "links": [
                {**_node(link, mounts), **_some(link, "hard"), "target": link.get("target", "")}
                for link in storage.get("links", ())
            ],
        },
        "systemd": {"units": [_unit(unit) for unit in config.get("systemd", {}).get("units", ())]},
    }


def _ignition(ignition: Value, target: int) -> Value:
    section = ignition.get("config", {})
    appended = [_reference(reference, target) for reference in section.get("append", ())]
    if appended:  # upstream points every source at the one of the last
        appended = [{**reference, "source": appended[-1]["source"]} for reference in appended]
    authorities = [
        _reference(reference, target)
        for reference in ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    ]
    if authorities and target >= 1:
        authorities = [{**reference, "source": authorities[-1]["source"]} for reference in authorities]
    config: Value = {"merge": appended}
    if section.get("replace") is not None:
        config["replace"] = _reference(section["replace"], target)
    proxy = ignition.get("proxy", {}) if target >= 1 else {}
    return {
        "version": version_text(target),
        "config": config,
        "security": {"tls": {"certificateAuthorities": authorities}},
        "timeouts": _given(ignition.get("timeouts", {}), "httpResponseHeaders", "httpTotal"),
        "proxy": _some(proxy, "httpProxy", "httpsProxy", "noProxy"),
    }


def _reference(reference: Value, target: int) -> Value:
    return {
        "source": reference.get("source", ""),
        "verification": _given(reference.get("verification", {}), "hash"),
        "httpHeaders": _headers(reference) if target >= 1 else [],
    }


def _headers(reference: Value) -> list[Value]:
    return [{"name": header.get("name", ""), **_some(header, "value")} for header in reference.get("httpHeaders", ())]


_USER = ("gecos", "groups", "homeDir", "noCreateHome", "noLogInit", "noUserGroup", "primaryGroup", "shell", "system")


def _user(user: Value) -> Value:
    """The create object is lost, as upstream loses it; parsing warned about it."""
    return {
        "name": user.get("name", ""),
        **_given(user, "passwordHash", "uid"),
        **_some(user, *_USER, "sshAuthorizedKeys"),
    }


def _unit(unit: Value) -> Value:
    """``enabled`` wins over the older ``enable``; a unit that is only not enabled stays as the system has it."""
    enabled: Value = {}
    if unit.get("enabled") or unit.get("enable"):
        enabled = {"enabled": True}
    if unit.get("enabled") is False:
        enabled = {"enabled": False}
    return {
        "name": unit.get("name", ""),
        **enabled,
        **_some(unit, "mask", "contents"),
        "dropins": [
            {"name": dropin.get("name", ""), **_some(dropin, "contents")} for dropin in unit.get("dropins", ())
        ],
    }


def _disk(disk: Value) -> Value:
    return {
        "device": disk.get("device", ""),
        **_some(disk, "wipeTable"),
        "partitions": [
            {
                **_given(partition, "label", "sizeMiB", "startMiB", "shouldExist"),
                **_some(partition, "number", "typeGuid", "guid", "wipePartitionEntry"),
            }
            for partition in disk.get("partitions", ())
        ],
    }


def _raid(raid: Value) -> Value:
    known = {name: raid.get(name, "") for name in ("name", "level")}
    devices = {"devices": raid["devices"]} if raid.get("devices") else {}
    return {**known, **devices, **_some(raid, "spares", "options")}


def _filesystem(filesystem: Value, mounts: dict[str, str]) -> Value:
    mount = filesystem.get("mount") or {}
    path = mounts[filesystem.get("name", "")]
    return {
        "device": mount.get("device", ""),
        **_some(mount, "format", "wipeFilesystem", "options"),
        **_given(mount, "label", "uuid"),
        **({"path": path} if path else {}),
    }


def _node(node: Value, mounts: dict[str, str]) -> Value:
    return {
        "path": joined(mounts.get(node.get("filesystem", ""), ""), node.get("path", "")),
        "user": _owner(node.get("user")),
        "group": _owner(node.get("group")),
        **_given(node, "overwrite"),
    }


def _owner(owner: Value | None) -> Value:
    return {**_given(owner or {}, "id"), **_some(owner or {}, "name")}


def _file(file: Value, target: int, mounts: dict[str, str]) -> Value:
    contents = file.get("contents", {})
    resource = {
        **_some(contents, "compression"),
        "source": contents.get("source", ""),
        "httpHeaders": _headers(contents) if target >= 1 else [],
        "verification": _given(contents.get("verification", {}), "hash"),
    }
    node = {"overwrite": True, **_node(file, mounts), **_given(file, "mode")}
    if file.get("append"):
        return {**node, "overwrite": False, "append": [resource]}
    return {**node, "contents": resource}
