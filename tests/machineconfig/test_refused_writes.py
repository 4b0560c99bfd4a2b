"""What a plan could not write is written as soon as the server takes it, also where nothing else is due for hours."""

from __future__ import annotations

import pytest
from tests.machineconfig.rendering import MCO, Room
from tests.machineconfig.room import HOLDS, PoolWorld
from tests.machineconfig.test_generating import kubelet, runtime, statuses
from tests.refusing import Refusing

REFUSALS = 4
SOON_S = 8
"""0.2, 0.4, 0.8 and 1.6 s after refusals, and what it takes to see a change."""
A, B = "rendered-worker-a", "rendered-worker-b"


@pytest.mark.parametrize(
    ("kind", "made", "last"),
    [
        ("kubeletconfigs", kubelet("bad", cgroupDriver="cgroupfs"), "Failure"),
        ("containerruntimeconfigs", runtime("bad", pidsLimit=-5), "Failure"),
    ],
    ids=["KubeletConfig", "ContainerRuntimeConfig"],
)
def test_a_config_that_is_refused_says_so_though_its_status_could_not_be_written_at_first(
    kind: str, made: dict[str, object], last: str
) -> None:
    room = Room()
    failing = Refusing(room.transport, "/bad/status", REFUSALS)
    room.restart(failing)
    room.rest()
    room.add(kind, made)
    room.advance(SOON_S)
    assert failing.left == 0
    assert statuses(room, kind, "bad")[-1][:2] == (last, "True")
    assert room.get(f"{MCO}/{kind}/bad")["status"]["observedGeneration"] == 1


def test_a_pool_that_is_held_for_a_day_says_so_though_its_status_could_not_be_written_at_first() -> None:
    one = PoolWorld({"worker-0": ("worker",)})
    one.pool()
    one.at_rest()
    one.hold("mine", minutes=24 * 60)
    one.driver.advance(60)
    failing: list[Refusing] = []

    def wrap(inner: object) -> Refusing:
        failing.append(Refusing(inner, "/machineconfigpools/worker/status", REFUSALS))  # type: ignore[arg-type]
        return failing[0]

    one.start_room(wrap)
    one.driver.advance(60)
    one.target(B)
    one.driver.advance(SOON_S)
    assert failing[0].left == 0
    assert f"will not update to MachineConfig {B}" in one.condition("Updating")["message"]
    one.send("DELETE", f"{HOLDS}/mine")
    one.until_updated(B)
