"""States are equal where controllers decide alike, and differ in all by which they decide."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conftest import Figure
from tests.machineconfig.faults.stories import STORIES
from tests.machineconfig.faults.world import CONTROLLERS, FaultWorld
from tests.machineconfig.room import NODES, POOLS

from syncline.cluster.machines.machine import Entry
from syncline.control.workqueue import Key
from syncline.kube.objects import ObjectRef
from syncline.rehearsal.faults import Fault
from syncline.rehearsal.fingerprint import Fingerprints

NODE = "worker-0"
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "said", "namespace": "default"},
    "involvedObject": {"kind": "Node", "name": NODE},
    "reason": "Said",
}


@pytest.fixture(scope="module")
def world() -> FaultWorld:
    return STORIES["gentle"].world()


@pytest.fixture(scope="module")
def prints(world: FaultWorld) -> Fingerprints:
    return Fingerprints(world, world.injector, world.laws.remembered)


def _annotate(world: FaultWorld, value: str) -> None:
    world.merge(f"{NODES}/{NODE}", {"metadata": {"annotations": {"example.com/said": value}}})
    world.live(1)


def test_a_write_that_is_taken_back_leads_to_the_same_state(world: FaultWorld, prints: Fingerprints) -> None:
    _annotate(world, "a")
    before = prints.take()
    _annotate(world, "b")
    assert before is not None and prints.take() not in (None, before)
    _annotate(world, "a")
    assert prints.take() == before


def test_events_and_the_passing_of_time_change_no_state(world: FaultWorld, prints: Fingerprints) -> None:
    before = prints.take()
    world.send("POST", "/api/v1/namespaces/default/events", EVENT)
    world.live(90)
    assert prints.take() == before


def test_a_process_that_dies_at_rest_comes_back_to_the_same_state(world: FaultWorld, prints: Fingerprints) -> None:
    before = prints.take()
    world.start(CONTROLLERS)
    world.start(NODE)
    world.live(10)
    assert prints.take() == before


def _file(world: FaultWorld) -> None:
    machine = world.machines.room.machines.get(NODE)
    assert machine is not None
    machine.root.write("/home/core/notes", Entry(content=b"changed", user="core", group="core"))


def _wait(world: FaultWorld) -> None:
    process = world.injector.processes[CONTROLLERS]
    ref = ObjectRef("machineconfiguration.openshift.io", "MachineConfigPool", "", "worker")
    name = next(iter(process.loop.controllers))
    process.loop.queue.add(Key(name, ref), world.clock.now() + timedelta(seconds=30))


DIFFERENCES: dict[str, Callable[[FaultWorld], object]] = {
    "a clock": lambda world: setattr(world.injector.clocks[CONTROLLERS], "off_s", 60.0),
    "a fault that is to strike": lambda world: world.injector.faults.append(Fault("kill", 10_000)),
    "a fault of watches": lambda world: world.injector.processes[CONTROLLERS].transport.arm("duplicate", 1),
    "what is to heal": lambda world: world.injector.agenda.after(50, lambda: None),
    "what the laws remember": lambda world: world.laws.mute.add(NODE),
    "a wait": _wait,
    "a file": _file,
}


def test_whatever_decides_makes_another_state(world: FaultWorld, prints: Fingerprints) -> None:
    known = {prints.take()}
    for what, change in DIFFERENCES.items():
        change(world)
        found = prints.take()
        assert found is not None and found not in known, what
        known.add(found)


def test_a_state_with_events_under_way_does_not_show(world: FaultWorld, prints: Fingerprints) -> None:
    world.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    assert prints.take() is None


def _record(path: Path, *more: str) -> dict[str, dict[str, object]]:
    chosen = [
        "--stories",
        "gentle",
        "--kinds",
        "kill",
        "conflict",
        "twice",
        "host-error",
        "--every",
        "9",
        "--seeds",
        "0",
    ]
    command = [sys.executable, "-m", "tests.machineconfig.faults", *chosen, "--record", str(path), *more]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return {found["schedule"]: found for found in map(json.loads, path.read_text().splitlines())}


def test_a_schedule_that_ends_in_a_known_state_would_have_held(tmp_path: Path, figure: Figure) -> None:
    """Run both ways, in processes of their own, which fork."""
    spared, whole = _record(tmp_path / "spared"), _record(tmp_path / "whole", "--whole")
    assert spared.keys() == whole.keys() and not any(one["broken"] for one in (*spared.values(), *whole.values()))
    merged = [name for name, one in spared.items() if one["merged"]]
    assert len(merged) > len(spared) / 3
    assert not any(one["merged"] for one in whole.values())
    for name in merged:
        assert spared[name]["struck"] == whole[name]["struck"], name
    figure("schedules of faults", f"{len(spared)}, of which {len(merged)} came to a known state")
