"""MultiClusterHub and Hive's kinds: served, stored, and their objects say that nothing works on them."""

from __future__ import annotations

import pytest
from tests.patterns.policies.world import Policies

HIVE = "hive.openshift.io/v1"


@pytest.mark.parametrize(
    ("version", "kind", "plural", "condition", "said"),
    [
        (
            "operator.open-cluster-management.io/v1",
            "MultiClusterHub",
            "multiclusterhubs",
            "Complete",
            "syncline up --hub",
        ),
        (HIVE, "ClusterDeployment", "clusterdeployments", "Provisioned", "install Hive"),
        (HIVE, "ClusterPool", "clusterpools", "CapacityAvailable", "install Hive"),
        (HIVE, "ClusterClaim", "clusterclaims", "ClusterRunning", "install Hive"),
        (HIVE, "MachinePool", "machinepools", "MachineSetsGenerated", "install Hive"),
    ],
)
def test_an_object_without_a_controller_says_so_in_a_condition_of_upstreams(
    fleet: Policies, version: str, kind: str, plural: str, condition: str, said: str
) -> None:
    path = f"/apis/{version}/namespaces/policies/{plural}"
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "one"}, "spec": {"size": 1}}
    fleet.hub.send("POST", path, body)
    fleet.time.settle()
    (found,) = fleet.hub.get(f"{path}/one")["status"]["conditions"]
    assert (found["type"], found["status"], found["reason"]) == (condition, "False", "NoController")
    assert said in found["message"]
    version_before = fleet.hub.get(f"{path}/one")["metadata"]["resourceVersion"]
    fleet.time.advance(60)
    assert fleet.hub.get(f"{path}/one")["metadata"]["resourceVersion"] == version_before


@pytest.fixture(scope="module")
def fleet() -> Policies:
    return Policies()
