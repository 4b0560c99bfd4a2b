"""Health by users' scripts from ``argocd-cm``: selects an object's script and interprets its result.

The settings are parsed by :func:`parse_overrides`. A plan looks up results (:func:`judged_with`); a missing one becomes
a :class:`HealthQuestion` that a child process evaluates. Pure but for the runner of :func:`checked_with`. Rules: Argo
CD ``util/lua`` (``ResourceHealthOverrides``, ``VM.GetHealthScript``), ``util/settings`` (``GetResourceOverrides``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import msgspec

from syncline.apply.health.check import health_of, pending_deletion
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.apply.lua import LuaFailed, LuaResult, LuaRunner
from syncline.kube.objects import GroupKind, Obj, gvk_of, name_of, namespace_of, resource_version, uid_of
from syncline.kube.text.glob import glob_matches
from syncline.kube.yaml.loading import load

SETTING = "resource.customizations"
INVALID = "Lua returned an invalid health status"


@dataclass(frozen=True, slots=True)
class HealthScript:
    """One entry; an empty ``script`` means none. ``open_libs``: with string, math and coroutine."""

    script: str = ""
    open_libs: bool = False


def parse_overrides(data: Mapping[str, str]) -> dict[str, HealthScript]:
    """Parse ``data`` of ``argocd-cm`` into key (``GROUP/KIND``, core: ``KIND``) → script.

    Both forms: the YAML under ``resource.customizations``, and ``resource.customizations.health.GROUP_KIND`` with
    ``….useOpenLibs.GROUP_KIND``, which win. Raises ValueError, naming the setting, if the YAML is not a mapping.
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
    """Return the entry with this key, else the first by name whose key matches as a pattern; entries without script are
    skipped. Patterns have no separator: ``*`` matches ``batch/Job`` too."""
    key = f"{kind.group}/{kind.kind}" if kind.group else kind.kind
    exact = overrides.get(key)
    if exact is not None and exact.script:
        return exact
    for pattern in sorted(overrides):
        if overrides[pattern].script and glob_matches(pattern, key):
            return overrides[pattern]
    return None


@dataclass(frozen=True)
class HealthQuestion:
    """The question which health ``entry`` gives to ``obj``."""

    entry: HealthScript
    obj: Obj = field(repr=False)

    @cached_property
    def key(self) -> str:
        """Return the key: script and version of the object; without a version its whole content."""
        uid, version = uid_of(self.obj), resource_version(self.obj)
        content = (self.entry.script, self.entry.open_libs, (uid, version) if uid and version else self.obj)
        return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).hexdigest()


def question_of(overrides: Mapping[str, HealthScript], obj: Obj) -> HealthQuestion | None:
    """Return the question to evaluate for ``obj``; None if no script applies."""
    entry = script_for(overrides, gvk_of(obj).group_kind)
    return None if entry is None or pending_deletion(obj) is not None else HealthQuestion(entry, obj)


def checked_with(overrides: Mapping[str, HealthScript], runner: LuaRunner) -> Callable[[Obj], Health | None]:
    """Return a ``health_of`` that runs users' scripts first, directly: for commands. A failed script gives Unknown,
    failed."""
    return judged_with(overrides, partial(_run, runner))


def judged_with(
    overrides: Mapping[str, HealthScript], answer: Callable[[HealthQuestion], Health]
) -> Callable[[Obj], Health | None]:
    """As :func:`checked_with`, with results from ``answer``."""
    if not any(entry.script for entry in overrides.values()):
        return health_of

    def check(obj: Obj) -> Health | None:
        question = question_of(overrides, obj)
        if question is None:
            return pending_deletion(obj) or health_of(obj)
        return answer(question)

    return check


def _run(runner: LuaRunner, question: HealthQuestion) -> Health:
    entry, obj = question.entry, question.obj
    try:
        result = runner.run(entry.script, {"obj": obj, "actionParams": {}}, open_libs=entry.open_libs)
    except LuaFailed as error:
        return failed_health(str(error), obj)
    return meaning(result, obj)


def meaning(result: LuaResult, obj: Obj) -> Health:
    """Return the health from a script's result for ``obj``. No result and a list mean none; so does a table with a
    field of a wrong type, which Go cannot read."""
    if result.type not in ("nil", "table"):
        return failed_health(f"expect table output from Lua script, not {result.type}", obj)
    if not isinstance(result.value, dict):
        return Health(HealthStatus.UNSTATED)
    status, message = _field(result.value, "status"), _field(result.value, "message")
    if not isinstance(status, str) or not isinstance(message, str):
        return Health(HealthStatus.UNSTATED)
    if status == "" or status not in set(HealthStatus):
        return Health(HealthStatus.UNKNOWN, INVALID)
    return Health(HealthStatus(status), message)


def failed_health(why: str, obj: Obj) -> Health:
    """Return a failed health: the resource shows the reason, the application's condition names the object too."""
    where = f"failed to get resource health for {namespace_of(obj)}/{name_of(obj)}"
    return Health(HealthStatus.UNKNOWN, why, failed=True, error=f"{where}: {why}")


def _field(table: Mapping[str, Any], name: str) -> Any:
    """Return a field by name in any case, as Go reads JSON; the exact name wins."""
    spelled = next((key for key in sorted(table) if key.lower() == name), name)
    return table.get(name, table.get(spelled, ""))
