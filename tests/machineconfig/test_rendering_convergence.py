"""Rendering gets there whatever request its process dies after, and whatever faults heal meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.machineconfig.rendering import CONFIG, MCO, Room, files, pool, thing
from tests.machineconfig.test_generating import SUFFIX, kubelet, runtime

from syncline.base.entropy import Entropy
from syncline.kube.objects import Obj, name_of
from syncline.rehearsal.seams import CrashingTransport, FaultRates, FaultyTransport, Killed

Act = Callable[[Room], Any]
MOST_REQUESTS = 150

STORIES: dict[str, list[Act]] = {
    "configs come, are refused, and go": [
        lambda room: room.config("99-a", files(("/etc/a", "x"))),
        lambda room: room.config("99-bad", kernelType="odd"),
        lambda room: room.delete(f"{MCO}/machineconfigs/99-bad"),
        lambda room: room.delete(f"{MCO}/machineconfigs/99-a"),
        lambda room: room.config("99-b", files(("/etc/b", "x"))),
    ],
    "a custom pool": [
        lambda room: room.config("00-infra", files(("/etc/i", "x")), role="infra"),
        lambda room: room.add("machineconfigpools", pool("infra", "worker", "infra")),
    ],
    "kubelets and runtimes": [
        lambda room: room.add("kubeletconfigs", kubelet("a", maxPods=1)),
        lambda room: room.add("kubeletconfigs", kubelet("b", maxPods=2)),
        lambda room: room.add("containerruntimeconfigs", runtime("r", pidsLimit=2048)),
        lambda room: room.delete(f"{MCO}/kubeletconfigs/a"),
    ],
    "registries": [
        lambda room: room.post(f"{CONFIG}/images", thing("Image", "cluster", BLOCKED, "config.openshift.io/v1")),
        lambda room: room.merge(f"{CONFIG}/images/cluster", {"spec": {"registrySources": None}}),
    ],
}
BLOCKED: Obj = {"registrySources": {"blockedRegistries": ["evil.example.com"]}}


def sim(room: Room, story: list[Act]) -> int:
    """Every act with a minute after it; how often the controllers died and began again."""
    deaths = 0
    for act in (lambda _room: None, *story):
        act(room)
        try:
            room.rest()
        except Killed:
            deaths += 1
            room.restart()
            room.rest()
    return deaths


def outline(room: Room) -> dict[str, Any]:
    """What must be the same in the end: contents, targets, conditions; not times and revisions."""
    kinds = ("machineconfigs", "machineconfigpools", "kubeletconfigs", "containerruntimeconfigs")
    found = {f"{kind}/{name_of(one)}": one for kind in kinds for one in room.items(f"{MCO}/{kind}")}
    targets = {one["spec"]["configuration"]["name"] for one in room.items(f"{MCO}/machineconfigpools")}
    # What was rendered on the way depends on what was seen when.
    on_the_way = {key for key, one in found.items() if "/rendered-" in key and name_of(one) not in targets}
    return {_unnumbered(key): _kept(one) for key, one in found.items() if key not in on_the_way}


def _unnumbered(text: str) -> str:
    """Which of two objects is the first depends on when they were seen."""
    return re.sub(r"-generated-(kubelet|containerruntime)-\d", r"-generated-\1", text)


def _kept(obj: Obj) -> Any:
    conditions = obj.get("status", {}).get("conditions", [])
    said = [(one["type"], one["status"], one["message"]) for one in conditions]
    metadata = {key: obj["metadata"].get(key) for key in ("labels", "annotations", "finalizers")}
    notes = {key: value for key, value in (metadata["annotations"] or {}).items() if key != SUFFIX}
    return _unnumbered(str((obj["spec"], said[-2:], metadata | {"annotations": notes})))


def begin(name: str, seed: int = 1, *, shuffle: bool = False) -> Room:
    """The first story begins with nothing rendered, the others with settled pools."""
    return Room(seed=seed, shuffle=shuffle, settled=name != next(iter(STORIES)))


@cache
def undisturbed(name: str) -> Any:
    room = begin(name)
    sim(room, STORIES[name])
    return outline(room)


@pytest.mark.parametrize("name", STORIES)
def test_rendering_converges_whatever_request_its_death_follows(name: str) -> None:
    for after in range(1, MOST_REQUESTS):
        room = begin(name)
        room.restart(CrashingTransport(room.transport, after))
        deaths = sim(room, STORIES[name])
        assert outline(room) == undisturbed(name), f"dead after request {after}"
        if not deaths:
            assert after > 3
            return
    raise AssertionError(f"{name}: still writing after {MOST_REQUESTS} requests")


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", STORIES)
def test_rendering_converges_after_conflicts_lost_watches_and_stale_lists(name: str, seed: int) -> None:
    room = begin(name, seed, shuffle=True)
    faulty = FaultyTransport(room.transport, room.clock, Entropy(f"{name}/{seed}"), FaultRates())
    room.restart(faulty)
    room.driver.add(faulty)
    for act in STORIES[name]:
        room.advance(120)
        act(room)
    room.advance(120)
    faulty.heal()
    room.advance(120)
    assert outline(room) == undisturbed(name)
    assert sum(faulty.counts.values()) > 0, faulty.counts


def test_the_same_seed_gives_the_same_journal() -> None:
    journals = []
    for _ in range(2):
        room = Room(seed=7, shuffle=True, settled=False)
        sim(room, STORIES["kubelets and runtimes"])
        journals.append([str(entry) for entry in room.journal])
    assert journals[0] == journals[1]
