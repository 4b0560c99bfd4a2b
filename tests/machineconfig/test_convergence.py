"""Roll-outs with agents as upstream's get there whatever faults heal meanwhile; and never are more nodes down by our
hand than the pool allows. Deaths after each request, with our own agents: ``test_faults.py``, story ``paused``."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.machineconfig.room import POOLS, PoolWorld
from tests.machineconfig.test_drains import router

from syncline.base.entropy import Entropy
from syncline.kube.objects import annotations_of, dig
from syncline.machineconfig.drain.progress import BLOCKED, PROGRESS
from syncline.machineconfig.names import CURRENT, DESIRED, STATE
from syncline.rehearsal.seams import FaultRates, FaultyTransport

A, B, C = "rendered-worker-a", "rendered-worker-b", "rendered-worker-c"


class Watched:
    """Looks at the store after every write of anybody."""

    def __init__(self, one: PoolWorld, limit: int) -> None:
        self._one, self._limit = one, limit
        self.most = 0
        self._down: set[str] = set()
        one.core.store.subscribe(self._note)

    def _note(self, event: object) -> None:
        stored = event.stored  # type: ignore[attr-defined]
        if stored.key.resource.split("/")[-1] != "nodes":
            return
        have = annotations_of(stored.obj)
        busy = have.get(CURRENT) != have.get(DESIRED) or have.get(STATE) != "Done"
        down = bool(dig(stored.obj, "spec", "unschedulable")) or busy
        (self._down.add if down and have.get(CURRENT) else self._down.discard)(stored.key.name)
        self.most = max(self.most, len(self._down))
        assert len(self._down) <= self._limit, f"{sorted(self._down)} are down at once"


def story(seed: int) -> PoolWorld:
    """Three workers, a budget, a change, a pause in the middle, another change."""
    one = PoolWorld({f"worker-{n}": ("worker",) for n in range(3)}, seed=seed, shuffle=True)
    one.pool()
    one.at_rest()
    router(one)
    watched = Watched(one, 1)
    one.target(B)
    one.driver.advance(60)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    one.target(C)
    one.driver.advance(300)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": False}})
    one.driver.advance(900)
    assert watched.most == 1
    return one


def outcome(one: PoolWorld) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, node in one.nodes().items():
        have = annotations_of(node)
        found[f"{name} at {have[CURRENT]} is {have[STATE]}"] += 1
        assert not dig(node, "spec", "unschedulable"), f"{name} is left cordoned"
        assert PROGRESS not in have and BLOCKED not in have, f"{name} has notes left"
        assert not [t for t in dig(node, "spec", "taints", default=[]) if t["key"] == "UpdateInProgress"]
    said = {each["type"]: each["status"] for each in one.get(f"{POOLS}/worker")["status"]["conditions"]}
    found[f"Updated {said['Updated']}, Degraded {said['Degraded']}"] += 1
    return found


@pytest.mark.parametrize("seed", [2, 3])
def test_the_controllers_converge_after_conflicts_lost_watches_and_stale_lists(seed: int) -> None:
    one = PoolWorld({f"worker-{n}": ("worker",) for n in range(3)}, seed=seed, shuffle=True)
    one.pool()
    one.at_rest()
    router(one)
    watched = Watched(one, 1)
    faulty = FaultyTransport(one.admin, one.clock, Entropy(f"pools/{seed}"), FaultRates())
    one.start_room(lambda _inner: faulty)
    one.driver.add(faulty)
    one.target(B)
    one.driver.advance(1800)
    faulty.heal()
    one.until_updated(B)
    one.driver.advance(300)
    assert watched.most == 1
    assert outcome(one)[f"worker-0 at {B} is Done"] == 1
    assert sum(faulty.counts.values()) > 0


def test_the_same_seed_gives_the_same_journal() -> None:
    def journal() -> list[str]:
        one = story(seed=7)
        return [entry.line() for entry in one.journal]

    assert journal() == journal()


def test_nodes_are_looked_at_in_any_order_with_the_same_result() -> None:
    assert outcome(story(seed=4)) == outcome(story(seed=5))
