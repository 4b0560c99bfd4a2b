"""A configuration of specification 1 or 2.x, one version newer at a time; values that upstream invents included.

Source: coreos/ignition v0.35.0 ``config/v2_*/translate.go``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from urllib.parse import quote

from syncline.ignition.golang import UrlError, parse_url

Value: TypeAlias = "dict[str, Any]"


def lift(config: Value, minor: int, target: int) -> Value:
    """A decoded configuration of 2.``minor`` (-1: of specification 1) as 2.``target``."""
    lifted = copy.deepcopy(config)
    for step in range(minor, target):
        lifted = _STEPS.get(step, _same)(lifted)
    lifted["ignition"]["version"] = f"2.{target}.0" if target > minor else lifted["ignition"]["version"]
    return lifted


def _same(config: Value) -> Value:
    return config


def _from_1(config: Value) -> Value:
    """Files lay in filesystems and held plain text; filesystems had no names."""
    lifted: Value = {"ignition": {}}
    for name in ("systemd", "networkd", "passwd"):
        if name in config:
            lifted[name] = config[name]
    storage = {name: part for name, part in config.get("storage", {}).items() if name != "filesystems"}
    filesystems: list[Value] = []
    files: list[Value] = []
    for index, old in enumerate(config.get("storage", {}).get("filesystems", ())):
        name = f"_translate-filesystem-{index}"
        filesystems.append({"name": name, "mount": {key: part for key, part in old.items() if key != "files"}})
        files.extend(_file_from_1(name, file) for file in old.get("files", ()))
    if filesystems:
        storage["filesystems"] = filesystems
    if files:
        storage["files"] = files
    return {**lifted, "storage": storage}


def _file_from_1(filesystem: str, file: Value) -> Value:
    return {
        "filesystem": filesystem,
        "path": file.get("path", ""),
        "user": {"id": file.get("uid", 0)},
        "group": {"id": file.get("gid", 0)},
        "mode": file.get("mode", 0),
        "contents": {"source": "data:," + quote(file.get("contents", ""), safe="!*'()~")},
    }


def _from_2_0(config: Value) -> Value:
    """Owners become nullable, so the owner 0 that is unset is now there."""
    for file in config.get("storage", {}).get("files", ()):
        for owner in ("user", "group"):
            file[owner] = {"id": file.get(owner, {}).get("id", 0)}
    for user in config.get("passwd", {}).get("users", ()):
        if not user.get("passwordHash"):
            user.pop("passwordHash", None)
    for reference in _references(config):
        if "source" in reference:
            reference["source"] = _written_url(reference["source"])
    return config


def _references(config: Value) -> Iterator[Value]:
    section = config.get("ignition", {}).get("config", {})
    yield from section.get("append", ())
    if section.get("replace") is not None:
        yield section["replace"]
    for file in config.get("storage", {}).get("files", ()):
        if "contents" in file:
            yield file["contents"]


def _written_url(text: str) -> str:
    """2.0 kept URLs parsed and wrote them again: the scheme in lower case."""
    try:
        scheme = parse_url(text).scheme
    except UrlError:
        return text
    return scheme + text[len(scheme) :]


def _from_2_1(config: Value) -> Value:
    """Modes and owners become nullable, and are always there."""
    storage = config.get("storage", {})
    for kind in ("files", "directories", "links"):
        for node in storage.get(kind, ()):
            node.setdefault("user", {})
            node.setdefault("group", {})
            if kind != "links":
                node.setdefault("mode", 0)
    return config


def _from_2_2(config: Value) -> Value:
    """Label, size and start of partitions become nullable, and are always there; 2.3 calls the latter deprecated."""
    for disk in config.get("storage", {}).get("disks", ()):
        for partition in disk.get("partitions", ()):
            partition.setdefault("label", "")
            partition.setdefault("size", 0)
            partition.setdefault("start", 0)
    return config


_STEPS: dict[int, Callable[[Value], Value]] = {-1: _from_1, 0: _from_2_0, 1: _from_2_1, 2: _from_2_2}
"""What changes from 2.N to the next version, besides the version itself."""
