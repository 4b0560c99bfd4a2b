"""Compares two MachineConfigs part by part, by contents and not by encoding; pure. Entry point: :func:`changes`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from syncline.ignition.payload import PayloadError, decode_file_contents
from syncline.kube.objects import Obj
from syncline.machineconfig.configs.parsing import lifted_config

_KEYED = (
    ("directory", "storage", "directories", "path"),
    ("link", "storage", "links", "path"),
    ("disk", "storage", "disks", "device"),
    ("filesystem", "storage", "filesystems", "device"),
    ("raid", "storage", "raid", "name"),
    ("luks", "storage", "luks", "name"),
    ("group", "passwd", "groups", "name"),
)
_VALUES = (
    ("fips", "fips"),
    ("kernel", "kernelType"),
    ("image", "osImageURL"),
    ("extensions image", "baseOSExtensionsContainerImage"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A difference. ``verb``: added, removed or changed; ``what`` describes the change in words. ``before`` and
    ``after``: contents, if both are text."""

    kind: str
    name: str
    verb: str
    what: str = ""
    before: str | None = None
    after: str | None = None


def changes(old: Obj | None, new: Obj | None) -> list[Change]:
    """Return the differences of two specs by kind, then by name. Raises ConfigError."""
    before, after = old or {}, new or {}
    left, right = _config(before), _config(after)
    found = _files(left, right)
    found += _units(left, right)
    found += _users(left, right)
    for kind, section, field, key in _KEYED:
        found += _keyed(kind, _by(left, section, field, key), _by(right, section, field, key))
    found += _listed("argument", before.get("kernelArguments"), after.get("kernelArguments"))
    found += _listed("extension", before.get("extensions"), after.get("extensions"))
    for kind, field in _VALUES:
        was, now = before.get(field) or "", after.get(field) or ""
        if was != now:
            found.append(Change(kind, str(now or was).lower() if kind == "fips" else "", "changed", f"{was} → {now}"))
    return found


def _config(spec: Obj) -> Obj:
    return lifted_config(spec["config"]) if spec.get("config") is not None else {}


def _by(config: Obj, section: str, field: str, key: str) -> dict[str, Obj]:
    return {str(one.get(key) or ""): one for one in (config.get(section) or {}).get(field) or ()}


def _keyed(kind: str, old: dict[str, Obj], new: dict[str, Obj]) -> list[Change]:
    found = []
    for name in sorted({*old, *new}):
        if name not in new:
            found.append(Change(kind, name, "removed"))
        elif name not in old:
            found.append(Change(kind, name, "added"))
        elif old[name] != new[name]:
            found.append(Change(kind, name, "changed", ", ".join(_fields(old[name], new[name]))))
    return found


def _fields(old: Obj, new: Obj) -> list[str]:
    return [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]


def _files(left: Obj, right: Obj) -> list[Change]:
    old, new = (_by(config, "storage", "files", "path") for config in (left, right))
    found = []
    for change in _keyed("file", old, new):
        before, after = (file_bytes(files.get(change.name)) for files in (old, new))
        what = _file_words(old[change.name], new[change.name], before == after) if change.verb == "changed" else ""
        if change.verb != "changed" or what:
            found.append(Change("file", change.name, change.verb, what, _text(before), _text(after)))
    return found


def _file_words(old: Obj, new: Obj, same: bool) -> str:
    words = [] if same else ["contents"]
    if old.get("mode") != new.get("mode"):
        words.append(f"mode {_octal(old.get('mode'))} → {_octal(new.get('mode'))}")
    words += [key for key in ("user", "group", "append", "overwrite") if old.get(key) != new.get(key)]
    return ", ".join(words)


def _octal(mode: int | None) -> str:
    return "default" if mode is None else f"{mode:04o}"


def file_bytes(file: Obj | None) -> bytes | None:
    """Return a file's content on the machine; None for no file, or if it must be fetched or cannot be decoded."""
    if file is None:
        return None
    contents = file.get("contents") or {}
    try:
        return decode_file_contents(contents.get("source"), contents.get("compression"))
    except PayloadError:
        return None


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _units(left: Obj, right: Obj) -> list[Change]:
    old, new = (_by(config, "systemd", "units", "name") for config in (left, right))
    found = []
    for change in _keyed("unit", old, new):
        before, after = old.get(change.name) or {}, new.get(change.name) or {}
        words = []
        for key in ("contents", "enabled", "mask"):
            if before.get(key) != after.get(key):
                words.append("contents" if key == "contents" else f"{key} {_flag(before, key)} → {_flag(after, key)}")
        dropins = [({one["name"]: one for one in unit.get("dropins") or ()}) for unit in (before, after)]
        words += [f"dropin {one.name} {one.verb}" for one in _keyed("dropin", *dropins)]
        what = ", ".join(words) if change.verb == "changed" else ""
        found.append(Change("unit", change.name, change.verb, what, before.get("contents"), after.get("contents")))
    return found


def _flag(unit: Obj, key: str) -> str:
    value = unit.get(key)
    return "unset" if value is None else str(value).lower()


def _users(left: Obj, right: Obj) -> list[Change]:
    """Return changes of users. Keys are only counted and passwords only named, since both are secret."""
    old, new = (_by(config, "passwd", "users", "name") for config in (left, right))
    found = []
    for change in _keyed("user", old, new):
        before, after = old.get(change.name) or {}, new.get(change.name) or {}
        keys = [set(user.get("sshAuthorizedKeys") or ()) for user in (before, after)]
        words = (
            [f"{len(keys[1] - keys[0])} ssh keys added, {len(keys[0] - keys[1])} removed"] if keys[0] != keys[1] else []
        )
        words += [key for key in _fields(before, after) if key != "sshAuthorizedKeys"]
        found.append(Change("user", change.name, change.verb, ", ".join(words) if change.verb == "changed" else ""))
    return found


def _listed(kind: str, old: list[Any] | None, new: list[Any] | None) -> list[Change]:
    before, after = Counter(old or ()), Counter(new or ())
    gone = [Change(kind, str(one), "removed") for one in (before - after).elements()]
    come = [Change(kind, str(one), "added") for one in (after - before).elements()]
    if not gone and not come and (old or []) != (new or []):
        return [Change(kind, " ".join(map(str, new or ())), "changed", "order")]
    return gone + come
