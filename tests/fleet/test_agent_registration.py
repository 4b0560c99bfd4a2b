"""The registration half of an agent between two clusters in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.fleet.world import CLUSTERS, Fleet

from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import AVAILABLE, CLOCK_SYNCED
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj

LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/managed-cluster-lease"
CLAIMS = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims"
EVENTS = "/api/v1/namespaces/c1/events"
NODES = "/api/v1/nodes"


def status_of(fleet: Fleet, kind: str, name: str = "c1") -> str | None:
    conditions = fleet.cluster(name).get("status", {}).get("conditions", ())
    return (find_condition(conditions, kind) or {}).get("status")


def renewed(fleet: Fleet) -> str:
    return str(fleet.hub.get(LEASE.format("c1"))["spec"]["renewTime"])


def reasons(fleet: Fleet) -> list[str]:
    return [one["reason"] for one in fleet.hub.get(EVENTS)["items"]]


@dataclass
class Answering:
    """The API of a cluster, with other answers to some paths."""

    inner: Transport
    answers: dict[str, Response] = field(default_factory=dict)

    def send(self, request: Request) -> Response:
        return self.answers.get(request.path) or self.inner.send(request)


def with_answers(fleet: Fleet, **answers: int) -> Answering:
    """Start the agent of c1 again, on a cluster that answers some health paths with these codes."""
    made: list[Answering] = []

    def wrap(inner: Transport) -> Transport:
        made.append(Answering(inner))
        made[0].answers.update({f"/{path}": Response.of(code, None) for path, code in answers.items()})
        return made[0]

    fleet.start_agent("c1", wrap_own=wrap)
    return made[0]


@pytest.fixture
def fleet() -> Fleet:
    return Fleet("c1")


def test_b11_b12_an_accepted_cluster_joins_and_stays_available_for_an_hour(fleet: Fleet) -> None:
    fleet.time.advance(5)
    assert status_of(fleet, "ManagedClusterJoined") == "True"
    assert status_of(fleet, AVAILABLE) == "True"
    assert fleet.cluster("c1")["status"]["version"]["kubernetes"].startswith("v1.")
    assert "Available" in reasons(fleet)
    first = renewed(fleet)
    fleet.time.advance(3600)
    assert status_of(fleet, AVAILABLE) == "True"
    assert renewed(fleet) > first


def test_b1_b2_a_cluster_that_is_not_accepted_has_only_been_proposed() -> None:
    fleet = Fleet()
    fleet.add("c1", accepted=False)
    fleet.time.advance(120)
    assert fleet.cluster("c1").get("status", {}).get("conditions", []) == []
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1", {"spec": {"hubAcceptsClient": True}})
    fleet.start_agent("c1")  # a live one asks again by itself
    fleet.time.advance(120)
    assert status_of(fleet, AVAILABLE) == "True"


def test_b6_a_denied_agent_gives_no_sign_of_life_until_it_is_accepted_again(fleet: Fleet) -> None:
    fleet.time.advance(5)
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1", {"spec": {"hubAcceptsClient": False}})
    fleet.time.advance(5)
    last = renewed(fleet)
    fleet.time.advance(400)
    assert renewed(fleet) == last
    assert status_of(fleet, AVAILABLE) == "Unknown"
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1", {"spec": {"hubAcceptsClient": True}})
    fleet.time.advance(120)
    assert renewed(fleet) > last
    assert status_of(fleet, AVAILABLE) == "True"


def test_b14_an_agent_that_was_cut_off_is_unknown_and_comes_back(fleet: Fleet) -> None:
    fleet.time.advance(5)
    cable = fleet.members["c1"].hub_cable
    cable.cut()
    fleet.time.advance(600)
    assert status_of(fleet, AVAILABLE) == "Unknown"
    cable.mend()
    fleet.time.advance(120)
    assert status_of(fleet, AVAILABLE) == "True"


def test_b16_a_cluster_whose_api_fails_is_unavailable_and_recovers(fleet: Fleet) -> None:
    broken = with_answers(fleet)
    fleet.time.advance(5)
    broken.answers["/livez"] = Response.of(500, "etcd failed")
    fleet.time.advance(62 + 10)
    assert status_of(fleet, AVAILABLE) == "True"
    fleet.time.advance(15)
    assert status_of(fleet, AVAILABLE) == "False"
    assert "Unavailable" in reasons(fleet)
    broken.answers.clear()
    fleet.time.advance(10)
    assert status_of(fleet, AVAILABLE) == "True"


def test_b16_a_cluster_that_cannot_be_reached_is_unavailable_not_unknown(fleet: Fleet) -> None:
    fleet.time.advance(5)
    fleet.members["c1"].own_cable.cut()
    fleet.time.advance(90)
    assert status_of(fleet, AVAILABLE) == "False"
    fleet.time.advance(600)
    assert status_of(fleet, AVAILABLE) == "False", "the agent goes on renewing its lease"


@pytest.mark.parametrize("code", [403, 404])
def test_b17_where_livez_cannot_be_read_healthz_decides(fleet: Fleet, code: int) -> None:
    with_answers(fleet, livez=code)
    fleet.time.advance(200)
    assert status_of(fleet, AVAILABLE) == "True"
    with_answers(fleet, livez=code, healthz=500)
    fleet.time.advance(200)
    assert status_of(fleet, AVAILABLE) == "False"


def test_b18_an_agent_with_a_wrong_clock_drifts_to_unknown_and_may_be_excused(fleet: Fleet) -> None:
    fleet.time.advance(5)
    fleet.members["c1"].clock.off_s = 3600.0
    live = fleet.cluster("c1")["status"]["conditions"]
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
    differs = {"type": CLOCK_SYNCED, "status": "False", "reason": "ManagedClusterClockOutOfSync", **since}
    unknown = {"type": AVAILABLE, "status": "Unknown", "reason": "ManagedClusterLeaseUpdateStopped", **since}
    kept = [one for one in live if one["type"] not in (CLOCK_SYNCED, AVAILABLE)]
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1/status", {"status": {"conditions": [*kept, differs, unknown]}})
    fleet.time.advance(200)
    assert status_of(fleet, AVAILABLE) == "Unknown"
    assert renewed(fleet) > "2026-01-01T01:00:00Z", "signs of life go on, so that the hub sees when the clock is right"
    notes = {"registration.open-cluster-management.io/skip-clock-sync-check": "true"}
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1", {"metadata": {"annotations": notes}})
    fleet.time.advance(200)
    assert status_of(fleet, AVAILABLE) == "True"


def node(name: str, cordoned: bool = False) -> Obj:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    kind: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return {**kind, "spec": {"unschedulable": cordoned}, "status": {"capacity": amounts, "allocatable": amounts}}


def test_b24_a_cordoned_node_counts_as_capacity_alone(fleet: Fleet) -> None:
    spoke = fleet.members["c1"]
    spoke.send("POST", NODES, node("n1"))
    spoke.send("POST", NODES, node("n2"))
    fleet.time.advance(5)
    status = fleet.cluster("c1")["status"]
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("8", "8")
    spoke.send("PATCH", f"{NODES}/n2", {"spec": {"unschedulable": True}})
    fleet.time.advance(5)
    status = fleet.cluster("c1")["status"]
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("8", "4")


def claim(name: str, **labels: str) -> Obj:
    kind: Obj = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "ClusterClaim"}
    return {**kind, "metadata": {"name": name, "labels": labels}, "spec": {"value": "v"}}


def test_b22_b23_the_hub_shows_reserved_claims_and_20_others(fleet: Fleet) -> None:
    spoke = fleet.members["c1"]
    for number in range(25):
        spoke.send("POST", CLAIMS, claim(f"claim-{number:02}"))
    spoke.send("POST", CLAIMS, claim("id.k8s.io"))
    spoke.send("POST", CLAIMS, claim("a-secret", **{"open-cluster-management.io/spoke-only": ""}))
    fleet.time.advance(5)
    names = [one["name"] for one in fleet.cluster("c1")["status"]["clusterClaims"]]
    assert names == ["id.k8s.io", *(f"claim-{number:02}" for number in range(20))]
    assert "CustomClusterClaimsTruncated" in reasons(fleet)


def test_namespaces_of_cluster_sets_are_made_and_never_deleted(fleet: Fleet) -> None:
    fleet.time.advance(5)
    spoke = fleet.members["c1"]
    status: Any = {"managedNamespaces": [{"name": "team-a", "clusterSet": "s1"}]}
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1/status", {"status": status})
    fleet.time.advance(5)
    labels = spoke.get("/api/v1/namespaces/team-a")["metadata"]["labels"]
    (label,) = [key for key in labels if key.startswith("clusterset.open-cluster-management.io/")]
    assert labels[label] == "true"
    (entry,) = fleet.cluster("c1")["status"]["managedNamespaces"]
    assert entry["conditions"][0]["reason"] == "NamespaceApplied"
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1/status", {"status": {"managedNamespaces": []}})
    fleet.time.advance(5)
    assert spoke.get("/api/v1/namespaces/team-a")["metadata"]["labels"][label] == "false"


def test_a_hub_restored_from_an_old_backup_gets_a_sign_of_life_before_a_status(fleet: Fleet) -> None:
    fleet.time.advance(90)
    fleet.hub.send("PATCH", LEASE.format("c1"), {"spec": {"renewTime": "2025-12-31T12:00:00.000000Z"}})
    fleet.time.advance(5)
    assert status_of(fleet, AVAILABLE) == "True"
    assert renewed(fleet) > "2026-01-01T00:01:29Z"
    assert reasons(fleet).count("AvailableUnknown") == 1, "the hub did not have to say it again"
