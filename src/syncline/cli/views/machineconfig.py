"""Formats MachineConfigs: their content, its origin, and changes."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from syncline.base.clock import parse_time
from syncline.cli.frame.output import table
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, meta, name_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.machineconfig.configs.compare import Change, file_bytes
from syncline.machineconfig.configs.parsing import ConfigError, lifted_config
from syncline.machineconfig.names import GENERATED_BY
from syncline.machineconfig.render.naming import PREFIX
from syncline.machineconfig.render.origins import Part, parts_of_spec
from syncline.views.texts import age

PLURALS = {"directory": "directories"}


def is_rendered(config: Obj) -> bool:
    """Return whether it is rendered, by its name; a user's MachineConfig must not have this prefix."""
    return name_of(config).startswith(PREFIX)


def pools_of(config: Obj, pools: Iterable[Obj]) -> list[str]:
    """Return the names of its pools; of a rendered config, of the pools that target it."""
    found = []
    for pool in pools:
        if is_rendered(config):
            if name_of(config) in {dig(pool, part, "configuration", "name") for part in ("spec", "status")}:
                found.append(name_of(pool))
            continue
        try:
            selector = label_selector_from(dig(pool, "spec", "machineConfigSelector"))
        except SelectorError:
            continue
        if not selector.empty and selector.matches(labels_of(config)):
            found.append(name_of(pool))
    return sorted(found)


def config_row(config: Obj, pools: Sequence[Obj]) -> Obj:
    """Return one MachineConfig for a table or for ``-o json``."""
    parts = Counter(kind for kind, _ in parts_of_spec(config.get("spec") or {}))
    return {
        "name": name_of(config),
        "pools": pools_of(config, pools),
        "ignitionVersion": str(dig(config, "spec", "config", "ignition", "version", default="") or ""),
        "contents": dict(parts),
        "generated": bool(annotations_of(config).get(GENERATED_BY)),
        "created": str(meta(config).get("creationTimestamp") or ""),
    }


def config_table(rows: Sequence[Obj], now: datetime) -> str:
    headers = ("NAME", "POOLS", "IGNITION", "CONTENTS", "GENERATED", "AGE")
    return table(headers, [_cells(row, now) for row in rows])


def _cells(row: Obj, now: datetime) -> list[str]:
    made = "yes" if row["generated"] else "no"
    created = parse_time(row["created"]) if row["created"] else None
    return [
        row["name"],
        ",".join(row["pools"]),
        row["ignitionVersion"],
        _counts(row["contents"]),
        made,
        age(created, now),
    ]


def contents_text(config: Obj) -> str:
    """Return ``2 files, 1 unit``; empty without content."""
    return _counts(dict(Counter(kind for kind, _ in parts_of_spec(config.get("spec") or {}))))


def _counts(parts: dict[str, int]) -> str:
    found = []
    for kind, count in parts.items():
        if kind == "dropin":
            continue
        found.append(f"{count} {kind if count == 1 else PLURALS.get(kind, f'{kind}s')}")
    return ", ".join(found)


def shown(config: Obj) -> Obj:
    """Return a MachineConfig for ``-o``: without managedFields, with passwords masked."""
    metadata = {key: value for key, value in meta(config).items() if key != "managedFields"}
    identity = {"apiVersion": MACHINE_CONFIG.api_version, "kind": MACHINE_CONFIG.kind}
    return {**identity, **config, "metadata": metadata, "spec": _masked(config.get("spec") or {})}


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {key: "********" if key == "passwordHash" and one else _masked(one) for key, one in value.items()}
    return [_masked(one) for one in value] if isinstance(value, list) else value


def describe_config(config: Obj, pools: Sequence[Obj], *, contents: bool) -> str:
    """Describe one MachineConfig; with ``contents`` also the texts of its files and units."""
    row = config_row(config, pools)
    lines = [
        f"Name:       {row['name']}",
        f"Pools:      {', '.join(row['pools']) or '<none>'}",
        f"Ignition:   {row['ignitionVersion'] or '<none>'}",
        f"Generated:  {'by controller ' + annotations_of(config)[GENERATED_BY] if row['generated'] else 'no'}",
    ]
    spec = config.get("spec") or {}
    try:
        ignition: Obj = lifted_config(spec["config"]) if spec.get("config") is not None else {}
    except ConfigError as error:
        return "\n".join([*lines, f"Unreadable: {str(error).rstrip()}"])
    for kind, name in parts_of_spec(spec):
        lines.append(f"{kind:<10}  {name}")
    if contents:
        for file in dig(ignition, "storage", "files", default=[]):
            lines += ["", f"--- {file['path']}", _readable(file)]
        for unit in dig(ignition, "systemd", "units", default=[]):
            for part in (unit, *(unit.get("dropins") or ())):
                if part.get("contents"):
                    lines += [
                        "",
                        f"--- {unit['name']}" + ("" if part is unit else f"/{part['name']}"),
                        part["contents"],
                    ]
    return "\n".join(line.rstrip("\n") for line in lines)


def _readable(file: Obj) -> str:
    data = file_bytes(file)
    if data is None:
        return f"<to be fetched from {dig(file, 'contents', 'source', default='')}>"
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"<{len(data)} bytes that are no text>"


def part_table(parts: Sequence[Part]) -> str:
    """Return a table of the parts and their origin; the MachineConfig that decides comes first."""
    rows = []
    for part in parts:
        *over, last = part.sources
        joined = part.kind in ("argument", "extension")
        note = "" if not over else f" (and {', '.join(over)})" if joined else f" (over {', '.join(reversed(over))})"
        rows.append([part.kind, part.name, last + note])
    return table(("KIND", "NAME", "FROM"), rows)


def change_rows(found: Sequence[Change]) -> list[Obj]:
    """Return the changes for ``-o json``."""
    return [{"kind": one.kind, "name": one.name, "verb": one.verb, "what": one.what} for one in found]


def change_text(found: Sequence[Change], *, contents: bool) -> str:
    """Return one line per change; with ``contents`` a unified diff of texts under it."""
    lines = []
    for one in found:
        sign = {"added": "+", "removed": "-"}.get(one.verb, "~")
        words = f": {one.what}" if one.what else ""
        lines.append(f"{sign} {one.kind} {one.name}".rstrip() + words)
        if contents and (one.before is not None or one.after is not None):
            old, new = ((text or "").splitlines() for text in (one.before, one.after))
            lines += [f"    {line}" for line in difflib.unified_diff(old, new, "before", "after", lineterm="")]
    return "\n".join(lines)
