"""What rpm-ostree is told for the next boot, in which order, and what it is not told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from tests.machineconfig.memory_host import MemoryHost

from syncline.kube.objects import Obj
from syncline.machineconfig.agent.files.disk import Difference, boot_difference
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.host import Done
from syncline.machineconfig.agent.planning.changes import changes_between
from syncline.machineconfig.agent.staging.deployments import Deployment, deployments_of, has_deployed
from syncline.machineconfig.agent.staging.imagemode import embedded
from syncline.machineconfig.agent.staging.staging import drop_staged, is_staged, stage_system, staging_commands
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
    """Tells what it has booted, and what it says to have staged."""

    booted: Obj = field(default_factory=lambda: {"booted": True})
    staged: Obj | None = None
    missing: tuple[str, ...] = ()

    def run(self, command: Sequence[str]) -> Done:
        if list(command) == ["rpm-ostree", "status", "--json"]:
            staged = [] if self.staged is None else [self.staged | {"staged": True}]
            return Done(0, json.dumps({"deployments": [*staged, self.booted]}))
        if list(command[:2]) == ["rpm", "-q"]:
            return Done(int(command[2] in self.missing), "")
        return super().run(command)


def config(name: str, **spec: object) -> Obj:
    return {"metadata": {"name": name}, "spec": {"config": {"ignition": {"version": "3.5.0"}}, **spec}}


def told(
    old: Obj, new: Obj, deployment: Obj | None = None, *, forced: bool = False, booted: str = "", again: bool = False
) -> list[str]:
    """``booted``: if that is another image than the old config's."""
    there = deployments_of(json.dumps({"deployments": [{"booted": False}, deployment or {"booted": True}]}))
    assert there is not None
    step = StageSystem("edge", old, new, changes_between(old, new, forced=forced), "x", again=again)
    return [" ".join(words) for words in staging_commands(step, there.booted, booted or old["spec"]["osImageURL"])]


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


def test_what_a_boot_went_past_is_staged_again_whether_or_not_it_changed() -> None:
    """By the next try of an update, or by whoever forces one."""
    same = config("a", osImageURL="1", kernelType="realtime", extensions=["usbguard"])
    for how in ({"forced": True}, {"again": True}):
        commands = told(same, same, **how)  # type: ignore[arg-type]
        assert "--install kernel-rt-core" in commands[0] and commands[1:] == ["rpm-ostree update --install usbguard"]
        assert told(same, same, REAL_TIME, **how) == []  # type: ignore[arg-type]


def test_packages_that_the_image_brings_are_nobodys_to_take_away() -> None:
    """rpm-ostree refuses to take away what was never asked for."""
    old, new = config("a", osImageURL="1", extensions=["sysstat"]), config("b", osImageURL="1")
    assert told(old, new) == []
    assert told(old, new, {"booted": True, "requested-packages": ["sysstat"]}) == [
        "rpm-ostree update --uninstall sysstat"
    ]


@pytest.mark.parametrize(
    ("staged", "why"),
    [
        (None, "no staged deployment found after applying extensions"),
        (
            {"requested-packages": ["kernel-devel"]},
            "the following extension packages are missing from the staged deployment: [usbguard kernel-headers]",
        ),
        ({"requested-packages": ["kernel-devel", "kernel-headers", "usbguard"]}, ""),
    ],
)
def test_an_extension_that_is_not_staged_is_told_before_the_reboot(staged: Obj | None, why: str) -> None:
    old, new = config("a", osImageURL="1"), config("b", osImageURL="1", extensions=["usbguard", "kernel-devel"])
    step = StageSystem("edge", old, new, changes_between(old, new), "x")
    try:
        stage_system(Booted(staged=staged), step, "1")
        found = ""
    except UpdateError as error:
        found = str(error)
    assert found == why


CLEANUP = "rpm-ostree cleanup -p"


@pytest.mark.parametrize("staged", [None, {"container-image-reference": "ostree-unverified-registry:1"}])
def test_what_waits_for_the_boot_of_the_config_that_the_disk_has_is_kept(staged: Obj | None) -> None:
    """Its node joined anew: nobody knows what the config before asked for, and so what is to go."""
    same = config("b", osImageURL="1", kernelArguments=["b"])
    step = StageSystem("edge", same, same, changes_between(same, same, forced=True), "x", again=True)
    host = Booted(staged=staged)
    drop_staged(host, sparing=same)
    stage_system(host, step, "0", "quiet a")
    kept = [] if staged else [CLEANUP, REBASE.format("1"), "rpm-ostree kargs --append=b"]
    assert host.commands == kept


