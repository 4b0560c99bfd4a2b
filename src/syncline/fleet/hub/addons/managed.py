"""The plan of a ManagedClusterAddOn that holds for every add-on: its owner, the annotations that it has from its
cluster, and its progress; pure.

Rules: ``pkg/addon/controllers/{addonowner,addonannotation,addonprogressing}`` of upstream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.action import Action
from syncline.control.plan import Done, Patch, Plan, set_status
from syncline.fleet.addons import (
    HOSTING_APPLIED,
    MANIFEST_APPLIED,
    PROGRESSING,
    config_kind,
    config_map_key,
    desired_of,
    hosted,
    managed_by_hub,
)
from syncline.fleet.conditions import condition, find_condition, with_condition
from syncline.fleet.hub.addons.installing import addon_notes, owner_of
from syncline.fleet.hub.addons.progressions import by_placement
from syncline.kube.kinds.managedaddons import CLUSTER_ADDON, MANAGED_ADDON
from syncline.kube.kinds.manifestworks import SPEC_HASH
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    generation,
    is_terminating,
    name_of,
    namespace_of,
    owner_references,
    resource_version,
    uid_of,
)


@dataclass(frozen=True, slots=True)
class Observed:
    """An add-on on a cluster, its ClusterManagementAddOn, the cluster, and the add-on's works on it and on the cluster
    that hosts its agent. ``listed``: they are known."""

    addon: Obj
    cluster_addon: Obj | None
    cluster: Obj | None
    works: tuple[Obj, ...] = ()
    listed: bool = True


def plan_managed(observed: Observed, now: datetime) -> Plan:
    """Plan one reconcile."""
    addon, parent = observed.addon, observed.cluster_addon
    if not observed.listed:
        return Plan(why="waiting for the first lists")
    if parent is None:
        return Plan(why=f"there is no ClusterManagementAddOn {name_of(addon)}")
    changes = _metadata(addon, parent, observed.cluster)
    if not managed_by_hub(parent):
        return Plan((changes,) if changes else (), why="a manager of its own looks after the add-on")
    if changes:
        return Plan((changes,), Done(), "the owner and the annotations of the add-on")
    status = _progressed(addon, observed.works, now)
    return Plan((), Done(), "the add-on's progress", set_status(addon, status, "the add-on's progress"))


def _metadata(addon: Obj, parent: Obj, cluster: Obj | None) -> tuple[Action, ...]:
    """Return the write of the owner, and of the annotations of a cluster where Placements install the add-on."""
    fields: dict[str, Any] = {}
    owners = owner_references(addon)
    owner = owner_of(parent)
    if managed_by_hub(parent) and not is_terminating(addon) and owner["uid"] not in (one.get("uid") for one in owners):
        kept = [one for one in owners if one.get("kind") != CLUSTER_ADDON.kind]
        # An object has one controlling owner at the most.
        controlled = any(one.get("controller") for one in kept)
        fields["ownerReferences"] = [*kept, owner | ({"controller": False} if controlled else {})]
    if cluster is not None and by_placement(parent):
        wanted, live = addon_notes(cluster), addon_notes(addon)
        changes: dict[str, str | None] = {key: value for key, value in wanted.items() if live.get(key) != value}
        changes |= dict.fromkeys(set(live).difference(wanted))
        if changes:
            fields["annotations"] = changes
    if not fields:
        return ()
    body = {"metadata": {"uid": uid_of(addon), "resourceVersion": resource_version(addon), **fields}}
    return (Patch(MANAGED_ADDON, namespace_of(addon), name_of(addon), body, "the owner of the add-on"),)


def _progressed(addon: Obj, works: Iterable[Obj], now: datetime) -> Obj:
    status: Obj = addon.get("status") or {}
    conditions = status.get("conditions") or ()
    said = _unsupported(addon) or _waiting(addon, conditions)
    if said is None:
        why = _unfinished(addon, works)
        if why:
            said = condition(PROGRESSING, "True", "Progressing", f"progressing... {why}")
        else:
            said = condition(PROGRESSING, "False", "Completed", "completed with no errors.")
            references = [_applied(one) for one in status.get("configReferences") or ()]
            status = {**status, "configReferences": references} if references else status
    return {**status, "conditions": with_condition(conditions, said, now)}


def _applied(reference: Obj) -> Obj:
    desired = reference.get("desiredConfig")
    return {**reference, "lastAppliedConfig": desired} if desired else reference


def _unsupported(addon: Obj) -> Obj | None:
    supported = {config_kind(one) for one in dig(addon, "status", "supportedConfigs") or ()}
    for one in dig(addon, "spec", "configs") or ():
        kind = config_kind(one)
        if kind not in supported:
            text = f"Configuration with gvr {kind.group}/{kind.resource} is not supported for this addon"
            return condition(PROGRESSING, "False", "ConfigurationUnsupported", text)
    return None


def _waiting(addon: Obj, conditions: Iterable[Obj]) -> Obj | None:
    listed = list(conditions)
    for kind in (MANIFEST_APPLIED, *((HOSTING_APPLIED,) if hosted(addon) else ())):
        if find_condition(listed, kind) is None:
            text = f"Waiting for ManagedClusterAddOn {kind} condition"
            return condition(PROGRESSING, "False", f"WaitingFor{kind}", text)
    return None


def _unfinished(addon: Obj, works: Iterable[Obj]) -> str:
    """Return why the works of the add-on are not all applied with its configs; empty if they are."""
    listed = list(works)
    if not listed:
        return "no addon works"
    for work in listed:
        if name_of(work).startswith(f"addon-{name_of(addon)}-pre-delete"):
            continue
        if not _same_configs(work, addon):
            return "mca and work configs mismatch"
        if not work_is_ready(work):
            return "work is not ready"
    return ""


def config_hashes_of(addon: Obj) -> dict[str, str] | None:
    """Return the hashes of the configs of an add-on, by :func:`config_map_key`; None while one is not known."""
    found = {}
    for entry in dig(addon, "status", "configReferences") or ():
        desired = desired_of(entry)
        if desired is None or not desired.spec_hash:
            return None
        found[config_map_key(desired)] = desired.spec_hash
    return found


def _same_configs(work: Obj, addon: Obj) -> bool:
    text = annotations_of(work).get(SPEC_HASH)
    if text is None:
        return not dig(addon, "status", "configReferences")
    try:
        hashes = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(hashes, Mapping) and all(hashes.values()) and hashes == config_hashes_of(addon)


def work_is_ready(work: Obj) -> bool:
    """Return whether the agent has applied this generation of a work and found all of it there."""
    conditions = dig(work, "status", "conditions") or ()
    for kind in ("Available", "Applied"):
        found = find_condition(conditions, kind) or {}
        if found.get("status") != "True" or found.get("observedGeneration") != generation(work):
            return False
    return True
