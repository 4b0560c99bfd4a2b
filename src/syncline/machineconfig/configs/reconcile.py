"""Decides whether a machine can change its configuration in place, without reinstallation.

:func:`unreconcilable` is used by the render (is the config possible for the pool) and by the node (for its actual
config). Source: reference machine-config 2.7, ``pkg/controller/common/reconcile.go``; upstream's message swaps old and
new, and is copied since users search for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from syncline.ignition import jsontext
from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.configs.parsing import ConfigError, invalid_lifted, lifted_config

FORCE_FILE = "/run/machine-config-daemon-force"
CORE = "core"
_WAIVABLE = (("disks", "Disks"), ("filesystems", "FileSystems"), ("raid", "Raid"))


def unreconcilable(old: Obj, news: Iterable[Obj], waived: Collection[str] = ()) -> str | None:
    """Return why the first impossible config of ``news`` cannot follow ``old``; None if all can.

    ``waived``: ``Disks``, ``FileSystems``, ``Raid``: sections that may differ (the machine keeps its own).
    """
    try:
        before = stated_config(old)
    except ConfigError as error:
        return f'parsing old Ignition config from machineconfig "{name_of(old)}" failed: {error}'
    for new in news:
        try:
            after = stated_config(new)
        except ConfigError as error:
            return f'parsing new Ignition config from machineconfig "{name_of(new)}" failed: {error}'
        wrong = invalid_lifted(lifted_config(dig(new, "spec", "config")))
        if wrong:
            return f'validating new Ignition config from machineconfig "{name_of(new)}" failed: {wrong}'
        reason = unreconcilable_reason(before, after, _fips(old), _fips(new), waived)
        if reason:
            names = f'new machineconfig "{name_of(old)}" is not reconcilable against "{name_of(new)}"'
            return f"{names}: {reason}"
    return None


def _fips(config: Obj) -> bool:
    return bool(dig(config, "spec", "fips"))


def unreconcilable_reason(old: Obj, new: Obj, old_fips: bool, new_fips: bool, waived: Collection[str]) -> str | None:
    """Return the first section of two configurations (3.5) that cannot change in place, or None."""
    passwd = _passwd_change(old.get("passwd") or {}, new.get("passwd") or {})
    if passwd:
        return f"invalid passwd change(s): {passwd}"
    if (old.get("kernelArguments") or {}) != (new.get("kernelArguments") or {}):
        return "ignition kargs section contains changes"
    before, after = old.get("storage") or {}, new.get("storage") or {}
    for section, waiver in _WAIVABLE:
        if waiver not in waived and before.get(section) != after.get(section):
            return f"ignition {section} section contains changes"
    if before.get("directories") != after.get("directories"):
        return "ignition directories section contains changes"
    if before.get("links") != after.get("links") and after.get("links"):
        return "ignition links section contains changes"
    for file in after.get("files") or ():
        if file.get("append"):
            return f"ignition file {file.get('path', '')} includes append"
        if file.get("path") == FORCE_FILE:
            return f"cannot create {FORCE_FILE} via Ignition"
    if old_fips != new_fips:
        return "detected change to FIPS flag; refusing to modify FIPS on a running cluster"
    return None


def _passwd_change(old: Obj, new: Obj) -> str | None:
    """Return why users cannot change: only keys and password of ``core`` can. No users means no change."""
    if old == new:
        return None
    if old.get("groups") != new.get("groups"):
        return "ignition Passwd Groups section contains changes"
    users: list[Obj] = new.get("users") or []
    if old.get("users") == new.get("users") or not users:
        return None
    section = "ignition passwd user section contains unsupported changes"
    if any(user.get("name") != CORE for user in users):
        return f"{section}: non-core user"
    last = users[-1]
    if last.get("passwordHash") is None and not last.get("sshAuthorizedKeys"):
        return f"{section}: user must be core and have 1 or more sshKeys"
    if set(last) - {"name", "passwordHash", "sshAuthorizedKeys"}:
        return "SSH keys and password hash are not reconcilable"
    return None


def stated_config(config: Obj) -> Obj:
    """Return ``spec.config`` at 3.5 with its empty lists, which Go distinguishes from missing ones; do not modify it.
    Raises ConfigError."""
    raw = dig(config, "spec", "config")
    return lifted_config(raw) if raw is None else _stated(jsontext.dump(raw))


@lru_cache(maxsize=128)
def _stated(text: str) -> Obj:
    """Return the config, cached: all machines of a pool use the same few."""
    raw = json.loads(text)
    lifted = lifted_config(raw)
    if str(dig(raw, "ignition", "version", default="")).startswith("3."):
        found: Obj = _with_empty_lists(lifted, raw)
        return found
    return lifted


_COMPARED = ("passwd", "kernelArguments", "storage", "systemd")


def _with_empty_lists(config: Any, raw: Any) -> Any:
    if isinstance(config, list) and isinstance(raw, list):
        return [_with_empty_lists(one, given) for one, given in zip(config, raw, strict=False)]
    if not isinstance(raw, dict):
        return config
    whole = dict(config) if isinstance(config, dict) else {}
    for key, value in raw.items():
        if value == [] and key not in whole:
            whole[key] = []
        elif isinstance(value, dict | list) and value and (key in whole or key in _COMPARED):
            whole[key] = _with_empty_lists(whole.get(key), value)
    return {key: value for key, value in whole.items() if value is not None}
