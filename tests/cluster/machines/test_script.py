"""Hooks as scripts in virtual time: the pool is really patched, sleeping takes virtual seconds."""

from __future__ import annotations

from typing import Any

import pytest
from machine_world import MachineWorld
from test_oc import POOL_CRD, POOLS
from tests.recorded import SCENES, absent

from syncline.cluster.bootstrap import bootstrap_objects, install
from syncline.kube.yaml.loading import load, load_all

PAUSE = """echo -n "Waiting for the MCP $MCP to converge."
echo $(oc patch --type=merge --patch='{"spec":{"paused":true}}' machineconfigpool/$MCP)
sleep $SLEEP
echo "DONE"
"""


def _hook(text: str, **more: Any) -> dict[str, Any]:
    env = [{"name": "SLEEP", "value": "10"}, {"name": "MCP", "value": "worker"}]
    return {"name": "c", "image": "ose-cli", "command": ["/bin/bash", "-c", text], "env": env} | more


@pytest.fixture
def pool(world: MachineWorld) -> MachineWorld:
    world.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", POOL_CRD)
    world.settle()
    pool = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool"}
    world.post(POOLS, pool | {"metadata": {"name": "worker"}, "spec": {"paused": False}})
    return world


def _grant(world: MachineWorld) -> None:
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["machineconfiguration.openshift.io"], "resources": ["machineconfigpools"]}
    rules = [
        rule | {"verbs": ["get", "list", "patch"]},
        {"nonResourceURLs": ["/api", "/apis", "/api/*", "/apis/*"], "verbs": ["get"]},
    ]
    where = f"/apis/{group}/v1"
    meta = {"metadata": {"name": "hook"}}
    world.post(f"{where}/clusterroles", {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "rules": rules} | meta)
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": "hook"}
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]}
    world.post(f"{where}/clusterrolebindings", binding | meta)


def _run(world: MachineWorld, text: str, **more: Any) -> str:
    world.make_pod(restartPolicy="Never", automountServiceAccountToken=True, containers=[_hook(text, **more)])
    world.idle()
    return world.log()


def test_a_hook_that_pauses_a_pool_pauses_it_and_takes_its_time(pool: MachineWorld) -> None:
    _grant(pool)
    before = pool.clock.now()
    log = _run(pool, PAUSE)
    assert pool.get(f"{POOLS}/worker")["spec"]["paused"] is True
    assert log == (
        "Waiting for the MCP worker to converge."
        "machineconfigpool.machineconfiguration.openshift.io/worker patched\nDONE\n"
    )
    assert pool.pod()["status"]["phase"] == "Succeeded"
    assert 10 <= (pool.clock.now() - before).total_seconds() < 13


def test_the_pool_is_paused_while_the_hook_still_sleeps(pool: MachineWorld) -> None:
    _grant(pool)
    pool.make_pod(restartPolicy="Never", automountServiceAccountToken=True, containers=[_hook(PAUSE)])
    pool.advance(5)
    assert pool.get(f"{POOLS}/worker")["spec"]["paused"] is True
    assert "running" in pool.state()["state"]


def test_without_rights_the_api_refuses_the_service_account(pool: MachineWorld) -> None:
    log = _run(pool, 'set -e; oc patch mcp worker --type=merge -p \'{"spec":{"paused":true}}\'')
    assert "forbidden" in log.lower() and "system:serviceaccount:default:default" in log
    assert pool.pod()["status"]["phase"] == "Failed"
    assert pool.get(f"{POOLS}/worker")["spec"]["paused"] is False


def test_without_a_token_there_is_no_way_in(pool: MachineWorld) -> None:
    pool.make_pod(restartPolicy="Never", containers=[_hook("oc get pods || exit 7")])
    pool.idle()
    assert pool.state()["state"]["terminated"]["exitCode"] == 7


def test_a_plain_command_needs_no_shell(world: MachineWorld) -> None:
    log = _run(world, "", command=["echo", "job-test"])
    assert log == "job-test\n" and world.pod()["status"]["phase"] == "Succeeded"


def test_the_kubelet_expands_references_before_the_shell_sees_them(world: MachineWorld) -> None:
    env = [{"name": "A", "value": "x"}, {"name": "B", "value": "$(A)y"}]
    assert _run(world, "echo $(B) '$$(A)' \"$B\"", env=env) == "xy $(A) xy\n"


def test_what_is_not_understood_follows_its_stage_with_a_note(world: MachineWorld) -> None:
    log = _run(world, "curl -s http://example.com; sleep 20")
    assert log == "[syncline] simulated, not run: curl: not a command of this shell\n"
    terminated = world.state()["state"]["terminated"]
    assert terminated["exitCode"] == 0
    assert terminated["finishedAt"][17:19] != terminated["startedAt"][17:19]


def test_a_failing_script_is_tried_again_on_failure(world: MachineWorld) -> None:
    script = "oc get configmap flag >/dev/null || exit 1"
    world.make_pod(restartPolicy="OnFailure", automountServiceAccountToken=True, containers=[_hook(script)])
    world.advance(30)
    assert world.state()["restartCount"] >= 2


def test_annotations_win_over_the_script(world: MachineWorld) -> None:
    world.make_pod(restartPolicy="Never", containers=[_hook("exit 0")], annotations={"syncline.dev/exit-code": "9"})
    world.idle()
    assert world.state()["state"]["terminated"]["exitCode"] == 9


def test_a_deleted_pod_ends_its_script(world: MachineWorld) -> None:
    world.make_pod(restartPolicy="Never", containers=[_hook("while true; do sleep 1; done")])
    world.advance(20)
    world.delete("/api/v1/namespaces/default/pods/p")
    world.idle()
    assert not world.exists("/api/v1/namespaces/default/pods/p")


def test_logs_are_bounded_by_their_options(world: MachineWorld) -> None:
    _run(world, "for i in 1 2 3; do echo $i; sleep 10; done")
    assert world.log(tailLines="2") == "2\n3\n"
    assert world.log(sinceSeconds="15") == "3\n"
    assert world.log(timestamps="true").splitlines()[0].endswith("Z 1")
    assert world.log(limitBytes="3") == "1\n2"


@pytest.mark.skipif(not (SCENES / "pool-pause").is_dir(), reason=absent(SCENES))
def test_the_hooks_of_the_pool_pause_scene_pause_and_resume_as_they_are(pool: MachineWorld) -> None:
    install(pool.transport.send, bootstrap_objects(port=6443, ca_pem=""))
    place = "openshift-gitops"
    pool.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    pool.settle()
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    where = {
        "ServiceAccount": f"/api/v1/namespaces/{place}/serviceaccounts",
        "ClusterRole": f"{rbac}/clusterroles",
        "ClusterRoleBinding": f"{rbac}/clusterrolebindings",
    }
    for obj in load_all((SCENES / "pool-pause" / "sync-job-cluster-rbac.yaml").read_bytes()).values:
        pool.post(where[obj["kind"]], obj)
    for file, paused in (("pre-sync-job", True), ("post-sync-job", False)):
        manifest = load((SCENES / "pool-pause" / f"{file}.yaml").read_bytes())
        pool.post(f"/apis/batch/v1/namespaces/{place}/jobs", manifest)
        pool.idle()
        assert pool.get(f"{POOLS}/worker")["spec"]["paused"] is paused
        job = pool.get(f"/apis/batch/v1/namespaces/{place}/jobs/{manifest['metadata']['name']}")
        assert job["status"]["succeeded"] == 1
