"""How namespaces, attribute classes and address ranges end, and which objects stand for addresses of Services."""

from __future__ import annotations

import pytest
from tests.cluster.world import World

from syncline.cluster.bootstrap import bootstrap_objects, install
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj

NAMESPACES = "/api/v1/namespaces"
CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses"
RANGES, ADDRESSES = "/apis/networking.k8s.io/v1/servicecidrs", "/apis/networking.k8s.io/v1/ipaddresses"
OWNED = "?labelSelector=ipaddress.kubernetes.io/managed-by=ipallocator.k8s.io"


def a_world() -> World:
    world = World()
    world.settle()
    return world


def a_pod(world: World, name: str, **metadata: object) -> None:
    spec = {"containers": [{"name": "main", "image": "web"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}
    world.post(f"{NAMESPACES}/team/pods", body)


def a_namespace(world: World) -> None:
    world.post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    world.post(f"{NAMESPACES}/team/configmaps", body)
    world.settle()


def conditions(world: World, path: str) -> dict[str, tuple[str, str, str]]:
    listed = world.get(path)["status"].get("conditions") or []
    return {one["type"]: (one["status"], one.get("reason", ""), one.get("message", "")) for one in listed}


def test_nothing_else_in_a_namespace_goes_while_a_pod_is_held() -> None:
    world = a_world()
    a_namespace(world)
    a_pod(world, "held", finalizers=["example.com/wait"])
    world.delete(f"{NAMESPACES}/team")
    world.settle()
    assert "deletionTimestamp" in world.get(f"{NAMESPACES}/team/pods/held")["metadata"]
    assert world.exists(f"{NAMESPACES}/team/configmaps/settings")
    said = conditions(world, f"{NAMESPACES}/team")
    assert said["NamespaceDeletionContentFailure"][:2] == ("False", "ContentDeleted")
    assert said["NamespaceContentRemaining"][:2] == ("False", "ContentRemoved")
    world.merge(f"{NAMESPACES}/team/pods/held", {"metadata": {"finalizers": None}})
    world.reap("team")
    world.settle()
    assert not world.exists(f"{NAMESPACES}/team")


def test_pods_that_outlive_their_grace_fail_the_deletion_of_content() -> None:
    world = a_world()
    world.node("one")
    a_namespace(world)
    a_pod(world, "slow")
    world.settle()
    world.pod_status("team", "slow", {"phase": "Running"})
    world.delete(f"{NAMESPACES}/team")
    world.settle()
    assert conditions(world, f"{NAMESPACES}/team")["NamespaceDeletionContentFailure"][0] == "False"
    world.advance(60)
    assert conditions(world, f"{NAMESPACES}/team")["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: team for gvr: "
        "/v1, Resource=pods",
    )


def test_a_pod_that_taints_drive_away_says_so() -> None:
    world = a_world()
    world.node("one")
    a_namespace(world)
    a_pod(world, "guest")
    world.settle()
    world.merge(f"{NAMESPACES}/team/pods/guest", {"metadata": {"finalizers": ["example.com/look"]}})
    world.merge("/api/v1/nodes/one", {"spec": {"taints": [{"key": "away", "effect": "NoExecute"}]}})
    world.settle()
    assert conditions(world, f"{NAMESPACES}/team/pods/guest")["DisruptionTarget"] == (
        "True",
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )


def a_class(world: World, name: str) -> None:
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": name}}
    world.post(CLASSES, body | {"driverName": "csi.example.com", "parameters": {"speed": "fast"}})


def test_an_unused_attributes_class_can_be_deleted() -> None:
    world = a_world()
    a_class(world, "gold")
    world.settle()
    world.delete(f"{CLASSES}/gold")
    world.settle()
    assert not world.exists(f"{CLASSES}/gold")


def test_an_attributes_class_stays_while_a_claim_has_it() -> None:
    world = a_world()
    a_namespace(world)
    a_class(world, "gold")
    claim: Obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeAttributesClassName": "gold",
        },
    }
    world.post(f"{NAMESPACES}/team/persistentvolumeclaims", claim)
    world.settle()
    world.delete(f"{CLASSES}/gold")
    world.settle()
    assert world.exists(f"{CLASSES}/gold")
    world.delete(f"{NAMESPACES}/team/persistentvolumeclaims/data")
    world.settle()
    assert not world.exists(f"{CLASSES}/gold")


