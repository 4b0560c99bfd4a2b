"""The status is kept current while an operation runs, and the source is looked at again where its end asks for it."""

from __future__ import annotations

from typing import Any

from tests.gitops.behaviours.play import (
    APPS,
    DEPLOYMENTS,
    MAPS,
    NOWHERE,
    PREFIX,
    PROJECTS,
    Play,
    config,
    deployment,
    job,
)

from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.yaml import loading as yaml

OTHER = "https://example.com/other.git"


def row(play: Play, name: str) -> Obj:
    found = [one for one in dig(play.app(), "status", "resources", default=[]) if one["name"] == name]
    assert len(found) == 1, found
    return dict(found[0])


def health(play: Play) -> Any:
    return dig(play.app(), "status", "health", "status")


def running(*more: Obj, **policy: Any) -> Play:
    """An operation that waits for its first wave, of a Deployment that no node takes."""
    play = Play(deployment("web", pod=NOWHERE), config("later", sync_wave="1"), *more, **policy)
    play.begin()
    play.driver.advance(5)
    assert play.state()["phase"] == "Running"
    return play


def test_health_and_rows_follow_while_an_operation_waits() -> None:
    play = running()
    assert (health(play), row(play, "web")["health"]["status"]) == ("Progressing", "Progressing")
    assert row(play, "web")["status"] == "Synced"
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    play.driver.advance(2)
    assert row(play, "web")["status"] == "OutOfSync"


def test_a_new_commit_is_seen_while_an_operation_runs() -> None:
    play = running()
    play.source.commit(deployment("web", pod=NOWHERE), config("later", sync_wave="1"), config("newer"))
    play.refresh()
    assert dig(play.app(), "status", "sync", "revision") == play.source.head
    assert row(play, "newer")["status"] == "OutOfSync"
    assert PREFIX + "refresh" not in annotations_of(play.app())
    assert play.state()["phase"] == "Running"


def test_a_refresh_while_an_operation_runs_shows_that_the_source_fails() -> None:
    play = running()
    play.source.fails = "no such branch"
    play.refresh()
    assert "no such branch" in play.conditions()["ComparisonError"]
    assert (play.sync_status(), play.state()["phase"]) == ("Unknown", "Running")


def test_polls_go_on_while_an_operation_runs() -> None:
    play = running()
    play.source.commit(config("newer"))
    play.driver.advance(600)
    assert dig(play.app(), "status", "sync", "revision") == play.source.head


def test_an_operation_that_waits_writes_nothing_while_nothing_changes() -> None:
    play = running()
    before = play.app()["metadata"]["resourceVersion"]
    play.driver.advance(100)
    assert play.app()["metadata"]["resourceVersion"] == before


def test_another_source_is_read_at_once_and_its_error_is_said() -> None:
    play = Play(config("a"))
    play.sync()
    play.patch(f"{APPS}/app", {"spec": {"source": {"repoURL": OTHER}}})
    play.driver.settle()
    play.patch(f"{APPS}/app", {"spec": {"source": {"repoURL": "https://example.com/r.git"}}})
    play.driver.settle()
    play.source.fails = "repository not found"
    play.patch(f"{APPS}/app", {"spec": {"source": {"repoURL": OTHER}}})
    play.driver.settle()
    assert "repository not found" in play.conditions()["ComparisonError"]


def test_the_end_of_an_operation_of_a_person_looks_at_the_source_again() -> None:
    play = Play(job("pre", seconds=30, hook="PreSync"), config("a"))
    play.begin()
    play.driver.advance(10)
    play.source.fails = "gone"
    play.finish()
    play.driver.advance(1)
    assert "gone" in play.conditions()["ComparisonError"]


def test_the_end_of_an_automated_operation_asks_nothing() -> None:
    play = Play(config("a"), automated={})
    play.driver.advance(5)
    reads = len(play.source.asked)
    play.driver.advance(30)
    assert (play.maps(), len(play.source.asked)) == (["a"], reads)


def test_a_retry_that_refreshes_reads_the_source_of_the_operation() -> None:
    play = Play(job("pre", code=1, hook="PreSync"), config("a"))
    sync = {"source": {"repoURL": OTHER, "path": ".", "targetRevision": "main"}}
    play.begin(sync, retry={"limit": 1, "refresh": True, "backoff": {"duration": "1m"}})
    play.driver.until(lambda: bool(play.state().get("finishedAt")))
    new = play.source.commit(config("b"))
    state = play.finish()
    assert (state["phase"], state["syncResult"]["revision"]) == ("Succeeded", new)


def test_after_a_sync_of_local_manifests_they_are_what_is_compared_with() -> None:
    play = Play(config("a"))
    texts = [yaml.dump(config("a", "mine")), yaml.dump(config("b"))]
    assert play.sync({"manifests": texts})["phase"] == "Succeeded"
    play.refresh()
    assert (play.sync_status(), row(play, "b")["status"]) == ("Synced", "Synced")
    play.patch(f"{MAPS}/b", {"data": {"k": "other"}})
    play.driver.advance(600)
    assert (play.sync_status(), row(play, "b")["status"]) == ("OutOfSync", "OutOfSync")
    play.sync({"prune": True})
    assert (play.sync_status(), play.maps()) == ("Synced", ["a"])


def test_a_source_that_fails_from_the_start_leaves_nothing_live_healthy() -> None:
    play = Play()
    play.source.fails = "cannot be rendered"
    play.patch(f"{APPS}/app", {"spec": {"source": {"path": "other"}}})
    play.driver.settle()
    assert (play.sync_status(), health(play)) == ("Unknown", "Healthy")


def test_health_follows_what_is_live_while_the_source_fails() -> None:
    play = Play(deployment("web"))
    play.sync()
    play.driver.advance(60)
    play.source.fails = "cannot be rendered"
    play.refresh()
    assert health(play) == "Healthy"
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": {"spec": NOWHERE}}})
    play.driver.advance(5)
    assert health(play) == "Progressing"


def test_only_git_sources_need_signatures_so_charts_take_local_manifests() -> None:
    for source, phase in (
        ({"repoURL": "oci://example.com/charts/web", "path": "."}, "Succeeded"),
        ({"repoURL": "https://example.com/charts", "chart": "web"}, "Succeeded"),
        ({"repoURL": "https://example.com/r.git", "path": "."}, "Error"),
    ):
        play = Play(config("a"), spec={"source": source | {"targetRevision": "1.0.0"}})
        policy = {"repos": [{"url": "*"}], "gpg": {"mode": "strict", "keys": ["D56C4FCA57A46444"]}}
        play.patch(f"{PROJECTS}/default", {"spec": {"sourceIntegrity": {"git": {"policies": [policy]}}}})
        play.driver.settle()
        state = play.sync({"manifests": [yaml.dump(config("a"))]})
        assert state["phase"] == phase, (source, state["message"])
