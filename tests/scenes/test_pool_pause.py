"""Hook Jobs that pause a machine config pool before a sync and resume it afterwards, in virtual time.

DECISIONS: the rights are applied first, since a PreSync hook cannot wait for what the Sync phase brings.
"""

from __future__ import annotations

from pathlib import Path

from tests.explain.asking import ask, plan, printed, told
from tests.scenes.pools import NAMESPACE, POOL, Timeline, prerequisites
from tests.scenes.scenes import Repo, Stage, application, rows, scene

from syncline.kube.objects import dig


def staged(tmp_path: Path, *, rights: bool = True) -> tuple[Stage, Repo, Timeline]:
    source = scene("pool-pause")
    stage = Stage(tmp_path)
    for path, obj in prerequisites(source, rights=rights):
        stage.world.send("POST", path, obj)
        stage.world.driver.settle()
    timeline = Timeline(stage.world.core.store)
    repo = Repo(tmp_path / "repo", source)
    stage.create(application(repo, ".", namespace=NAMESPACE))
    return stage, repo, timeline


def test_the_pool_is_paused_before_the_first_resource_and_resumed_after_the_last(tmp_path: Path) -> None:
    stage, _, timeline = staged(tmp_path)
    stage.sync()
    state = stage.finish()
    assert state["phase"] == "Succeeded", state["message"]
    stage.world.driver.advance(60)
    order = [
        "added jobs mcp-worker-pause-job",
        "pool paused: True",
        "added machineconfigs 99-worker-motd",
        "added deployments kam-blog",
        "added jobs mcp-worker-resume-job",
        "pool paused: False",
    ]
    places = [timeline.index(line) for line in order]
    assert places[:2] == sorted(places[:2])
    assert max(places[:2]) < min(places[2:4])
    assert max(places[2:4]) < places[4] < places[5]
    assert "deleted jobs mcp-worker-pause-job" in timeline.lines, "HookSucceeded takes the Jobs away"
    assert "deleted jobs mcp-worker-resume-job" in timeline.lines
    assert dig(stage.world.send("GET", POOL), "spec", "paused") is False


def test_the_pause_takes_its_ten_virtual_seconds(tmp_path: Path) -> None:
    stage, _, _ = staged(tmp_path)
    begun = stage.world.clock.now()
    stage.sync()
    stage.finish()
    took = (stage.world.clock.now() - begun).total_seconds()
    assert 15 <= took <= 60, "ten seconds before, five after, and pods that start"


def test_a_run_that_fails_resumes_the_pool_that_its_hook_paused(tmp_path: Path) -> None:
    stage, repo, _ = staged(tmp_path)
    # The workload never gets healthy: the resume hook is never reached, and upstream would say nothing.
    text = (repo.path / "workload.yaml").read_text()
    (repo.path / "workload.yaml").write_text(text.replace("replicas: 2", "replicas: 2\n  progressDeadlineSeconds: 30"))
    repo.change(
        "workload.yaml",
        "      labels: {app: kam-blog}\n",
        '      labels: {app: kam-blog}\n      annotations: {syncline.dev/image-pull: "fail"}\n',
    )
    stage.sync()
    state = stage.finish(limit_s=3600)
    assert state["phase"] == "Failed", state
    stage.world.driver.advance(5)
    assert dig(stage.world.send("GET", POOL), "spec", "paused") is False
    events = stage.items("/api/v1/namespaces/argocd/events")
    (said,) = [e["message"] for e in events if e["reason"] == "PoolResumed"]
    assert "worker" in said


def test_without_its_rights_the_hook_waits_and_the_missing_service_account_is_named(tmp_path: Path) -> None:
    stage, _, _ = staged(tmp_path, rights=False)
    stage.sync()
    stage.world.driver.advance(120)
    app = stage.app()
    state = app["status"]["operationState"]
    assert state["phase"] == "Running"
    assert state["message"] == "waiting for completion of hook batch/Job/mcp-worker-pause-job"
    events = stage.items(f"/api/v1/namespaces/{NAMESPACE}/events")
    assert any('serviceaccount "sync-job-sa" not found' in e["message"] for e in events)
    assert rows(state)["Job/mcp-worker-pause-job"]["hookPhase"] == "Running"
    explained = told(stage, ask(stage, tmp_path))
    assert len(explained.splitlines()) <= 10
    assert "sync-job-sa" in explained


def test_the_plan_warns_of_a_hook_that_needs_what_only_the_sync_brings(tmp_path: Path) -> None:
    stage, _, _ = staged(tmp_path, rights=False)
    said = printed(plan(stage, tmp_path))
    assert "mcp-worker-pause-job" in said
    assert "sync-job-sa" in said
    assert "waits for it for ever" in said
