"""Waves and pruning (behaviours 45-64 of the sync reference)."""

from __future__ import annotations

from typing import Any

from tests.gitops.behaviours.sim import (
    APPS,
    DEPLOYMENTS,
    MAPS,
    NOWHERE,
    PREFIX,
    Simulation,
    annotated,
    config,
    deployment,
    job,
    rows,
)

from syncline.base.clock import format_time, parse_time
from syncline.kube.objects import dig, uid_of

NAMESPACES = "/api/v1/namespaces"
SERVER = "https://kubernetes.default.svc"
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
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
WIDGET = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.org"


def namespace(name: str, **a: str) -> dict[str, Any]:
    return annotated({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, **a)


def within(obj: dict[str, Any], name: str) -> dict[str, Any]:
    return obj | {"metadata": obj["metadata"] | {"namespace": name}}


def kept(obj: dict[str, Any]) -> dict[str, Any]:
    """The object with a finalizer that nobody takes off."""
    return obj | {"metadata": obj["metadata"] | {"finalizers": ["example.org/keep"]}}


def test_waves_go_in_order_and_each_waits_for_health_s045_s046() -> None:
    sim = Simulation(config("c", sync_wave="5"), deployment("b"), config("a", sync_wave="-1"))
    sim.begin()
    sim.driver.until(lambda: bool(sim.names(DEPLOYMENTS)))
    assert sim.maps() == ["a"]
    state = sim.finish()
    took = parse_time(state["finishedAt"]) - parse_time(state["startedAt"])
    assert sim.done("apply")[-3:] == ["a", "b", "c"]
    assert took.total_seconds() < 10, "a pod starts, nothing else is waited for"


def test_a_degraded_wave_fails_the_operation_and_ends_the_order_s047() -> None:
    sim = Simulation(
        deployment("web", spec={"progressDeadlineSeconds": 10}, pod=NOWHERE), config("later", sync_wave="1")
    )
    state = sim.sync()
    assert (state["phase"], sim.maps(), sim.sync_status()) == ("Failed", [], "OutOfSync")
    assert state["message"] == "one or more synchronization tasks completed unsuccessfully"


def test_a_paused_deployment_is_waited_for_s048() -> None:
    sim = Simulation(deployment("web", spec={"paused": True}), config("later", sync_wave="1"))
    sim.begin()
    sim.driver.advance(3000)
    assert sim.state()["message"] == "waiting for healthy state of apps/Deployment/web"


def test_the_last_wave_is_not_waited_for_s049() -> None:
    sim = Simulation(config("a"), deployment("web", pod=NOWHERE, sync_wave="1"))
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"


def test_a_namespace_comes_with_its_first_object_s050() -> None:
    sim = Simulation(namespace("shop", sync_wave="2"), within(config("a"), "shop"), config("b", sync_wave="1"))
    state = sim.sync()
    assert state["phase"] == "Succeeded", state
    assert sim.done("apply")[-3:] == ["shop", "a", "b"]


def test_a_definition_and_its_resource_come_together_s051() -> None:
    sim = Simulation(WIDGET, WIDGETS)
    state = sim.sync()
    assert state["phase"] == "Succeeded", state
    assert sim.get("/apis/example.org/v1/namespaces/default/widgets/w") is not None


def test_a_resource_whose_definition_is_elsewhere_fails_unless_its_dry_run_may_be_skipped_s052() -> None:
    sim = Simulation(WIDGET, config("a"))
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert state["message"].startswith("one or more synchronization tasks are not valid")
    sim = Simulation(annotated(WIDGET, sync_options="SkipDryRunOnMissingResource=true", sync_wave="1"), config("a"))
    sim.begin()
    sim.driver.advance(60)
    assert sim.maps() == ["a"]


def test_one_failure_does_not_stop_its_wave_s053() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    sim = Simulation(config("a"), deployment("web"))
    sim.world.send("POST", f"{NAMESPACES}/default/resourcequotas", quota)
    bad = config("a") | {"immutable": True}
    sim.source.commit(bad)
    assert sim.sync()["phase"] == "Succeeded"
    sim.source.commit(config("a", "changed") | {"immutable": True}, config("b"))
    state = sim.sync()
    assert state["phase"] == "Failed"
    assert "immutable" in str(rows(state)["ConfigMap/a"])


def test_only_what_is_out_of_sync_is_applied_where_asked_s054() -> None:
    sim = Simulation(config("a"), config("b"), job("pre", hook="PreSync"), syncOptions=["ApplyOutOfSyncOnly=true"])
    sim.sync()
    sim.source.commit(config("a"), config("b", "new"), job("pre", hook="PreSync"))
    state = sim.sync()
    assert sorted(rows(state)) == ["ConfigMap/b", "Job/pre"]
    assert len(sim.app()["status"]["history"]) == 2


def test_what_is_in_sync_but_degraded_holds_nothing_up_where_only_the_rest_is_applied_s055() -> None:
    web = deployment("web", spec={"progressDeadlineSeconds": 10}, pod=NOWHERE)
    sim = Simulation(web, syncOptions=["ApplyOutOfSyncOnly=true"])
    sim.sync()
    sim.driver.advance(60)
    sim.source.commit(web, config("later", sync_wave="1"))
    assert sim.sync()["phase"] == "Succeeded"
    assert sim.maps() == ["later"]


def test_extras_stay_without_prune_s056() -> None:
    sim = Simulation(config("a"), config("b"))
    sim.sync()
    sim.source.commit(config("a"))
    state = sim.sync()
    row = rows(state)["ConfigMap/b"]
    assert (state["phase"], row["status"], row["message"]) == (
        "Succeeded",
        "PruneSkipped",
        "ignored (requires pruning)",
    )
    assert (sim.maps(), sim.sync_status()) == (["a", "b"], "OutOfSync")


def test_extras_go_in_the_reverse_order_of_their_waves_s057() -> None:
    sim = Simulation(*(config(f"w{n}", sync_wave=str(n)) for n in (1, 2, 3)), config("stays"))
    sim.sync()
    sim.source.commit(config("stays"))
    state = sim.sync({"prune": True})
    assert (state["phase"], sim.done("prune"), sim.maps()) == ("Succeeded", ["w3", "w2", "w1"], ["stays"])


def test_a_finalizer_holds_the_next_wave_of_deletions_s058() -> None:
    sim = Simulation(config("w1", sync_wave="1"), kept(config("w2", sync_wave="2")), config("stays"))
    sim.sync()
    sim.source.commit(config("stays"))
    sim.begin({"prune": True})
    sim.driver.advance(300)
    assert sim.maps() == ["stays", "w1", "w2"]
    assert sim.state()["message"] == "waiting for deletion of /ConfigMap/w2"
    sim.patch(f"{MAPS}/w2", {"metadata": {"finalizers": None}})
    assert sim.finish()["phase"] == "Succeeded"
    assert sim.maps() == ["stays"]


def test_prune_last_is_after_all_is_healthy_and_before_postsync_s059() -> None:
    post, web = job("post", hook="PostSync"), deployment("web", sync_wave="3")
    sim = Simulation(config("old"), syncOptions=["PruneLast=true"])
    sim.sync()
    sim.source.commit(post, web)
    sim.begin({"prune": True})
    sim.driver.until(lambda: sim.maps() == [])
    assert dig(sim.get(f"{DEPLOYMENTS}/web"), "status", "availableReplicas") == 1
    assert sim.finish()["phase"] == "Succeeded"
    order = [e.what.split("/")[-1] for e in sim.world.journal if e.what.startswith(("apply ", "prune "))]
    assert order[-3:] == ["web", "old", "post"]


def test_the_live_object_decides_whether_it_may_be_pruned_s060() -> None:
    sim = Simulation(config("a", sync_options="Prune=false"), config("b"))
    sim.sync()
    sim.source.commit()
    state = sim.sync({"prune": True})
    assert rows(state)["ConfigMap/a"]["message"] == "ignored (no prune)"
    assert sim.maps() == ["a"]
    sim = Simulation(config("a", sync_options="Prune=true"), config("b"), syncOptions=["Prune=false"])
    sim.sync()
    sim.source.commit()
    sim.sync({"prune": True})
    assert sim.maps() == ["b"]


def test_pruning_that_needs_a_confirmation_waits_for_one_that_is_newer_s061() -> None:
    sim = Simulation(config("a", sync_options="Prune=confirm"), config("b"))
    sim.sync()
    sim.source.commit(config("b"))
    old = format_time(sim.world.clock.now())
    sim.driver.advance(10)
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {PREFIX + "deletion-approved": old}}})
    sim.begin({"prune": True})
    sim.driver.advance(300)
    assert sim.state()["message"] == "waiting for pruning confirmation of /ConfigMap/a"
    now = format_time(sim.world.clock.now())
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {PREFIX + "deletion-approved": now}}})
    assert sim.finish(limit_s=60)["phase"] == "Succeeded"
    assert sim.maps() == ["b"]