@pytest.mark.parametrize(
    ("staged", "is_so"),
    [
        ({"container-image-reference": "ostree-unverified-registry:1"}, False),
        ({"container-image-reference": "ostree-unverified-registry:1", "requested-packages": ["usbguard"]}, True),
        ({"container-image-reference": "ostree-unverified-registry:2", "requested-packages": ["usbguard"]}, False),
        ({"container-image-reference": "ostree-unverified-registry:1", **REAL_TIME, "booted": False}, False),
    ],
    ids=["without its package", "it", "another image", "another kernel"],
)
def test_staged_is_what_has_image_kernel_and_packages(staged: Obj, is_so: bool) -> None:
    wanted = config("b", osImageURL="1", extensions=["usbguard"])
    assert is_staged(wanted, has_deployed(Booted(staged=staged))) is is_so
    assert is_staged(wanted, has_deployed(Booted(staged=staged)), image="2") is ("2" in str(staged))


SYSTEM = "unexpected on-disk state validating against a: "


@pytest.mark.parametrize(
    ("spec", "booted", "missing", "difference"),
    [
        ({}, Deployment("1"), (), None),
        ({"kernelType": "realtime"}, Deployment("1", ("kernel-rt-core",), ("kernel",)), (), None),
        (
            {"kernelType": "realtime"},
            Deployment("1"),
            (),
            Difference(SYSTEM + 'expected kernelType "realtime", have "default"; possible root cause: error: x', True),
        ),
        (
            {},
            Deployment("1", ("kernel-64k-core",), ("kernel-core",)),
            (),
            Difference(SYSTEM + 'expected kernelType "default", have "64k-pages"; possible root cause: error: x', True),
        ),
        ({"extensions": ["ipsec"]}, Deployment("1"), ("openvswitch3.5-ipsec",), None),
        (
            {"extensions": ["sysstat", "ipsec"]},
            Deployment("1"),
            ("libreswan",),
            Difference(
                'extension package verification failed: extension "ipsec" verification failed: no valid package set is '
                "fully installed. Tried 2 package set(s), missing packages per set: [[libreswan] [libreswan]]; "
                "possible root cause: error: x",
                True,
            ),
        ),
    ],
    ids=["as it is to be", "real time", "kernel lost", "kernel left", "an older set of packages", "package lost"],
)
def test_after_a_boot_kernel_and_packages_are_what_the_config_says(
    spec: Obj, booted: Deployment, missing: tuple[str, ...], difference: Difference | None
) -> None:
    found = boot_difference(
        Booted(missing=missing),
        config("a", osImageURL="1", **spec),
        booted_image=booted.image,
        running="",
        finalize_failure="error: x",
        booted=booted,
    )
    assert found == difference


def test_an_image_of_image_mode_is_not_asked_what_is_in_it() -> None:
    plain = config("a", osImageURL="1", kernelType="realtime", extensions=["usbguard"])
    host, there = Booted(missing=("usbguard",)), Deployment("mine")
    assert boot_difference(host, plain, booted_image="mine", running="", image="mine", booted=there) is None


@pytest.mark.parametrize(
    "reference",
    [
        "ostree-unverified-registry:quay.io/os@sha256:1",
        "ostree-unverified-image:docker://quay.io/os@sha256:1",
        "ostree-image-signed:registry:quay.io/os@sha256:1",
        "ostree-remote-registry:fedora:quay.io/os@sha256:1",
        "ostree-remote-image:fedora:docker://quay.io/os@sha256:1",
    ],
)
def test_an_image_is_known_however_it_was_fetched(reference: str) -> None:
    there = deployments_of(json.dumps({"deployments": [{"booted": True, "container-image-reference": reference}]}))
    assert there is not None and there.booted.image == "quay.io/os@sha256:1"


@pytest.mark.parametrize("status", ["", "[]", "{}", '{"deployments": 1}', '{"deployments": [1, {}]}'])
def test_what_is_no_status_says_nothing(status: str) -> None:
    assert deployments_of(status) is None


def test_arguments_that_do_not_run_come_with_whoever_forces_an_update() -> None:
    same = config("a", osImageURL="1", kernelArguments=["quiet", "audit=0"])
    step = StageSystem("edge", same, same, changes_between(same, same, forced=True), "x")
    told = ("rpm-ostree", "kargs", "--append=audit=0")
    assert staging_commands(step, Deployment("1"), "1", "root=/dev/vda quiet") == [told]
    assert staging_commands(step, Deployment("1"), "1", "quiet audit=0") == []
    assert staging_commands(step, Deployment("1"), "1", None) == []
