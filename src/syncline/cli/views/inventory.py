"""Formats an inventory: rows of nodes, pools, clusters and Placements for plays. Values in, data out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from syncline.assembly.inspection.inventory import NODE, READS, Inventory
from syncline.cli.views.pool import node_row, pool_of, pool_row, roles_of
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL
from syncline.fleet.hub.placement.status import SATISFIED
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.fleet.hub.registration.pending import stage_of
from syncline.fleet.hub.sets import sets_of
from syncline.kube.kinds.holds import holds_of
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_POOL
from syncline.kube.kinds.managedclusters import CLUSTER_SET, MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of

VERSIONS: Mapping[str, str] = {
    "kubelet": "kubeletVersion",
    "os": "osImage",
    "kernel": "kernelVersion",
    "runtime": "containerRuntimeVersion",
    "architecture": "architecture",
}
"""Key of a node's row → field of its ``status.nodeInfo``."""
ZONE = "topology.kubernetes.io/zone"


def inventory_obj(found: Inventory, sections: Collection[str], server: str, now: datetime) -> dict[str, Any]:
    """Return the document of ``-o json``: for each section a list, or null if its kind may not be listed or is not
    served; the refused kinds with the reason; the absent ones. A value that a refused kind would give is null, too."""
    rows: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "nodes": lambda: [_node(one, found) for one in found.of(NODE)],
        "pools": lambda: _pools(found, now),
        "clusters": lambda: [_cluster(one, found) for one in found.of(MANAGED_CLUSTER)],
        "placements": lambda: _placements(found),
    }
    return {
        "server": server,
        **{name: rows[name]() if READS[name][0] in found.objects else None for name in READS if name in sections},
        "refused": {kind.kind: why for kind, why in found.refused.items()},
        "absent": sorted(kind.kind for kind in found.absent),
    }


def _node(node: Obj, found: Inventory) -> dict[str, Any]:
    system = dig(node, "status", "nodeInfo", default={})
    addresses: dict[str, str] = {}
    for one in dig(node, "status", "addresses", default=[]):
        addresses.setdefault(str(one.get("type")), str(one.get("address")))
    pool = pool_of(node, found.of(MACHINE_CONFIG_POOL))
    return {
        **node_row(node),
        "pool": None if MACHINE_CONFIG_POOL in found.refused else "" if pool == "-" else pool,
        "roles": [role for role in roles_of(node).split(",") if role],
        "labels": dict(labels_of(node)),
        "zone": labels_of(node).get(ZONE, ""),
        "addresses": addresses,
        "versions": {key: str(system.get(field) or "") for key, field in VERSIONS.items()},
        "taints": dig(node, "spec", "taints") or [],
    }


def _pools(found: Inventory, now: datetime) -> list[dict[str, Any]]:
    holds = [hold for hold in holds_of(found.of(HOLD)) if hold.lives(now)]
    unread = {"holds": None} if HOLD in found.refused else {}
    return [
        pool_row(one, [hold for hold in holds if name_of(one) in hold.pools]) | unread
        for one in found.of(MACHINE_CONFIG_POOL)
    ]


def _cluster(cluster: Obj, found: Inventory) -> dict[str, Any]:
    configs = dig(cluster, "spec", "managedClusterClientConfigs") or []
    available = find_condition(dig(cluster, "status", "conditions") or (), AVAILABLE) or {}
    claims = dig(cluster, "status", "clusterClaims") or ()
    sets = sorted(name_of(one) for one in sets_of(cluster, found.of(CLUSTER_SET)))
    return {
        "name": name_of(cluster),
        "stage": stage_of(cluster),
        "accepted": dig(cluster, "spec", "hubAcceptsClient") is True,
        "available": str(available.get("status") or "Unknown"),
        "reason": str(available.get("message") or ""),
        "labels": dict(labels_of(cluster)),
        "claims": {str(one.get("name")): str(one.get("value")) for one in claims},
        "sets": None if CLUSTER_SET in found.refused else sets,
        "version": str(dig(cluster, "status", "version", "kubernetes") or ""),
        "url": str(configs[0].get("url") or "") if configs else "",
        "taints": dig(cluster, "spec", "taints") or [],
    }


def _placements(found: Inventory) -> list[dict[str, Any]]:
    chosen: dict[tuple[str, str], set[str]] = {}
    for decision in found.of(PLACEMENT_DECISION):
        place = (namespace_of(decision), labels_of(decision).get(PLACEMENT_LABEL, ""))
        names = (str(one.get("clusterName")) for one in dig(decision, "status", "decisions") or ())
        chosen.setdefault(place, set()).update(name for name in names if name)
    rows = []
    for one in found.of(PLACEMENT):
        place = (namespace_of(one), name_of(one))
        satisfied = find_condition(dig(one, "status", "conditions") or (), SATISFIED) or {}
        rows.append(
            {
                "namespace": place[0],
                "name": place[1],
                "clusters": None if PLACEMENT_DECISION in found.refused else sorted(chosen.get(place, ())),
                "satisfied": str(satisfied.get("status") or "Unknown"),
                "reason": str(satisfied.get("message") or ""),
            }
        )
    return rows
