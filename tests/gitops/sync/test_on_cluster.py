"""Sync operations on the embedded cluster: real requests, real answers, virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.world import World
from tests.gitops.sync.operating import Operator

from syncline.gitops.sync.model import OperationPhase
from syncline.kube.objects import Obj

JOBS = "/apis/batch/v1/namespaces/demo/jobs"


def config(name: str, data: str = "1", **annotations: str) -> Obj:
    named = {f"argocd.argoproj.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": named},
        "data": {"v": data},
    }


def job(name: str, image: str = "job:1", **annotations: str) -> Obj:
    metadata = config(name, **annotations)["metadata"]
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": image}], "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@pytest.fixture
def world() -> World:
    made = World()
    made.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}})
    made.settle()
    return made


def finish_jobs(world: World) -> None:
    """Every pod of a Job succeeds."""
    for pod in world.items("/api/v1/namespaces/demo/pods"):
        if pod.get("status", {}).get("phase") != "Succeeded":
            state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
            status = {"phase": "Succeeded", "containerStatuses": [{"name": "c", "state": state}]}
            world.pod_status("demo", pod["metadata"]["name"], status)


def messages(plan: Any) -> dict[str, str]:
    return {row.ref.name: row.message for row in plan.results}


def test_6_a_single_wave_is_applied_and_a_second_sync_changes_nothing(world: World) -> None:
    operator = Operator(world, [config("a"), config("b")])
    plan = operator.run()
    assert (plan.phase, plan.message) == (OperationPhase.SUCCEEDED, "successfully synced (all tasks run)")
    assert messages(plan) == {"a": "configmap/a created", "b": "configmap/b created"}
    before = operator.transport.writes
    assert messages(operator.run("op-2")) == {"a": "configmap/a unchanged", "b": "configmap/b unchanged"}
    assert operator.transport.writes == before


def test_a_change_is_patched_and_what_left_the_source_is_pruned(world: World) -> None:
    Operator(world, [config("a"), config("old")]).run()
    plan = Operator(world, [config("a", "2")]).run("op-2")
    assert messages(plan) == {"a": "configmap/a configured", "old": "pruned"}
    assert world.get("/api/v1/namespaces/demo/configmaps/a")["data"] == {"v": "2"}
    world.idle()
    assert not world.exists("/api/v1/namespaces/demo/configmaps/old")


def test_9_a_bad_manifest_anywhere_means_that_nothing_is_applied(world: World) -> None:
    bad = {**config("bad", sync_wave="3"), "data": {"v": {"not": "text"}}}
    plan = Operator(world, [config("a"), bad]).run()
    assert (plan.phase, plan.message) == (OperationPhase.FAILED, "one or more objects failed to apply (dry run)")
    assert not world.exists("/api/v1/namespaces/demo/configmaps/a")


def test_21_hooks_run_around_the_sync_and_go_by_their_policies(world: World) -> None:
    targets = [
        job("before", hook="PreSync", hook_delete_policy="HookSucceeded"),
        config("a"),
        job("after", hook="PostSync"),
    ]
    operator = Operator(world, targets)
    operator.after_pass = lambda: finish_jobs(world)
    plan = operator.run()
    assert plan.phase is OperationPhase.SUCCEEDED
    assert [(row.ref.name, str(row.hook_phase)) for row in plan.results] == [
        ("before", "Succeeded"),
        ("a", "Succeeded"),
        ("after", "Succeeded"),
    ]
    world.idle()
    assert not world.exists(f"{JOBS}/before")
    assert world.exists(f"{JOBS}/after")


def test_29_a_hook_of_the_last_sync_is_deleted_and_made_anew(world: World) -> None:
    operator = Operator(world, [job("h", hook="Sync"), config("a")])
    operator.after_pass = lambda: finish_jobs(world)
    operator.run()
    first = world.get(f"{JOBS}/h")["metadata"]["uid"]
    assert operator.run("op-2").phase is OperationPhase.SUCCEEDED
    assert world.get(f"{JOBS}/h")["metadata"]["uid"] != first


def test_50_a_namespace_a_definition_and_what_lives_in_them_come_in_one_sync(world: World) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "other"}}
    plan = Operator(world, [widget, definition, namespace, config("late", sync_wave="1")]).run()
    assert plan.phase is OperationPhase.SUCCEEDED, plan
    assert world.exists("/apis/example.com/v1/namespaces/other/widgets/w")
    assert world.exists("/api/v1/namespaces/demo/configmaps/late")


def test_71_a_changed_job_is_refused_with_the_ways_out_or_made_anew_where_asked(world: World) -> None:
    Operator(world, [job("j")]).run()
    uid = world.get(f"{JOBS}/j")["metadata"]["uid"]
    plan = Operator(world, [job("j", "job:2")]).run("op-2")
    assert plan.phase is OperationPhase.FAILED
    assert "spec.template changed but the field is immutable" in messages(plan)["j"]
    assert world.get(f"{JOBS}/j")["metadata"]["uid"] == uid
    plan = Operator(world, [job("j", "job:2")], replace=True).run("op-3")
    assert (plan.phase, messages(plan)["j"]) == (OperationPhase.SUCCEEDED, "job.batch/j created")
    made = world.get(f"{JOBS}/j")
    assert made["metadata"]["uid"] != uid
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "job:2"


def test_69_replace_and_force_make_a_job_anew_on_every_sync(world: World) -> None:
    operator = Operator(world, [job("j", sync_options="Force=true,Replace=true")])
    uids = []
    for number in range(3):
        assert operator.run(f"op-{number}").phase is OperationPhase.SUCCEEDED
        uids.append(world.get(f"{JOBS}/j")["metadata"]["uid"])
    assert len(set(uids)) == 3


def test_each_sync_starts_one_new_job_of_those_that_have_only_a_prefix(world: World) -> None:
    target = job("")
    target["metadata"] = {"generateName": "run-"}
    operator = Operator(world, [target], replace=True)
    for number in range(1, 4):
        assert operator.run(f"op-{number}").phase is OperationPhase.SUCCEEDED
        assert len(world.items(JOBS)) == number


def test_65_server_side_apply_has_upstreams_manager_and_takes_the_fields_over(world: World) -> None:
    Operator(world, [config("a")]).run()
    plan = Operator(world, [config("a", "2")], server_side_apply=True).run("op-2")
    assert messages(plan)["a"] == "configmap/a serverside-applied"
    found = world.get("/api/v1/namespaces/demo/configmaps/a")
    assert found["data"] == {"v": "2"}
    assert ("argocd-controller", "Apply") in {
        (entry["manager"], entry["operation"]) for entry in found["metadata"]["managedFields"]
    }


def test_72_a_binding_whose_role_changed_is_made_anew(world: World) -> None:
    def binding(role: str) -> Obj:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
        metadata = {"name": "b"}
        api = "rbac.authorization.k8s.io/v1"
        return {"apiVersion": api, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference, "subjects": []}

    Operator(world, [binding("one")]).run()
    plan = Operator(world, [binding("two")]).run("op-2")
    assert plan.phase is OperationPhase.SUCCEEDED, plan
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/demo/rolebindings/b"
    assert world.get(path)["roleRef"]["name"] == "two"


def _everything(die_after: int) -> tuple[Any, ...]:
    world = World()
    made: dict[str, set[str]] = {}

    def go_on() -> None:
        for found in world.items(JOBS) if world.exists("/api/v1/namespaces/demo") else ():
            made.setdefault(found["metadata"]["name"], set()).add(found["metadata"]["uid"])
        finish_jobs(world)

    targets = [
        job("before", hook="PreSync"),
        job("during", hook="Sync", hook_delete_policy="HookSucceeded"),
        job("plain", sync_options="Force=true,Replace=true"),
        config("a"),
        config("b", sync_wave="1"),
        job("after", hook="PostSync", hook_delete_policy="HookSucceeded"),
    ]
    Operator(world, [job("plain", "job:0")], create_namespace=True).run("op-0")
    world.settle()
    old = {found["metadata"]["uid"] for found in world.items(JOBS)}
    operator = Operator(world, targets, die_after=die_after, create_namespace=True)
    operator.after_pass = go_on
    plan = operator.run()
    world.idle()
    states = sorted((row.ref.name, str(row.status), str(row.hook_phase)) for row in plan.results)
    left = sorted(found["metadata"]["name"] for found in world.items(JOBS))
    runs = {name: len(uids - old) for name, uids in sorted(made.items())}
    return operator.transport.writes, (plan.phase, plan.message, states, left, runs)


def test_5_a_controller_killed_after_any_request_ends_the_same_and_runs_every_hook_once() -> None:
    writes, expected = _everything(0)
    assert expected[0] is OperationPhase.SUCCEEDED
    assert expected[4] == {"after": 1, "before": 1, "during": 1, "plain": 1}
    for request in range(1, writes + 1):
        assert _everything(request)[1] == expected, f"killed after write {request} of {writes}"


def test_what_an_earlier_wave_makes_room_for_is_checked_at_its_own_wave(world: World) -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "other", "annotations": {"argocd.argoproj.io/sync-wave": "-1"}},
    }
    bad, good = config("bad", sync_wave="1"), config("good", sync_wave="1")
    bad["data"] = {"v": {"not": "text"}}
    for obj in (bad, good):
        obj["metadata"]["namespace"] = "other"
    # The Namespace comes in a wave of its own: nothing that lives in it is moved before it.
    first = config("first", sync_wave="-2")
    plan = Operator(world, [first, namespace, bad, good]).run()
    assert plan.phase is OperationPhase.FAILED
    assert world.exists("/api/v1/namespaces/other")
    assert not world.exists("/api/v1/namespaces/other/configmaps/good")
