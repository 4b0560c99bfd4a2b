"""A configuration of spec 3.x at an older version, one step at a time, down to 3.1 or over 3.2 to 2.2.

Each step judges its input, refuses what the older version cannot say, leaves out what it may lose, and judges the
result. Source: coreos/ign-converter ``translate/v35tov34`` to ``v32tov31``, ``v32tov22``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeAlias

from syncline.ignition.checking import check
from syncline.ignition.golang import UrlError, parse_url
from syncline.ignition.rules import Spec
from syncline.ignition.schema import Object, Schema, schema, version_text
from syncline.ignition.spec2.checking import check as check2
from syncline.ignition.spec2.tables import spec2
from syncline.ignition.spec2.translating import report_lines
from syncline.ignition.typed import canonical, decode_as
from syncline.ignition.versions.upward import modes_masked

Value: TypeAlias = "dict[str, Any]"


class DowngradeError(ValueError):
    """Upstream's sentence about what the older version cannot say."""


def lower(config: Value, minor: int, target: int) -> Value:
    """A canonical configuration of 3.``minor`` as 3.``target``, not below 3.1. Raises :class:`DowngradeError`."""
    assert 1 <= target <= minor <= 5, f"there is no way from 3.{minor} down to 3.{target}"
    if target == minor:
        return config
    _judge(config, minor, "invalid input config" if minor == 5 else "Invalid input config")
    config = copy.deepcopy(config)
    for step in range(minor, target, -1):
        lowered = _without_what_is_new(config, step)
        lowered["ignition"]["version"] = version_text(step - 1)
        config = canonical(step - 1, lowered)
        small = "converted" if step == 5 else "Converted"
        _judge(config, step - 1, f"{small} spec has unexpected fatal error")
    return config


def _judge(config: Value, minor: int, before: str) -> None:
    report = check(Spec(minor, release_2_26=True), config)
    if report.fatal:
        raise DowngradeError(f"{before}:\n{report}")


def _without_what_is_new(config: Value, minor: int) -> Value:
    """Refuse, then let the table of the older version leave out the rest."""
    if minor == 5:
        _drop_advertisements(config)
    elif minor == 4:
        for problem in _new_in_3_4(schema(4), schema(4).root, config):
            raise DowngradeError(f"Invalid input config: {problem} not supported in spec v3.3")
        modes_masked(config)
    elif minor == 3:
        if config.get("kernelArguments"):
            raise DowngradeError("KernelArguments is not supported on 3.2")
    else:
        _refuse_new_in_3_2(config, "3.1")
    return config


def _drop_advertisements(config: Value) -> None:
    for volume in config.get("storage", {}).get("luks", ()):
        for server in volume.get("clevis", {}).get("tang", ()):
            server.pop("advertisement", None)


def _new_in_3_4(table: Schema, kind: Object, value: Value) -> Iterator[str]:
    """What 3.3 cannot say, in the order of the fields."""
    match kind.name:
        case "Tang" if value.get("advertisement"):
            yield "tang offline provisioning is"
        case "Luks" if value.get("discard"):
            yield "luks discard is"
        case "Luks" if value.get("openOptions"):
            yield "luks openOptions is"
        case "Resource" if value.get("source"):
            try:
                scheme = parse_url(value["source"]).scheme
            except UrlError:
                scheme = ""
            if scheme == "arn":
                yield "arn: scheme for s3 is"
        case "File" | "Directory" if value.get("mode", 0) & 0o7000:
            yield "special mode bits are"
    for name, field in kind.fields.items():
        part = value.get(name)
        if part is None or field.scalar:
            continue
        for item in part if field.many else (part,):
            yield from _new_in_3_4(table, table.objects[field.type], item)


def _refuse_new_in_3_2(config: Value, target: str) -> None:
    storage, passwd = config.get("storage", {}), config.get("passwd", {})
    if storage.get("luks"):
        raise DowngradeError(f"LUKS is not supported on {target}")
    for kind in ("Users", "Groups"):
        if any(account.get("shouldExist") is False for account in passwd.get(kind.lower(), ())):
            raise DowngradeError(f"ShouldExist in Passwd.{kind} is not supported on {target}")
    for disk in storage.get("disks", ()):
        for partition in disk.get("partitions", ()):
            placed = partition.get("sizeMiB") is not None or partition.get("startMiB") is not None
            if target == "2.2" and placed:
                message = "SizeMiB and StartMiB in Storage.Disks.Partitions is not supported on 2.2"
                raise DowngradeError(message)
            if partition.get("resize"):
                raise DowngradeError(f"Resize in Storage.Disks.Partitions is not supported on {target}")


