"""The power goes while an agent writes the files of a config on Linux: nothing is torn, nothing of the machine's own is
lost, what the disk says it has it has, and the next pass ends it. It goes before what was staged is in force: the boot
after it is not believed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.conftest import Figure
from tests.machineconfig.faults.disks import CURRENT_CONFIG, KEPT, wanted
from tests.machineconfig.faults.platter import Tree, after_power_cut, as_it_is, laid_out, recorded
from tests.machineconfig.faults.stories import OWN, full
from tests.machineconfig.rendering import machine_config
from tests.machineconfig.test_machines_updated import apply, host, reason, state, world

from syncline.base.clock import SystemClock
from syncline.cluster.machines.machine import Layers, Power
from syncline.hosts.linuxhost import LinuxHost, LinuxHosts
from syncline.hosts.nodeagent import handle_now
from syncline.kube.objects import Obj, annotations_of
from syncline.machineconfig.agent.handler import HostHandler
from syncline.machineconfig.agent.hosts import FORCE_FILE
from syncline.machineconfig.agent.planning.notes import STAGED_AGAIN
from syncline.machineconfig.agent.steps import SetUsers, StoreConfig, WriteFiles
from syncline.machineconfig.names import CURRENT

PASSWD = "root:x:0:0::/root:/bin/sh\ncore:x:0:0::/home/core:/bin/sh\n"
GUESSES = 3
"""Power cuts at each step: with nothing that was not synced, and with some parts of it."""


def config(number: int) -> Obj:
    made: Obj = full(number) | {"metadata": {"name": f"rendered-worker-{number}"}}
    return made


def machine(root: Path) -> None:
    """A system with files of its own."""
    files = {path: (entry.content, entry.mode) for path, entry in OWN.items()}
    files |= {"/etc/passwd": (PASSWD.encode(), 0o644), "/etc/group": (b"core:x:0:\n", 0o644)}
    files |= {
        "/etc/shadow": (b"core:*:1::::::\n", 0o600),
        "/etc/os-release": (b'ID="rhcos"\nVARIANT_ID=coreos\n', 0o644),
    }
    files["/usr/lib/systemd/system-preset/99-default-disable.preset"] = (b"disable *\n", 0o644)
    for path, (content, mode) in files.items():
        place = Path(f"{root}{path}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(mode)


class WithPackages(LinuxHost):
    """A system whose package manager is there and says that no package owns a path."""

    def has_program(self, name: str) -> bool:
        return name == "rpm"


def bring(root: Path, old: Obj | None, new: Obj) -> None:
    """As the agent does between its note that it writes and its reboot; begun anew after a crash."""
    hosts = LinuxHosts("edge", WithPackages(root, SystemClock(), offline=True), in_place=True)
    handler = HostHandler(hosts)
    handle_now(handler, WriteFiles("edge", old, new, False, "test"))
    handle_now(handler, SetUsers("edge", old, new, "test"))
    handle_now(handler, StoreConfig("edge", new, "test"))


def is_there(tree: Tree, config: Obj) -> list[str]:
    """What of a config is not as it says; what is left of others counts, too."""
    disk, wrong = wanted(config), []
    for path, (content, mode) in disk.files.items():
        if tree.get(path) != ("file", content, mode):
            wrong.append(f"{path} is {tree.get(path)}")
    for path, target in disk.links.items():
        if tree.get(path, ("", b"", 0))[:2] != ("symlink", target.encode()):
            wrong.append(f"{path} is {tree.get(path)}")
    for path, entry in OWN.items():
        if path not in disk.files and tree.get(path) != ("file", entry.content, entry.mode):
            wrong.append(f"{path} of the machine is {tree.get(path)}")
    mine = {*disk.files, *disk.links, *OWN}
    for path in ("/etc/goes", "/etc/stays", "/usr/local/bin/deep/run.sh"):
        if path in tree and path not in mine:
            wrong.append(f"{path} is left")
    for name in ("old", "new", "off", "masked", "shipped"):
        unit = f"/etc/systemd/system/{name}.service"
        if unit in tree and unit not in mine:
            wrong.append(f"{unit} is left")
    enabled = {path for path in tree if path.startswith("/etc/systemd/system/multi-user.target.wants/")}
    right = {f"/etc/systemd/system/multi-user.target.wants/{name}" for name, on in disk.units.items() if on}
    return wrong + [f"{path} is there or not" for path in enabled ^ right]


def stored(tree: Tree) -> str:
    kind, content, _ = tree[CURRENT_CONFIG]
    assert kind == "file"
    return str(json.loads(content)["metadata"]["name"])


def torn(tree: Tree, old: Obj, new: Obj) -> list[str]:
    """Files that are neither what they were nor what they are to be, nor are not there."""
    before, after = wanted(old), wanted(new)
    wrong = []
    for path in {*before.files, *after.files, *OWN}:
        found = tree.get(path)
        entry = OWN.get(path)
        allowed = [each.files[path] for each in (before, after) if path in each.files]
        allowed += [(entry.content, entry.mode)] if entry is not None else []
        if found is not None and found[0] == "file" and found[1:] not in allowed:
            wrong.append(f"{path} is {found}")
    for path, entry in OWN.items():
        own = ("file", entry.content, entry.mode)
        if own not in (tree.get(path), tree.get(KEPT.format(path))):
            wrong.append(f"{path} of the machine is lost")
    return wrong


def found(tree: Tree, old: Obj, new: Obj) -> list[str]:
    """What is wrong after a power cut."""
    wrong = torn(tree, old, new)
    return wrong + (is_there(tree, new) if stored(tree) == new["metadata"]["name"] else [])


def test_the_power_may_go_at_every_step_of_writing_a_config_on_linux(tmp_path: Path, figure: Figure) -> None:
    chance, cuts, redone = random.Random(7), 0, 0
    root = tmp_path / "root"
    machine(root)
    bring(root, None, config(1))
    for old, new in ((config(1), config(2)), (config(2), config(1))):
        trees: list[Tree] = []
        with recorded(root) as recorder:

            def cut(what: str, old: Obj = old, new: Obj = new, trees: list[Tree] = trees) -> None:
                for guess in range(GUESSES):
                    tree = after_power_cut(recorder.root, chance if guess else None)
                    assert not found(tree, old, new), f"{what}: {found(tree, old, new)}"
                    trees.append(tree)

            recorder.cut = cut
            bring(root, old, new)
        assert not is_there(after_power_cut(recorder.root, None), new)
        for number, tree in enumerate(chance.sample(trees, 30)):
            place = tmp_path / f"{new['metadata']['name']}-{number}"
            laid_out(tree, place)
            with recorded(place):
                bring(place, old, new)
            wrong = is_there(after_power_cut(as_it_is(place), None), new)
            assert not wrong, f"done again after a cut: {wrong}"
            redone += 1
        cuts += len(trees)
    figure(
        "power cuts of a Linux machine", f"{cuts} at every step of two updates, {redone} of them ended by the next pass"
    )


@pytest.mark.parametrize("forgets", ["file", "dir"])
def test_a_disk_that_keeps_nothing_would_be_noticed(forgets: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    machine(root)
    bring(root, None, config(1))
    wrong: list[str] = []
    with recorded(root, forgets=forgets) as recorder:
        recorder.cut = lambda _what: wrong.extend(
            found(after_power_cut(recorder.root, random.Random(1)), config(1), config(2)) if not wrong else ()
        )
        bring(root, config(1), config(2))
    assert wrong


LAYERS = {
    "extensions": {"extensions": ["usbguard"]},
    "kernel": {"kernelType": "realtime"},
}


@pytest.mark.parametrize("spec", LAYERS.values(), ids=LAYERS)
def test_packages_and_kernel_that_a_power_cut_took_are_staged_again(spec: Obj) -> None:
    one = world(1)
    config = apply(one, machine_config("99-layers", None, **spec))
    machine = host(one).machine
    one.driver.until(lambda: machine.state.reboot.pending, limit_s=120)
    assert machine.state.next_layers != machine.state.layers
    machine.fail(one.clock.now())
    machine.power_on(one.clock.now())
    one.until_updated(config)
    assert machine.state.layers.packages and one.events("OSUpdateStagedAgain")
    assert STAGED_AGAIN not in annotations_of(one.nodes()["worker-0"])


@pytest.mark.parametrize("spec", [*LAYERS.values(), {"kernelArguments": ["audit=0"]}], ids=[*LAYERS, "arguments"])
def test_what_a_power_cut_took_from_a_first_boot_is_staged_again(spec: Obj) -> None:
    one = world(0)
    config = apply(one, machine_config("99-layers", None, **spec))
    one.at_rest()
    one.add_node("worker-0", "worker", born="")
    one.driver.advance(5)
    machine = host(one).machine
    assert machine.state.power is Power.STOPPING and machine.state.reboot.pending
    machine.fail(one.clock.now())
    machine.power_on(one.clock.now())
    one.driver.until(lambda: state(one) == "Done", limit_s=900)
    arguments = tuple(spec.get("kernelArguments") or ())
    assert machine.state.kernel_arguments == arguments and bool(machine.state.layers.packages) != bool(arguments)
    assert annotations_of(one.nodes()["worker-0"])[CURRENT] == config
    assert machine.state.boots == 3, "the boot that went past it, and the one that did not"


def test_a_node_that_boots_into_what_it_had_before_says_so_until_it_has_what_it_is_to_have() -> None:
    """Somebody chose the older deployment in the boot menu: that is theirs, but nobody is to believe the node."""
    one = world(1)
    one.until_updated(apply(one, machine_config("99-layers", None, **LAYERS["extensions"])))
    machine = host(one).machine
    right = machine.state.layers
    machine.set_layers(Layers())
    machine.request_reboot("by hand", one.clock.now())
    one.driver.until(lambda: state(one) == "Degraded", limit_s=200)
    assert reason(one).startswith('extension package verification failed: extension "usbguard"')
    assert one.events("OnDiskStateValidationFailed") == [reason(one)]
    one.driver.advance(600)
    assert state(one) == "Degraded" and one.reboots() == {"worker-0": machine.state.boots}
    machine.set_layers(right)
    machine.request_reboot("by hand again", one.clock.now())
    one.driver.until(lambda: state(one) == "Done", limit_s=400)


def test_a_node_that_lost_its_packages_gets_them_by_the_file_that_forces() -> None:
    one = world(1)
    one.until_updated(apply(one, machine_config("99-layers", None, **LAYERS["kernel"])))
    machine = host(one).machine
    right = machine.state.layers
    machine.set_layers(Layers())
    machine.request_reboot("by hand", one.clock.now())
    one.driver.until(lambda: state(one) == "Degraded", limit_s=200)
    assert 'expected kernelType "realtime", have "default"' in reason(one)
    host(one).write(FORCE_FILE, b"")
    one.driver.until(lambda: state(one) == "Done", limit_s=600)
    assert set(machine.state.layers.packages) == set(right.packages)
