"""Image mode on simulated machines: nodes move to an image of their pool, change it, and leave it again."""

from __future__ import annotations

from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.room import APIS, CRDS, NODES, POOLS, PoolWorld
from tests.machineconfig.test_machines_updated import apply, drained, host, state, target, world

from syncline.kube.objects import Obj, annotations_of
from syncline.machineconfig.agent.hosts import CURRENT_CONFIG, CURRENT_IMAGE_FILE
from syncline.machineconfig.names import CURRENT, CURRENT_IMAGE, DESIRED, DESIRED_IMAGE, GROUP, annotation

ONE, TWO = "quay.io/pool/os@sha256:1", "quay.io/pool/os@sha256:2"


def asked(one: PoolWorld, image: str | None) -> None:
    """As the pool controller asks for it once an image is built; the pool itself stands still meanwhile."""
    one.merge(f"{NODES}/worker-0", {"metadata": {"annotations": {DESIRED_IMAGE: image}}})


def there(one: PoolWorld) -> tuple[str, str, int]:
    """What it booted, what the disk says, how often it has booted."""
    machine = host(one)
    return machine.machine.state.os_image, machine.read(CURRENT_IMAGE_FILE).decode(), one.reboots()["worker-0"]


def paused() -> PoolWorld:
    one = world(1)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    return one


def test_a_node_boots_the_image_that_it_is_asked_for_and_says_so() -> None:
    one = paused()
    before, config = one.reboots()["worker-0"], target(one)
    asked(one, ONE)
    drained(one, lambda: annotations_of(one.nodes()["worker-0"]).get(CURRENT_IMAGE) == ONE)
    assert there(one) == (ONE, ONE, before + 1)
    have = annotations_of(one.nodes()["worker-0"])
    assert (have[CURRENT], state(one)) == (config, "Done")
    assert f"Updating from oscontainer {ONE}" in one.events("InClusterUpgrade")


def test_a_config_comes_with_its_image_in_one_reboot() -> None:
    one = paused()
    asked(one, ONE)
    drained(one, lambda: annotations_of(one.nodes()["worker-0"]).get(CURRENT_IMAGE) == ONE)
    before = one.reboots()["worker-0"]
    config = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.merge(f"{NODES}/worker-0", {"metadata": {"annotations": {DESIRED: config, DESIRED_IMAGE: TWO}}})
    drained(one, lambda: annotations_of(one.nodes()["worker-0"]).get(CURRENT_IMAGE) == TWO)
    assert there(one) == (TWO, TWO, before + 1)
    assert host(one).read("/etc/motd") == b"hello"
    assert annotations_of(one.nodes()["worker-0"])[CURRENT] == config


def test_a_node_that_leaves_image_mode_boots_the_image_of_its_config() -> None:
    one = paused()
    plain = there_before = host(one).machine.state.os_image
    asked(one, ONE)
    drained(one, lambda: annotations_of(one.nodes()["worker-0"]).get(CURRENT_IMAGE) == ONE)
    asked(one, None)
    drained(one, lambda: CURRENT_IMAGE not in annotations_of(one.nodes()["worker-0"]) and state(one) == "Done")
    assert there(one)[:2] == (plain, "") and there_before != ONE


def test_what_the_disk_says_overrules_what_the_node_says() -> None:
    """A cluster restored from a backup tells of the config before: the machine is brought from what it really has."""
    one = world(1)
    first = target(one)
    config = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.until_updated(config)
    before = one.reboots()["worker-0"]
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    one.merge(f"{NODES}/worker-0", {"metadata": {"annotations": {CURRENT: first, DESIRED: first}}})
    drained(one, lambda: not host(one).exists("/etc/motd") and state(one) == "Done")
    assert one.reboots()["worker-0"] == before + 1
    assert first.encode() in host(one).read(CURRENT_CONFIG)


def open_definition(kind: str, plural: str) -> Obj:
    """A definition without rules: the kinds of image builds are served by those who build."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": spec,
    }


def build(one: PoolWorld, image: str) -> None:
    """As machine-os-builder leaves a finished build of what the pool wants now."""
    rendered, name = target(one), f"worker-{target(one)[-8:]}"
    references = {"machineConfig": {"name": rendered}, "machineOSConfig": {"name": "worker"}}
    done = [{"type": "Succeeded", "status": "True", "reason": "Ready", "message": "Build Ready"}]
    body = {"apiVersion": f"{GROUP}/v1", "kind": "MachineOSBuild", "metadata": {"name": name}, "spec": references}
    one.send("POST", f"{APIS}/machineosbuilds", body | {"status": {"conditions": done, "digestedImagePushSpec": image}})
    notes = {"metadata": {"annotations": {annotation("current-machine-os-build"): name}}}
    one.merge(f"{APIS}/machineosconfigs/worker", notes | {"status": {"currentImagePullSpec": image}})


def test_a_pool_in_image_mode_rolls_its_builds_out_and_new_machines_boot_them() -> None:
    one = world(2)
    for kind in ("MachineOSConfig", "MachineOSBuild"):
        one.send("POST", CRDS, open_definition(kind, f"{kind.lower()}s"))
    one.driver.advance(30)
    one.make(f"{APIS}/machineosconfigs", "MachineOSConfig", "worker", {"machineConfigPool": {"name": "worker"}})
    one.driver.advance(60)
    assert one.condition("Updating")["message"] == "Pool is waiting for a new OS image build to start (mosc: worker)"
    before = one.reboots()

    def on(image: str, *nodes: str) -> bool:
        found = one.nodes()
        return all(
            annotations_of(found[node]).get(CURRENT_IMAGE) == image and state(one, node) == "Done" for node in nodes
        )

    build(one, ONE)
    one.driver.until(lambda: on(ONE, "worker-0", "worker-1"), limit_s=3600)
    one.driver.until(lambda: one.condition("Updated").get("status") == "True", limit_s=120)
    assert {name: count - before[name] for name, count in one.reboots().items()} == {"worker-0": 1, "worker-1": 1}

    one.add_node("worker-2", "worker", born="")
    one.driver.until(lambda: on(ONE, "worker-2"), limit_s=600)
    assert host(one, "worker-2").machine.state.os_image == ONE, "its first boot went there"
    assert one.reboots()["worker-2"] == 2