def test_a_definition_is_never_pruned_s062() -> None:
    sim = Simulation(WIDGETS, config("a"))
    sim.sync()
    sim.source.commit(config("a"))
    sim.sync({"prune": True})
    assert sim.get(CRD_PATH) is not None
    assert sim.sync_status() == "Synced"


def test_what_has_an_owner_is_not_pruned_s063() -> None:
    sim = Simulation(config("a"), config("b"))
    sim.sync()
    a, b = sim.get(f"{MAPS}/a") or {}, sim.get(f"{MAPS}/b") or {}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid_of(a)}
    sim.patch(f"{MAPS}/b", {"metadata": {"ownerReferences": [owner]}})
    assert b
    sim.source.commit(config("a"))
    sim.sync({"prune": True})
    assert sim.maps() == ["a", "b"]


def test_a_copy_that_names_another_object_is_left_alone_s064() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    copy = sim.get(f"{MAPS}/a") or {}
    meta = {"name": "copy", "annotations": copy["metadata"]["annotations"]}
    sim.world.send("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}})
    sim.refresh()
    assert [(r["name"], r.get("status")) for r in sim.app()["status"]["resources"]] == [
        ("a", "Synced"),
        ("copy", None),
    ]
    sim.sync({"prune": True})
    assert sim.maps() == ["a", "copy"]


def test_pruned_namespaces_take_along_what_is_in_them() -> None:
    sim = Simulation(namespace("shop"), within(config("a"), "shop"), config("b"))
    sim.sync()
    sim.source.commit(config("b"))
    state = sim.sync({"prune": True})
    assert state["phase"] == "Succeeded", state
    sim.driver.advance(60)
    assert sim.get(f"{NAMESPACES}/shop") is None


def test_the_propagation_policy_reaches_what_depends_on_the_pruned() -> None:
    sim = Simulation(deployment("web"), config("a"), syncOptions=["PrunePropagationPolicy=orphan"])
    sim.sync()
    sim.driver.advance(30)
    sim.source.commit(config("a"))
    sim.sync({"prune": True})
    sim.driver.advance(60)
    assert sim.names(DEPLOYMENTS) == []
    assert len(sim.names("/apis/apps/v1/namespaces/default/replicasets")) == 1


def test_many_objects_of_one_wave_are_one_sync() -> None:
    sim = Simulation(*(config(f"c{n:04}") for n in range(600)))
    state = sim.sync()
    assert (state["phase"], len(rows(state)), len(sim.maps())) == ("Succeeded", 600, 600)
