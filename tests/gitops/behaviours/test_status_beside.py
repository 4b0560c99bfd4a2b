"""The status is kept current while an operation runs, and the source is looked at again where its end asks for it."""

from __future__ import annotations

from typing import Any

from tests.gitops.behaviours.sim import (
    APPS,
    DEPLOYMENTS,
    MAPS,
    NOWHERE,
    PREFIX,
    PROJECTS,
    Simulation,
    config,
    deployment,
    job,
)

from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.yaml import loading as yaml

OTHER = "https://example.com/other.git"


def row(sim: Simulation, name: str) -> Obj:
    found = [one for one in dig(sim.app(), "status", "resources", default=[]) if one["name"] == name]
    assert len(found) == 1, found
    return dict(found[0])


def health(sim: Simulation) -> Any:
    return dig(sim.app(), "status", "health", "status")


def running(*more: Obj, **policy: Any) -> Simulation:
    """An operation that waits for its first wave, of a Deployment that no node takes."""
    sim = Simulation(deployment("web", pod=NOWHERE), config("later", sync_wave="1"), *more, **policy)
    sim.begin()
    sim.driver.advance(5)
    assert sim.state()["phase"] == "Running"
    return sim


def test_health_and_rows_follow_while_an_operation_waits() -> None:
    sim = running()
    assert (health(sim), row(sim, "web")["health"]["status"]) == ("Progressing", "Progressing")
    assert row(sim, "web")["status"] == "Synced"
    sim.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    sim.driver.advance(2)
    assert row(sim, "web")["status"] == "OutOfSync"


def test_a_new_commit_is_seen_while_an_operation_runs() -> None:
    sim = running()
    sim.source.commit(deployment("web", pod=NOWHERE), config("later", sync_wave="1"), config("newer"))
    sim.refresh()
    assert dig(sim.app(), "status", "sync", "revision") == sim.source.head
    assert row(sim, "newer")["status"] == "OutOfSync"
    assert PREFIX + "refresh" not in annotations_of(sim.app())
    assert sim.state()["phase"] == "Running"


def test_a_refresh_while_an_operation_runs_shows_that_the_source_fails() -> None:
    sim = running()
    sim.source.fails = "no such branch"
    sim.refresh()
    assert "no such branch" in sim.conditions()["ComparisonError"]
    assert (sim.sync_status(), sim.state()["phase"]) == ("Unknown", "Running")


def test_polls_go_on_while_an_operation_runs() -> None:
    sim = running()
    sim.source.commit(config("newer"))
    sim.driver.advance(600)
    assert dig(sim.app(), "status", "sync", "revision") == sim.source.head


def test_an_operation_that_waits_writes_nothing_while_nothing_changes() -> None:
    sim = running()
    before = sim.app()["metadata"]["resourceVersion"]
    sim.driver.advance(100)
    assert sim.app()["metadata"]["resourceVersion"] == before


def test_another_source_is_read_at_once_and_its_error_is_said() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    sim.patch(f"{APPS}/app", {"spec": {"source": {"repoURL": OTHER}}})
    sim.driver.settle()
    sim.patch(f"{APPS}/app", {"spec": {"source": {"repoURL": "https://example.com/r.git"}}})
    sim.driver.settle()
    sim.source.fails = "repository not found"
    sim.patch(f"{APPS}/app", {"spec": {"source": {"repoURL": OTHER}}})
    sim.driver.settle()
    assert "repository not found" in sim.conditions()["ComparisonError"]


def test_the_end_of_an_operation_of_a_person_looks_at_the_source_again() -> None:
    sim = Simulation(job("pre", seconds=30, hook="PreSync"), config("a"))
    sim.begin()
    sim.driver.advance(10)
    sim.source.fails = "gone"
    sim.finish()
    sim.driver.advance(1)
    assert "gone" in sim.conditions()["ComparisonError"]


def test_the_end_of_an_automated_operation_asks_nothing() -> None:
    sim = Simulation(config("a"), automated={})
    sim.driver.advance(5)
    reads = len(sim.source.asked)
    sim.driver.advance(30)
    assert (sim.maps(), len(sim.source.asked)) == (["a"], reads)


def test_a_retry_that_refreshes_reads_the_source_of_the_operation() -> None:
    sim = Simulation(job("pre", code=1, hook="PreSync"), config("a"))
    sync = {"source": {"repoURL": OTHER, "path": ".", "targetRevision": "main"}}
    sim.begin(sync, retry={"limit": 1, "refresh": True, "backoff": {"duration": "1m"}})
    sim.driver.until(lambda: bool(sim.state().get("finishedAt")))
    new = sim.source.commit(config("b"))
    state = sim.finish()
    assert (state["phase"], state["syncResult"]["revision"]) == ("Succeeded", new)


def test_after_a_sync_of_local_manifests_they_are_what_is_compared_with() -> None:
    sim = Simulation(config("a"))
    texts = [yaml.dump(config("a", "mine")), yaml.dump(config("b"))]
    assert sim.sync({"manifests": texts})["phase"] == "Succeeded"
    sim.refresh()
    assert (sim.sync_status(), row(sim, "b")["status"]) == ("Synced", "Synced")
    sim.patch(f"{MAPS}/b", {"data": {"k": "other"}})
    sim.driver.advance(600)
    assert (sim.sync_status(), row(sim, "b")["status"]) == ("OutOfSync", "OutOfSync")
    sim.sync({"prune": True})
    assert (sim.sync_status(), sim.maps()) == ("Synced", ["a"])


def test_a_source_that_fails_from_the_start_leaves_nothing_live_healthy() -> None:
    sim = Simulation()
    sim.source.fails = "cannot be rendered"
    sim.patch(f"{APPS}/app", {"spec": {"source": {"path": "other"}}})
    sim.driver.settle()
    assert (sim.sync_status(), health(sim)) == ("Unknown", "Healthy")


def test_health_follows_what_is_live_while_the_source_fails() -> None:
    sim = Simulation(deployment("web"))
    sim.sync()
    sim.driver.advance(60)
    sim.source.fails = "cannot be rendered"
    sim.refresh()
    assert health(sim) == "Healthy"
    sim.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": {"spec": NOWHERE}}})
    sim.driver.advance(5)
    assert health(sim) == "Progressing"


def test_only_git_sources_need_signatures_so_charts_take_local_manifests() -> None:
    for source, phase in (
        ({"repoURL": "oci://example.com/charts/web", "path": "."}, "Succeeded"),
        ({"repoURL": "https://example.com/charts", "chart": "web"}, "Succeeded"),
        ({"repoURL": "https://example.com/r.git", "path": "."}, "Error"),
    ):
        sim = Simulation(config("a"), spec={"source": source | {"targetRevision": "1.0.0"}})
        policy = {"repos": [{"url": "*"}], "gpg": {"mode": "strict", "keys": ["D56C4FCA57A46444"]}}
        sim.patch(f"{PROJECTS}/default", {"spec": {"sourceIntegrity": {"git": {"policies": [policy]}}}})
        sim.driver.settle()
        state = sim.sync({"manifests": [yaml.dump(config("a"))]})
        assert state["phase"] == phase, (source, state["message"])
