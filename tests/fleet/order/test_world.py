"""Order over clusters in virtual time: clusters with their agents and their own GitOps controllers."""

from __future__ import annotations

from collections.abc import Callable

from tests.fleet.order.stage import ROLLOUTS, WAVES, Stage, Story

Play = Callable[..., Story]


def test_clusters_get_a_release_wave_by_wave_when_the_one_before_proved_it(play: Play) -> None:
    story = play("waves", healthy_for="20s").done()
    assert story.carried() == story.running() == dict.fromkeys(WAVES, "v1")
    story.push("v2")
    status = story.until("Done")
    begun = story.begun("v2")
    assert list(begun) == sorted(begun) == list(WAVES)
    for before, after in (("c1", "c2"), ("c2", "c4"), ("c3", "c4")):
        assert (begun[after] - begun[before]).total_seconds() >= 20, "each has to be healthy for so long"
    assert status["progress"] == "4/4" and status["clusters"] == []
    assert story.steps() == {"0": (1, 1), "1": (2, 2), "2": (1, 1)}
    assert [one["outcome"] for one in status["history"]] == ["Done", "Done"]
    assert story.running() == dict.fromkeys(WAVES, "v2")


def test_a_canary_that_fails_stops_the_rest_until_a_fix_is_pushed(play: Play) -> None:
    story = play("canary").done()
    story.push("bad")
    status = story.until("Failed", seconds=300)
    assert "failed on cluster c1 (wave 0, Application canary-c1)" in status["message"]
    assert "the chart does not render" in status["message"]
    story.go(60)
    assert story.carried() == {**dict.fromkeys(WAVES, "v1"), "c1": "bad"}
    whys = {one["cluster"]: one["why"] for one in story.status["clusters"] if one["cluster"] != "c1"}
    assert whys.keys() == {"c2", "c3", "c4"}
    assert all("stopped by a failure: cluster c1" in why for why in whys.values())
    story.push("v3")
    status = story.until("Done")
    assert story.carried() == dict.fromkeys(WAVES, "v3")
    assert [one["outcome"] for one in status["history"]] == ["Done", "Superseded", "Done"]


def test_a_stopped_group_begins_nothing_and_goes_on_when_resumed(play: Play) -> None:
    story = play("stopped").done()
    story.steer(stopped={"reason": "a holiday", "by": "ada"})
    story.push("v2", 30)
    assert story.carried() == dict.fromkeys(WAVES, "v1")
    assert (story.phase, story.status["message"]) == ("Stopped", "stopped: a holiday")
    assert story.why("c1") == "the roll-out is stopped by ada: a holiday"
    story.steer(stopped=None)
    story.until("Done")
    assert story.carried() == dict.fromkeys(WAVES, "v2")


def test_a_skipped_cluster_is_neither_waited_for_nor_written_until_it_is_included_again(play: Play) -> None:
    story = play("skipped").done()
    story.push("bad")
    release = story.until("Failed", seconds=300)["release"]
    story.steer(skip=[{"cluster": name, "release": release} for name in ("c1", "c4")])
    story.go(60)
    assert story.carried() == {"c1": "bad", "c2": "bad", "c3": "bad", "c4": "v1"}, "nothing waits for c1 any more"
    assert story.entry("c4")["state"] == "Skipped" and "people skip it" in story.why("c4")
    assert (story.steps(), story.status["total"]) == ({"1": (0, 2)}, 2)
    story.steer(skip=None)
    story.go(30)
    assert story.entry("c1")["state"] == "Failed"
    assert "stopped by a failure: cluster c1" in story.why("c4")
    story.steer(skip=[{"cluster": "c4", "release": release}])
    story.push("v2")
    story.until("Done")
    assert story.carried() == dict.fromkeys(WAVES, "v2"), "the next release includes it again"


def test_permits_that_a_person_deletes_are_given_again(play: Play, stage: Stage) -> None:
    story = play("forgotten").done()
    story.push("v2")
    story.until("Progressing", seconds=60)
    lost = {"status": {"clusters": [], "phase": None, "release": None}}
    stage.fleet.hub.send("PATCH", f"{ROLLOUTS}/{story.name}/status", lost)
    story.until("Done")
    assert story.carried() == dict.fromkeys(WAVES, "v2")


def test_a_cluster_that_is_away_holds_later_waves_until_it_returns(play: Play, stage: Stage) -> None:
    story = play("away").done()
    stage.fleet.members["c2"].hub_cable.cut()
    try:
        story.go(400)
        story.push("v2", 60)
        assert story.carried() == {"c1": "v2", "c2": "v1", "c3": "v2", "c4": "v1"}
        assert "cluster c2 is not available since" in story.why("c2")
        assert "`syncline rollout skip` passes over it" in story.why("c2")
        assert "wave 1 comes first: away-c2 on cluster c2" in story.why("c4")
    finally:
        stage.fleet.members["c2"].hub_cable.mend()
    story.until("Done")
    assert story.carried() == dict.fromkeys(WAVES, "v2")
