"""The config server, beside what is recorded: second requests, image mode, authorities, hostile paths."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest

from syncline.ignition.dataurl import decode_data_url
from syncline.kube.objects import Obj
from syncline.machineconfig.names import CURRENT_IMAGE, DESIRED_IMAGE, ENCAPSULATED, INSTALLED, NODE_ANNOTATIONS
from syncline.machineconfig.server.answering import Answer, Request, served
from syncline.machineconfig.server.joining import KUBELET_CA
from syncline.machineconfig.server.world import World, address_in_cluster, served_config

IMAGE = "quay.io/x/os@sha256:1"
SECRET = "token: abracadabra"


def pool(name: str = "worker", updated: int = 1) -> Obj:
    status = {"configuration": {"name": "rendered-a"}, "updatedMachineCount": updated}
    return {"metadata": {"name": name}, "spec": {"configuration": {"name": "rendered-b"}}, "status": status}


def world(config: Obj | None = None, *, authority: str = "", image: Sequence[Obj] = ()) -> World:
    ignition = {"ignition": {"version": "3.5.0"}} | (config or {})
    configs: dict[str, Obj] = {
        name: {"metadata": {"name": name}, "spec": {"config": ignition, "kernelArguments": ["mine"]}}
        for name in ("rendered-a", "rendered-b")
    }
    given = {"metadata": {"name": "machine-config-controller"}, "spec": {"kubeAPIServerServingCAData": authority}}
    return World({"worker": pool()}, configs, given, SECRET, image[:1], image[1:])


def layered(state: str = "Succeeded", of: str = "rendered-b", image: str = IMAGE) -> list[Obj]:
    built = {"machineConfig": {"name": of}, "machineOSConfig": {"name": "worker"}}
    return [
        {
            "metadata": {"name": "worker"},
            "spec": {"machineConfigPool": {"name": "worker"}},
            "status": {"currentImagePullSpec": image},
        },
        {
            "metadata": {"name": "build"},
            "spec": built,
            "status": {"conditions": [{"type": state, "status": "True"}]},
        },
    ]


def ask(where: World, target: str = "/config/worker", version: str = "3.5.0", method: str = "GET") -> Answer:
    return served(Request(method, target, f"application/vnd.coreos.ignition+json;version={version}, */*;q=0.1"), where)


def files(answer: Answer) -> dict[str, str]:
    assert answer.status == 200, answer.why
    found: list[Any] = json.loads(answer.body)["storage"]["files"]
    return {each["path"]: decode_data_url(each["contents"]["source"]).decode() for each in found}


def test_kernel_arguments_move_to_where_an_old_ignition_lets_them_be_and_are_not_told_twice() -> None:
    where = world({"kernelArguments": {"shouldExist": ["quiet"]}})
    told = [json.loads(files(ask(where, version="3.2.0"))[ENCAPSULATED]) for _ in range(2)]
    assert [each["spec"]["kernelArguments"] for each in told] == [["mine", "quiet"]] * 2
    newer = ask(where)
    assert json.loads(newer.body)["kernelArguments"] == {"shouldExist": ["quiet"]}
    assert json.loads(files(newer)[ENCAPSULATED])["spec"]["kernelArguments"] == ["mine"]


def test_a_new_machine_of_a_layered_pool_boots_into_the_proven_image_at_once() -> None:
    found = files(ask(world(image=layered())))
    notes = json.loads(found[NODE_ANNOTATIONS])
    assert (notes[CURRENT_IMAGE], notes[DESIRED_IMAGE]) == (IMAGE, IMAGE)
    assert json.loads(found[ENCAPSULATED])["spec"]["osImageURL"] == IMAGE


@pytest.mark.parametrize(
    "objects",
    [
        layered("Building"),
        layered(of="rendered-a"),
        layered(image=""),
        layered(image="image-registry.openshift-image-registry.svc:5000/ns/os@sha256:1"),
        layered()[:1],
    ],
    ids=["not built", "built of another config", "not adopted", "in the cluster's own registry", "no build"],
)
def test_a_new_machine_starts_with_the_base_image_while_the_pools_own_is_not_to_be_had(objects: list[Obj]) -> None:
    found = files(ask(world(image=objects)))
    assert CURRENT_IMAGE not in json.loads(found[NODE_ANNOTATIONS])
    assert json.loads(found[ENCAPSULATED])["spec"]["osImageURL"] == ""


@pytest.mark.parametrize(
    ("accept", "served_as"),
    [
        ("", "2.2.0"),
        ("application/vnd.coreos.ignition+json;version=3.1.0", "3.1.0"),
        ("application/vnd.coreos.ignition+json;version=3.9.0", "3.5.0"),
        ("application/vnd.coreos.ignition+json;version=1.0.0", ""),
    ],
)
def test_070_a_machine_gets_the_version_that_it_asks_for_the_oldest_without_asking_or_a_refusal(
    accept: str, served_as: str
) -> None:
    answer = served(Request("GET", "/config/worker", accept), world())
    assert answer.status == (200 if served_as else 400)
    assert not served_as or json.loads(answer.body)["ignition"]["version"] == served_as


def test_a_new_config_is_not_served_before_a_node_has_it() -> None:
    assert served_config(pool(updated=0)) == "rendered-a"
    assert served_config(pool(updated=1)) == "rendered-b"
    assert served_config({"metadata": {"name": "new"}}) == ""


def test_the_authority_of_today_takes_the_place_of_the_one_in_the_rendered_config() -> None:
    old = {"storage": {"files": [{"path": KUBELET_CA, "mode": 0o600, "contents": {"source": "data:,old"}}]}}
    answer = ask(world(old, authority=base64.b64encode(b"new").decode()))
    assert files(answer)[KUBELET_CA] == "new"
    assert json.loads(answer.body)["storage"]["files"][0]["mode"] == 0o600
    assert json.loads(files(answer)[INSTALLED])["spec"]["config"] == {"ignition": {"version": "3.5.0"}} | old


def test_a_config_that_brings_a_file_of_the_servers_own_is_not_served() -> None:
    twice = {"storage": {"files": [{"path": "/etc/kubernetes/kubeconfig"}]}}
    answer = ask(world(twice))
    assert (answer.status, answer.body) == (500, "")
    assert "/etc/kubernetes/kubeconfig" in answer.why or "duplicate" in answer.why


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/config/%77orker", 200),
        ("/%63onfig/worker", 200),
        ("/config/x%2fworker", 200),
        ("/config%2fworker", 404),
        ("/healthz%2f", 404),
        ("/config/..", 307),
        ("/config/%2e%2e", 500),
        ("/config/%00%ff", 500),
        ("//elsewhere.example/config/worker", 307),
        ("/healthz?x=/../", 200),
        ("", 307),
        ("/config/" + "a/" * 5000 + "worker", 200),
    ],
)
def test_paths_are_read_as_gos_server_reads_them(target: str, status: int) -> None:
    answer = ask(world(), target)
    assert answer.status == status
    assert not answer.location or (answer.location.startswith("/") and not answer.location.startswith("//"))


def test_the_log_learns_what_is_missing_and_the_client_does_not() -> None:
    young = World({"worker": {"metadata": {"name": "worker"}}}, {}, None, "")
    answer = ask(young)
    assert (answer.status, answer.body) == (500, "")
    assert answer.why.endswith("MachineConfigPool worker has no config in force yet")


def test_machines_reach_the_cluster_where_its_controller_config_says() -> None:
    where = world()
    assert address_in_cluster(where) == ""
    assert where.controller_config is not None
    outside = {"apiServerURL": "https://api.example:6443"}
    where.controller_config["spec"]["infra"] = {"status": outside}
    assert address_in_cluster(where) == "https://api.example:6443"
    outside["apiServerInternalURI"] = "https://api-int.example:6443"
    assert address_in_cluster(where) == "https://api-int.example:6443"


def test_what_is_shown_of_an_answer_and_of_its_world_holds_no_credential() -> None:
    where = world()
    answer = ask(where)
    assert SECRET in files(answer).values()
    assert "abracadabra" not in repr(where) + repr(answer) + ask(where, "/config/nope").why
