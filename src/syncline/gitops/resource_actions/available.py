"""Lists the actions of an object and computes their writes: built-in actions and users' scripts.

Called by ``syncline app actions`` with the live object. Users' scripts are in ``argocd-cm`` and run in the given
:class:`~syncline.apply.lua.LuaRunner`. Rules: Argo CD ``util/lua`` (``GetResourceActionDiscovery``,
``GetResourceAction``, ``ExecuteResourceAction``), ``util/settings`` (``GetResourceOverrides``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from syncline.apply.lua import LuaFailed, LuaRunner
from syncline.argo.customizations import customized
from syncline.gitops.resource_actions import argo, numaproj, operators, workloads
from syncline.gitops.resource_actions.model import ActionFailed, ActionKind, Effect, Offer, Verb
from syncline.kube.objects import Obj, gvk_of
from syncline.kube.yaml.loading import YamlError, load

KNOWN: Mapping[str, ActionKind] = {**workloads.ACTIONS, **argo.ACTIONS, **operators.ACTIONS, **numaproj.ACTIONS}
"""Built-in actions by ``GROUP/KIND``."""


@dataclass(frozen=True, slots=True)
class ActionScripts:
    """Settings of ``argocd-cm`` for one kind. ``merged``: built-in actions are offered too."""

    discovery: str = ""
    scripts: Mapping[str, str] = field(default_factory=dict)
    merged: bool = False


def parse_action_scripts(data: Mapping[str, str]) -> dict[str, ActionScripts]:
    """Parse ``data`` of ``argocd-cm`` into scripts by key. Raises ValueError, naming the setting."""
    found: dict[str, ActionScripts] = {}
    for key, text in customized(data, "actions").items():
        setting = f"resource.customizations: actions of {key}"
        try:
            value = load(str(text), file=setting) if str(text).strip() else {}
        except YamlError as error:
            raise ValueError(f"{setting}: {error}") from error
        if not isinstance(value, dict):
            raise ValueError(f"{setting}: found {type(value).__name__}, must be a mapping")
        definitions = value.get("definitions") or []
        scripts = {str(one.get("name")): str(one.get("action.lua") or "") for one in definitions if _is_map(one)}
        merged = value.get("mergeBuiltinActions") in (True, "true")
        found[key] = ActionScripts(str(value.get("discovery.lua") or ""), scripts, merged)
    return found


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _key(obj: Obj) -> str:
    gvk = gvk_of(obj)
    return f"{gvk.group}/{gvk.kind}" if gvk.group else gvk.kind


def offered_actions(obj: Obj, scripts: Mapping[str, ActionScripts], runner: LuaRunner) -> tuple[Offer, ...]:
    """Return the actions sorted by name; a user's action hides a built-in one. Raises :class:`ActionFailed`."""
    key = _key(obj)
    own, known = scripts.get(key), KNOWN.get(key)
    found: dict[str, Offer] = {}
    if own is not None:
        found = {offer.name: offer for offer in _discovered(obj, own.discovery, runner)}
    if known is not None and (own is None or own.merged):
        found = {offer.name: offer for offer in known.discover(obj)} | found
    return tuple(found[name] for name in sorted(found))


_OFFERED = {"name": str, "disabled": bool, "iconClass": str, "displayName": str}
"""Fields of an offered action and their types."""


def _discovered(obj: Obj, script: str, runner: LuaRunner) -> list[Offer]:
    value = _run(script, obj, {}, runner)
    if value == []:
        return []
    if not isinstance(value, dict):
        raise ActionFailed("discovery.lua: found a list, must be a table of actions by name")
    return [_offer(name, {} if entry == [] else entry) for name, entry in value.items()]


def _offer(key: str, entry: Any) -> Offer:
    """Parse one action; an empty table means defaults."""
    if not isinstance(entry, dict):
        raise ActionFailed(f"discovery.lua: action {key}: found {entry!r}, must be a table")
    for part, wanted in _OFFERED.items():
        found = entry.get(part, wanted())
        if not isinstance(found, wanted):
            raise ActionFailed(f"discovery.lua: action {key}: {part}: found {found!r}, must be a {wanted.__name__}")
    params = entry.get("params")
    return Offer(
        str(entry.get("name") or key),
        disabled=entry.get("disabled") is True,
        icon=str(entry.get("iconClass") or ""),
        display=str(entry.get("displayName") or ""),
        params=tuple(str(one["name"]) for one in params if _is_map(one) and "name" in one)
        if isinstance(params, list)
        else (),
    )


def run_action(
    obj: Obj,
    name: str,
    params: Mapping[str, str],
    scripts: Mapping[str, ActionScripts],
    runner: LuaRunner,
    now: datetime,
) -> tuple[Effect, ...]:
    """Return the writes of action ``name`` without performing them. Raises :class:`ActionFailed`."""
    key = _key(obj)
    own, known = scripts.get(key), KNOWN.get(key)
    if own is not None and name in own.scripts:
        return _effects(obj, _run(own.scripts[name], obj, params, runner))
    if known is None or name not in known.acts:
        offered = sorted({*(known.acts if known else ()), *(own.scripts if own else ())})
        names = ", ".join(offered) or "none"
        raise ActionFailed(f"{key} has no action {name!r}; it has: {names}")
    return known.acts[name](obj, params, now)


def _run(script: str, obj: Obj, params: Mapping[str, str], runner: LuaRunner) -> Any:
    try:
        result = runner.run(script, {"obj": obj, "actionParams": dict(params)}, open_libs=False)
    except LuaFailed as error:
        raise ActionFailed(str(error)) from error
    if result.type != "table":
        raise ActionFailed(f"expect table output from Lua script, not {result.type}")
    return result.value


def _effects(obj: Obj, value: Any) -> tuple[Effect, ...]:
    """Parse a script's result: an object (old form) is patched; a list holds objects to patch or create."""
    if isinstance(value, dict):
        return (Effect(Verb.PATCH, _like(_with_kind(value), obj)),)
    found: list[Effect] = []
    for entry in value if isinstance(value, list) else ():
        if not _is_map(entry) or entry.get("operation") not in list(Verb) or not _is_map(entry.get("resource")):
            operation = entry.get("operation") if _is_map(entry) else entry
            raise ActionFailed(
                f"unsupported operation: {operation}; each entry needs operation (patch, create), resource"
            )
        verb, made = Verb(entry["operation"]), _with_kind(entry["resource"])
        found.append(Effect(verb, _like(made, obj) if verb is Verb.PATCH else made))
    return tuple(found)


def _with_kind(made: Obj) -> Obj:
    if not made.get("kind"):
        raise ActionFailed(f"the script returned an object without kind; its fields are: {', '.join(sorted(made))}")
    return made


def _like(made: Any, before: Any) -> Any:
    """Restore empty maps: Lua cannot distinguish an empty map from an empty list."""
    if isinstance(made, dict) and isinstance(before, dict):
        return {key: _like(value, before.get(key)) for key, value in made.items()}
    if made == [] and isinstance(before, dict):
        return {}
    if isinstance(made, list) and isinstance(before, list):
        return [_like(value, old) for value, old in zip(made, before, strict=False)] + made[len(before) :]
    return made
