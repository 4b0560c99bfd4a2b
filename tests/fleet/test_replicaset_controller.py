"""ManifestWorkReplicaSets on the embedded cluster in virtual time; numbers are those of the reference."""

from __future__ import annotations

import pytest
from tests.fleet.rollouts import REPLICA_SETS, WORK_API, Hub, controllers, hub_with, template

from syncline.kube.objects import labels_of, name_of

SIX = [f"c{number}" for number in range(1, 7)]


@pytest.fixture
def hub() -> Hub:
    made = hub_with(*controllers(), clusters=SIX)
    made.placement()
    return made


def test_b70_works_have_generated_names_and_the_labels_of_set_and_placement(hub: Hub) -> None:
    hub.roll_out()
    hub.settle()
    works = hub.works()
    assert sorted(works) == SIX
    assert all(name_of(one).startswith("foo") and len(name_of(one)) == 8 for one in works.values())
    assert labels_of(works["c1"])["work.open-cluster-management.io/placementname"] == "pl"
    assert hub.condition("PlacementVerified") == ("True", "AsExpected")
    assert hub.replica_set()["metadata"]["finalizers"] == ["work.open-cluster-management.io/manifest-work-cleanup"]


def test_b71_a_name_too_long_for_a_label_is_said_and_nothing_written(hub: Hub) -> None:
    name = "n" * 60
    hub.roll_out(name)
    hub.settle()
    assert hub.condition("ManifestworkApplied", name) == ("False", "InvalidManifestWorkName")
    assert hub.get(f"{WORK_API}/v1/manifestworks")["items"] == []


def test_b72_two_at_a_time_by_name_as_works_succeed(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=2)
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c2"]
    hub.say("c1")
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c2"]
    hub.succeed("c1")
    assert sorted(hub.works()) == ["c1", "c2", "c3"]
    for cluster in SIX[1:]:
        hub.succeed(cluster)
    assert hub.condition("PlacementRolledOut") == ("True", "Complete")
    assert hub.condition("ManifestworkApplied") == ("True", "AsExpected")


def test_b73_failures_stop_clusters_that_have_not_begun(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=3, maxFailures=1)
    hub.settle()
    for cluster in ("c1", "c2"):
        hub.say(cluster, Progressing="True", Degraded="True")
    hub.settle()
    hub.succeed("c3")
    assert sorted(hub.works()) == ["c1", "c2", "c3"]


def test_b74_more_failures_than_clusters_are_none(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=2, maxFailures=10)
    hub.settle()
    hub.say("c1", Progressing="True", Degraded="True")
    hub.succeed("c2")
    assert sorted(hub.works()) == ["c1", "c2"]


def test_b75_the_next_begins_when_success_has_lasted_without_any_change(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=1, minSuccessTime="1m")
    hub.settle()
    hub.say("c1", Progressing="False")
    hub.time.advance(55)
    assert sorted(hub.works()) == ["c1"]
    hub.time.advance(10)
    assert sorted(hub.works()) == ["c1", "c2"]


def test_b75_a_deadline_that_passes_frees_the_place_where_failures_are_tolerated(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=1, maxFailures=1, progressDeadline="10m")
    hub.settle()
    hub.say("c1", Progressing="True")
    hub.time.advance(595)
    assert sorted(hub.works()) == ["c1"]
    hub.time.advance(10)
    assert sorted(hub.works()) == ["c1", "c2"]


def test_b76_a_cluster_that_leaves_the_placement_loses_its_work(hub: Hub) -> None:
    hub.roll_out()
    hub.settle()
    hub.send("PATCH", hub.placements("pl"), {"spec": {"numberOfClusters": 4}})
    hub.settle()
    assert len(hub.works()) == 4


def test_a_placement_that_leaves_the_set_takes_its_works_along(hub: Hub) -> None:
    hub.placement("one", numberOfClusters=1)
    hub.roll_out(placements=("pl", "one"))
    hub.settle()
    assert len(hub.get(f"{WORK_API}/v1/manifestworks")["items"]) == 7
    hub.send("PATCH", f"{REPLICA_SETS}/foo", {"spec": {"placementRefs": [{"name": "one"}]}})
    hub.settle()
    assert len(hub.works()) == 1


def test_a_placement_that_is_missing_is_said_and_its_works_stay(hub: Hub) -> None:
    hub.roll_out()
    hub.settle()
    hub.send("DELETE", hub.placements("pl"))
    hub.settle()
    assert hub.condition("PlacementVerified") == ("False", "PlacementDecisionNotFound")
    assert sorted(hub.works()) == SIX


def test_a_changed_template_reaches_the_works_in_turn(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=1)
    hub.settle()
    for cluster in SIX:
        hub.succeed(cluster)
    hub.send("PATCH", f"{REPLICA_SETS}/foo", {"spec": {"manifestWorkTemplate": template("2")}})
    hub.settle()
    changed = [at for at, one in hub.works().items() if one["spec"]["workload"]["manifests"][0]["data"] == {"v": "2"}]
    assert changed == ["c1"]


@pytest.mark.parametrize(("policy", "gone"), [("Background", True), ("Foreground", False)])
def test_a_set_that_is_deleted_deletes_its_works_and_waits_for_them_in_the_foreground(
    hub: Hub, policy: str, gone: bool
) -> None:
    hub.roll_out(cascadeDeletionPolicy=policy)
    hub.settle()
    name = name_of(hub.works()["c1"])
    path = f"{WORK_API}/v1/namespaces/c1/manifestworks/{name}"
    hub.send("PATCH", path, {"metadata": {"finalizers": ["a.b/agent"]}})
    hub.send("DELETE", f"{REPLICA_SETS}/foo")
    hub.settle()
    assert sorted(hub.works()) == ["c1"]
    left = [name_of(one) for one in hub.get(REPLICA_SETS)["items"]]
    assert left == ([] if gone else ["foo"])
    hub.send("PATCH", path, {"metadata": {"finalizers": None}})
    hub.settle()
    assert hub.get(REPLICA_SETS)["items"] == []
