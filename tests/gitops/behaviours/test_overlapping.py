"""Two controllers that both believe to work, each with a view that is seconds old: the worst that a fence lets through.

A replica that was stopped past its Lease, or whose request hung in the network, acts on what it saw before another took
over. Whatever it still sends is safe: each hook runs once in each operation, and the Application is as the source says.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.gitops.behaviours.sim import MAPS, Simulation, config, job

from syncline.base.entropy import Entropy
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import annotations_of, dig
from syncline.rehearsal.seams import FaultRates, FaultyTransport

SYNCS = 6
LATE = FaultRates(conflict=0, stale_list=0.2, lost_watch=0.1, delayed_watch=0.5, duplicate=0.1)


class Noting:
    """Counts the hooks that were made, by name and operation."""

    def __init__(self, inner: Transport, made: Counter[tuple[str, str]]) -> None:
        self._inner, self._made = inner, made

    def send(self, request: Request) -> Response:
        answer = self._inner.send(request)
        wanted = request.method == "POST" and request.path.endswith("/jobs") and "dryRun" not in request.query
        if wanted and answer.status == 201:
            operation = annotations_of(answer.obj).get("syncline.dev/operation", "")
            self._made[dig(answer.obj, "metadata", "name"), operation] += 1
        return answer


@pytest.mark.parametrize("seed", range(2))
def test_each_hook_runs_once_though_two_controllers_work(seed: int) -> None:
    sim = Simulation(
        job("before", hook="PreSync"),
        job("made-", generate=True, hook="PreSync"),
        config("one"),
        job("after", hook="PostSync"),
    )
    world, made = sim.world, Counter[tuple[str, str]]()
    actors = []
    for name in ("a", "b"):
        faulty: list[FaultyTransport] = []

        def late(inner: Transport, name: str = name, faulty: list[FaultyTransport] = faulty) -> Transport:
            noting = Noting(inner, made)
            faulty.append(FaultyTransport(noting, world.clock, Entropy(f"{name}/{seed}"), LATE))
            return faulty[0]

        world.start_gitops(late)
        actors += [world.gitops_actor, faulty[0]]
    world.driver.actors = [world.cluster_actor, *actors]
    for number in range(SYNCS):
        sim.source.commit(*sim.source.commits[-1][:2], config("one", f"v{number}"), sim.source.commits[-1][-1])
        ended = sim.sync({"revision": sim.source.head})
        assert ended["phase"] == "Succeeded", ended["message"]
        assert sim.world.send("GET", f"{MAPS}/one")["data"] == {"k": f"v{number}"}
        sim.driver.advance(30)
    assert {hook: count for hook, count in made.items() if count > 1} == {}
    assert len(made) == 3 * SYNCS
