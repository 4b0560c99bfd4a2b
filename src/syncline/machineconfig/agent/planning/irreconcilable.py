"""Finds storage settings of a MachineConfig that an installed machine will never have; pure.

Such a config applies to machines that are installed later; other nodes report the difference. Source: Machine Config
Operator ``pkg/daemon/irreconcilable_diff_reporter.go``.
"""

from __future__ import annotations

from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.files.jsondiff import Path, differences
from syncline.machineconfig.configs.parsing import ConfigError, lifted_config

_SECTIONS = ("disks", "raid", "filesystems", "luks")
MOST_CHANGES = 32
"""Maximum entries that the definition of MachineConfigNode allows."""
MAX_DIFF = 4096


class ReportError(ValueError):
    """The two configs cannot be compared; the message is upstream's."""


def irreconcilable_changes(base: Obj | None, target: Obj) -> list[Obj]:
    """Return ``fieldPath`` and ``diff`` of each storage change since the install. Raises ReportError."""
    if base is None:
        raise ReportError("cannot locate and read the install-time configuration")
    before = _storage(base, "failed to get the install-time configuration JsonNode")
    after = _storage(target, "failed to get the target configuration JsonNode")
    hunks = differences(before, after, ("spec", "config", "storage"))
    return [{"fieldPath": _field(hunk.path), "diff": hunk.text} for hunk in hunks]


def _storage(config: Obj, problem: str) -> Obj:
    try:
        found: Obj = lifted_config(dig(config, "spec", "config")).get("storage") or {}
    except ConfigError as error:
        raise ReportError(f"{problem}: failed to patch MachineConfig for diff computing: {error}") from error
    kept = {key: found[key] for key in _SECTIONS if found.get(key)}
    return kept | ({"luks": [_luks(one) for one in kept["luks"]]} if "luks" in kept else {})


def _luks(one: Obj) -> Obj:
    """Return the LUKS entry with its empty structures, which upstream prints for this section only."""
    return one | {
        "cex": one.get("cex") or {},
        "clevis": {"custom": {}} | (one.get("clevis") or {}),
        "keyFile": {"verification": {}} | (one.get("keyFile") or {}),
    }


def _field(path: Path) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).lstrip(".[]")


def status_changes(changes: list[Obj]) -> list[Obj]:
    """Return the changes limited to what a MachineConfigNode can hold: the first ones, one per field, cut in length."""
    by_field: dict[str, Obj] = {}
    for change in changes:
        text = change["diff"] if len(change["diff"]) <= MAX_DIFF else change["diff"][: MAX_DIFF - 2] + "…\n"
        by_field.setdefault(change["fieldPath"], change | {"diff": text})
    return list(by_field.values())[:MOST_CHANGES]
