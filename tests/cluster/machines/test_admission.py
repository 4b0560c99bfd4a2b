"""Pods that a machine refuses, and containers that cannot be made, on the embedded API in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from machine_world import MachineWorld

from syncline.cluster.machines.kubelet.admit import Asked, refusal_of
from syncline.kube.objects import Obj

HERE = {"nodeName": "node-0"}


def events(world: MachineWorld, name: str = "p") -> list[tuple[str, str]]:
    items = world.items("/api/v1/namespaces/default/events")
    return [(each["reason"], each["message"]) for each in items if each["involvedObject"]["name"] == name]


def asking(**requests: str) -> list[Obj]:
    return [{"name": "c", "image": "x:1", "resources": {"requests": requests}}]


def port(number: int, **more: Any) -> list[Obj]:
    return [{"name": "c", "image": "x:1", "ports": [{"containerPort": 80, "hostPort": number} | more]}]


FITS = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
REFUSED: dict[str, tuple[Obj, str, str]] = {
    "more processors than the machine has": (
        {"containers": asking(cpu="9")},
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 9000, used: 1000, capacity: 8000",
    ),
    "more memory than the others left": (
        {"containers": asking(memory="32Gi")},
        "OutOfmemory",
        "Node didn't have enough resource: memory, requested: 34359738368, used: 1073741824, capacity: 34359738368",
    ),
    "more scratch space than there is": (
        {"containers": asking(**{"ephemeral-storage": "101Gi"})},
        "OutOfephemeral-storage",
        "Node didn't have enough resource: ephemeral-storage, requested: 108447924224, used: 0, capacity: 107374182400",
    ),
    "an init container that asks for too much": (
        {"initContainers": [{**asking(cpu="9")[0], "name": "i"}]},
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 9000, used: 1000, capacity: 8000",
    ),
    "a selector that the node's labels do not match": ({"nodeSelector": {"disk": "ssd"}}, "NodeAffinity", FITS),
    "an affinity that they do not match": (
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
                    }
                }
            }
        },
        "NodeAffinity",
        FITS,
    ),
    "a port of the node that another pod has": (
        {"containers": port(8080)},
        "NodePorts",
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    ),
    "another system": (
        {"os": {"name": "windows"}},
        "PodOSNotSupported",
        "Failed to admit pod as the OS field doesn't match node OS",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_machine_refuses(world: MachineWorld, case: tuple[Obj, str, str]) -> None:
    spec, reason, message = case
    first = {**asking(cpu="1", memory="1Gi")[0], **port(8080)[0]}
    world.make_pod("first", containers=[first], **HERE)
    world.idle()
    assert world.pod("first")["status"]["phase"] == "Running"
    world.make_pod(**(HERE | spec))
    world.idle()
    status = world.pod()["status"]
    told = {key: status[key] for key in ("phase", "reason", "message")}
    assert told == {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
    assert "containerStatuses" not in status and (reason, message) in events(world)


TAKEN: dict[str, Obj] = {
    "a port under another address": {"containers": port(8080, hostIP="127.0.0.2")},
    "a port with another protocol": {"containers": port(8080, protocol="UDP")},
    "an extended resource that the node does not know": {
        "containers": [
            {
                "name": "c",
                "image": "x:1",
                "resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}},
            }
        ]
    },
}


@pytest.mark.parametrize("spec", TAKEN.values(), ids=TAKEN)
def test_a_machine_takes(world: MachineWorld, spec: Obj) -> None:
    world.make_pod("first", containers=port(8080, hostIP="127.0.0.1"), **HERE)
    world.idle()
    world.make_pod(**(HERE | spec))
    world.idle()
    assert world.pod()["status"]["phase"] == "Running"


def test_a_node_that_sends_pods_away_takes_none(world: MachineWorld) -> None:
    taint = {"key": "out", "effect": "NoExecute"}
    soft = {"key": "full", "effect": "NoSchedule"}
    node = world.get("/api/v1/nodes/node-0")
    refused = refusal_of({"spec": {}}, {**node, "spec": {"taints": [soft, taint]}}, (), {})
    assert refused is not None and refused.reason == "TaintToleration"
    assert refusal_of({"spec": {}}, {**node, "spec": {"taints": [soft]}}, (), {}) is None
    bears = {"spec": {"tolerations": [{"key": "out", "operator": "Exists"}]}}
    assert refusal_of(bears, {**node, "spec": {"taints": [taint]}}, (), {}) is None


def test_a_full_machine_takes_no_pod_more() -> None:
    pods = [Asked({}, ())] * 2
    refused = refusal_of({"spec": {}}, {}, pods, {"pods": "2"})
    assert refused is not None and refused.reason == "OutOfpods"
    assert refused.message == "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"
    assert refusal_of({"spec": {}}, {}, pods[:1], {"pods": "2"}) is None


def test_what_ended_or_was_refused_takes_no_room(world: MachineWorld) -> None:
    world.make_pod("big", containers=asking(cpu="9"), **HERE)
    world.make_pod("ended", containers=asking(cpu="8"), restartPolicy="Never", **HERE)
    world.idle()
    world.make_pod(containers=asking(cpu="8"), **HERE)
    world.idle()
    phases = [world.pod(name)["status"]["phase"] for name in ("big", "ended", "p")]
    assert phases == ["Failed", "Succeeded", "Running"]


def test_a_pod_that_runs_stays_whatever_its_node_becomes(world: MachineWorld) -> None:
    """Also when the kubelet begins again and knows it from its status only."""
    world.merge("/api/v1/nodes/node-0", {"metadata": {"labels": {"disk": "ssd"}}})
    world.make_pod(nodeSelector={"disk": "ssd"}, **HERE)
    world.idle()
    world.merge("/api/v1/nodes/node-0", {"metadata": {"labels": {"disk": None}}})
    world.restart()
    world.idle()
    assert world.pod()["status"]["phase"] == "Running"


def test_a_controller_whose_pods_are_refused_does_not_fill_the_cluster(world: MachineWorld) -> None:
    pod = {"nodeName": "node-0", "containers": asking(cpu="9")}
    labels = {"app": "big"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "big"}, "spec": spec}
    world.post("/apis/apps/v1/namespaces/default/replicasets", body)
    world.advance(3600)
    pods = world.items("/api/v1/namespaces/default/pods")
    refused = [each for each in pods if each["status"]["phase"] == "Failed"]
    assert 8 < len(refused) < 30, "the wait doubles up to five minutes"
    (waiting,) = [each for each in pods if each["status"]["phase"] == "Pending"]
    assert waiting["status"]["reason"] == "AdmissionBackOff" and "OutOf" not in waiting["status"]["message"]
    assert "enough resource: cpu" in waiting["status"]["message"]


# -- containers that cannot be made ------------------------------------------------------------------------------------


def mounting(expression: str, value: str | None) -> list[Obj]:
    env = [] if value is None else [{"name": "WHERE", "value": value}]
    mount = {"name": "e", "mountPath": "/work", "subPathExpr": expression}
    return [{"name": "c", "image": "x:1", "env": env, "volumeMounts": [mount]}]


BAD: dict[str, tuple[list[Obj], Obj, str, str]] = {
    "a part of a volume by an absolute path": (
        mounting("$(WHERE)", "/tmp"),
        {},
        "CreateContainerConfigError",
        "error SubPath `/tmp` must not be an absolute path",
    ),
    "a part that leads out of it": (
        mounting("a/$(WHERE)", "../.."),
        {},
        "CreateContainerConfigError",
        "unable to provision SubPath `a/../..`: must not contain '..'",
    ),
    "a part by a variable that there is not": (
        mounting("$(WHERE)/$(ALSO)", "x"),
        {},
        "CreateContainerConfigError",
        "missing value for ALSO",
    ),
    "a part by a variable that is empty": (
        mounting("$(WHERE)/$(ALSO)", ""),
        {},
        "CreateContainerConfigError",
        "missing value for ALSO, WHERE",
    ),
    "a variable that only the runtime knows": (
        mounting("$(HOSTNAME)", None),
        {},
        "CreateContainerConfigError",
        "missing value for HOSTNAME",
    ),
    "an image that is no name": (
        [{"name": "c", "image": "Nginx:1"}],
        {},
        "InvalidImageName",
        'Failed to apply default image tag "Nginx:1": couldn\'t parse image name "Nginx:1": '
        "invalid reference format: repository name (library/Nginx) must be lowercase",
    ),
    "an image with an empty tag": (
        [{"name": "c", "image": "nginx:"}],
        {},
        "InvalidImageName",
        'Failed to apply default image tag "nginx:": couldn\'t parse image name "nginx:": invalid reference format',
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_a_container_is_not_made_with(world: MachineWorld, case: tuple[list[Obj], Obj, str, str]) -> None:
    containers, more, reason, message = case
    world.make_pod(containers=containers, volumes=[{"name": "e", "emptyDir": {}}], **more)
    world.idle()
    assert world.state()["state"] == {"waiting": {"reason": reason, "message": message}}
    assert world.pod()["status"]["phase"] == "Pending"
    said = f"Error: {message}" if reason == "CreateContainerConfigError" else f"Error: {reason}"
    assert ("Failed", said) in events(world)


def test_root_is_refused_where_nobody_may_be_root(world: MachineWorld) -> None:
    world.make_pod(securityContext={"runAsNonRoot": True, "runAsUser": 0})
    world.idle()
    waiting = world.state()["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"].startswith("container's runAsUser breaks non-root policy (pod: \"p_default(")


def test_a_part_by_an_annotation_is_there_once_the_annotation_is(world: MachineWorld) -> None:
    source = {"fieldRef": {"fieldPath": "metadata.annotations['where']"}}
    container = mounting("$(WHERE)", None)[0] | {"env": [{"name": "WHERE", "valueFrom": source}]}
    world.make_pod(containers=[container], volumes=[{"name": "e", "emptyDir": {}}])
    world.idle()
    assert world.state()["state"]["waiting"]["message"] == "missing value for WHERE"
    world.merge("/api/v1/namespaces/default/pods/p", {"metadata": {"annotations": {"where": "here"}}})
    world.idle()
    assert world.pod()["status"]["phase"] == "Running"
