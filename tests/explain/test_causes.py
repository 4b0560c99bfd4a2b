"""Each way to be stuck, played in virtual time: the explanation goes down to the object and says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.explain.asking import ask, folder, look, pods_of, told
from tests.scenes.scenes import Stage, application

from syncline.cli.views.cause import MAX_LINES
from syncline.explain.graph import explain_object
from syncline.explain.view import LogTail, View, no_logs
from syncline.kube.objects import ObjectRef

CONFIG = """apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: b}
"""
JOB = """apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {argocd.argoproj.io/hook: PreSync}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {%s}}
    spec:
      %s
      containers:
      - {name: migrate, image: busybox, command: [sh, -c, x], %s resources: {requests: {cpu: %s}}}
      restartPolicy: Never
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {%s}}
    spec:
      containers:
      - {name: web, image: 'nginx:1'}
"""
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: nobody}\n"


def job(annotation: str = "", spec: str = "", container: str = "", cpu: str = "10m") -> str:
    return JOB % (annotation, spec, container, cpu)


def stuck(tmp_path: Path, *, sync: bool = True, wait_s: float = 30, **files: str) -> Stage:
    stage = Stage(tmp_path)
    stage.create(application(folder(tmp_path, **files), "app"))
    stage.world.driver.advance(5)
    if sync:
        stage.sync(prune=True)
    stage.world.driver.advance(wait_s)
    return stage


def explained(stage: Stage, tmp_path: Path, logs: LogTail = no_logs) -> tuple[bool, list[str]]:
    found = ask(stage, tmp_path, logs=logs)
    lines = told(stage, found).splitlines()
    assert len(lines) <= MAX_LINES, "an explanation fits the eye"
    return found.blocked, lines


@pytest.mark.parametrize(
    ("manifest", "chain", "step"),
    [
        pytest.param(
            job(cpu="1000"),
            ["Job default/migrate Running", "cannot be placed: 0/1 nodes are available: 1 Insufficient cpu"],
            "free or add cpu",
            id="a hook whose pod fits on no node repeats the scheduler's sentence",
        ),
        pytest.param(
            job('"syncline.dev/image-pull": fail'),
            ["Job default/migrate Running", 'ImagePullBackOff for 30s: container "migrate" (image busybox)'],
            "correct the image",
            id="an image that cannot be pulled is named with its container",
        ),
        pytest.param(
            job(container="envFrom: [{secretRef: {name: nope}}],"),
            ["Job default/migrate Running", 'CreateContainerConfigError for 30s: container "migrate"'],
            "create secret nope",
            id="a missing Secret is named",
        ),
        pytest.param(
            job(spec="serviceAccountName: nobody"),
            ['Job default/migrate FailedCreate for 30s: Error creating: pods "migrate-" is forbidden'],
            "create ServiceAccount nobody",
            id="a missing service account is known from the Job's Events",
        ),
    ],
)
def test_a_running_operation_is_explained_down_to_the_pod(
    tmp_path: Path, manifest: str, chain: list[str], step: str
) -> None:
    blocked, lines = explained(stuck(tmp_path, job=manifest, config=CONFIG), tmp_path)
    assert blocked
    assert lines[0] == "Application argocd/app Running for 30s: waiting for completion of hook batch/Job/migrate"
    for depth, (text, line) in enumerate(zip(chain, lines[1:-1], strict=True), start=1):
        assert line.startswith("  " * depth) and text in line
    assert lines[-1].startswith(f"next: {step}")


def test_a_service_account_that_comes_only_after_its_hook_is_named_as_such(tmp_path: Path) -> None:
    stage = stuck(tmp_path, job=job(spec="serviceAccountName: nobody"), account=ACCOUNT)
    blocked, lines = explained(stage, tmp_path)
    assert blocked
    assert "ServiceAccount default/nobody Missing: the hook runs as this ServiceAccount" in lines[2]
    assert "PreSync hook of an earlier wave" in lines[-1]


def test_a_hook_that_simply_takes_its_time_blocks_nothing(tmp_path: Path) -> None:
    stage = stuck(tmp_path, job=job('"syncline.dev/run-seconds": "600"'), config=CONFIG)
    blocked, lines = explained(stage, tmp_path)
    assert not blocked
    assert lines[2].strip().startswith("Pod default/migrate-") and "runs on node node-1" in lines[2]


def test_a_failed_hook_shows_exit_code_and_last_log_lines(tmp_path: Path) -> None:
    stage = stuck(tmp_path, job=job('"syncline.dev/exit-code": "3"'), config=CONFIG)
    asked: list[tuple[str, str]] = []

    def logs(_namespace: str, pod: str, container: str) -> tuple[str, ...]:
        asked.append((pod, container))
        return ("connecting", "no database")

    blocked, lines = explained(stage, tmp_path, logs)
    assert blocked
    assert lines[0].startswith("Application argocd/app sync Failed")
    assert "Job default/migrate Failed" in lines[1] and "BackoffLimitExceeded" in lines[1]
    assert 'container "migrate" ended with exit code 3 (Error)' in lines[2]
    assert lines[3].endswith("last lines: connecting | no database")
    assert asked and asked[0] == (pods_of(stage, "migrate")[0], "migrate")


def test_a_log_that_prints_its_password_is_repeated_without_it(tmp_path: Path) -> None:
    secret = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: default}\nstringData: {pin: hunter2-canary}\n"
    )
    stage = stuck(tmp_path, secret=secret, wave=job('"syncline.dev/exit-code": "3"').replace("PreSync", "PostSync"))
    encoded = "aHVudGVyMi1jYW5hcnk="
    _, lines = explained(stage, tmp_path, lambda *_: ("dsn=postgres://u:hunter2-canary@db", f"as {encoded}"))
    assert lines[3].endswith("last lines: dsn=postgres://u:***@db | as ***")


def test_a_crashing_deployment_leads_to_its_pod(tmp_path: Path) -> None:
    crashing = DEPLOYMENT % '"syncline.dev/exit-code": "1", "syncline.dev/run-seconds": "2"'
    blocked, lines = explained(stuck(tmp_path, wait_s=200, web=crashing), tmp_path)
    assert blocked
    assert "Deployment default/web Progressing" in lines[1] and "0 of 2 pods are available" in lines[1]
    assert "CrashLoopBackOff" in lines[2] and 'container "web" ended with exit code 1' in lines[2]


def test_a_full_quota_is_named_by_the_replica_set_that_met_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}
    stage.world.send("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    stage.create(application(folder(tmp_path, web=DEPLOYMENT % ""), "app"))
    stage.world.driver.advance(5)
    stage.sync()
    stage.world.driver.advance(30)
    blocked, lines = explained(stage, tmp_path)
    assert blocked
    assert "ReplicaSet default/web-" in lines[2] and "exceeded quota: few" in lines[2]
    assert lines[-1] == "next: raise ResourceQuota few, or ask for less"


def test_what_is_in_order_blocks_nothing(tmp_path: Path) -> None:
    blocked, lines = explained(stuck(tmp_path, config=CONFIG), tmp_path)
    assert not blocked
    assert lines == ["Application argocd/app Synced, Healthy for 30s: nothing blocks"]


def test_what_was_never_synced_says_how_to_sync_it(tmp_path: Path) -> None:
    blocked, lines = explained(stuck(tmp_path, sync=False, config=CONFIG), tmp_path)
    assert not blocked
    assert "ConfigMap default/c Missing" in lines[1]
    assert lines[-1] == "next: syncline plan app, then: syncline app sync app"


def test_a_source_that_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    blocked, lines = explained(stuck(tmp_path, sync=False, broken="a: [\n"), tmp_path)
    assert blocked
    assert lines[0].startswith("Application argocd/app ComparisonError") and "app/broken.yaml:2:1" in lines[0]
    assert lines[-1].startswith("next: correct the source")


def test_a_kind_that_nobody_defined_is_named(tmp_path: Path) -> None:
    blocked, lines = explained(stuck(tmp_path, foo="apiVersion: foo.io/v1\nkind: Foo\nmetadata: {name: x}\n"), tmp_path)
    assert blocked
    assert "Foo default/x SyncFailed" in lines[1]
    assert lines[-1] == "next: install the definition of the kind first"


def test_an_object_that_does_not_go_names_its_finalizer(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.org/hold"]}}
    stage.world.send("POST", "/api/v1/namespaces/default/configmaps", held)
    stage.world.send("DELETE", "/api/v1/namespaces/default/configmaps/held")
    stage.world.driver.advance(10)
    found = ask(stage, tmp_path, ObjectRef("", "ConfigMap", "default", "held"))
    assert found.blocked
    assert (found.cause.state, found.cause.message) == ("Terminating", "held by finalizer example.org/hold")
    assert "example.org/hold" in found.cause.next_action


def test_a_sync_on_a_cluster_without_nodes_says_how_to_get_one(tmp_path: Path) -> None:
    stage = Stage(tmp_path, nodes=0)
    stage.create(application(folder(tmp_path, job=job()), "app"))
    stage.world.driver.advance(5)
    stage.sync()
    stage.world.driver.advance(30)
    blocked, lines = explained(stage, tmp_path)
    assert blocked
    assert "no nodes available to schedule pods" in lines[2]
    assert lines[-1] == "next: add a node: syncline node add NAME"


def test_on_a_cluster_of_others_a_missing_node_is_no_command_of_ours(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    cluster, now = look(stage).cache, stage.world.clock.now()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1: Insufficient cpu."}]},
    }
    ours = explain_object(View(cluster, now), pod).cause.next_action
    assert ours == "free or add cpu: lower the requests, or add a node: syncline node add NAME"
    cluster.mapper.version = "v1.36.2"
    theirs = explain_object(View(cluster, now), pod).cause.next_action
    assert theirs == "free or add cpu: lower the requests, or add a node"


def test_an_explanation_never_writes(tmp_path: Path) -> None:
    stage = stuck(tmp_path, job=job(cpu="1000"), config=CONFIG)
    before = stage.world.core.store.revision
    ask(stage, tmp_path)
    assert stage.world.core.store.revision == before
