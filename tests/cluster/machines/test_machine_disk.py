"""Machines on disk: the same tree as in memory, safe from links, whole after a restart."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.cluster.machines.disk import DiskTree, MachineDisk, state_from_json, state_to_json
from syncline.cluster.machines.machine import (
    DirectoryTree,
    Entry,
    EntryKind,
    Handshake,
    Layers,
    MachineSpec,
    MachineState,
    Power,
    Unit,
)
from syncline.cluster.machines.simulated import Machines, MemoryTree
from syncline.cluster.storage.disk import DiskError

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
PATHS = ["/a", "/a/b", "/a/b/c", "/b", "/b/a", "/etc/motd"]
ENTRIES = [
    Entry(content=b"hello\0\xff"),
    Entry(content=b"secret", mode=0o600, user="core", group="wheel"),
    Entry(EntryKind.DIRECTORY, mode=0o755),
    Entry(EntryKind.DIRECTORY, mode=0o000),
    Entry(EntryKind.SYMLINK, b"../../../../etc", mode=0o777),
]
STEP = st.tuples(st.sampled_from(["write", "remove", "reopen"]), st.sampled_from(PATHS), st.sampled_from(ENTRIES))


def shown(tree: DirectoryTree) -> dict[str, Entry | None]:
    return {path: tree.read(path) for path in tree.paths()}


def said(tree: DirectoryTree, verb: str, path: str, entry: Entry) -> str:
    try:
        if verb == "remove":
            return str(tree.remove(path))
        tree.write(path, entry)
        return "written"
    except ValueError as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=12))
def test_a_tree_on_disk_is_what_a_tree_in_memory_is(steps: list[tuple[str, str, Entry]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        memory, disk = MemoryTree(), DiskTree(Path(place))
        for verb, path, entry in steps:
            if verb == "reopen":
                disk = DiskTree(Path(place))
            else:
                assert said(disk, verb, path, entry) == said(memory, verb, path, entry)
            assert shown(disk) == shown(memory)
            assert list(disk.paths("/a")) == list(memory.paths("/a"))


@pytest.mark.parametrize("path", ["etc/motd", "/etc/../../motd", "//etc", "/etc/", "/", "", "/a\0b", "/.."])
def test_a_path_that_is_not_absolute_and_normalised_is_refused(tmp_path: Path, path: str) -> None:
    for tree in (DiskTree(tmp_path), MemoryTree()):
        with pytest.raises(ValueError, match="path"):
            tree.write(path, Entry())
        with pytest.raises(ValueError, match="path"):
            tree.remove(path)


@pytest.mark.parametrize("target", ["/", "..", "../..", "OUTSIDE"])
def test_no_link_leads_out_of_the_tree_even_one_that_somebody_else_made(tmp_path: Path, target: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    tree = DiskTree(tmp_path / "machine")
    os.symlink(str(outside) if target == "OUTSIDE" else target, tmp_path / "machine" / "root" / "link")
    assert tree.read("/link/file") is None and list(tree.paths("/link")) == []
    with pytest.raises(ValueError, match="/link is a symlink, no directory"):
        tree.write("/link/file", Entry(content=b"escaped"))
    assert not tree.remove("/link/file")
    tree.write("/link", Entry(content=b"a file now"))
    assert tree.read("/link") == Entry(content=b"a file now")
    assert (outside / "file").read_text() == "untouched" and sorted(os.listdir(outside)) == ["file"]


def test_files_of_a_machine_belong_to_us_alone_whatever_their_mode_says(tmp_path: Path) -> None:
    tree = DiskTree(tmp_path)
    tree.write("/usr/bin/x", Entry(content=b"#!/bin/sh", mode=0o4777))
    assert (tmp_path / "root/usr/bin/x").stat().st_mode & 0o7777 == 0o600
    assert (tmp_path / "root/usr").stat().st_mode & 0o777 == 0o700
    assert tree.read("/usr/bin/x") == Entry(content=b"#!/bin/sh", mode=0o4777)


def test_a_draft_left_by_a_death_hinders_nothing(tmp_path: Path) -> None:
    tree = DiskTree(tmp_path)
    tree.write("/a/b", Entry())
    for name in ("draft", "attributes.json.draft"):
        (tmp_path / name).write_text("half")
    (tmp_path / "gone" / "deep").mkdir(parents=True)
    tree = DiskTree(tmp_path)
    tree.write("/a/c", Entry(content=b"c", mode=0o600))
    assert tree.remove("/a/b") and shown(DiskTree(tmp_path))["/a/c"] == Entry(content=b"c", mode=0o600)


STATE = MachineState(
    "boot-7",
    boots=7,
    power=Power.STOPPING,
    changes_at=NOW + timedelta(seconds=3),
    booted_at=NOW,
    reboot=Handshake("r2", "r1"),
    units={"kubelet.service": Unit("kubelet.service", enabled=True, active=True)},
    kernel_arguments=("quiet",),
    next_kernel_arguments=("quiet", "nosmt"),
    os_image="image:1",
    next_os_image="image:2",
    layers=Layers(("usbguard",)),
    next_layers=Layers(("kernel-rt-core",), ("kernel",)),
)


@pytest.mark.parametrize("power", Power)
def test_a_state_is_read_as_it_was_written(tmp_path: Path, power: Power) -> None:
    state = replace(STATE, power=power, stopped_at=NOW if power is Power.OFF else None)
    disk = MachineDisk(tmp_path / "machines")
    assert disk.state("m") is None
    disk.keep("m", state)
    assert MachineDisk(tmp_path / "machines").state("m") == state
    assert state_from_json(state_to_json(state)) == state


def test_a_state_of_before_there_were_layers_has_none() -> None:
    old = {key: value for key, value in state_to_json(STATE).items() if "layers" not in key}
    assert state_from_json(old) == replace(STATE, layers=Layers(), next_layers=Layers())


def test_a_machine_goes_on_where_it_was_after_a_restart(tmp_path: Path) -> None:
    machines = Machines(keeper=MachineDisk(tmp_path))
    machine = machines.add(MachineSpec("node-1"))
    machine.root.write("/etc/motd", Entry(content=b"hi"))
    machine.set_unit(Unit("a.service", enabled=True))
    machine.set_kernel_arguments(("quiet",))
    machine.request_reboot("r1", NOW)
    again = Machines(keeper=MachineDisk(tmp_path)).add(MachineSpec("node-1"))
    assert again.state == machine.state and again.state.power is Power.STOPPING
    later = again.at(NOW + timedelta(hours=1))
    assert (later.boots, later.reboot, later.kernel_arguments) == (2, Handshake("r1", "r1"), ("quiet",))
    third = Machines(keeper=MachineDisk(tmp_path)).add(MachineSpec("node-1"), boots=1)
    assert third.state == later
    assert third.root.read("/etc/motd") == Entry(content=b"hi")


def test_a_node_that_counts_more_boots_than_the_disk_is_believed(tmp_path: Path) -> None:
    Machines(keeper=MachineDisk(tmp_path)).add(MachineSpec("node-1"))
    state = Machines(keeper=MachineDisk(tmp_path)).add(MachineSpec("node-1"), boots=5).state
    assert state.boots == 5


def test_a_machine_that_was_removed_leaves_nothing_to_the_next_of_its_name(tmp_path: Path) -> None:
    machines = Machines(keeper=MachineDisk(tmp_path))
    machines.add(MachineSpec("m", labels={"a": "b"})).root.write("/etc/motd", Entry())
    machines.remove("m")
    assert list(tmp_path.iterdir()) == []
    assert list(machines.add(MachineSpec("m")).root.paths()) == []


@pytest.mark.parametrize("name", ["..", ".", "a/b", "", "A", "-a", ".a.gone"])
def test_a_name_that_no_node_has_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="give a DNS subdomain"):
        MachineDisk(tmp_path).keep(name, STATE)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 2}', '{"version": 1}', "\xff"])
@pytest.mark.parametrize("file", ["machine.json", "attributes.json"])
def test_what_is_damaged_is_refused_by_name_and_left_alone(tmp_path: Path, file: str, content: str) -> None:
    disk = MachineDisk(tmp_path)
    disk.keep("m", STATE)
    path = tmp_path / "m" / file
    path.write_bytes(content.encode("latin-1"))
    if file == "attributes.json" and content == "{}":
        assert list(disk.root("m").paths()) == []
        return
    with pytest.raises(DiskError, match=file):
        _ = disk.state("m") if file == "machine.json" else disk.root("m")
    assert path.read_bytes() == content.encode("latin-1")
