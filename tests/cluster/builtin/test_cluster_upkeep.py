"""ClusterRoles that gather others, and pods whose node is gone."""

from __future__ import annotations

from typing import Any

from tests.cluster.world import World

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
PODS = "/api/v1/namespaces/default/pods"


def role(name: str, verb: str, **metadata: Any) -> dict[str, Any]:
    rules = [{"verbs": [verb], "apiGroups": ["example.com"], "resources": ["widgets"]}]
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    return kind | {"metadata": {"name": name} | metadata, "rules": rules}


def gathering() -> World:
    world = World()
    whole = role("whole", "none") | {"rules": []}
    whole["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"part": "whole"}}]}
    world.post(ROLES, whole)
    for name, verb in (("b", "list"), ("a", "get")):
        world.post(ROLES, role(name, verb, labels={"part": "whole"}))
    world.settle()
    return world


def verbs(world: World) -> list[str]:
    return [rule["verbs"][0] for rule in world.get(f"{ROLES}/whole")["rules"] or []]


def test_a_role_gathers_the_rules_of_the_roles_it_selects_by_name() -> None:
    assert verbs(gathering()) == ["get", "list"]


def test_a_role_that_loses_its_label_or_goes_is_gathered_no_longer() -> None:
    world = gathering()
    world.merge(f"{ROLES}/a", {"metadata": {"labels": {"part": None}}})
    world.settle()
    assert verbs(world) == ["list"]
    world.delete(f"{ROLES}/b")
    world.settle()
    assert verbs(world) == []


def test_rules_written_by_hand_into_a_gathering_role_do_not_stay() -> None:
    world = gathering()
    world.merge(f"{ROLES}/whole", {"rules": role("x", "delete")["rules"]})
    world.settle()
    assert verbs(world) == ["get", "list"]


def test_a_gathering_role_is_applied_under_the_name_that_kubernetes_uses() -> None:
    fields = gathering().get(f"{ROLES}/whole")["metadata"]["managedFields"]
    assert ("clusterrole-aggregation-controller", "Apply") in {(f["manager"], f["operation"]) for f in fields}


def with_accounts() -> World:
    world = World()
    world.settle()
    return world


def pod_on(node: str) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "x:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def test_a_pod_of_a_node_that_never_was_is_removed_after_its_quarantine() -> None:
    world = with_accounts()
    world.post(PODS, pod_on("nowhere"))
    world.advance(55)
    assert world.exists(f"{PODS}/p")
    world.advance(10)
    assert not world.exists(f"{PODS}/p")


def test_a_pod_of_a_deleted_node_says_why_it_ends() -> None:
    world = with_accounts()
    world.node("n1")
    world.post(PODS, pod_on("n1") | {"metadata": {"name": "p", "finalizers": ["example.com/kept"]}})
    world.advance(90)
    assert world.get(f"{PODS}/p")["status"]["phase"] == "Pending"
    world.delete("/api/v1/nodes/n1")
    world.advance(1)
    pod = world.get(f"{PODS}/p")
    (said,) = [c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (pod["status"]["phase"], said["reason"]) == ("Failed", "DeletionByPodGC")
    assert "deletionTimestamp" in pod["metadata"]


def test_a_pod_without_a_node_is_left_to_the_scheduler() -> None:
    world = with_accounts()
    world.post(PODS, pod_on("") | {"spec": {"containers": [{"name": "c", "image": "x:1"}]}})
    world.advance(600)
    assert world.exists(f"{PODS}/p")
