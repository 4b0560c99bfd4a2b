"""What people ask of a roll-out, and what becomes of clusters that come and go, under running controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.fleet.order.stage import WAVES, Stage, Story, cluster_path
from tests.fleet.world import config_map

from syncline.kube.objects import Obj

Play = Callable[..., Story]
DEFAULT = "/api/v1/namespaces/default"


def test_a_roll_back_goes_in_reverse_order_and_ends_with_the_next_release(play: Play) -> None:
    story = play("back").done()
    bad = story.push("v2")
    story.until("Done")
    story.steer(rollBack={"from": bad, "reason": "slow"})
    status = story.until("RolledBack")
    said = [one for _, one in story.said() if one["phase"] == "RollingBack"]
    assert {one["release"] for one in said} == {bad}
    whys = {one["cluster"]: one.get("why", "") for one in said[0]["clusters"]}
    assert "wave 2 comes first: back-c4 on cluster c4 is not back at its former release" in whys["c1"]
    assert status["message"] == f"release {bad} is rolled back: slow"
    returned = [(one.cluster, one.at) for one in story.written() if one.commit == "v1"][len(WAVES) :]
    first = dict(reversed(returned))
    assert first["c4"] < first["c2"] and first["c4"] < first["c3"]
    assert first["c2"] < first["c1"] and first["c3"] < first["c1"]
    assert story.running() == dict.fromkeys(WAVES, "v1")
    assert status["history"][0]["outcome"] == "RolledBack"
    story.go(600)
    assert story.carried() == dict.fromkeys(WAVES, "v1"), "it stays"
    story.push("v3")
    story.until("Done")
    assert story.running() == dict.fromkeys(WAVES, "v3")


def test_a_roll_back_after_a_roll_back_does_not_return_to_what_was_rolled_back(play: Play) -> None:
    story = play("twice", waves={"c1": 0, "c2": 1}).done()
    story.push("v2")
    bad = story.until("Done")["release"]
    story.steer(rollBack={"from": bad})
    story.until("RolledBack")
    story.push("v3")
    worse = story.until("Done")["release"]
    story.steer(rollBack={"from": worse})
    story.until("RolledBack")
    assert story.running() == {"c1": "v1", "c2": "v1"}, "v2 was proved later than v1, and rolled back"


def test_a_roll_back_that_is_taken_back_goes_forward_wave_by_wave(play: Play) -> None:
    story = play("undone", waves={"c1": 0, "c2": 1}, healthy_for="20s").done()
    story.push("v2")
    story.steer(rollBack={"from": story.until("Done")["release"]})
    story.until("RolledBack")
    before = len(story.written())
    story.steer(rollBack=None)
    story.go(5)
    assert story.carried() == {"c1": "v2", "c2": "v1"}, "it has to be proved once more"
    story.until("Done")
    first, second = (one for one in story.written()[before:] if one.commit == "v2")
    assert (first.cluster, second.cluster) == ("c1", "c2") and (second.at - first.at).total_seconds() >= 20


def test_a_template_that_nothing_has_carried_out_does_not_end_a_roll_back(play: Play) -> None:
    story = play("idle", waves={"c1": 0}, spec={"syncPolicy": {"applicationsSync": "create-only"}}).done()
    app = f"{story.app('c1')['metadata']['name']}"
    story.set_revision(app, "v2")
    bad = story.until("Done")["release"]
    story.steer(rollBack={"from": bad})
    story.until("RolledBack")
    story.change(template={"spec": {"source": {"targetRevision": "v3"}}})
    story.go(120)
    assert (story.release, story.phase, story.carried()) == (bad, "RolledBack", {"c1": "v1"})


def test_what_is_stopped_in_a_roll_back_moves_no_further(play: Play) -> None:
    story = play("halted").done()
    story.push("v2")
    bad = story.until("Done")["release"]
    story.steer(rollBack={"from": bad}, stopped={"reason": "wait"})
    story.go(60)
    assert (story.phase, story.carried()) == ("Stopped", dict.fromkeys(WAVES, "v2"))
    assert story.why("c4") == "the roll-out is stopped: wait"
    story.steer(stopped=None)
    story.until("RolledBack")


@pytest.fixture
def newcomer(stage: Stage) -> Iterator[Callable[[], None]]:
    """Let a fifth cluster join; it leaves at the end."""
    yield lambda: stage.add("c5") and None
    if "c5" in stage.fleet.members:
        if not stage.fleet.hub.absent(cluster_path("c5")):
            stage.fleet.hub.send("DELETE", cluster_path("c5"))
        stage.go(60)
        stage.remove("c5")
        stage.go(60)


def test_a_cluster_joins_in_the_middle_and_is_removed_in_the_middle(
    play: Play, stage: Stage, newcomer: Callable[[], None]
) -> None:
    story = play("joins", healthy_for="30s").done()
    story.push("v2")
    release = story.release
    story.until_true(lambda: story.carried()["c2"] == "v2", 120)
    newcomer()
    story.waves = {**WAVES, "c5": 0}
    story.change(generators=story.generators())
    story.go(8)
    assert story.release == release, "a cluster that joins does not change the release"
    assert story.carried() == {"c1": "v2", "c2": "v2", "c3": "v2", "c4": "v1", "c5": "v2"}
    story.go(15)
    assert "wave 0 comes first: joins-c5" in story.why("c4")
    status = story.until("Done")
    assert (status["progress"], story.running()["c5"]) == ("5/5", "v2")
    assert (story.begun("v2")["c4"] - story.begun("v2")["c5"]).total_seconds() >= 30
    story.push("v3", 10)
    assert story.entry("c5")["state"] in ("Progressing", "Proving")
    stage.fleet.hub.send("DELETE", cluster_path("c5"))
    stage.go(10)
    assert (story.entry("c5")["state"], story.status["total"]) == ("NotCounted", 4)
    assert "cluster c5" in story.why("c5") or "no ManagedCluster c5" in story.why("c5")
    story.until("Done")
    assert {name: story.carried()[name] for name in WAVES} == dict.fromkeys(WAVES, "v3")


def test_a_cluster_that_joins_after_a_roll_back_does_not_get_what_was_rolled_back(
    play: Play, stage: Stage, newcomer: Callable[[], None]
) -> None:
    story = play("late", waves={"c1": 0}).done()
    story.push("v2")
    bad = story.until("Done")["release"]
    story.steer(rollBack={"from": bad})
    story.until("RolledBack")
    newcomer()
    story.waves = {"c1": 0, "c5": 0}
    story.change(generators=story.generators())
    story.go(60)
    assert story.carried() == {"c1": "v1"}
    assert (story.phase, story.entry("c5")["state"]) == ("RolledBack", "Waiting")
    assert story.why("c5") == (
        f"release {bad} is rolled back, and it has proved none before: it gets none until the next release"
    )
    story.push("v3")
    story.until("Done")
    assert story.running() == {"c1": "v3", "c5": "v3"}


def test_a_denied_cluster_is_not_waited_for_and_keeps_what_it_has(play: Play, stage: Stage) -> None:
    story = play("denied").done()
    deny, accept = ({"spec": {"hubAcceptsClient": one}} for one in (False, True))
    with stage.patched(cluster_path("c2"), deny, accept):
        story.push("v2")
        status = story.until("Done")
        assert (status["total"], story.entry("c2")["state"]) == (3, "NotCounted")
        assert story.why("c2") == "the hub does not accept cluster c2"
        assert story.carried() == {"c1": "v2", "c2": "v1", "c3": "v2", "c4": "v2"}
        assert story.running()["c2"] == "v1", "nothing is deleted"
    story.until_true(lambda: story.running()["c2"] == "v2", 600)
    story.until("Done")


def test_a_failure_in_the_middle_stops_its_wave_and_those_after_it(play: Play, stage: Stage) -> None:
    story = play("middle", policy={"automated": {"prune": True}}).done()
    member = stage.fleet.members["c3"]
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    member.send("POST", f"{DEFAULT}/resourcequotas", {**quota, "spec": {"hard": {"services": "0"}}})
    service: Obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "middle"}}
    service["spec"] = {"ports": [{"port": 80}]}
    stage.git.contents[story.url] = lambda v: [config_map("middle", v=v), *([service] if v == "v2" else [])]
    try:
        story.push("v2")
        status = story.until("Failed", seconds=1200)
        assert "failed on cluster c3 (wave 1, Application middle-c3)" in status["message"]
        assert "exceeded quota" in status["message"]
        story.go(60)
        assert story.steps() == {"0": (1, 1), "1": (1, 2), "2": (0, 1)}, "what has begun goes on"
        assert "stopped by a failure: cluster c3" in story.why("c4")
        assert story.carried()["c4"] == "v1"
    finally:
        member.send("DELETE", f"{DEFAULT}/resourcequotas/none")
    story.push("v3")
    story.until("Done", seconds=1200)
