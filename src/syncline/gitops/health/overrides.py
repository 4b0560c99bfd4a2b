"""Health by scripts of users, from ``argocd-cm``: which script an object gets, and what its result means.

The composition reads the settings with :func:`parse_overrides` and hands :func:`checked_with` to the comparison and the
sync engine as their ``health``. Pure but for the runner that it is given. Rules: Argo CD ``util/lua``
(``ResourceHealthOverrides``, ``VM.GetHealthScript``), ``util/settings`` (``GetResourceOverrides``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from syncline.gitops.health.check import health_of, pending_deletion
from syncline.gitops.health.verdict import Health, HealthStatus
from syncline.gitops.lua import LuaFailed, LuaRests, LuaResult, LuaRunner
from syncline.kube.glob import glob_matches
from syncline.kube.objects import GroupKind, Obj, gvk_of, name_of, namespace_of, resource_version, uid_of
from syncline.kube.yaml import load

__all__ = ["HealthMemo", "HealthScript", "checked_with", "parse_overrides", "script_for"]

SETTING = "resource.customizations"
MAX_REMEMBERED = 50_000
"""Answers of scripts that are kept; a few hundred bytes each."""
INVALID = "Lua returned an invalid health status"


@dataclass(frozen=True, slots=True)
class HealthScript:
    """One entry; an empty ``script`` is none. ``open_libs``: with string, math and coroutine."""

    script: str = ""
    open_libs: bool = False


def parse_overrides(data: Mapping[str, str]) -> dict[str, HealthScript]:
    """``data`` of ``argocd-cm`` → key (``GROUP/KIND``, core: ``KIND``) → script.

    Both forms: the YAML under ``resource.customizations``, and ``resource.customizations.health.GROUP_KIND`` with
    ``….useOpenLibs.GROUP_KIND``, which win. Raises ValueError, naming the setting, where the YAML is no mapping.
    """
    found: dict[str, HealthScript] = {}
    for key, entry in _mapping(data.get(SETTING, "")).items():
        if not isinstance(entry, dict):
            raise ValueError(f"{SETTING}: {key}: found {type(entry).__name__}, must be a mapping")
        script, libs = entry.get("health.lua") or "", entry.get("health.lua.useOpenLibs")
        found[key] = HealthScript(str(script), libs in (True, "true"))
    for setting, value in sorted(data.items()):
        part, _, key = setting.removeprefix(SETTING + ".").partition(".")
        if not setting.startswith(SETTING + ".") or part not in ("health", "useOpenLibs") or not key:
            continue
        key = key.replace("_", "/", 1)
        known = found.get(key, HealthScript())
        script = value if part == "health" else known.script
        found[key] = HealthScript(script, value == "true" if part == "useOpenLibs" else known.open_libs)
    return found


def _mapping(text: str) -> dict[str, Any]:
    value = load(text, file=SETTING) if text.strip() else {}
    if not isinstance(value, dict):
        raise ValueError(f"{SETTING}: found {type(value).__name__}, must be a mapping of GROUP/KIND")
    return value


def script_for(overrides: Mapping[str, HealthScript], kind: GroupKind) -> HealthScript | None:
    """The entry with this very key, else the first by name whose key fits as a pattern; entries without script do not
    count. Groups in patterns have no separator: ``*`` fits ``batch/Job`` too."""
    key = f"{kind.group}/{kind.kind}" if kind.group else kind.kind
    exact = overrides.get(key)
    if exact is not None and exact.script:
        return exact
    for pattern in sorted(overrides):
        if overrides[pattern].script and glob_matches(pattern, key):
            return overrides[pattern]
    return None


def checked_with(
    overrides: Mapping[str, HealthScript], runner: LuaRunner, memo: HealthMemo | None = None
) -> Callable[[Obj], Health | None]:
    """A ``health_of`` in which scripts of users come first. A script that fails is an answer: Unknown, failed."""
    if not any(entry.script for entry in overrides.values()):
        return health_of
    remembered = memo or HealthMemo()

    def check(obj: Obj) -> Health | None:
        entry = script_for(overrides, gvk_of(obj).group_kind)
        if entry is None:
            return health_of(obj)
        return pending_deletion(obj) or remembered.answer(entry, obj, runner)

    return check


class HealthMemo:
    """Answers of scripts, kept by script and version of the object, so that a pass costs what changed; bounded."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._known: OrderedDict[tuple[HealthScript, str, str], Health] = OrderedDict()
        self._limit = limit

    def answer(self, entry: HealthScript, obj: Obj, runner: LuaRunner) -> Health:
        key = (entry, uid_of(obj), resource_version(obj))
        if not key[1] or not key[2]:
            return _run(entry, obj, runner)
        known = self._known.get(key)
        if known is None:
            known = _run(entry, obj, runner)
            if known.unsettled:
                return known  # whoever runs scripts remembers that
            self._known[key] = known
            if len(self._known) > self._limit:
                self._known.popitem(last=False)
        return known


def _run(entry: HealthScript, obj: Obj, runner: LuaRunner) -> Health:
    try:
        result = runner.run(entry.script, {"obj": obj, "actionParams": {}}, open_libs=entry.open_libs)
    except LuaRests as error:
        return replace(_failed(str(error), obj), unsettled=True)
    except LuaFailed as error:
        return _failed(str(error), obj)
    if result.type not in ("nil", "table"):
        return _failed(f"expect table output from Lua script, not {result.type}", obj)
    return _meaning(result)


def _failed(why: str, obj: Obj) -> Health:
    """The resource shows the bare reason, the condition of its application names the object too."""
    where = f"failed to get resource health for {namespace_of(obj)}/{name_of(obj)}"
    return Health(HealthStatus.UNKNOWN, why, failed=True, error=f"{where}: {why}")


def _meaning(result: LuaResult) -> Health:
    """No result and a list say nothing; so does a table with a field of a wrong type, as Go cannot read it."""
    if not isinstance(result.value, dict):
        return Health(HealthStatus.UNSTATED)
    status, message = _field(result.value, "status"), _field(result.value, "message")
    if not isinstance(status, str) or not isinstance(message, str):
        return Health(HealthStatus.UNSTATED)
    if status == "" or status not in set(HealthStatus):
        return Health(HealthStatus.UNKNOWN, INVALID)
    return Health(HealthStatus(status), message)


def _field(table: Mapping[str, Any], name: str) -> Any:
    """By its name in any case, as Go reads JSON; the exact name first."""
    spelled = next((key for key in sorted(table) if key.lower() == name), name)
    return table.get(name, table.get(spelled, ""))
