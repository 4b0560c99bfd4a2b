"""An agent that begins from yesterday's list of nodes: a server behind its peers, a cache in between.

What it believes to be asked for is over. It must not drain, write or reboot for it: the pool has given the place of
that node to another one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.machineconfig.faults.stories import Story, small
from tests.machineconfig.faults.world import CONFIGS, FaultWorld
from tests.machineconfig.room import NODES, POOLS

from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.machineconfig.agent.planning.notes import WRITING
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, DONE, LAST_DRAIN, STATE
from syncline.rehearsal.injecting import Death
from syncline.rehearsal.seams import Step

NODE = "worker-0"
AWAY_S = 36000.0


class Silent:
    """A watch that tells nothing."""

    on_ready: Callable[[], None] | None = None
    ended = False

    def take(self, limit: int = 1000) -> list[bytes]:
        return []

    def close(self) -> None: ...


class Behind:
    """Lists nodes as they were, and nothing new of them."""

    def __init__(self, inner: Transport, listed: Response) -> None:
        self._inner, self._listed = inner, listed

    def send(self, request: Request) -> Response:
        if request.method != "GET" or request.path != NODES:
            return self._inner.send(request)
        if request.query.get("watch"):
            return Response(200, stream=Silent())
        return self._listed


class WorldOfOldLists(FaultWorld):
    listed: Response | None = None
    """What agents that are started from now on are told."""

    def start(self, who: str) -> None:
        home = self.admin
        if self.listed is not None and who == NODE:
            self.admin = Behind(home, self.listed)  # type: ignore[assignment]
        try:
            super().start(who)
        finally:
            self.admin = home


def until(world: FaultWorld, reached: Callable[[], bool]) -> None:
    for _ in range(600):
        if reached():
            return
        world.live(1)
    raise AssertionError(f"it never came: {world.unfinished()}")


def node(world: FaultWorld) -> Obj:
    found: Obj = world.get(f"{NODES}/{NODE}")
    return found


def have(world: FaultWorld, key: str) -> str:
    return annotations_of(node(world)).get(key, "")


def replace_config(world: FaultWorld, config: Obj) -> None:
    before = dig(world.get(f"{POOLS}/worker"), "spec", "configuration", "name")
    path = f"{CONFIGS}/50-base"
    world.send("PUT", path, config | {"metadata": world.get(path)["metadata"]})
    until(world, lambda: dig(world.get(f"{POOLS}/worker"), "spec", "configuration", "name") != before)


def listed(world: FaultWorld) -> Response:
    return world.admin.send(Request("GET", NODES))


def targeted(world: FaultWorld, first: str) -> bool:
    return have(world, DESIRED) != first


def drained(world: FaultWorld, first: str) -> bool:
    return have(world, LAST_DRAIN) == f"drain-{have(world, DESIRED)}" and not have(world, WRITING)


@pytest.mark.parametrize("moment", [targeted, drained], ids=["it was targeted", "it was drained"])
def test_an_agent_that_is_told_of_yesterday_does_nothing_to_the_node_of_today(
    moment: Callable[[FaultWorld, str], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.machineconfig.faults.stories.FaultWorld", WorldOfOldLists)
    story = Story("there and back", "", small("a"), small("b"), (NODE,))
    world = story.world()
    assert isinstance(world, WorldOfOldLists)
    first = have(world, DESIRED)

    # Yesterday: it is to have another config; there its agent ends, and one that knows no more goes on.
    def end(step: Step) -> None:
        if step.who == NODE and moment(world, first):
            world.injector.at_step = None
            raise Death(NODE, AWAY_S)

    world.injector.steps.counting, world.injector.at_step = True, end
    replace_config(world, small("b"))
    until(world, lambda: world.injector.at_step is None)
    assert moment(world, first)
    yesterday = listed(world)
    world.start(NODE)
    until(world, lambda: have(world, STATE) == DONE and have(world, LAST_DRAIN) == f"uncordon-{have(world, DESIRED)}")

    # And back again: everything is at rest with the first config.
    replace_config(world, small("a"))
    until(world, lambda: have(world, LAST_DRAIN) == f"uncordon-{first}" and have(world, STATE) == DONE)
    world.live(120)
    before, reboots = node(world), world.reboots()[NODE]

    world.listed = yesterday
    world.start(NODE)
    world.live(180)
    now = node(world)
    assert world.reboots()[NODE] == reboots, "rebooted undrained"
    assert not dig(now, "spec", "unschedulable"), "drained for a target that is over"
    assert {key: annotations_of(now).get(key) for key in (DESIRED_DRAIN, STATE, WRITING)} == {
        key: annotations_of(before).get(key) for key in (DESIRED_DRAIN, STATE, WRITING)
    }

    world.listed = None
    world.start(NODE)
    world.live(120)
    assert have(world, STATE) == DONE and have(world, CURRENT) == first
