"""Places of the live driver: work that hangs stops its own project and host, and nothing else.

What hangs here waits for an event that the test sets at its end, so nothing depends on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from tests.controllers import controller_of

from syncline.base.action import Action, Late, Purpose, Unfinished, Work
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.base.places import Limits
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.api import Api
from syncline.cluster.resources.registry import Registry
from syncline.cluster.serving.direct import DirectTransport
from syncline.cluster.storage.store import Store
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.loop import ControlLoop
from syncline.control.manager import MAX_WORKERS, DirectPort, LiveManager
from syncline.control.plan import Done, Plan, Requeue
from syncline.control.pools import LIMITS, MAX_HOSTS, KnownHosts, Pools, PoolSettings
from syncline.kube.client import Request
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of

BOUND_S = 120.0
"""A bound, not a wait: whatever is expected comes at once."""


def hanging(until: threading.Event, project: str = "bad", host: str = "", purpose: Purpose = Purpose.SOURCES) -> Work:
    return Work("hangs", lambda: until.wait(BOUND_S), purpose, project, (host,) if host else ())


def good(project: str = "good", host: str = "", purpose: Purpose = Purpose.SOURCES) -> Work:
    return Work("answers", lambda: "answer", purpose, project, (host,) if host else ())


@pytest.mark.parametrize(
    ("rule", "bad", "stranger"),
    [
        ("pods start though reads hang", {}, {"purpose": Purpose.MACHINES}),
        ("reads go on though machines hang", {"purpose": Purpose.MACHINES}, {}),
        ("another project is read", {}, {"project": "good"}),
        ("another host is read for the same project", {"host": "tarpit:1"}, {"project": "bad", "host": "fine:1"}),
        ("another project starts pods", {"purpose": Purpose.MACHINES}, {"purpose": Purpose.MACHINES}),
    ],
)
def test_what_hangs_takes_only_its_own_places(rule: str, bad: dict[str, Any], stranger: dict[str, Any]) -> None:
    async def story() -> None:
        until, pools = threading.Event(), Pools(PoolSettings(slow_after_s=BOUND_S))
        stuck = [asyncio.ensure_future(pools.run(hanging(until, **bad))) for _ in range(60)]
        try:
            await asyncio.sleep(0)
            async with asyncio.timeout(BOUND_S):
                assert await pools.run(good(**stranger)) == "answer", rule
            assert not any(one.done() for one in stuck)
            counts = pools.counts()[str(bad.get("purpose", Purpose.SOURCES))]
            assert counts["working"] < LIMITS[bad.get("purpose", Purpose.SOURCES)].places
        finally:
            until.set()
            await asyncio.gather(*stuck)

    asyncio.run(story())


def test_reads_that_are_slow_leave_their_places_to_others_of_the_same_project() -> None:
    """A hundred remotes that hang, each its own host: a hundred and first is read while they all hang."""

    async def story() -> None:
        until, pools = threading.Event(), Pools(PoolSettings(slow_after_s=0.001, new_slow_after_s=0.001))
        stuck = [asyncio.ensure_future(pools.run(hanging(until, "one", f"h:{n}"))) for n in range(100)]
        try:
            await asyncio.sleep(0)
            async with asyncio.timeout(BOUND_S):
                assert await pools.run(good("one", "fine:1")) == "answer"
            assert not any(one.done() for one in stuck)
        finally:
            until.set()
            await asyncio.gather(*stuck)

    asyncio.run(story())


def test_hosts_that_answer_do_not_wait_for_new_ones_that_hang() -> None:
    """Of one project, and none of them is slow yet."""

    async def story() -> None:
        until, pools = threading.Event(), Pools(PoolSettings(slow_after_s=BOUND_S, new_slow_after_s=BOUND_S))
        assert await pools.run(good("one", "fine:1")) == "answer"
        stuck = [asyncio.ensure_future(pools.run(hanging(until, "one", f"h:{n}"))) for n in range(100)]
        try:
            await asyncio.sleep(0)
            async with asyncio.timeout(BOUND_S):
                assert await pools.run(good("one", "fine:1")) == "answer"
                assert await pools.run(good("two", "new:1")) == "answer", "each project has places for new hosts"
            assert pools.counts()["sources"]["working"] == LIMITS[Purpose.SOURCES].each["new hosts"]
        finally:
            until.set()
            await asyncio.gather(*stuck)

    asyncio.run(story())


def test_new_hosts_that_hang_leave_their_places_sooner() -> None:
    async def story() -> None:
        until, pools = threading.Event(), Pools(PoolSettings(slow_after_s=BOUND_S, new_slow_after_s=0.001))
        stuck = [asyncio.ensure_future(pools.run(hanging(until, "one", f"h:{n}"))) for n in range(100)]
        try:
            await asyncio.sleep(0)
            async with asyncio.timeout(BOUND_S):
                assert await pools.run(good("one", "new:1")) == "answer"
        finally:
            until.set()
            await asyncio.gather(*stuck)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("rule", "seconds", "answered", "before", "known"),
    [
        ("one that answers is known", 0.1, True, False, True),
        ("one that answers late is not", 60.0, True, False, False),
        ("one that used to answer and hangs is new", 60.0, False, True, False),
        ("a failure at once says nothing: it may not have been asked", 0.1, False, False, False),
        ("a failure at once takes nothing from who answered", 0.1, False, True, True),
    ],
)
def test_which_hosts_are_known_to_answer(rule: str, seconds: float, answered: bool, before: bool, known: bool) -> None:
    hosts = KnownHosts()
    if before:
        hosts.note(("h:1",), 0.1, answered=True)
    hosts.note(("h:1",), seconds, answered=answered)
    assert hosts.are(("h:1",)) == known, rule
    assert hosts.are(()), "places on this machine are nobody's host"


def test_of_hosts_only_so_many_are_known() -> None:
    hosts = KnownHosts()
    for number in range(MAX_HOSTS + 1):
        hosts.note((f"h:{number}",), 0.1, answered=True)
    assert not hosts.are(("h:0",)) and hosts.are((f"h:{MAX_HOSTS}",))


def test_work_that_takes_long_is_answered_as_unfinished_and_its_result_is_kept_later() -> None:
    async def story() -> list[Any]:
        until, pools, told = threading.Event(), Pools(), list[Any]()
        ended = asyncio.Event()
        work = Work("reads", partial(_second, until), Purpose.SOURCES, late=Late(0.001, told.append))
        assert isinstance(await pools.run(work, ended.set), Unfinished)
        assert told == []
        until.set()
        async with asyncio.timeout(BOUND_S):
            await ended.wait()
        return told

    assert asyncio.run(story()) == ["read"]


def _second(until: threading.Event) -> str:
    until.wait(BOUND_S)
    return "read"


def test_who_gives_up_waiting_for_a_place_leaves_it_and_what_fails_says_so() -> None:
    async def story() -> None:
        until = threading.Event()
        limits = {purpose: Limits(1) for purpose in Purpose}
        pools = Pools(PoolSettings(limits))
        stuck = asyncio.ensure_future(pools.run(hanging(until)))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(pools.run(good()))
        await asyncio.sleep(0)
        assert pools.counts()["sources"] == {"working": 1, "slow": 0, "waiting": 1}
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert pools.counts()["sources"]["waiting"] == 0
        until.set()
        await stuck
        with pytest.raises(ZeroDivisionError):
            await pools.run(Work("fails", lambda: 1 // 0, Purpose.SOURCES))

    asyncio.run(story())


# -- the driver ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look(Action):
    """An action that hangs for all objects but the good one."""

    name: str
    reason: str = "to be looked at"

    def describe(self) -> str:
        return f"look at {self.name}"


class Looking:
    """Performs and counts looks."""

    name = "looking"
    kind = GroupKind("", "ConfigMap")
    watches: tuple[Watch, ...] = ()
    reads: tuple[GroupKind, ...] = ()

    def __init__(self, until: threading.Event) -> None:
        self.until = until
        self.observed: set[str] = set()
        self.looks = 0
        self.good = asyncio.Event()
        self.twice: set[str] = set()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Obj | None:
        return cache.get(ref)

    def plan(self, observed: Obj, now: datetime) -> Plan:
        return Plan(
            ((Look(name_of(observed)),),),
            outcome=Requeue(0, "look again") if name_of(observed) in self.twice else Done(),
        )

    def handle(self, action: Look) -> Generator[Any, Any, None]:
        is_good = action.name.startswith("z-good")
        yield good() if is_good else hanging(self.until)
        self.observed.add(action.name)
        self.looks += 1
        if self.looks == 2:
            self.twice.clear()
        if is_good:
            self.good.set()


@contextlib.asynccontextmanager
async def running(looking: Looking, names: list[str]) -> AsyncIterator[None]:
    """A manager that looks at ConfigMaps of these names."""
    store, clock = Store(), VirtualClock()
    admin = DirectTransport(Api(store, Registry(store), Authorizer(store), clock, Entropy(1)))
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    admin.send(Request("POST", "/api/v1/namespaces", {}, {}, space)).or_raise()
    for name in names:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        admin.send(Request("POST", "/api/v1/namespaces/default/configmaps", {}, {}, body)).or_raise()
    loop = ControlLoop(
        [controller_of(looking)],
        mapper=Mapper(),
        handlers={Look: looking},
        clock=clock,
        journal=Journal(),
        strict=True,
    )
    task = asyncio.create_task(LiveManager(loop, DirectPort(admin), clock).run())
    try:
        async with asyncio.timeout(BOUND_S):
            yield
    finally:
        looking.until.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_keys_whose_work_hangs_do_not_keep_the_workers_from_other_keys() -> None:
    async def story() -> set[str]:
        looking = Looking(threading.Event())
        async with running(looking, [*(f"bad-{number:02}" for number in range(2 * MAX_WORKERS)), "z-good"]):
            await looking.good.wait()
            return set(looking.observed)

    assert asyncio.run(story()) == {"z-good"}


def test_a_key_that_asks_for_itself_after_its_work_comes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispatcher has gone to sleep meanwhile, and nothing else would wake it."""
    monkeypatch.setattr("syncline.control.manager.MAX_IDLE_S", 3600.0)

    async def story() -> None:
        looking = Looking(threading.Event())
        looking.twice.add("z-good")
        async with running(looking, ["z-good"]):
            while looking.looks < 2:
                await looking.good.wait()
                looking.good.clear()

    asyncio.run(story())
