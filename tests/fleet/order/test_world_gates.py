"""What holds a release back under running controllers: windows, budgets, machines, lapses of health. Each wait names
what it waits for and until when, and ends at that moment without another event."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.fleet.order.stage import BUDGETS, NOT_WAITING, WAVES, Stage, Story, cluster_path, condition_of
from tests.fleet.world import config_map

from syncline.base.clock import format_time
from syncline.fleet.hub.registration.leases import NODES_UPDATING
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.fleet.pull.order.annotations import WINDOWS
from syncline.kube.kinds.syncline import hold_crd
from syncline.kube.objects import Obj

Play = Callable[..., Story]
CLUSTER_SETS = "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets"
HOLDS = "/apis/syncline.dev/v1alpha1/holds"
SERVICES = "/api/v1/namespaces/default/services"


def window(opens: datetime) -> str:
    """Return windows that are open for ten minutes of a day."""
    found = {"kind": "allow", "schedule": f"{opens.minute} {opens.hour} * * *", "duration": "10m", "timeZone": "UTC"}
    return json.dumps([found])


def test_windows_of_a_cluster_and_of_its_set_hold_it_until_they_open(play: Play, stage: Stage) -> None:
    story = play("windows").done()
    first, second = (stage.now.replace(second=0) + timedelta(minutes=one) for one in (70, 75))
    cluster_set = {"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet"}
    metadata = {"name": "night", "annotations": {WINDOWS: window(second)}}
    spec = {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}
    stage.fleet.hub.send("POST", CLUSTER_SETS, {**cluster_set, "metadata": metadata, "spec": spec})
    into = {"metadata": {"labels": {CLUSTER_SET_LABEL: "night"}}}
    out = {"metadata": {"labels": {CLUSTER_SET_LABEL: "default"}}}
    own = stage.annotated(cluster_path("c2"), WINDOWS, window(first))
    try:
        with stage.patched(cluster_path("c3"), into, out), own:
            story.push("v2", 60)
            assert story.carried() == {**dict.fromkeys(WAVES, "v1"), "c1": "v2"}
            assert story.phase == "Waiting"
            assert story.why("c2") == "outside of the maintenance windows of ManagedCluster c2"
            assert story.why("c3") == "outside of the maintenance windows of ManagedClusterSet night"
            opens = timedelta(seconds=1)
            assert (story.ends("c2"), story.ends("c3")) == (first + opens, second + opens)
            assert "wave 1 comes first: windows-c2" in story.why("c4") and "until" not in story.entry("c4")
            looked = len(stage.git.asked)
            stage.go_to(first)
            assert story.carried()["c2"] == "v1"
            assert len(stage.git.asked) - looked >= 20, "commits are looked for while it waits, too"
            story.until("Done", seconds=900)
            begun = story.begun("v2")
            for cluster, moment in (("c2", first), ("c3", second)):
                assert moment < begun[cluster] <= moment + timedelta(seconds=3)
    finally:
        stage.fleet.hub.send("DELETE", f"{CLUSTER_SETS}/night")
    assert story.running() == dict.fromkeys(WAVES, "v2")


def test_windows_that_cannot_be_read_hold_the_cluster_and_say_why(play: Play, stage: Stage) -> None:
    story = play("unread").done()
    with stage.annotated(cluster_path("c1"), WINDOWS, '[{"kind": "allow", "schedule": "at night"}]'):
        story.push("v2", 30)
        assert "the maintenance windows of ManagedCluster c1 cannot be read: " in story.why("c1")
        assert story.carried() == dict.fromkeys(WAVES, "v1")
    story.until("Done")


def budget(most: int) -> Obj:
    spec = {"clusterSelector": {}, "maxUnavailable": most}
    return {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetDisruptionBudget", "metadata": {"name": "all"}} | {
        "spec": spec
    }


@pytest.fixture
def one_place(stage: Stage) -> Any:
    stage.fleet.hub.send("POST", BUDGETS, budget(1))
    yield lambda: stage.fleet.hub.get(f"{BUDGETS}/all").get("status", {}).get("places") or []
    stage.fleet.hub.send("DELETE", f"{BUDGETS}/all")


def at_once(stage: Stage, *stories: Story) -> int:
    """Return in how many clusters releases were under way at once, over all roll-outs."""
    now: dict[str, set[str]] = {}
    most, names = 0, {one.name for one in stories}
    for _, name, status in stage.statuses:
        if name in names:
            now[name] = {one["cluster"] for one in status.get("clusters") or () if one["state"] in NOT_WAITING}
            most = max(most, len(set().union(*now.values())))
    return most


def test_a_budget_bounds_all_roll_outs_and_its_places_are_given_back(
    play: Play, stage: Stage, one_place: Callable[[], list[Obj]]
) -> None:
    waves = dict.fromkeys(WAVES, 0)
    stories = [play(name, waves=waves, healthy_for="20s") for name in ("budget", "other")]
    for one in stories:
        one.create()
    stage.go(10)
    held = {one["cluster"] for one in one_place()}
    assert held == {"c1"}
    full = "FleetDisruptionBudget all permits 1 unavailable, and c1 is held by FleetRollout"
    assert all(full in story.why(name) for story in stories for name in ("c2", "c3", "c4"))
    for one in stories:
        one.until("Done")
    assert at_once(stage, *stories) == 1
    assert one_place() == []


def test_a_place_that_a_hub_held_when_it_died_is_used_or_given_back(
    play: Play, stage: Stage, one_place: Callable[[], list[Obj]]
) -> None:
    story = play("dead", waves=dict.fromkeys(WAVES, 0)).done()
    stage.die_after(lambda request: "fleetdisruptionbudgets" in request.path and "places" in str(request.body))
    story.change(template={"spec": {"source": {"targetRevision": "v2"}}})
    story.go(10)
    assert stage.dead and [one["cluster"] for one in one_place()] == ["c1"], "it died holding a place"
    assert story.carried() == dict.fromkeys(WAVES, "v1")
    story.steer(stopped={"reason": "meanwhile"})
    stage.revive()
    story.go(90)
    assert one_place() == [], "what is not used is given back when it is a minute old"
    stage.die_after(lambda request: "fleetdisruptionbudgets" in request.path and "places" in str(request.body))
    story.steer(stopped=None)
    story.go(10)
    assert stage.dead and len(one_place()) == 1
    stage.revive()
    story.until("Done")
    assert (at_once(stage, story), one_place()) == (1, []), "what is used goes on"
    assert story.running() == dict.fromkeys(WAVES, "v2")


def test_a_hold_on_a_cluster_holds_its_release_until_it_expires(play: Play, stage: Stage) -> None:
    story = play("hold").done()
    spoke = stage.fleet.members["c2"]
    if spoke.absent("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/holds.syncline.dev"):
        spoke.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", hold_crd())
    stage.go(30)
    ends = stage.now + timedelta(minutes=10)
    spec = {"owner": "app/db", "reason": "migration", "expiresAt": format_time(ends), "pools": ["worker"]}
    kind = {"apiVersion": "syncline.dev/v1alpha1", "kind": "Hold", "metadata": {"name": "db"}}
    spoke.send("POST", HOLDS, {**kind, "spec": spec})
    story.push("v2", 60)
    assert story.carried() == {"c1": "v2", "c2": "v1", "c3": "v2", "c4": "v1"}
    assert story.why("c2") == "nodes of cluster c2: Hold db of app/db: migration"
    stage.fleet.start_agent("c2")
    stage.go(60)
    assert story.carried()["c2"] == "v1", "an agent that begins again knows of no pools and Holds yet"
    stage.go_to(ends)
    assert story.carried()["c2"] == "v1"
    story.until("Done")
    assert (story.begun("v2")["c2"] - ends).total_seconds() <= 5
    if not spoke.absent(f"{HOLDS}/db"):
        spoke.send("DELETE", f"{HOLDS}/db")


def test_machines_of_which_nothing_is_known_hold_the_release(play: Play, stage: Stage) -> None:
    story = play("machines").done()
    stage.fleet.stop_agent("c3")
    before = stage.fleet.cluster("c3")["status"]["conditions"]
    said = {"type": NODES_UPDATING, "status": "Unknown", "reason": "NotReadable", "message": "pools may not be listed"}
    unknown = [one for one in before if one["type"] != NODES_UPDATING]
    unknown.append({**said, "lastTransitionTime": format_time(stage.now)})
    stage.fleet.hub.send("PATCH", f"{cluster_path('c3')}/status", {"status": {"conditions": unknown}})
    story.push("v2", 60)
    assert story.carried() == {"c1": "v2", "c2": "v2", "c3": "v1", "c4": "v1"}
    assert story.why("c3") == "nodes of cluster c3: pools may not be listed"
    stage.fleet.start_agent("c3")
    story.until("Done")
    assert condition_of(stage.fleet.cluster("c3"), NODES_UPDATING)["status"] == "False"


def test_a_lapse_of_health_begins_the_proof_again(play: Play, stage: Stage) -> None:
    service: Obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lapse", "namespace": "default"}}
    service["spec"] = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    story = play("lapse", waves={"c1": 0, "c2": 1}, healthy_for="60s")
    stage.git.contents[story.url] = lambda v: [config_map("lapse", v=v), service]

    def address(cluster: str, *found: str) -> None:
        given = {"status": {"loadBalancer": {"ingress": [{"ip": one} for one in found]}}}
        stage.fleet.members[cluster].send("PATCH", f"{SERVICES}/lapse/status", given)

    story.create()
    story.go(30)
    assert story.entry("c1")["state"] == "Progressing" and "its health is Progressing" in story.why("c1")
    address("c1", "192.0.2.1")
    story.go(40)
    assert story.entry("c1")["state"] == "Proving"
    first = story.ends("c1")
    address("c1")
    story.go(10)
    assert "healthySince" not in story.entry("c1") and "its health is Progressing" in story.why("c1")
    address("c1", "192.0.2.1")
    again = stage.now
    story.go(5)
    assert story.ends("c1") >= again + timedelta(seconds=60) > first
    stage.go_to(again + timedelta(seconds=58))
    assert list(story.carried()) == ["c1"]
    story.until_true(lambda: "c2" in story.carried(), seconds=15)
    address("c2", "192.0.2.2")
    story.until("Done")
