"""What a ClusterManagementAddOn says of its configs: the defaults, and those of each Placement with their hashes; pure.

Rules: ``pkg/addon/controllers/cmainstallprogression`` of upstream, and the hashing of its add-on framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from syncline.fleet.addons import Config, ConfigKind, ConfigName, config_kind, config_name, config_of, desired_of
from syncline.kube.objects import Obj, dig


class Content(NamedTuple):
    """What a config holds: its hash, empty if it does not exist, and its generation."""

    spec_hash: str = ""
    generation: int = 0


Hashes = Mapping[Config, Content]
"""The content of each config that the hub can read, by the config without its hash."""


def defaults_of(cluster_addon: Obj) -> list[Config]:
    """Return the default configs, without hashes."""
    supported = dig(cluster_addon, "spec", "supportedConfigs") or ()
    named = ((config_kind(one), config_name(one.get("defaultConfig") or {})) for one in supported)
    return [Config(kind, at) for kind, at in named if at.name]


def named_configs(cluster_addon: Obj) -> list[Config]:
    """Return every config that the object names, without hashes."""
    placements = dig(cluster_addon, "spec", "installStrategy", "placements") or ()
    return [*defaults_of(cluster_addon), *(config_of(each) for one in placements for each in one.get("configs") or ())]


def by_placement(cluster_addon: Obj) -> bool:
    """Return whether Placements say where the add-on is installed."""
    return bool(dig(cluster_addon, "spec", "installStrategy", "type") == "Placements")


def _hashed(config: Config, hashes: Hashes, before: Iterable[Config | None]) -> Config:
    """Give a config its hash: of its content, or for a kind that others hash the one that its status has."""
    if config in hashes:
        return replace(config, spec_hash=hashes[config].spec_hash)
    known = (one for one in before if one is not None and (one.kind, one.at) == (config.kind, config.at))
    return next(known, config)


def default_references(cluster_addon: Obj, hashes: Hashes) -> list[Obj]:
    """Return ``status.defaultconfigReferences``."""
    before = [desired_of(one) for one in dig(cluster_addon, "status", "defaultconfigReferences") or ()]
    configs = [_hashed(one, hashes, before) for one in defaults_of(cluster_addon)]
    return [{**_kind(one.kind), "desiredConfig": one.hashed} for one in configs]


def progressions(cluster_addon: Obj, hashes: Hashes) -> list[Obj]:
    """Return ``status.installProgressions`` without what the rollout says: one entry for each Placement in the order of
    the spec. What was applied before stays while the entry names the same configs."""
    if not by_placement(cluster_addon):
        return []
    live = dig(cluster_addon, "status", "installProgressions") or ()
    found = []
    for strategy in dig(cluster_addon, "spec", "installStrategy", "placements") or ():
        configs = _overridden(defaults_of(cluster_addon), [config_of(one) for one in strategy.get("configs") or ()])
        at = {"namespace": strategy.get("namespace", ""), "name": strategy.get("name", "")}
        found.append(_progression(at, configs, live, hashes))
    return found


def _overridden(defaults: Iterable[Config], own: Iterable[Config]) -> list[Config]:
    """Return the configs by kind, in order of kinds: those of a kind that ``own`` names replace the default ones."""
    kinds: dict[ConfigKind, dict[ConfigName, Config]] = {}
    for one in defaults:
        kinds.setdefault(one.kind, {})[one.at] = one
    replaced: set[ConfigKind] = set()
    for one in own:
        if one.kind not in replaced:
            replaced.add(one.kind)
            kinds[one.kind] = {}
        kinds[one.kind].setdefault(one.at, one)
    return [config for kind in sorted(kinds) for config in kinds[kind].values()]


def _progression(at: Obj, configs: list[Config], live: Iterable[Obj], hashes: Hashes) -> Obj:
    before = next((one for one in live if _is_of(one, at, configs)), None)
    references = (before or {}).get("configReferences") or []
    known = {(config_kind(one), config_name(one.get("desiredConfig") or {})): one for one in references}
    entries = []
    for config in configs:
        old = known.get((config.kind, config.at), {})
        rolled = {key: old[key] for key in ("lastAppliedConfig", "lastKnownGoodConfig") if old.get(key)}
        desired = _hashed(config, hashes, [desired_of(one) for one in references])
        entries.append({**_kind(config.kind), "desiredConfig": desired.hashed, **rolled})
    conditions = {"conditions": before["conditions"]} if before and before.get("conditions") else {}
    return at | ({"configReferences": entries} if entries else {}) | conditions


def _is_of(entry: Obj, at: Obj, configs: list[Config]) -> bool:
    if any(entry.get(key) != value for key, value in at.items()):
        return False
    references = entry.get("configReferences") or ()
    known = {(config_kind(one), config_name(one.get("desiredConfig") or {})) for one in references}
    return all((one.kind, one.at) in known for one in configs)


def _kind(kind: ConfigKind) -> Obj:
    return {"group": kind.group, "resource": kind.resource}
