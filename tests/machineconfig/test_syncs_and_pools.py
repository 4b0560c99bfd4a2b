"""A sync that changes machine configs, and the pools whose nodes it would reboot (DECISIONS 28-30). Who dies meanwhile:
``tests/machineconfig/test_deaths_under_syncs.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, MERGE, Source
from tests.machineconfig.rendering import files, machine_config, pool
from tests.machineconfig.room import APIS, HOLDS, POOLS, PoolWorld
from tests.scenes.pools import NAMESPACE, prerequisites
from tests.scenes.scenes import Repo, application, scene

from syncline.assembly.sources.reading import GitSourceReader
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.machineconfig.names import CURRENT

APP = {
    "project": "default",
    "source": {"repoURL": "https://example.com/r.git", "path": ".", "targetRevision": "main"},
    "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
}
ENDED = ("Succeeded", "Failed", "Error")


def world(reader: Any) -> PoolWorld:
    one = PoolWorld({}, renders=True, reader=reader)
    for name in ("master", "worker"):
        one.send("POST", POOLS, pool(name))
    one.driver.until(lambda: target(one) != "", limit_s=120)
    for index in range(2):
        one.add_node(f"worker-{index}", "worker", born=target(one))
    one.driver.until(lambda: one.updated(target(one)) and one.counts()[0] == 2, limit_s=300)
    return one


def target(one: PoolWorld) -> str:
    return str(dig(one.get(f"{POOLS}/worker"), "spec", "configuration", "name", default=""))


def wave(number: int, obj: Obj) -> Obj:
    notes = {"argocd.argoproj.io/sync-wave": str(number)}
    return obj | {"metadata": obj["metadata"] | {"annotations": notes}}


def sync(one: PoolWorld) -> Obj:
    body = {"operation": {"sync": {}}, "status": {"operationState": None}}
    one.send("PATCH", f"{APPS}/app", body, MERGE)

    def over() -> bool:
        app = one.get(f"{APPS}/app")
        return not app.get("operation") and dig(app, "status", "operationState", "phase") in ENDED

    one.driver.until(over, limit_s=3600)
    found: Obj = one.get(f"{APPS}/app")["status"]["operationState"]
    return found


def at_rest(one: PoolWorld, before: dict[str, int], reboots: int) -> None:
    """All nodes at one config, rebooted so often; nothing held, nothing paused."""
    one.driver.advance(30)
    one.until_updated(target(one))
    assert {name: count - before[name] for name, count in one.reboots().items()} == dict.fromkeys(before, reboots)
    assert {annotations_of(node)[CURRENT] for node in one.nodes().values()} == {target(one)}
    assert one.get(HOLDS)["items"] == []
    assert dig(one.get(f"{POOLS}/worker"), "spec", "paused") is not True


def test_waves_of_machine_configs_are_one_reboot_of_each_node_after_the_sync() -> None:
    source = Source()
    one = world(source)
    source.commit(
        *(wave(n, machine_config(f"99-{n}", files((f"/etc/{n}", "x")))) for n in range(3)),
        wave(3, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}, "data": {"a": "b"}}),
    )
    one.make(APPS, "Application", "app", APP)
    one.driver.advance(10)
    before = one.reboots()
    state = sync(one)
    assert state["phase"] == "Succeeded", state["message"]
    assert one.reboots() == before, "no node reboots under the sync"
    at_rest(one, before, 1)


def test_a_slow_sync_holds_its_pool_from_its_first_machine_config_to_its_end() -> None:
    """Each wave is rendered while the next one waits for a Deployment; the nodes wait for the end."""
    source = Source()
    one = world(source)

    def slow(name: str) -> Obj:
        labels = {"app": name}
        notes = {"syncline.dev/ready-seconds": "120"}
        spec = {"containers": [{"name": "c", "image": "i"}]}
        template = {"metadata": {"labels": labels, "annotations": notes}, "spec": spec}
        body = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}

    configs = [wave(2 * n, machine_config(f"99-{n}", files((f"/etc/{n}", "x")))) for n in range(2)]
    source.commit(*configs, wave(1, slow("one")), wave(3, slow("two")))
    one.make(APPS, "Application", "app", APP)
    one.driver.advance(10)
    before, seen, held = one.reboots(), {target(one)}, 0

    def note() -> bool:
        nonlocal held
        seen.add(target(one))
        held += "syncline.dev/held" in annotations_of(one.get(f"{POOLS}/worker"))
        assert one.reboots() == before, "no node reboots under the sync"
        return dig(one.get(f"{APPS}/app"), "status", "operationState", "phase") in ENDED

    one.send("PATCH", f"{APPS}/app", {"operation": {"sync": {}}, "status": {"operationState": None}}, MERGE)
    one.driver.until(note, limit_s=3600)
    assert dig(one.get(f"{APPS}/app"), "status", "operationState", "phase") == "Succeeded"
    assert len(seen) == 2 and held > 0, "the first wave was rendered under the Hold"
    at_rest(one, before, 1)


def test_a_sync_that_fails_leaves_no_pool_held() -> None:
    source = Source()
    one = world(source)
    bad = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NOT A NAME"}, "data": {}}
    source.commit(wave(0, machine_config("99-0", files(("/etc/0", "x")))), wave(1, bad))
    one.make(APPS, "Application", "app", APP)
    one.driver.advance(10)
    before = one.reboots()
    assert sync(one)["phase"] == "Failed"
    at_rest(one, before, 0)


def test_a_sync_that_fails_behind_its_pause_job_leaves_no_pool_paused(tmp_path: Path) -> None:
    """The resume Job never runs; the end of the operation resumes what its own hook had paused (DECISIONS 30)."""
    one = world(GitSourceReader(tmp_path / "mirrors", allow_local=True))
    repo = staged(one, tmp_path)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "fails", "annotations": {"argocd.argoproj.io/hook": "Sync"}},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": {"syncline.dev/exit-code": "1"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    (repo.path / "fails.yaml").write_text(json.dumps(job))
    repo.commit("a job that fails")
    one.driver.advance(10)
    before, paused = one.reboots(), []

    def note(event: Any) -> None:
        if event.stored.key.resource.endswith("machineconfigpools"):
            paused.append(dig(event.stored.obj, "spec", "paused"))

    one.core.store.subscribe(note)
    assert sync(one)["phase"] == "Failed"
    assert True in paused, "the hook had paused it"
    one.driver.advance(120)
    at_rest(one, before, 1)


def staged(one: PoolWorld, tmp_path: Path) -> Repo:
    """The scene's rights, its repository and an Application of it."""
    source = scene("pool-pause")
    for path, obj in prerequisites(source):
        if obj["kind"] not in ("CustomResourceDefinition", "MachineConfigPool"):
            one.send("POST", path, obj)
    repo = Repo(tmp_path / "repo", source)
    one.send("POST", APPS, application(repo, ".", namespace=NAMESPACE))
    return repo


@pytest.mark.parametrize("hooks", [True, False])
def test_the_scene_with_pause_and_resume_jobs_is_one_reboot_of_each_node(tmp_path: Path, hooks: bool) -> None:
    """Unchanged, and without its hooks, protected by a Hold."""
    one = world(GitSourceReader(tmp_path / "mirrors", allow_local=True))
    repo = staged(one, tmp_path)
    if not hooks:
        repo.git("rm", "-q", "pre-sync-job.yaml", "post-sync-job.yaml")
        repo.commit("without hooks")
    one.driver.advance(10)
    before = one.reboots()
    state = sync(one)
    assert state["phase"] == "Succeeded", state["message"]
    assert one.reboots() == before, "no node reboots under the sync"
    at_rest(one, before, 1)
    assert dig(one.get(f"{APIS}/machineconfigs/99-worker-motd"), "metadata", "name") == "99-worker-motd"
