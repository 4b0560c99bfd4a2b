"""Pinned images on simulated machines: fetched before they are pinned, told while it happens, and when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.machineconfig.memory_host import MemoryHost
from tests.machineconfig.room import APIS, NODES, POOLS, RECORDS, PoolWorld
from tests.machineconfig.test_machines_updated import host, world

from syncline.base.clock import SystemClock
from syncline.cli.views.pool import describe_node
from syncline.cluster.machines.machine import Entry
from syncline.control.plan import Retry
from syncline.hosts.linuxhost import LinuxHost, LinuxHosts
from syncline.kube.objects import dig
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.staging.images import pin_images, pull_images
from syncline.machineconfig.agent.steps import PinImages, Pulled, PullImages
from syncline.machineconfig.names import GROUP
from syncline.machineconfig.pinned.images import PINNED_PATH, image_names
from syncline.machineconfig.pinned.plan import PinnedObserved, plan_pinned

SETS = f"{APIS}/pinnedimagesets"
DIGEST = "@sha256:" + "a" * 64
FIRST, SECOND = f"quay.io/x/first{DIGEST}", f"quay.io/x/second{DIGEST}"
LOST = f"registry.invalid/x/lost{DIGEST}"


def pins(one: PoolWorld, name: str, *images: str, role: str = "worker") -> None:
    labels = {f"{GROUP}/role": role}
    one.make(SETS, "PinnedImageSet", name, {"pinnedImages": [{"name": image} for image in images]}, labels=labels)


def said(one: PoolWorld, kind: str, node: str = "worker-0") -> tuple[str, str, str]:
    conditions = dig(one.get(f"{RECORDS}/{node}"), "status", "conditions", default=[])
    found = next((each for each in conditions if each["type"] == f"PinnedImageSets{kind}"), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def entries(one: PoolWorld, node: str = "worker-0") -> Any:
    return dig(one.get(f"{RECORDS}/{node}"), "status", "pinnedImageSets")


def pinned(one: PoolWorld, node: str = "worker-0") -> str:
    return host(one, node).read(PINNED_PATH).decode() if host(one, node).exists(PINNED_PATH) else ""


def done(one: PoolWorld, node: str = "worker-0") -> bool:
    return said(one, "Progressing", node)[:2] == ("False", "AsExpected")


def test_images_are_fetched_then_pinned_and_the_node_says_which_generation_it_has() -> None:
    one = world(1)
    before = one.reboots()
    pins(one, "first", SECOND, FIRST)
    one.driver.advance(3)
    assert said(one, "Progressing") == ("True", "ImagePrefetch", "node is prefetching images: worker-0")
    assert entries(one) == [{"name": "first", "desiredGeneration": 1}] and not pinned(one)
    one.driver.until(lambda: done(one), limit_s=60)
    assert pinned(one) == f'[crio]\n  [crio.image]\n    pinned_images = ["{FIRST}", "{SECOND}"]\n'
    assert host(one).machine.state.units["crio"].active, "it is told to read the file"
    assert entries(one) == [{"name": "first", "desiredGeneration": 1, "currentGeneration": 1}]
    assert said(one, "Progressing")[2] == "All pinned image sets complete"
    assert said(one, "Degraded") == ("False", "AsExpected", "All is good")
    assert one.reboots() == before
    one.driver.advance(30)
    [synchronizer] = one.get(f"{POOLS}/worker")["status"]["poolSynchronizersStatus"]
    assert (synchronizer["machineCount"], synchronizer["updatedMachineCount"]) == (1, 1)


def test_a_set_that_changes_is_fetched_anew_and_one_that_goes_is_forgotten() -> None:
    one = world(1)
    pins(one, "first", FIRST)
    one.driver.until(lambda: done(one), limit_s=60)
    one.merge(f"{SETS}/first", {"spec": {"pinnedImages": [{"name": SECOND}]}})
    one.driver.until(lambda: SECOND in pinned(one), limit_s=60)
    one.driver.advance(5)
    assert FIRST not in pinned(one)
    assert entries(one) == [{"name": "first", "desiredGeneration": 2, "currentGeneration": 2}]
    one.send("DELETE", f"{SETS}/first")
    one.driver.until(lambda: not pinned(one), limit_s=60)
    one.driver.advance(5)
    assert entries(one) is None and done(one)


def test_an_image_that_nobody_has_is_told_and_taken_up_when_the_set_is_mended() -> None:
    one = world(1)
    pins(one, "good", FIRST)
    pins(one, "lost", LOST)
    one.driver.until(lambda: said(one, "Degraded")[0] == "True", limit_s=60)
    assert said(one, "Degraded")[1] == "PrefetchFailed"
    [lost] = [each for each in entries(one) if each["name"] == "lost"]
    assert lost["lastFailedGeneration"] == 1
    assert lost["lastFailedGenerationError"].startswith(f'failed to pull image "{LOST}": ')
    assert "registry.invalid: no such host" in lost["lastFailedGenerationError"]
    assert not pinned(one), "nothing is pinned before all is there"
    told = describe_node(one.nodes()["worker-0"], [], one.get(f"{RECORDS}/worker-0"), one.clock.now())
    assert "Pins:        good, on the way" in told or "Pins:        good: failed to pull" in told
    assert f'Pins:        lost: failed to pull image "{LOST}"' in told
    one.merge(f"{SETS}/lost", {"spec": {"pinnedImages": [{"name": SECOND}]}})
    one.driver.until(lambda: done(one), limit_s=900)
    assert FIRST in pinned(one) and SECOND in pinned(one)
    assert said(one, "Degraded")[0] == "False"


def test_a_set_that_goes_while_a_pool_names_it_is_told() -> None:
    """As after a restore: the pool's controller has not looked yet."""
    one = world(1)
    node = one.nodes()["worker-0"]
    pool = {"metadata": {"name": "worker"}, "spec": {"pinnedImageSets": [{"name": "gone"}]}}
    observed = PinnedObserved(node, (pool,), {}, one.get(f"{RECORDS}/worker-0"), up=True)
    plan = plan_pinned(observed, one.clock.now())
    assert isinstance(plan.outcome, Retry) and plan.outcome.error.startswith('failed to get PinnedImageSet "gone": ')


