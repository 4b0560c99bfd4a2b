"""Claims, volumes, classes and the scheduler together, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.world import World

from syncline.cluster.builtin.storage.provisioner import SIMULATED, ObservedClaim, plan, standard_class
from syncline.control.plan import Create, Patch
from syncline.kube.objects import Obj
from syncline.rehearsal.seams import CrashingTransport, Killed

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ZONE = "topology.kubernetes.io/zone"


def claim(name: str = "data", storage_class: str | None = None, size: str = "1Gi") -> Obj:
    spec: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    spec |= {} if storage_class is None else {"storageClassName": storage_class}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def pod(name: str = "p", *claims: str, cpu: str = "1", **spec: Any) -> Obj:
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": cpu}}}
    volumes = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": each}} for n, each in enumerate(claims)]
    body = {"containers": [container], "volumes": volumes} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def volume(name: str, storage_class: str, zone: str = "", size: str = "1Gi") -> Obj:
    spec: Obj = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    if zone:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    spec["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, provisioner: str = SIMULATED, mode: str = "WaitForFirstConsumer", **more: Any) -> Obj:
    base = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return base | {"provisioner": provisioner, "volumeBindingMode": mode} | more


@pytest.fixture
def world() -> World:
    made = World()
    made.settle()
    for name, zone in (("a", "east"), ("b", "west")):
        made.node(name, cpu="2", labels={ZONE: zone})
    return made


def reasons(world: World, reason: str) -> list[str]:
    return [message for said, message in world.events("default") if said == reason]


def test_a_claim_of_the_default_class_waits_for_a_pod_and_gets_a_volume_in_its_zone(world: World) -> None:
    world.post(CLASSES, standard_class())
    made = world.post(CLAIMS, claim())
    world.idle()
    assert made["spec"]["storageClassName"] == "standard"
    assert world.get(f"{CLAIMS}/data")["status"]["phase"] == "Pending" and world.items(VOLUMES) == []
    assert reasons(world, "WaitForFirstConsumer") == ["waiting for first consumer to be created before binding"]
    world.post(PODS, pod("p", "data", nodeSelector={ZONE: "west"}))
    world.idle()
    bound = world.get(f"{CLAIMS}/data")
    assert bound["status"]["phase"] == "Bound" and world.get(f"{PODS}/p")["spec"]["nodeName"] == "b"
    notes = bound["metadata"]["annotations"]
    assert notes["volume.kubernetes.io/selected-node"] == "b"
    assert notes["volume.kubernetes.io/storage-provisioner"] == SIMULATED
    (found,) = world.items(VOLUMES)
    assert found["metadata"]["name"] == f"pvc-{bound['metadata']['uid']}" == bound["spec"]["volumeName"]
    term = found["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]
    assert term == {"key": ZONE, "operator": "In", "values": ["west"]}
    assert reasons(world, "ProvisioningSucceeded") == [f"Successfully provisioned volume {found['metadata']['name']}"]
    assert not reasons(world, "FailedScheduling")


def test_a_volume_of_ours_goes_with_its_claim(world: World) -> None:
    world.post(CLASSES, standard_class())
    world.post(CLAIMS, claim())
    world.post(PODS, pod("p", "data"))
    world.idle()
    assert len(world.items(VOLUMES)) == 1
    world.delete(f"{PODS}/p", gracePeriodSeconds=0)
    world.delete(f"{CLAIMS}/data")
    world.idle()
    assert world.items(CLAIMS) == [] and world.items(VOLUMES) == []


def test_a_volume_that_is_to_be_retained_stays_released(world: World) -> None:
    world.post(CLASSES, storage_class("kept", mode="Immediate", reclaimPolicy="Retain"))
    world.post(CLAIMS, claim(storage_class="kept"))
    world.idle()
    world.delete(f"{CLAIMS}/data")
    world.idle()
    assert [each["status"]["phase"] for each in world.items(VOLUMES)] == ["Released"]


def test_an_immediate_class_makes_volumes_without_a_pod(world: World) -> None:
    world.post(CLASSES, storage_class("fast", mode="Immediate"))
    world.post(CLAIMS, claim(storage_class="fast"))
    world.idle()
    assert world.get(f"{CLAIMS}/data")["status"]["phase"] == "Bound"
    assert "nodeAffinity" not in world.items(VOLUMES)[0]["spec"]


def test_a_bound_volume_decides_where_the_next_pod_runs(world: World) -> None:
    world.post(CLASSES, standard_class())
    world.post(CLAIMS, claim())
    world.post(PODS, pod("first", "data", nodeName="", nodeSelector={ZONE: "west"}))
    world.idle()
    world.delete(f"{PODS}/first", gracePeriodSeconds=0)
    world.post(PODS, pod("full", cpu="2", nodeSelector={ZONE: "west"}))
    world.idle()
    world.post(PODS, pod("second", "data"))
    world.idle()
    assert reasons(world, "FailedScheduling") == [
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity. no new "
        "claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    ]


def test_the_scheduler_reserves_a_static_volume_that_its_node_reaches(world: World) -> None:
    world.post(CLASSES, storage_class("local", "kubernetes.io/no-provisioner"))
    for name, zone in (("east-small", "east"), ("west-large", "west")):
        world.post(VOLUMES, volume(name, "local", zone, "1Gi" if zone == "east" else "5Gi"))
    world.post(CLAIMS, claim(storage_class="local", size="2Gi"))
    world.idle()
    assert world.get(f"{VOLUMES}/west-large")["status"]["phase"] == "Available", "it waits for a pod"
    world.post(PODS, pod("p", "data"))
    world.idle()
    assert world.get(f"{PODS}/p")["spec"]["nodeName"] == "b"
    assert world.get(f"{CLAIMS}/data")["spec"]["volumeName"] == "west-large"


def test_two_pods_never_share_the_room_that_one_of_them_waits_for(world: World) -> None:
    world.post(CLASSES, standard_class())
    for number in range(4):
        world.post(CLAIMS, claim(f"d{number}"))
        world.post(PODS, pod(f"p{number}", f"d{number}"))
    world.idle()
    assert sorted(each["spec"]["nodeName"] for each in world.items(PODS)) == ["a", "a", "b", "b"]


NO_NODE_HELPS = ". no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful"
NO_NODE_HELPS += " for scheduling."
EVERYWHERE = ". not found"
"""What Kubernetes says after a reason that is the pod's own."""


