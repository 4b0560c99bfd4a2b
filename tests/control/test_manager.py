"""The live driver in process: what happens in bursts must not keep the event loop, which also serves HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import datetime

import pytest
from tests.controllers import controller_of

from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.api import Api
from syncline.cluster.resources.registry import Registry
from syncline.cluster.serving.direct import DirectTransport
from syncline.cluster.storage.store import Store
from syncline.control import manager
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.executor import kube_handlers
from syncline.control.informer import CRDS, Scope
from syncline.control.loop import ControlLoop
from syncline.control.manager import PASSES_PER_TURN, REQUESTS_PER_TURN, WATCH_BATCH, DirectPort, LiveManager
from syncline.control.plan import Create, Plan
from syncline.kube.client import Batch, Request, Response
from syncline.kube.errors import ApiError, Forbidden, Gone, Unavailable
from syncline.kube.kinds.structure import ANY, definition, kind_schema
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, name_of

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = GroupKind("", "Secret")
SECRETS_PATH = "/api/v1/namespaces/default/secrets"
PATIENCE_S = 120
"""Of a busy machine."""
MAX_TURNS = 200_000
"""Turns of the event loop in one test: a bound, not a wait."""


class Counting:
    """Looks at every ConfigMap once; for the one called ``many`` it makes a thousand Secrets in one pass."""

    name = "counting"
    kind = GroupKind("", "ConfigMap")
    watches: tuple[Watch, ...] = ()
    reads: tuple[GroupKind, ...] = ()

    def __init__(self) -> None:
        self.passes = 0

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Obj | None:
        self.passes += 1
        return cache.get(ref)

    def plan(self, observed: Obj, now: datetime) -> Plan:
        if not name_of(observed).startswith("many"):
            return Plan(why="counted")
        made = tuple(
            Create(_named("Secret", f"s-{number}") | {"type": "Opaque"}, "asked for") for number in range(1000)
        )
        return Plan((made,), why="many", together=name_of(observed) == "many-together")


class Counted:
    """The API in process; counts writes."""

    def __init__(self, inner: DirectTransport) -> None:
        self._inner = inner
        self.writes = 0

    def send(self, request: Request) -> Response:
        self.writes += request.method != "GET"
        return self._inner.send(request)


def _named(kind: str, name: str) -> Obj:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}}


class Served:
    """A manager over an API, and a neighbour on the same event loop that notes how far things went at each turn."""

    def __init__(self, scopes: dict[GroupKind, Scope | None] | None = None, controller: Counting | None = None) -> None:
        store, clock = Store(), VirtualClock()
        api = Api(store, Registry(store), Authorizer(store), clock, Entropy(1))
        self.admin = DirectTransport(api)
        self.controller = controller or Counting()
        self.transport = Counted(self.admin)
        mapper = Mapper()
        handlers = kube_handlers(mapper, clock, "test")
        self.loop = ControlLoop(
            [controller_of(self.controller)],
            mapper=mapper,
            handlers=handlers,
            clock=clock,
            journal=Journal(),
            strict=True,
            scopes=scopes or {},
        )
        self.manager = LiveManager(self.loop, DirectPort(self.transport), clock)
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        self.admin.send(Request("POST", "/api/v1/namespaces", {}, {}, space)).or_raise()

    def create(self, name: str) -> None:
        self.admin.send(Request("POST", CONFIG_MAPS, {}, {}, _named("ConfigMap", name))).or_raise()

    async def turns(self, reached: Callable[[], bool], *measures: Callable[[], int]) -> list[int]:
        """Let the event loop turn until ``reached``; the largest step that each measure made in one turn."""
        largest = [0] * len(measures)
        before = [measure() for measure in measures]
        for _ in range(MAX_TURNS):
            if reached():
                return largest
            await asyncio.sleep(0)
            after = [measure() for measure in measures]
            largest = [max(most, new - old) for most, new, old in zip(largest, after, before)]
            before = after
        raise AssertionError(f"not reached in {MAX_TURNS} turns")

    def cached(self) -> int:
        """In a burst of one kind every revision is an event."""
        return self.loop.cache.observed_revision(Counting.kind)

    def passes(self) -> int:
        return self.controller.passes

    def writes(self) -> int:
        return self.transport.writes


class _Late:
    """A port whose watches are silent."""

    def __init__(self, inner: DirectPort) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    async def watch(self, request: Request) -> AsyncIterator[Batch]:
        yield []
        await asyncio.Event().wait()


def test_thousands_of_writes_side_by_side_leave_the_loop_to_others() -> None:
    """They are answered at once in process: without a pause between them they would be one turn."""

    async def written() -> int:
        served = Served()
        served.create("many-together")
        running = asyncio.create_task(served.manager.run())
        secrets = Request("GET", "/api/v1/secrets", {"limit": "1"})

        def made() -> int:
            items = served.admin.send(secrets).obj
            return len(items["items"]) + int(items["metadata"].get("remainingItemCount") or 0)

        (largest,) = await served.turns(lambda: made() >= 1000, made)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return largest

    assert asyncio.run(written()) <= 3 * REQUESTS_PER_TURN


def test_who_looks_again_sees_what_its_watch_has_not_told_yet() -> None:
    """A standby that takes over begins with what its predecessor has recorded."""

    async def observed() -> tuple[int, int]:
        served = Served()
        served.manager = LiveManager(served.loop, _Late(DirectPort(served.transport)), VirtualClock())
        served.create("early")
        running = asyncio.create_task(served.manager.run())
        await served.turns(lambda: served.passes() >= 1)
        served.create("late")
        await served.turns(lambda: True)
        before = len(served.loop.cache.objects(Counting.kind))
        await served.manager.watches.look_again(Counting.kind)
        after = len(served.loop.cache.objects(Counting.kind))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return before, after

    assert asyncio.run(observed()) == (1, 2)


async def _bursts() -> tuple[list[int], list[int], list[int]]:
    served = Served()
    for number in range(1000):
        served.create(f"early-{number}")
    running = asyncio.create_task(served.manager.run())
    listed = await served.turns(lambda: served.passes() >= 1000, served.passes)
    for number in range(5000):
        served.create(f"late-{number}")
    watched = await served.turns(lambda: served.passes() >= 6000, served.cached, served.passes)
    served.create("many")
    written = await served.turns(lambda: served.writes() >= 1000, served.writes)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return listed, watched, written


def test_bursts_of_events_passes_and_requests_leave_turns_to_the_neighbours() -> None:
    """A thousand objects at the start, five thousand events at once, a thousand requests of one pass."""
    listed, watched, written = asyncio.run(_bursts())
    assert listed[0] <= 2 * PASSES_PER_TURN
    assert watched[0] <= WATCH_BATCH
    assert watched[1] <= 2 * PASSES_PER_TURN
    assert written[0] <= REQUESTS_PER_TURN


def test_of_a_kind_that_is_looked_at_in_part_only_that_part_is_known() -> None:
    """In the list and in what comes later: an agent of one node is not woken by the others."""

    async def observed() -> list[str]:
        served = Served({Counting.kind: Scope(fields="metadata.name=mine")})
        for name in ("early", "mine"):
            served.create(name)
        running = asyncio.create_task(served.manager.run())
        await served.turns(lambda: served.passes() >= 1)
        served.create("late")
        served.admin.send(Request("DELETE", f"{CONFIG_MAPS}/mine")).or_raise()
        await served.turns(lambda: served.passes() >= 2)
        known = [name_of(each) for each in served.loop.cache.objects(Counting.kind)]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return [*known, str(served.passes())]

    assert asyncio.run(observed()) == ["2"]


class _Returning(DirectPort):
    """A port to a server that is away for three watches of ConfigMaps, and comes back with another history."""

    def __init__(self, inner: Counted) -> None:
        super().__init__(inner)
        self.answers = [Unavailable("away"), Unavailable("away"), Unavailable("away"), Gone("too old resource version")]

    async def watch(self, request: Request) -> AsyncIterator[Batch]:
        if self.answers and "configmaps" in request.path:
            raise self.answers.pop(0)
        async for batch in super().watch(request):
            yield batch


def test_a_server_that_is_back_with_another_history_is_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after one more of the waits, which have grown while it was away."""
    waits: list[int] = []

    def noted(failures: int, _refused: ApiError | None, _draw: object = None) -> float:
        waits.append(failures)
        return 0.0

    async def observed() -> None:
        served = Served()
        port = _Returning(served.transport)
        served.manager.watches._port = port
        served.create("one")
        running = asyncio.create_task(served.manager.run())
        await served.turns(lambda: not port.answers)
        served.create("two")
        await served.turns(lambda: served.passes() >= 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    monkeypatch.setattr(manager, "wait_s", noted)
    asyncio.run(observed())
    assert waits == [0, 1, 2, 0]


class _Reading(Counting):
    """Also looks at Secrets, and notes whether it could read them."""

    reads = (SECRETS,)

    def __init__(self) -> None:
        super().__init__()
        self.unread: list[str] = []

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Obj | None:
        self.unread.append(cache.unread(ObjectRef(*SECRETS, "", "")))
        return super().observe(cache, ref)


class _Refusing:
    """A port that may refuse to list and watch Secrets."""

    def __init__(self, inner: DirectPort) -> None:
        self._inner = inner
        self.refuses = True

    def _check(self, request: Request) -> None:
        if self.refuses and request.path == "/api/v1/secrets":
            raise Forbidden("secrets is forbidden")

    async def send(self, request: Request) -> Response:
        try:
            self._check(request)
        except Forbidden as error:
            return Response.refused(error)
        return await self._inner.send(request)

    async def watch(self, request: Request) -> AsyncIterator[Batch]:
        async for batch in self._inner.watch(request):
            self._check(request)
            yield batch


def test_a_kind_that_may_not_be_listed_is_unread_until_it_may_and_again_when_the_right_is_taken_away() -> None:
    served = Served(controller=_Reading())
    controller = served.controller
    assert isinstance(controller, _Reading)
    port = _Refusing(DirectPort(served.transport))
    manager = LiveManager(served.loop, port, VirtualClock())
    cache, anything = served.loop.cache, ObjectRef(*SECRETS, "default", "s")

    async def reached(wanted: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not wanted():
                await asyncio.sleep(0)

    async def sim() -> None:
        running = asyncio.create_task(manager.run())
        served.create("one")
        await reached(lambda: "forbidden" in cache.unread(anything) and bool(controller.unread))
        assert not cache.has_synced(SECRETS) and "forbidden" in controller.unread[-1]
        observed = len(controller.unread)
        port.refuses = False
        await reached(lambda: cache.has_synced(SECRETS))
        turns = iter(range(MAX_TURNS))
        while len(controller.unread) == observed:
            assert next(turns, None) is not None, "there is no Secret, and its readers are woken at once all the same"
            await asyncio.sleep(0)
        assert controller.unread[-1] == "", "whoever looks at the kind was woken"
        port.refuses = True
        served.admin.send(Request("POST", SECRETS_PATH, {}, {}, _named("Secret", "s") | {"type": "Opaque"})).or_raise()
        await reached(lambda: "forbidden" in controller.unread[-1])
        assert "forbidden" in cache.unread(anything) and not cache.has_synced(SECRETS)
        assert "Secret" in str(manager.signs.watches) and "forbidden" in str(manager.signs.watches)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(sim())


class _Heavy(Counting):
    """Its plan ends only after the loop has done something else meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.went_on = False

    def beside(self, observed: Obj) -> str | None:
        return "team" if name_of(observed) == "large" else None

    def plan(self, observed: Obj, now: datetime) -> Plan:
        if name_of(observed) == "large":
            self.begun.set()
            self.went_on = self.goes_on.wait(PATIENCE_S)
            return Plan(((Create(_named("Secret", "made") | {"type": "Opaque"}, "asked for"),),))
        return super().plan(observed, now)


def test_a_plan_of_much_is_made_in_a_thread_while_the_loop_goes_on() -> None:
    controller = _Heavy()
    served = Served(controller=controller)
    served.create("large")

    async def sim() -> None:
        running = asyncio.create_task(served.manager.run())
        async with asyncio.timeout(PATIENCE_S):
            while not controller.begun.is_set():
                await asyncio.sleep(0)
        served.create("small")
        await served.turns(lambda: served.passes() >= 2)
        assert served.manager.pools.counts()["planning"]["working"] == 1
        controller.goes_on.set()
        await served.turns(lambda: bool(served.admin.send(Request("GET", "/api/v1/secrets")).obj["items"]))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(sim())
    assert controller.went_on, "the loop was not held"


PARTS = GroupKind("example.io", "Part")


class _Expecting(Counting):
    """Reads a kind whose definition comes later."""

    reads = (PARTS,)


def test_kinds_that_come_later_are_found_where_definitions_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may not watch the definitions of its hub: it looks at times, until nothing is missing."""
    monkeypatch.setattr(manager, "LOOK_S", 0.001)
    looks = 0

    async def observed() -> None:
        nonlocal looks
        served = Served({CRDS: None}, _Expecting())
        asked = served.transport.send

        def counted(request: Request) -> Response:
            nonlocal looks
            looks += request.path == "/apis"
            return asked(request)

        served.transport.send = counted  # type: ignore[method-assign]
        running = asyncio.create_task(served.manager.run())
        async with asyncio.timeout(PATIENCE_S):
            await served.turns(lambda: looks >= 3)
            crd = definition(
                GVK("example.io", "v1", "Part"), "parts", kind_schema(ANY, ANY, about="A part."), namespaced=True
            )
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            served.admin.send(Request("POST", path, {}, {}, crd)).or_raise()
            await served.turns(lambda: served.loop.cache.has_synced(PARTS))
        calm, left = looks, iter(range(1000))
        await served.turns(lambda: next(left, None) is None)
        assert looks == calm
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(observed())