def test_a_machine_pins_the_images_of_all_of_its_pools() -> None:
    """A custom pool selects what it names; the sets of workers come with the pool worker."""
    one = world(1)
    selector = {"matchLabels": {f"{GROUP}/role": "infra"}}
    role = {"matchLabels": {"node-role.kubernetes.io/infra": ""}}
    one.make(POOLS, "MachineConfigPool", "infra", {"machineConfigSelector": selector, "nodeSelector": role})
    one.merge(f"{NODES}/worker-0", {"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}})
    pins(one, "workers", FIRST)
    one.driver.until(lambda: FIRST in pinned(one), limit_s=300)
    pins(one, "infras", SECOND, role="infra")
    one.driver.until(lambda: SECOND in pinned(one), limit_s=300)
    assert FIRST in pinned(one)
    assert one.get(f"{POOLS}/infra")["spec"]["pinnedImageSets"] == [{"name": "infras"}]


def test_many_images_are_fetched_a_few_at_a_time() -> None:
    one = world(1)
    pins(one, "many", *(f"quay.io/x/image{at}{DIGEST}" for at in range(12)))
    seconds = one.driver.until(lambda: done(one), limit_s=300)
    assert 20 < seconds <= 60


def test_the_record_does_not_change_while_nothing_does() -> None:
    one = world(1)
    pins(one, "first", FIRST)
    one.driver.until(lambda: done(one), limit_s=60)
    one.driver.advance(60)
    version = one.get(f"{RECORDS}/worker-0")["metadata"]["resourceVersion"]
    one.driver.advance(3600)
    assert one.get(f"{RECORDS}/worker-0")["metadata"]["resourceVersion"] == version


def test_a_file_of_somebody_else_is_replaced_by_what_is_pinned() -> None:
    one = world(1)
    host(one).machine.root.write(PINNED_PATH, Entry(content=b"mine"))
    pins(one, "first", FIRST)
    one.driver.until(lambda: done(one), limit_s=60)
    assert pinned(one).startswith("[crio]")


def test_blank_names_are_left_out_and_others_stay_as_they_are() -> None:
    assert image_names([{"name": " b "}, {"name": "\u2003\t"}, {}, {"name": "a"}, {"name": "a"}]) == [" b ", "a"]


def test_crio_is_told_once_and_a_reload_that_fails_is_done_again() -> None:
    machine = MemoryHost()
    machine.make_directories("/etc")
    step = PinImages("edge", (FIRST,), "its pool pins it")

    def reload() -> None:
        done = machine.run(["systemctl", "reload", "crio"])
        if not done.ok:
            raise UpdateError(done.output)

    machine.failing = ("systemctl reload crio",)
    with pytest.raises(UpdateError):
        pin_images(machine, step, reload)
    assert not machine.exists(PINNED_PATH), "or the next try would find it done"
    machine.failing = ()
    for _ in range(2):
        pin_images(machine, step, reload)
    assert machine.commands == ["systemctl reload crio"] * 2
    pin_images(machine, PinImages("edge", (), "nothing is pinned"), reload)
    assert not machine.exists(PINNED_PATH) and len(machine.commands) == 3


def test_a_linux_machine_fetches_with_crictl_and_says_what_it_said(tmp_path: Path) -> None:
    """A directory runs nothing; with --offline what it would run is noted."""
    refused = LinuxHosts("edge", LinuxHost(tmp_path, SystemClock())).pull("edge", FIRST)
    assert refused.error.startswith(f"crictl pull {FIRST} needs a running system")
    offline = LinuxHost(tmp_path, SystemClock(), offline=True)
    assert pull_images(LinuxHosts("edge", offline), PullImages("edge", (FIRST,), "x")) == Pulled()
    assert list(offline.notes) == [f"skipped: crictl inspecti {FIRST} (the system does not run)"]
