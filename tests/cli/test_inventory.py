"""``syncline inventory``: what may not be listed is never an empty list."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from syncline.assembly.inspection.inventory import NODE, READS, Inventory
from syncline.cli.views.inventory import inventory_obj
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_POOL
from syncline.kube.kinds.managedclusters import CLUSTER_SET, MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import GVK, Obj

NOW = datetime(2026, 5, 1, tzinfo=UTC)
WORKER = {"node-role.kubernetes.io/worker": ""}
SET = "cluster.open-cluster-management.io/clusterset"
PICKED = "cluster.open-cluster-management.io/placement"


def made(kind: GVK, name: str, namespace: str = "", labels: dict[str, str] | None = None, **parts: Any) -> Obj:
    metadata: Obj = {"name": name, "labels": labels or {}} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata} | parts


OBJECTS: dict[GVK, list[Obj]] = {
    NODE: [
        made(
            NODE,
            "n1",
            labels=WORKER | {"topology.kubernetes.io/zone": "a"},
            status={
                "addresses": [{"type": "InternalIP", "address": ip} for ip in ("10.0.0.1", "fd00::1")],
                "nodeInfo": {"kubeletVersion": "v1.36.0", "architecture": "arm64"},
            },
        )
    ],
    MACHINE_CONFIG_POOL: [
        made(MACHINE_CONFIG_POOL, "worker", spec={"nodeSelector": {"matchLabels": WORKER}}),
    ],
    HOLD: [
        made(HOLD, name, spec={"pools": ["worker"], "owner": name, "reason": "disks", "expiresAt": ends})
        for name, ends in (("lives", "2026-05-01T01:00:00Z"), ("over", "2026-04-01T00:00:00Z"))
    ],
    MANAGED_CLUSTER: [made(MANAGED_CLUSTER, "eu-1", labels={SET: "eu"}, spec={"hubAcceptsClient": True})],
    CLUSTER_SET: [made(CLUSTER_SET, "eu", spec={"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}})],
    PLACEMENT: [made(PLACEMENT, "all", "fleet"), made(PLACEMENT, "none", "fleet")],
    PLACEMENT_DECISION: [
        made(
            PLACEMENT_DECISION,
            f"all-decision-{number}",
            "fleet",
            {PICKED: "all"},
            status={"decisions": [{"clusterName": name, "reason": ""}]},
        )
        for number, name in ((1, "eu-2"), (2, "eu-1"))
    ],
}


def document(*refused: GVK, absent: frozenset[GVK] = frozenset()) -> dict[str, Any]:
    readable = {kind: found for kind, found in OBJECTS.items() if kind not in refused and kind not in absent}
    found = Inventory(readable, {kind: f"{kind.kind} is forbidden" for kind in refused}, absent)
    return inventory_obj(found, list(READS), "https://hub", NOW)


def test_rows_have_what_plays_ask_for() -> None:
    found = document()
    (node,), (pool,), (cluster,) = found["nodes"], found["pools"], found["clusters"]
    assert (node["pool"], node["roles"], node["zone"]) == ("worker", ["worker"], "a")
    assert node["addresses"] == {"InternalIP": "10.0.0.1"}, "the first of a type"
    assert (node["versions"]["kubelet"], node["versions"]["architecture"]) == ("v1.36.0", "arm64")
    assert [one["owner"] for one in pool["holds"]] == ["lives"], "a Hold that is over holds nothing"
    assert (cluster["sets"], cluster["accepted"], cluster["available"]) == (["eu"], True, "Unknown")
    chosen = {one["name"]: one["clusters"] for one in found["placements"]}
    assert chosen == {"all": ["eu-1", "eu-2"], "none": []}, "over all pages of decisions"


def test_what_may_not_be_listed_is_null_and_named() -> None:
    found = document(NODE, MACHINE_CONFIG_POOL, PLACEMENT_DECISION, absent=frozenset({CLUSTER_SET}))
    assert found["nodes"] is None and found["pools"] is None
    assert [one["clusters"] for one in found["placements"]] == [None, None]
    assert found["refused"]["Node"] == "Node is forbidden" and found["absent"] == ["ManagedClusterSet"]
    assert found["clusters"][0]["sets"] == [], "a kind that is not served has no objects"
    unread = document(MACHINE_CONFIG_POOL, HOLD, CLUSTER_SET)
    assert unread["nodes"][0]["pool"] is None and unread["clusters"][0]["sets"] is None
    assert document(HOLD)["pools"][0]["holds"] is None