@pytest.mark.parametrize(
    ("objects", "sentence"),
    [
        ([], 'persistentvolumeclaim "data" not found' + EVERYWHERE),
        ([(CLAIMS, claim())], "pod has unbound immediate PersistentVolumeClaims" + EVERYWHERE),
        ([(CLAIMS, claim(storage_class="nowhere"))], "pod has unbound immediate PersistentVolumeClaims" + EVERYWHERE),
        (
            [
                (CLASSES, storage_class("local", "kubernetes.io/no-provisioner")),
                (CLAIMS, claim(storage_class="local")),
            ],
            "2 node(s) didn't find available persistent volumes to bind" + NO_NODE_HELPS,
        ),
        (
            [
                (
                    CLASSES,
                    storage_class(
                        "south", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["south"]}]}]
                    ),
                ),
                (CLAIMS, claim(storage_class="south")),
            ],
            "2 node(s) didn't find available persistent volumes to bind" + NO_NODE_HELPS,
        ),
    ],
)
def test_why_a_pod_with_claims_is_not_placed(world: World, objects: list[tuple[str, Obj]], sentence: str) -> None:
    for path, body in objects:
        world.post(path, body)
    world.post(PODS, pod("p", "data"))
    world.idle()
    assert reasons(world, "FailedScheduling") == [f"0/2 nodes are available: {sentence}"]


def test_a_pod_runs_once_its_missing_claim_is_there(world: World) -> None:
    world.post(CLASSES, standard_class())
    world.post(PODS, pod("p", "data"))
    world.idle()
    world.post(CLAIMS, claim())
    world.idle()
    assert world.get(f"{PODS}/p")["spec"]["nodeName"]


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (claim(), ("FailedBinding", "no persistent volumes available for this claim and no storage class is set")),
        (claim(storage_class="x"), ("ProvisioningFailed", 'storageclass.storage.k8s.io "x" not found')),
    ],
)
def test_people_are_told_once_why_a_claim_waits(world: World, body: Obj, event: tuple[str, str]) -> None:
    world.post(CLAIMS, body)
    world.idle()
    for number in range(3):
        world.post(VOLUMES, volume(f"other-{number}", "other"))
        world.idle()
    found = [each for each in world.items("/api/v1/namespaces/default/events") if each["reason"] == event[0]]
    assert [(each["reason"], each["message"], each["count"]) for each in found] == [(*event, 1)]


def test_a_claim_of_somebody_elses_provisioner_is_announced_and_left_to_it(world: World) -> None:
    world.post(CLASSES, storage_class("csi", "csi.example.com", "Immediate"))
    world.post(CLAIMS, claim(storage_class="csi"))
    world.idle()
    notes = world.get(f"{CLAIMS}/data")["metadata"]["annotations"]
    assert notes["volume.kubernetes.io/storage-provisioner"] == "csi.example.com" and world.items(VOLUMES) == []
    assert reasons(world, "ExternalProvisioning")[0].startswith(
        "Waiting for a volume to be created either by the external provisioner 'csi.example.com'"
    )


def test_a_selected_node_that_is_gone_is_given_up() -> None:
    noted = claim(storage_class="standard")
    noted["metadata"] |= {"uid": "u", "annotations": {"volume.kubernetes.io/selected-node": "gone"}}
    (step,) = plan(ObservedClaim(noted, standard_class(), None, made=False)).steps
    assert isinstance(step[0], Patch)
    assert step[0].body["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": None}
    there = plan(ObservedClaim(noted, standard_class(), {"metadata": {"name": "gone"}}, made=False))
    assert isinstance(there.steps[0][0], Create)
    assert plan(ObservedClaim(noted, standard_class(), None, made=True)).empty


def test_provisioning_survives_a_crash_after_any_write() -> None:
    for after in range(1, 60):
        world = World()
        world.settle()
        world.node("a", cpu="2", labels={ZONE: "east"})
        world.post(CLASSES, standard_class())
        world.settle()
        world.restart(CrashingTransport(world.transport, after))
        died = False
        try:
            world.post(CLAIMS, claim())
            world.post(PODS, pod("p", "data"))
            world.idle()
        except Killed:
            died = True
            world.restart()
            world.idle()
        assert world.get(f"{PODS}/p")["spec"]["nodeName"] == "a" and len(world.items(VOLUMES)) == 1
        assert world.get(f"{CLAIMS}/data")["status"]["phase"] == "Bound"
        if not died:
            assert after > 6
            return
    raise AssertionError("still crashing after 60 writes")