def a_service(world: World, name: str, address: str = "") -> Obj:
    spec: Obj = {"ports": [{"port": 80}]} | ({"clusterIP": address} if address else {})
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
    made: Obj = world.post(f"{NAMESPACES}/default/services", body)
    return made


def test_a_cluster_has_its_own_endpoints_range_and_address() -> None:
    world = a_world()
    for port in (6443, 7443):
        install(world.transport.send, bootstrap_objects(port=port))
        world.settle()
    endpoints = world.get(f"{NAMESPACES}/default/endpoints/kubernetes")
    piece = world.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
    assert endpoints["subsets"][0]["ports"] == [{"name": "https", "port": 7443, "protocol": "TCP"}]
    assert [one["addresses"] for one in piece["endpoints"]] == [[endpoints["subsets"][0]["addresses"][0]["ip"]]]
    assert len(world.items("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")) == 1
    assert conditions(world, f"{RANGES}/kubernetes")["Ready"][0] == "True"
    found = world.get(f"{ADDRESSES}/10.96.0.1")
    assert found["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "kubernetes"}


def test_addresses_come_and_go_with_their_services() -> None:
    world = a_world()
    address = a_service(world, "web")["spec"]["clusterIP"]
    world.settle()
    assert [one["metadata"]["name"] for one in world.items(f"{ADDRESSES}{OWNED}")] == [address]
    world.delete(f"{NAMESPACES}/default/services/web")
    assert a_service(world, "other", address)["spec"]["clusterIP"] == address
    world.settle()
    assert world.get(f"{ADDRESSES}/{address}")["spec"]["parentRef"]["name"] == "other"
    world.delete(f"{NAMESPACES}/default/services/other")
    world.settle()
    assert not world.items(f"{ADDRESSES}{OWNED}")


def test_an_address_that_somebody_reserved_is_not_given_and_stays() -> None:
    world = a_world()
    parent = {"group": "example.com", "resource": "gateways", "name": "edge"}
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "10.96.7.7"}}
    world.post(ADDRESSES, body | {"spec": {"parentRef": parent}})
    world.settle()
    with pytest.raises(ApiError, match="provided IP is already allocated"):
        a_service(world, "web", "10.96.7.7")
    assert world.exists(f"{ADDRESSES}/10.96.7.7")


def test_a_second_range_gives_addresses_and_stays_while_they_are_used() -> None:
    world = a_world()
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "more"}}
    with pytest.raises(ApiError, match="not in the valid range"):
        a_service(world, "web", "203.0.113.10")
    world.post(RANGES, body | {"spec": {"cidrs": ["203.0.113.0/24"]}})
    world.settle()
    a_service(world, "web", "203.0.113.10")
    world.settle()
    world.delete(f"{RANGES}/more")
    world.advance(30)
    assert conditions(world, f"{RANGES}/more")["Ready"][:2] == ("False", "Terminating")
    world.delete(f"{NAMESPACES}/default/services/web")
    world.advance(30)
    assert not world.exists(f"{RANGES}/more")


def test_the_data_of_a_revision_has_sorted_keys() -> None:
    world = a_world()
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template, "serviceName": "web"}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}
    world.post("/apis/apps/v1/namespaces/default/statefulsets", body)
    world.settle()
    (revision,) = world.items("/apis/apps/v1/namespaces/default/controllerrevisions")
    found = revision["data"]["spec"]["template"]
    assert list(found) == sorted(found)
    assert list(found["spec"]["containers"][0]) == sorted(found["spec"]["containers"][0])
