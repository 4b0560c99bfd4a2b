"""What is known of images: which run, which end, which cannot be had; and what people add."""

from __future__ import annotations

import pytest
from machine_world import MachineWorld

from syncline.cluster.machines.scripted.images import known_images
from syncline.kube.objects import Obj

RUN = [
    "registry.k8s.io/pause:3.10",
    "nginx",
    "nginx:1.27-alpine",
    "mirror.example.org/library/nginx:mine",
    "docker.io/library/postgres:17",
    "quay.io/prometheus/prometheus:v3.0.0",
    "redis@sha256:" + "0" * 64,
    "registry.k8s.io/e2e-test-images/agnhost:2.53",
]
END = ["busybox", "alpine:3.20", "python:3.13-slim", "docker.io/library/golang:1.25", "registry.access.redhat.com/ubi9"]


@pytest.mark.parametrize("image", RUN)
def test_servers_and_databases_run_until_they_are_stopped(image: str) -> None:
    default = known_images(()).default(image)
    assert default is not None and default.stays({}) is True


@pytest.mark.parametrize("image", END)
def test_shells_and_languages_end_unless_somebody_is_at_their_input(image: str) -> None:
    default = known_images(()).default(image)
    assert default is not None and default.stays({}) is False and default.stays({"tty": True}) is True
    assert default.stays({"args": ["server.py"]}) is None, "its arguments are the command"


def test_an_image_of_somebody_is_not_known() -> None:
    assert known_images(()).default("registry.example.org/shop/web:1") is None
    assert known_images(()).default("Not an image") is None


PULLED = [
    "nginx:1.27",
    "nginx:2",
    "nginx:latest",
    "nginx",
    "nginx:stable-alpine",
    "x:1",
    "busybox:1.37",
    "debian:bookworm-slim",
]
PULLED += ["postgres:17.2-alpine3.21", "registry.example.org/nginx:custom", "nginx@sha256:" + "0" * 64, "ubuntu:24.04"]
MISSING = [
    "nginx:1.161",
    "webserver:404",
    "nginx:404",
    "nginx:nosuchtag",
    "busybox:v99.1",
    "registry.invalid/a/b:1",
    "shop/web:does-not-exist",
]


@pytest.mark.parametrize("image", PULLED)
def test_a_tag_that_may_be_there_is_pulled(image: str) -> None:
    assert known_images(()).pull_error(image) == ""


@pytest.mark.parametrize("image", MISSING)
def test_a_tag_that_is_not_there_is_not_found(image: str) -> None:
    assert known_images(()).pull_error(image).endswith(": not found")


def config_map(text: str) -> Obj:
    metadata = {"namespace": "kube-system", "name": "syncline-images"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mine.yaml": text}}


OWN = """
images:
- {names: [registry.example.org/shop/web, nginx], runs: false, exitCode: 3}
tags:
- {repository: registry.example.org/shop/web, below: "2", words: [latest]}
unpullable: ["old.example.org/*"]
"""


def test_what_people_add_counts_first() -> None:
    book = known_images([config_map(OWN)])
    assert book.problem == ""
    assert [book.default(each).exit_code for each in ("registry.example.org/shop/web:1", "nginx")] == [3, 3]
    assert book.pull_error("registry.example.org/shop/web:2.1") and book.pull_error("old.example.org/x")
    assert not book.pull_error("registry.example.org/shop/web:1.9")


@pytest.mark.parametrize(
    "text", ["images: 3", "images: [{names: [a]}]", "- 1", "{", "tags: [{repository: a, below: x}]"]
)
def test_data_that_cannot_be_read_is_left_out_with_a_sentence(text: str) -> None:
    book = known_images([config_map(text)])
    assert "kube-system/syncline-images is left out" in book.problem and "names: [NAME]" in book.problem
    assert book.default("nginx") is not None


# -- on a machine ------------------------------------------------------------------------------------------------------


def of(image: str, **more: object) -> list[Obj]:
    return [{"name": "c", "image": image} | more]


def test_a_server_in_a_pod_that_ends_goes_on(world: MachineWorld) -> None:
    world.make_pod(restartPolicy="Never", containers=of("nginx:1.27"))
    world.advance(100)
    assert world.pod()["status"]["phase"] == "Running"


def test_a_shell_without_input_ends_at_once_again_and_again(world: MachineWorld) -> None:
    world.make_pod(containers=of("busybox"))
    world.make_pod("at-it", containers=of("busybox", stdin=True, tty=True))
    world.make_pod("busy", containers=of("busybox", command=["sleep", "infinity"]))
    world.advance(60)
    assert world.state()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert world.state()["lastState"]["terminated"]["reason"] == "Completed"
    assert [world.pod(name)["status"]["phase"] for name in ("at-it", "busy")] == ["Running", "Running"]


def test_what_the_pod_says_goes_before_what_is_known_of_its_image(world: MachineWorld) -> None:
    world.make_pod(containers=of("busybox"), annotations={"syncline.dev/run-seconds": "forever"})
    world.make_pod("there", containers=of("nginx:1.161"), annotations={"syncline.dev/image-pull": "ok"})
    world.advance(60)
    assert [world.pod(name)["status"]["phase"] for name in ("p", "there")] == ["Running", "Running"]


def test_a_tag_that_is_not_there_does_not_start(world: MachineWorld) -> None:
    world.make_pod(containers=of("nginx:1.161"))
    world.settle()
    whole = "docker.io/library/nginx:1.161"
    why = f'rpc error: code = NotFound desc = failed to pull and unpack image "{whole}": failed to resolve reference '
    why += f'"{whole}": {whole}: not found'
    assert world.state()["state"]["waiting"] == {"reason": "ErrImagePull", "message": why}
    world.advance(5)
    backing_off = f'Back-off pulling image "nginx:1.161": ErrImagePull: {why}'
    assert world.state()["state"]["waiting"] == {"reason": "ImagePullBackOff", "message": backing_off}
    world.advance(600)
    assert world.pod()["status"]["phase"] == "Pending"


def test_people_name_their_images_in_a_config_map(world: MachineWorld) -> None:
    world.post("/api/v1/namespaces/kube-system/configmaps", config_map(OWN))
    world.make_pod(restartPolicy="Never", containers=of("registry.example.org/shop/web:1"))
    world.make_pod("missing", containers=of("registry.example.org/shop/web:3.0"))
    world.advance(30)
    assert world.state()["state"]["terminated"]["exitCode"] == 3
    assert world.state("missing")["state"]["waiting"]["reason"] == "ImagePullBackOff"
