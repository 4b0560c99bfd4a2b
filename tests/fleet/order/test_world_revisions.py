"""Branches of ordered Applications, and the steps of a RollingSync, under running controllers."""

from __future__ import annotations

from collections.abc import Callable

from tests.fleet.order.stage import POLL_S, WAVES, Stage, Story, sha

from syncline.fleet.pull.order.annotations import PIN_REVISIONS

Play = Callable[..., Story]


def commit(story: Story, name: str, branch: str = "main") -> None:
    story.stage.git.branches[story.url, branch] = name


def test_later_waves_get_the_commit_that_the_first_proved_and_then_the_newer_one(play: Play, stage: Stage) -> None:
    story = play("pins", healthy_for="30s")
    commit(story, "v1")
    story.create("main")
    assert story.until("Done")["revisions"][0] == {"repoURL": story.url, "targetRevision": "main", "commit": sha("v1")}
    commit(story, "v2")
    began = stage.now
    story.until_true(lambda: story.carried()["c1"] == "v2", POLL_S + 10)  # no webhook, and nothing else changed
    assert (stage.now - began).total_seconds() <= POLL_S + 5
    second = story.release
    story.until_true(lambda: story.carried()["c2"] == "v2", 60)
    commit(story, "v3")
    story.until_true(lambda: story.carried()["c4"] == "v2", 60)
    assert (story.release, story.running()) == (second, dict.fromkeys(WAVES, "v2") | {"c4": "v2"})
    story.until_true(lambda: story.release != second, POLL_S + 10)
    status = story.until("Done")
    assert story.running() == dict.fromkeys(WAVES, "v3")
    begun = story.begun("v3")
    assert begun["c1"] < begun["c2"] < begun["c4"]
    assert [one["outcome"] for one in status["history"]] == ["Done", "Done", "Done"]


def test_a_newer_commit_takes_the_place_of_one_under_way(play: Play, stage: Stage) -> None:
    story = play("newer", healthy_for="200s")
    commit(story, "v1")
    story.create("main")
    story.until_true(lambda: "c1" in story.carried())
    commit(story, "v2")
    story.until_true(lambda: story.carried()["c1"] == "v2", POLL_S + 10)
    assert list(story.carried()) == ["c1"] and story.status["superseded"] == 1
    assert story.status["history"][0]["outcome"] == "Superseded"


def test_a_new_commit_is_seen_while_clusters_wait_for_hours(play: Play, stage: Stage) -> None:
    story = play("waiting")
    commit(story, "v1")
    story.create("main")
    story.until("Done")
    story.steer(stopped={"reason": "a holiday"})
    commit(story, "v2")
    story.go(POLL_S + 10)
    second = story.release
    assert story.why("c1") == "the roll-out is stopped: a holiday"
    commit(story, "v3")
    story.go(POLL_S + 10)
    assert story.release != second and story.carried() == dict.fromkeys(WAVES, "v1")
    story.steer(stopped=None)
    story.until("Done")
    assert story.begun("v2") == {} and story.running() == dict.fromkeys(WAVES, "v3")


def test_without_pins_each_cluster_follows_the_branch_itself(play: Play, stage: Stage) -> None:
    story = play("loose", waves={"c1": 0, "c2": 1}, annotations={PIN_REVISIONS: "false"})
    commit(story, "v1")
    story.create("main")
    story.until("Done")
    release = story.release
    assert not any(one.startswith(story.url) for one in stage.git.asked), "the hub looks for nothing"
    assert "commit" not in story.status["revisions"][0]
    commit(story, "v2")
    story.go(600)
    assert (story.release, story.running()) == (release, {"c1": "v2", "c2": "v2"})


def steps(*limits: int | None) -> dict[str, object]:
    made = []
    for wave, most in enumerate(limits):
        step: dict[str, object] = {"matchExpressions": [{"key": "wave", "operator": "In", "values": [str(wave)]}]}
        made.append(step if most is None else {**step, "maxUpdate": most})
    return {"strategy": {"type": "RollingSync", "rollingSync": {"steps": made}}}


def test_the_steps_of_a_rolling_sync_are_waves_within_which_its_max_update_counts(play: Play, stage: Stage) -> None:
    story = play("rolling", healthy_for="", spec=steps(None, 1, None), policy={})
    story.create()
    story.until("Done", seconds=900)
    assert set(story.steps()) == {"1", "2", "3"}, "a step counts from 1"
    story.push("v2")
    for _ in range(200):
        now = [name for name, commit in story.running().items() if commit == "v2"]
        if "c2" in now or "c3" in now:
            assert "c1" in now
        if "c4" in now:
            assert {"c1", "c2", "c3"} <= set(now)
        if len(now) == 4 and story.phase == "Done":
            break
        story.go(5)
    assert story.running() == dict.fromkeys(WAVES, "v2"), story.status
    assert not any(one.startswith(story.url) for one in stage.git.asked), "the set starts each sync itself: no pins"
