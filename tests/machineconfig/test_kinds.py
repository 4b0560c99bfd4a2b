"""The kinds of machine configuration, served by the embedded API as custom resources."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.world import World

from syncline.kube.errors import ApiError
from syncline.kube.kinds.descriptions import DESCRIPTIONS, described
from syncline.kube.kinds.machineconfiguration import machine_config_crds
from syncline.kube.kinds.openshiftconfig import openshift_config_crds
from syncline.kube.objects import Obj

MCO = "/apis/machineconfiguration.openshift.io/v1"
OPERATOR = "/apis/operator.openshift.io/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def world() -> World:
    made = World()
    for crd in (*machine_config_crds(), *openshift_config_crds()):
        made.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    made.settle()
    return made


def thing(kind: str, name: str, spec: Obj, group: str = "machineconfiguration.openshift.io/v1") -> Obj:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def refusal(world: World, path: str, body: Obj) -> str:
    with pytest.raises(ApiError) as caught:
        world.post(path, body)
    return str(caught.value)


def columns(world: World, path: str) -> list[tuple[str, int]]:
    from syncline.kube.client import Request

    table: Any = world.transport.send(Request("GET", path, {}, {"accept": TABLE})).or_raise()
    return [(column["name"], column["priority"]) for column in table["columnDefinitions"]]


def test_every_definition_is_accepted_and_established(world: World) -> None:
    for crd in world.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"):
        conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        assert conditions["Established"] == "True", crd["metadata"]["name"]
        assert "NonStructuralSchema" not in conditions, crd["metadata"]["name"]


def test_pools_print_the_columns_that_people_read_rollouts_by(world: World) -> None:
    names = [name for name, _ in columns(world, f"{MCO}/machineconfigpools")]
    assert names == [
        "Name",
        "Config",
        "Updated",
        "Updating",
        "Degraded",
        "MachineCount",
        "ReadyMachineCount",
        "UpdatedMachineCount",
        "DegradedMachineCount",
        "Age",
    ]


def test_nodes_print_their_phases_only_when_asked_wide(world: World) -> None:
    shown = columns(world, f"{MCO}/machineconfignodes")
    narrow = [name for name, priority in shown if priority == 0]
    assert narrow == ["Name", "PoolName", "DesiredConfig", "CurrentConfig", "Updated", "Age"]
    assert "UpdatePostActionComplete" in [name for name, priority in shown if priority == 1]


def test_nothing_validates_a_machine_config_at_admission(world: World) -> None:
    config = {"ignition": {"version": "9.9.9"}, "unknown": {"kept": [1, {"a": None}]}}
    made = world.post(f"{MCO}/machineconfigs", thing("MachineConfig", "x", {"config": config, "kernelType": "odd"}))
    assert made["spec"]["config"] == config
    assert made["spec"]["kernelType"] == "odd"


def test_kernel_arguments_may_be_null(world: World) -> None:
    made = world.post(f"{MCO}/machineconfigs", thing("MachineConfig", "x", {"kernelArguments": None}))
    assert made["spec"]["kernelArguments"] is None


def test_a_pool_takes_max_unavailable_as_a_number_or_a_text(world: World) -> None:
    for name, value in (("a", 2), ("b", "25%")):
        made = world.post(f"{MCO}/machineconfigpools", thing("MachineConfigPool", name, {"maxUnavailable": value}))
        assert made["spec"]["maxUnavailable"] == value
    said = refusal(world, f"{MCO}/machineconfigpools", thing("MachineConfigPool", "c", {"maxUnavailable": True}))
    assert "spec.maxUnavailable" in said


def test_a_pools_status_is_a_subresource_and_a_machine_configs_is_not(world: World) -> None:
    pool = thing("MachineConfigPool", "worker", {"paused": False}) | {"status": {"machineCount": 3}}
    assert "status" not in world.post(f"{MCO}/machineconfigpools", pool)
    changed = world.merge(f"{MCO}/machineconfigpools/worker/status", {"status": {"machineCount": 3}})
    assert changed["status"]["machineCount"] == 3
    assert not world.exists(f"{MCO}/machineconfigs/none/status")


def test_there_is_one_machine_configuration_and_it_is_named_cluster(world: World) -> None:
    path = f"{OPERATOR}/machineconfigurations"
    said = refusal(world, path, thing("MachineConfiguration", "other", {}, "operator.openshift.io/v1"))
    assert "Only a single object of MachineConfiguration is allowed and it must be named cluster." in said
    made = world.post(path, thing("MachineConfiguration", "cluster", {}, "operator.openshift.io/v1"))
    assert made["spec"] == {"logLevel": "Normal", "operatorLogLevel": "Normal"}


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([{"type": "Reboot"}, {"type": "Drain"}], "Reboot action can only be specified standalone"),
        ([{"type": "None"}, {"type": "Drain"}], "None action can only be specified standalone"),
        ([{"type": "Reload"}], "reload is required when type is Reload"),
        ([{"type": "Restart", "restart": {"serviceName": "crio"}}], "Invalid ${SERVICETYPE} in service name"),
        ([{"type": "Restart", "restart": {"serviceName": ".service"}}], "Invalid ${NAME} in service name"),
        ([{"type": "Special"}], "Unsupported value"),
        ([{"type": "DaemonReload"}, {"type": "Restart", "restart": {"serviceName": "crio.service"}}], ""),
        ([{"type": "Reload", "reload": {"serviceName": "a@b.timer"}}], "Invalid ${NAME}"),
    ],
)
def test_disruption_policies_are_validated_as_upstream(world: World, actions: list[Obj], said: str) -> None:
    spec = {"nodeDisruptionPolicy": {"files": [{"path": "/etc/a", "actions": actions}]}}
    body = thing("MachineConfiguration", "cluster", spec, "operator.openshift.io/v1")
    if said:
        assert said in refusal(world, f"{OPERATOR}/machineconfigurations", body)
    else:
        assert world.post(f"{OPERATOR}/machineconfigurations", body)["spec"]["nodeDisruptionPolicy"]


def test_a_machine_config_node_is_named_as_its_node(world: World) -> None:
    spec = {"node": {"name": "b"}, "pool": {"name": "worker"}, "configVersion": {"desired": "not-yet-set"}}
    path = f"{MCO}/machineconfignodes"
    assert "spec.node.name should match metadata.name" in refusal(world, path, thing("MachineConfigNode", "a", spec))
    assert world.post(path, thing("MachineConfigNode", "b", spec))


def test_pinned_images_are_named_by_digest(world: World) -> None:
    path, digest = f"{MCO}/pinnedimagesets", "sha256:" + "a" * 64
    good = thing("PinnedImageSet", "a", {"pinnedImages": [{"name": f"quay.io/x/y@{digest}"}]})
    assert world.post(path, good)
    bad = thing("PinnedImageSet", "b", {"pinnedImages": [{"name": "quay.io/x/y:latest"}]})
    assert "must end with a valid '@sha256:<digest>' suffix" in refusal(world, path, bad)


def test_sub_controller_configs_refuse_what_upstream_refuses(world: World) -> None:
    said = refusal(world, f"{MCO}/kubeletconfigs", thing("KubeletConfig", "a", {"logLevel": 11}))
    assert "spec.logLevel" in said
    runtime = {"containerRuntimeConfig": {"additionalImageStores": [{"path": "/a//b"}, {"path": "/c"}]}}
    said = refusal(world, f"{MCO}/containerruntimeconfigs", thing("ContainerRuntimeConfig", "a", runtime))
    assert "path must not contain consecutive forward slashes" in said
    runtime = {"containerRuntimeConfig": {"overlaySize": "10G", "defaultRuntime": "runc", "pidsLimit": 3}}
    assert world.post(f"{MCO}/containerruntimeconfigs", thing("ContainerRuntimeConfig", "a", runtime))


def test_only_one_list_of_registries_may_be_given(world: World) -> None:
    spec = {"registrySources": {"blockedRegistries": ["a.io"], "allowedRegistries": ["b.io"]}}
    body = thing("Image", "cluster", spec, "config.openshift.io/v1")
    said = refusal(world, "/apis/config.openshift.io/v1/images", body)
    assert "Only one of blockedRegistries or allowedRegistries may be set" in said


@pytest.mark.parametrize("crd", machine_config_crds(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_kubectl_explain_has_words_for_every_field_that_people_write(crd: Obj) -> None:
    kind = crd["spec"]["names"]["kind"]
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    silent = {name for name, schema in fields.items() if not schema.get("description")}
    if kind in ("MachineConfig", "MachineConfigPool", "KubeletConfig", "ContainerRuntimeConfig", "PinnedImageSet"):
        assert not silent, f"{kind}.spec"


def test_words_are_for_fields_that_there_are() -> None:
    kinds = {crd["spec"]["names"]["kind"] for crd in machine_config_crds()}
    assert set(DESCRIPTIONS) <= kinds
    with pytest.raises(KeyError):
        described("MachineConfig", {"type": "object", "properties": {}})
