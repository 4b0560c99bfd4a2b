"""Finds parts of a MachineConfig that no machine can have: unsafe names and paths, endless files; pure.

:func:`impossible` is checked before a node is cordoned and before a machine joins, since a node would be drained for
nothing if the error showed only while files are written. Upstream finds it then, or writes the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from syncline.ignition.payload import PayloadError, decode_file_contents
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.host import MAX_FILE
from syncline.machineconfig.agent.planning.changes import config_of
from syncline.machineconfig.configs.parsing import ConfigError

_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,255}")
"""As systemd reads names of units (``systemd.unit(5)``)."""
_KERNELS = ("/dev", "/proc", "/sys")
MAX_ID = (1 << 32) - 2
"""Maximum id of a user or group; the next number means no change."""
MOST_UNPACKED = 1032
"""Maximum ratio of gzip's compression."""


def impossible(config: Obj) -> str:
    """Return the first impossible field, the value found and a fix; empty if there is none. A config that cannot be
    read is reported elsewhere."""
    try:
        ignition = config_of(config)
    except ConfigError:
        return ""
    found = next(_found(ignition), None)
    return "" if found is None else f"spec.config.{found}"


def _found(ignition: Obj) -> Iterator[str]:
    for at, file in enumerate((ignition.get("storage") or {}).get("files") or ()):
        yield from (f"storage.files[{at}].{why}" for why in _of_file(file))
    for at, unit in enumerate((ignition.get("systemd") or {}).get("units") or ()):
        where, name = f"systemd.units[{at}]", str(unit.get("name", ""))
        if not _UNIT.fullmatch(name):
            yield f"{where}.name: found {name[:256]!r}; a unit is called by letters, digits and :_.\\@- alone"
        for number, dropin in enumerate(unit.get("dropins") or ()):
            called = str(dropin.get("name", ""))
            if "/" in called or "\0" in called:
                there = f"{where}.dropins[{number}].name"
                yield f"{there}: found {called[:256]!r}; give the name of a file, such as 10-a.conf"


def _of_file(file: Obj) -> Iterator[str]:
    path = str(file.get("path", ""))
    if "\0" in path or path == "/":
        yield f"path: found {path[:256]!r}; give the path of a file"
    elif any(path == top or path.startswith(f"{top}/") for top in _KERNELS):
        yield f"path: found {path!r}; what is below {', '.join(_KERNELS)} is the kernel's; leave it out"
    for part in ("user", "group"):
        number = (file.get(part) or {}).get("id")
        if number is not None and not 0 <= int(number) <= MAX_ID:
            yield f"{part}.id: found {number}; give one from 0 to {MAX_ID}"
    contents = file.get("contents") or {}
    if _may_be_endless(contents) and _size(contents) > MAX_FILE:
        yield f"contents: {path} has more than {MAX_FILE >> 20} MiB; fetch it by a unit"


def _may_be_endless(contents: Obj) -> bool:
    """Return whether the content may be too large to unpack; nothing is unpacked to find out."""
    times = MOST_UNPACKED if contents.get("compression") else 1
    return len(contents.get("source") or "") * times > MAX_FILE


def _size(contents: dict[str, Any]) -> int:
    try:
        return len(decode_file_contents(contents.get("source"), contents.get("compression")))
    except PayloadError:
        return 0  # the write reports it, in upstream's words