# -- 3.2 to 2.2 ------------------------------------------------------------------------------------------------------


def lower_to_2_2(config: Value) -> Value:
    """A canonical configuration of 3.2 as 2.2. Raises :class:`DowngradeError`.

    A filesystem is named by its path, or by a number; a node belongs to the longest of these paths that its own begins
    with. What a file appends becomes files of their own; a file with neither contents nor appendices is left out, as
    upstream leaves it out.
    """
    _judge(config, 2, "Invalid input config")
    _refuse_for_2_2(config)
    lowered, mistype = decode_as(spec2(2), _lowered(config))
    assert mistype is None, mistype
    report = check2(spec2(2), lowered)
    if report.fatal:
        raise DowngradeError(f"Converted spec has unexpected fatal error:\n{report_lines(report.entries)}")
    return lowered


def _refuse_for_2_2(config: Value) -> None:
    ignition, storage = config["ignition"], config.get("storage", {})
    section = ignition.get("config", {})
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    for place, references in (
        ("Ignition.Config.Merge", section.get("merge", ())),
        ("Ignition.Config.Replace", [section.get("replace", {})]),
        ("Ignition.Security.TLS.CertificateAuthorities", authorities),
    ):
        for reference in references:
            if reference.get("compression") is not None:
                raise DowngradeError(f"Compression in {place} is not supported on 2.2")
            _refuse_headers(reference, place)
    if ignition.get("proxy"):
        raise DowngradeError("HTTP proxies in Ignition.Proxy are not supported on 2.2")
    _refuse_new_in_3_2(config, "2.2")
    if any(filesystem.get("mountOptions") for filesystem in storage.get("filesystems", ())):
        raise DowngradeError("MountOptions in Storage.Filesystems is not supported on 2.2")
    for file in storage.get("files", ()):
        _refuse_headers(file.get("contents", {}), "Storage.Files.Contents")
        for resource in file.get("append", ()):
            _refuse_headers(resource, "Storage.Files.Append.*")


def _refuse_headers(resource: Value, place: str) -> None:
    if resource.get("httpHeaders"):
        raise DowngradeError(f"HTTPHeaders in {place} are not supported on 2.2")


def _lowered(config: Value) -> Value:
    ignition, storage = config["ignition"], config.get("storage", {})
    section = ignition.get("config", {})
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    replace = section.get("replace", {})
    mounts = [one["path"] for one in storage.get("filesystems", ()) if one.get("path") is not None]
    files = [part for file in storage.get("files", ()) for part in _files(file, mounts)]
    return {
        **{name: config[name] for name in ("passwd", "systemd") if name in config},
        "ignition": {
            "version": "2.2.0",
            "config": {
                "append": [_reference(reference) for reference in section.get("merge", ())],
                "replace": _reference(replace) if replace.get("source") is not None else None,
            },
            "security": {"tls": {"certificateAuthorities": [_reference(authority) for authority in authorities]}},
            "timeouts": ignition.get("timeouts", {}),
        },
        "storage": {
            "disks": storage.get("disks", []),
            "raid": storage.get("raid", []),
            "filesystems": _filesystems(storage.get("filesystems", [])),
            "files": files,
            "directories": [{**one, **_place(one, mounts)} for one in storage.get("directories", ())],
            "links": [{**one, **_place(one, mounts)} for one in storage.get("links", ())],
        },
    }


def _reference(resource: Value) -> Value:
    return {"source": resource.get("source"), "verification": resource.get("verification", {})}


def _filesystems(filesystems: list[Value]) -> list[Value]:
    done: list[Value] = []
    unnamed = 0
    for filesystem in filesystems:
        name = filesystem.get("path")
        if name is None:
            unnamed += 1
            name = str(unnamed)
        mount = {key: value for key, value in filesystem.items() if key not in ("path", "mountOptions")}
        done.append({"name": name, "mount": mount})
    return done


def _place(node: Value, mounts: list[str]) -> Value:
    """The filesystem and the path in it."""
    best = ""
    for mount in mounts:
        if node["path"].startswith(mount) and len(mount) > len(best):
            best = mount
    return {"filesystem": best or "root", "path": node["path"].removeprefix(best)}


def _files(file: Value, mounts: list[str]) -> Iterator[Value]:
    """The file itself, then one file per appendix."""
    node = {"overwrite": False, **file, **_place(file, mounts)}
    appended = node.pop("append", ())
    if node.get("contents", {}).get("source") is not None:
        yield node
    for resource in appended:
        yield {**node, "overwrite": False, "append": True, "contents": resource}
