"""What add-ons and their cluster say of each other: labels of the cluster that name its add-ons and their health, and
the state of the add-ons of a cluster that does not answer; pure.

Rules: ``pkg/registration/hub/addon`` of upstream.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Emit, Patch, Plan, set_status
from syncline.fleet.addons import AVAILABLE
from syncline.fleet.conditions import condition, find_condition, with_condition
from syncline.fleet.hub.registration.leases import AVAILABLE as CLUSTER_AVAILABLE
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of, resource_version, uid_of

FEATURE: Final = "feature.open-cluster-management.io/addon-"
"""The label of a cluster that has an add-on, followed by the name of the add-on."""
_HEALTH: Final = {"True": "available", "False": "unhealthy"}


@dataclass(frozen=True, slots=True)
class Members:
    """A ManagedCluster and its add-ons; ``listed``: they are known."""

    cluster: Obj
    addons: tuple[Obj, ...]
    listed: bool = True


def plan_members(observed: Members, now: datetime) -> Plan:
    """Plan the labels of a cluster and, where it does not answer, the state of its add-ons."""
    cluster = observed.cluster
    said = find_condition(dig(cluster, "status", "conditions") or (), CLUSTER_AVAILABLE)
    if not observed.listed or said is None:
        return Plan(why="it is not known yet whether the cluster is available")
    actions: list[Action] = []
    if said.get("status") == "Unknown":
        for addon in observed.addons:
            actions += _lost(addon, said, name_of(cluster), now)
    if not is_terminating(cluster):
        actions += _labels(cluster, observed.addons)
    return Plan((tuple(actions),) if actions else (), why="the cluster says which add-ons it has")


def feature_labels(addons: tuple[Obj, ...]) -> dict[str, str]:
    """Return the labels for add-ons, but for those that are being deleted."""
    found = {}
    for addon in addons:
        if not is_terminating(addon):
            said = find_condition(dig(addon, "status", "conditions") or (), AVAILABLE) or {}
            found[FEATURE + name_of(addon)] = _HEALTH.get(str(said.get("status")), "unreachable")
    return found


def _labels(cluster: Obj, addons: tuple[Obj, ...]) -> tuple[Action, ...]:
    wanted, live = feature_labels(addons), labels_of(cluster)
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if live.get(key) != value}
    changes |= {key: None for key in live if key.startswith(FEATURE) and key not in wanted}
    if not changes:
        return ()
    body = {"metadata": {"uid": uid_of(cluster), "resourceVersion": resource_version(cluster), "labels": changes}}
    return (Patch(MANAGED_CLUSTER, "", name_of(cluster), body, "the add-ons of the cluster"),)


def _lost(addon: Obj, said: Obj, cluster: str, now: datetime) -> tuple[Action, ...]:
    live: Obj = addon.get("status") or {}
    new = condition(AVAILABLE, "Unknown", str(said.get("reason")), str(said.get("message")))
    conditions = with_condition(live.get("conditions") or (), new, now)
    written = set_status(addon, {**live, "conditions": conditions}, "the cluster does not answer")
    if not written:
        return ()
    text = f'update addon "{name_of(addon)}" status to unknown on managed cluster "{cluster}"'
    reason = "ManagedClusterAddOnStatusUpdated"
    return (*written, Emit(addon, reason, text, "managed-cluster-addon-health-check-controller"))
