"""What rpm-ostree is told for the next boot, in which order, and what it is not told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from tests.machineconfig.memory_host import MemoryHost

from syncline.kube.objects import Obj
from syncline.machineconfig.agent.changes import changes_between
from syncline.machineconfig.agent.host import Done
from syncline.machineconfig.agent.imagemode import embedded
from syncline.machineconfig.agent.staging import stage_system
from syncline.machineconfig.agent.steps import StageSystem

REAL_TIME = {
    "booted": True,
    "requested-base-removals": ["kernel", "kernel-core"],
    "requested-packages": ["kernel-rt-core", "usbguard"],
}
RESET = "rpm-ostree override reset kernel kernel-core --uninstall kernel-rt-core"
REBASE = "rpm-ostree rebase --experimental ostree-unverified-registry:{}"


@dataclass
class Booted(MemoryHost):
    """Tells what it has booted."""

    deployment: Obj = field(default_factory=dict)

    def run(self, command: Sequence[str]) -> Done:
        if list(command) == ["rpm-ostree", "status", "--json"]:
            return Done(0, json.dumps({"deployments": [{"booted": False}, self.deployment]}))
        if list(command[:2]) == ["rpm", "-qa"]:
            return Done(0, "bash\n")
        return super().run(command)


def config(name: str, **spec: object) -> Obj:
    return {"metadata": {"name": name}, "spec": {"config": {"ignition": {"version": "3.5.0"}}, **spec}}


def told(old: Obj, new: Obj, deployment: Obj | None = None, *, forced: bool = False, booted: str = "") -> list[str]:
    """``booted``: if that is another image than the old config's."""
    machine = Booted(deployment=deployment or {"booted": True})
    step = StageSystem("edge", old, new, changes_between(old, new, forced=forced), "x")
    stage_system(machine, step, booted or old["spec"]["osImageURL"])
    return machine.commands


def test_an_image_comes_before_the_arguments_and_they_before_packages() -> None:
    old, new = config("a", osImageURL="1"), config("b", osImageURL="2", kernelArguments=["x"], extensions=["usbguard"])
    assert told(old, new) == [
        REBASE.format("2"),
        "rpm-ostree kargs --append=x",
        "rpm-ostree update --install usbguard",
    ]


@pytest.mark.parametrize(
    ("new", "rest"),
    [
        (config("b", osImageURL="1"), []),
        (config("b", osImageURL="2"), [REBASE.format("2")]),
    ],
)
def test_the_images_own_kernel_comes_back_before_anything_else(new: Obj, rest: list[str]) -> None:
    assert told(config("a", osImageURL="1", kernelType="realtime"), new, REAL_TIME) == [RESET, *rest]


def test_a_realtime_kernel_is_put_in_place_again_on_another_image() -> None:
    old, new = (config(name, osImageURL=name, kernelType="realtime") for name in ("1", "2"))
    commands = told(old, new, REAL_TIME)
    assert commands[:2] == [RESET, REBASE.format("2")]
    assert commands[2].startswith("rpm-ostree override remove kernel ") and "--install kernel-rt-core" in commands[2]


def test_only_arguments_leave_kernel_and_packages_alone() -> None:
    old = config("a", osImageURL="1", kernelType="realtime")
    assert told(old, config("b", osImageURL="1", kernelType="realtime", kernelArguments=["x"]), REAL_TIME) == [
        "rpm-ostree kargs --append=x"
    ]


def test_half_of_a_swap_is_somebodys_own_and_stays() -> None:
    by_hand = {"booted": True, "requested-base-removals": ["kernel"], "requested-packages": []}
    assert told(config("a", osImageURL="1"), config("b", osImageURL="2"), by_hand) == [REBASE.format("2")]


def test_an_image_of_image_mode_holds_kernel_and_extensions_and_what_follows_it_gets_them_back() -> None:
    plain = config("a", osImageURL="1", kernelType="realtime", extensions=["usbguard"])
    own = embedded(plain, "mine")
    assert told(plain, own, REAL_TIME) == [REBASE.format("mine")]
    commands = told(own, plain)
    assert commands[0] == REBASE.format("1")
    assert "kernel-rt-core" in commands[1] and commands[2] == "rpm-ostree update --install usbguard"


def test_whoever_forces_an_update_gets_the_image_that_does_not_run() -> None:
    """The way out for a machine whose disk says that it has what it has not."""
    same = config("a", osImageURL="1")
    assert told(same, same, forced=True) == []
    assert told(same, same, forced=True, booted="0") == [REBASE.format("1")]


def test_an_image_that_runs_already_is_not_fetched_again() -> None:
    assert told(config("a", osImageURL="1"), config("b", osImageURL="2"), booted="2") == []
