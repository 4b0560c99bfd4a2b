"""The loop on the embedded API in virtual time: a small controller that keeps one ConfigMap per Namespace label."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.control.watching import HeldBack, Once
from tests.controllers import controller_of

from syncline.base.clock import EPOCH, VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.api import Api
from syncline.cluster.resources.registry import Registry
from syncline.cluster.serving.direct import DirectTransport
from syncline.cluster.storage.store import Store
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch, differ
from syncline.control.events import Said, publish
from syncline.control.executor import kube_handlers, run_in_place
from syncline.control.loop import ControlLoop
from syncline.control.plan import (
    Create,
    Delete,
    Done,
    Emit,
    Evict,
    Outcome,
    Patch,
    Plan,
    Requeue,
    Retry,
    Stalled,
    set_status,
)
from syncline.control.virtual import LoopActor, NotIdleError, VirtualDriver
from syncline.control.workqueue import Key
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import ApiError, InternalError, TooManyRequests
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, labels_of, name_of, namespace_of
from syncline.rehearsal.seams import CrashingTransport, Killed

NAMESPACES = GroupKind("", "Namespace")
CONFIG_MAPS = GroupKind("", "ConfigMap")


@dataclass(frozen=True)
class Observed:
    namespace: Obj
    config: Obj | None


class Keeper:
    """Keeps ConfigMap ``kept`` in every Namespace labelled ``keep=yes``."""

    name = "keeper"
    kind = NAMESPACES
    reads: tuple[GroupKind, ...] = ()

    def __init__(self) -> None:
        self.watches = (Watch(CONFIG_MAPS, self._namespace),)

    def _namespace(self, obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if name_of(obj) == "kept":
            yield ObjectRef("", "Namespace", "", namespace_of(obj))

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        namespace = cache.get(ref)
        config = cache.get(ObjectRef("", "ConfigMap", ref.name, "kept"))
        return Observed(namespace, config) if namespace is not None else None

    def plan(self, observed: Observed, now: datetime) -> Plan:
        name = name_of(observed.namespace)
        wanted = labels_of(observed.namespace).get("keep") == "yes"
        if wanted and observed.config is None:
            config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": name}}
            event = Emit(observed.namespace, "Kept", "made a ConfigMap", "keeper")
            return Plan(steps=((Create(config, "asked for"),), (event,)), why="missing")
        if not wanted and observed.config is not None:
            return Plan(steps=((Delete.of(observed.config, "no longer asked for"),),), why="too many")
        return Plan(outcome=Done(), why="as it should be")


class Bench:
    def __init__(self, controller: Any, *, wrap: Any = None, shuffle: bool = False) -> None:
        self.clock = VirtualClock()
        self.journal = Journal()
        store = Store()
        api = Api(store, Registry(store), Authorizer(store), self.clock, Entropy(1))
        self.transport = DirectTransport(api)
        self.shuffle = Entropy(5) if shuffle else None
        self.restart(controller, wrap)

    def restart(self, controller: Any, wrap: Any = None) -> None:
        mapper = Mapper()
        handlers = kube_handlers(mapper, self.clock, "test")
        self.loop = ControlLoop(
            [controller_of(controller)],
            mapper=mapper,
            handlers=handlers,
            clock=self.clock,
            journal=self.journal,
            strict=True,
        )
        transport: Transport = wrap(self.transport) if wrap else self.transport
        self.driver = VirtualDriver(self.clock, [LoopActor(self.loop, transport, self.clock, self.shuffle)])

    def send(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        return self.transport.send(Request(method, path, {}, {"content-type": content}, body)).or_raise()

    def namespace(self, name: str, keep: str = "yes") -> None:
        metadata = {"name": name, "labels": {"keep": keep}}
        self.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def relabel(self, name: str, keep: str) -> None:
        patch = {"metadata": {"labels": {"keep": keep}}}
        self.send("PATCH", f"/api/v1/namespaces/{name}", patch, "application/merge-patch+json")

    def kept(self) -> list[str]:
        return [namespace_of(c) for c in self.send("GET", "/api/v1/configmaps")["items"] if name_of(c) == "kept"]


def test_a_controller_reacts_to_its_kind_and_to_what_it_watches() -> None:
    bench = Bench(Keeper())
    bench.namespace("a")
    bench.namespace("b", keep="no")
    bench.driver.settle()
    assert bench.kept() == ["a"]
    bench.send("DELETE", "/api/v1/namespaces/a/configmaps/kept")
    bench.driver.settle()
    assert bench.kept() == ["a"], "what is deleted by hand is made again"
    bench.relabel("a", "no")
    bench.driver.settle()
    assert bench.kept() == []


def test_planning_again_after_executing_does_nothing() -> None:
    bench = Bench(Keeper())
    bench.namespace("a")
    bench.driver.settle()
    before = len(bench.journal)
    bench.loop.wake("keeper", ObjectRef("", "Namespace", "", "a"))
    bench.driver.settle()
    assert len(bench.journal) == before


@pytest.mark.parametrize("after", range(1, 8))
def test_a_controller_killed_after_any_request_converges(after: int) -> None:
    bench = Bench(Keeper(), wrap=lambda inner: CrashingTransport(inner, after))
    for name in ("a", "b", "c"):
        bench.namespace(name)
    try:
        bench.driver.settle()
    except Killed:
        bench.restart(Keeper())
        bench.driver.settle()
    assert bench.kept() == ["a", "b", "c"]
    events = bench.send("GET", "/api/v1/events")["items"]
    assert {e["involvedObject"]["name"] for e in events} <= {"a", "b", "c"}


def test_a_shuffled_order_ends_the_same() -> None:
    bench = Bench(Keeper(), shuffle=True)
    for name in "fedcba":
        bench.namespace(name)
    bench.driver.settle()
    assert bench.kept() == list("abcdef")


def test_the_same_seed_gives_a_byte_equal_journal() -> None:
    def run() -> str:
        bench = Bench(Keeper())
        for name in "abc":
            bench.namespace(name)
        bench.driver.advance(60)
        return bench.journal.text()

    assert run() == run() != ""


class Lossy:
    """A watch that is lost after every batch, and a list that may be asked for again."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    def send(self, request: Request) -> Response:
        answer = self._inner.send(request)
        if answer.stream is not None:
            return Response(200, stream=Once(answer.stream))
        return answer


def test_lost_watches_are_resumed_without_missing_anything() -> None:
    bench = Bench(Keeper(), wrap=Lossy)
    for name in "abcd":
        bench.namespace(name)
    bench.driver.settle()
    bench.relabel("b", "no")
    bench.driver.settle()
    assert bench.kept() == ["a", "c", "d"]


class Sleeper(Keeper):
    """Asks to be woken three times, then is done; counts in the status-free label of the journal."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def plan(self, observed: Observed, now: datetime) -> Plan:
        self.looks += 1
        return Plan(outcome=Requeue(600, "ten minutes") if self.looks < 4 else Done())


def test_ten_minute_waits_take_no_time() -> None:
    controller = Sleeper()
    bench = Bench(controller)
    bench.namespace("a")
    assert bench.driver.until_idle(limit_s=7200) == 1800
    assert controller.looks == 4


class Failing(Keeper):
    def plan(self, observed: Observed, now: datetime) -> Plan:
        return Plan(outcome=Retry("the moon is full"))


def test_a_world_that_never_rests_says_who_wants_more() -> None:
    bench = Bench(Failing())
    bench.namespace("a")
    with pytest.raises(NotIdleError):
        bench.driver.until_idle(limit_s=3600)
    retries = [entry.when for entry in bench.journal if entry.what == "retry"]
    gaps = [(b - a).total_seconds() for a, b in itertools.pairwise(retries)]
    assert gaps[:3] == [0.2, 0.4, 0.8]
    assert max(gaps) <= 120


class Forgetful(Keeper):
    """Creates what exists already: the refusal is planned again at once, not counted as a failure."""

    def plan(self, observed: Observed, now: datetime) -> Plan:
        if (now - self.begun).total_seconds() > 1:
            return Plan()
        name = name_of(observed.namespace)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": name}}
        return Plan(steps=((Create(config, "stale view"),), (Create(config, "never reached"),)))

    begun = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def test_a_failed_step_stops_later_steps_and_a_conflict_is_planned_again_soon() -> None:
    bench = Bench(Forgetful())
    bench.namespace("a")
    bench.driver.until_idle()
    assert any("refused" in entry.what for entry in bench.journal)
    assert not any(entry.why == "never reached" and "refused" not in entry.what for entry in bench.journal)


class Refused(Keeper):
    """Each pass writes something that is refused as ``body`` says, until ``heals``; then there is nothing to do.
    ``status``: what is refused is what the object says of itself, which is written last."""

    def __init__(self, body: Obj, outcome: Outcome, heals: float = float("inf"), *, status: bool = False) -> None:
        super().__init__()
        self._body, self._outcome, self._heals, self._status = body, outcome, heals, status
        self.passes: list[float] = []

    def plan(self, observed: Observed, now: datetime) -> Plan:
        self.passes.append((now - EPOCH).total_seconds())
        if self.passes[-1] - self.passes[0] >= self._heals:
            self.passes.clear()
            self._heals = float("inf")
            return Plan()
        write = (Patch(GVK("", "v1", "Namespace"), "", name_of(observed.namespace), self._body, "a try"),)
        return Plan(() if self._status else (write,), self._outcome, status=write if self._status else ())

    def waits(self, bench: Bench, seconds: float) -> list[float]:
        self.passes.clear()
        bench.relabel("a", f"at-{bench.clock.now():%H%M%S}")
        bench.driver.advance(seconds)
        return [round(b - a, 3) for a, b in itertools.pairwise(self.passes)]


CONFLICTING: Obj = {"metadata": {"resourceVersion": "1"}}
INVALID: Obj = {"metadata": {"labels": {"not a label": "x"}}}


def test_who_keeps_losing_conflicts_waits_longer_and_longer_up_to_the_bound() -> None:
    controller = Refused(CONFLICTING, Done())
    bench = Bench(controller)
    bench.namespace("a")
    bench.driver.settle()
    bench.loop.queue.forgive(Key(controller.name, ObjectRef("", "Namespace", "", "a")))
    waits = controller.waits(bench, 900)
    assert waits[:5] == [0.02, 0.04, 0.08, 0.16, 0.32]
    assert waits[-1] == 120 and len(waits) < 25


def test_a_success_lets_the_next_conflict_be_quick_again() -> None:
    controller = Refused(CONFLICTING, Done(), heals=1)
    bench = Bench(controller)
    bench.namespace("a")
    bench.driver.settle()
    bench.loop.queue.forgive(Key(controller.name, ObjectRef("", "Namespace", "", "a")))
    assert controller.waits(bench, 20) == []
    assert controller.waits(bench, 0.1)[:2] == [0.02, 0.04]


class Waking(Refused):
    """Does something outside the API in each pass, ``times`` at most, by which it is woken."""

    def __init__(self, body: Obj, times: int, heals: float = float("inf")) -> None:
        super().__init__(body, Done(), heals)
        self.left, self.wake = times, lambda: None

    def plan(self, observed: Observed, now: datetime) -> Plan:
        self.left -= 1
        if self.left >= 0:
            self.wake()
        return super().plan(observed, now)


def waking(body: Obj, times: int, heals: float = float("inf")) -> tuple[Waking, Bench]:
    controller = Waking(body, 0, heals)
    bench = Bench(controller)
    bench.namespace("a")
    bench.driver.settle()
    bench.loop.queue.forgive(Key(controller.name, ObjectRef("", "Namespace", "", "a")))
    controller.left = times
    controller.wake = lambda: bench.loop.wake(controller.name, ObjectRef("", "Namespace", "", "a"))
    return controller, bench


def test_what_a_pass_woke_itself_by_is_no_reason_to_lose_again_at_once() -> None:
    controller, bench = waking(CONFLICTING, 1000)
    assert controller.waits(bench, 1)[:5] == [0.02, 0.04, 0.08, 0.16, 0.32]
    controller.wake()
    assert bench.loop.queue.next_due() > bench.clock.now(), "nor is what happens outside before the next try"
    before = len(controller.passes)
    bench.relabel("a", "changed")
    bench.driver.settle()
    assert len(controller.passes) == before + 1, "what it lost against is"


def test_what_happens_outside_during_a_pass_is_looked_at_after_it() -> None:
    controller, bench = waking({}, 3)
    assert controller.waits(bench, 1) == [0, 0, 0]


OUTCOMES: dict[str, tuple[Outcome, list[float]]] = {
    "at once": (Requeue(0, "at once"), [0.2, 0.4, 0.8, 1.6, 3.2, 6.4]),
    "when something changes": (Done(), [0.2, 0.4, 0.8, 1.6, 3.2, 6.4]),
    "when it failed": (Retry("the moon is full"), [0.2, 0.4, 0.8, 1.6, 3.2, 6.4]),
    "when a person changes something": (Stalled("it is wrong", "mend it"), [0.2, 0.4, 0.8, 1.6, 3.2, 6.4]),
    "at a time of its own": (Requeue(5, "later"), [0.2, 0.4, 0.8, 1.6, 3.2, 5]),
    "much later": (Requeue(86_400, "tomorrow", background=True), [0.2, 0.4, 0.8, 1.6, 3.2, 6.4]),
}


@pytest.mark.parametrize("status", [False, True], ids=["a step", "the status"])
@pytest.mark.parametrize("when", OUTCOMES)
def test_a_refused_write_is_tried_again_later_and_later_whatever_the_outcome(when: str, status: bool) -> None:
    outcome, waits = OUTCOMES[when]
    controller = Refused(INVALID, outcome, status=status)
    bench = Bench(controller)
    bench.namespace("a")
    bench.driver.settle()
    bench.loop.queue.forgive(Key(controller.name, ObjectRef("", "Namespace", "", "a")))
    assert controller.waits(bench, 60)[:6] == waits
    assert controller.waits(bench, 900)[-1] == min(120, getattr(outcome, "after_s", 0) or 120), "and has a bound"


class Evicting(Keeper):
    """Evicts a pod that a budget keeps, and wants to ask again in five seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[float] = []

    def plan(self, observed: Observed, now: datetime) -> Plan:
        self.passes.append((now - EPOCH).total_seconds())
        return Plan(((Evict(name_of(observed.namespace), "kept", "a drain"),),), Requeue(5, "the budget may allow it"))


class Budgeted:
    """Refuses evictions as a budget does, or as a server that is broken."""

    def __init__(self, inner: Transport, error: ApiError) -> None:
        self._inner, self._error = inner, error

    def send(self, request: Request) -> Response:
        return Response.refused(self._error) if request.path.endswith("/eviction") else self._inner.send(request)


@pytest.mark.parametrize(
    ("error", "waits"), [(TooManyRequests("a budget"), [5, 5, 5]), (InternalError("broken"), [0.2, 0.4, 0.8])]
)
def test_a_budget_is_asked_again_when_the_plan_says_and_a_broken_server_by_the_back_off(
    error: ApiError, waits: list[float]
) -> None:
    controller = Evicting()
    bench = Bench(controller, wrap=lambda inner: Budgeted(inner, error))
    bench.namespace("a")
    bench.driver.advance(60)
    assert [round(b - a, 3) for a, b in itertools.pairwise(controller.passes)][:3] == waits


def test_a_change_ends_the_wait_of_one_that_failed() -> None:
    controller = Refused(INVALID, Done())
    bench = Bench(controller)
    bench.namespace("a")
    bench.driver.advance(300)
    before = len(controller.passes)
    bench.relabel("a", "no")
    bench.driver.settle()
    assert len(controller.passes) == before + 1


def test_an_equal_status_is_not_written() -> None:
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}}
    assert set_status(obj, {"phase": "Running"}, "nothing new") == ()
    (write,) = set_status(obj, {"phase": "Failed"}, "it broke")
    assert write.new == {"phase": "Failed"}


def test_saying_an_event_again_counts_it_up() -> None:
    bench = Bench(Keeper())
    bench.namespace("default", keep="no")  # Events about cluster-scoped objects go there
    bench.namespace("a")
    bench.driver.settle()
    for _ in range(2):
        bench.send("DELETE", "/api/v1/namespaces/a/configmaps/kept")
        bench.driver.settle()
    (event,) = bench.send("GET", "/api/v1/events")["items"]
    assert event["count"] == 3


class Counter:
    """Writes how many ConfigMaps a Namespace has into its status."""

    name = "counter"
    kind = NAMESPACES
    reads: tuple[GroupKind, ...] = ()

    predicate: Any = None

    def __init__(self, *, rests: bool, when: Any = None) -> None:
        self.watches = (Watch(CONFIG_MAPS, lambda obj, _: (ObjectRef("", "Namespace", "", namespace_of(obj)),), when),)
        self.passes: list[str] = []
        if rests:
            self.at_rest = lambda obj: True

    def observe(self, cache: Snapshot, ref: ObjectRef) -> tuple[Obj, int] | None:
        namespace = cache.get(ref)
        return None if namespace is None else (namespace, len(cache.objects(CONFIG_MAPS, ref.name)))

    def plan(self, observed: tuple[Obj, int], now: datetime) -> Plan:
        namespace, count = observed
        self.passes.append(name_of(namespace))
        said = {"type": "Counted", "status": "True", "message": str(count)}
        since = {"reason": "Counted", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = dict(namespace.get("status") or {}) | {"conditions": [said | since]}
        return Plan(status=set_status(namespace, status, "counted"), why="count")


def _config_map(bench: Bench, name: str, **data: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    bench.send("POST", "/api/v1/namespaces/a/configmaps", body)


def _counted(bench: Bench) -> str:
    return str(bench.send("GET", "/api/v1/namespaces/a")["status"]["conditions"][0]["message"])


@pytest.mark.parametrize("rests, passes", [(True, 1), (False, 2)])
def test_a_status_that_leaves_nothing_to_do_does_not_wake_its_own_writer(rests: bool, passes: int) -> None:
    counter = Counter(rests=rests)
    bench = Bench(counter)
    bench.namespace("a")
    bench.driver.settle()
    assert counter.passes == ["a"] * passes and _counted(bench) == "0"
    _config_map(bench, "one")
    bench.driver.settle()
    assert counter.passes == ["a"] * 2 * passes and _counted(bench) == "1"


def test_who_planned_before_the_cache_showed_its_own_write_plans_again_when_it_does() -> None:
    """The count goes to one and back while the cache shows the old status: nothing seems left to do, and no change of
    a label comes that would say otherwise."""
    counter = Counter(rests=False)
    counter.predicate = differ(labels_of)
    bench = Bench(counter)
    server = HeldBack(bench.transport, "/api/v1/namespaces")
    bench.restart(counter, lambda _: server)
    bench.namespace("a")
    bench.driver.settle()
    (watch,) = server.watches
    watch.held = True
    _config_map(bench, "one")
    bench.driver.advance(1)
    bench.send("DELETE", "/api/v1/namespaces/a/configmaps/one")
    bench.driver.advance(60)
    assert _counted(bench) == "1"
    watch.release()
    bench.driver.advance(1)
    assert _counted(bench) == "0"


def test_a_write_of_somebody_else_wakes_a_controller_at_rest() -> None:
    counter = Counter(rests=True)
    bench = Bench(counter)
    bench.namespace("a")
    bench.driver.settle()
    bench.relabel("a", "no")
    bench.driver.settle()
    assert counter.passes == ["a"] * 2


def test_changes_that_make_no_difference_do_not_wake() -> None:
    counter = Counter(rests=True, when=differ(lambda obj: obj.get("data")))
    bench = Bench(counter)
    bench.namespace("a")
    _config_map(bench, "one", key="x")
    bench.driver.settle()
    woken = len(counter.passes)
    path, merge = "/api/v1/namespaces/a/configmaps/one", "application/merge-patch+json"
    bench.send("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, merge)
    bench.driver.settle()
    assert len(counter.passes) == woken
    bench.send("PATCH", path, {"data": {"key": "y"}}, merge)
    bench.driver.settle()
    assert len(counter.passes) == woken + 1
    bench.send("DELETE", path)
    bench.driver.settle()
    assert len(counter.passes) == woken + 2 and _counted(bench) == "0"


def test_an_event_said_again_is_one_request_and_after_its_end_a_new_one() -> None:
    bench = Bench(Keeper())
    bench.namespace("a")
    bench.namespace("default")
    said, emit = Said(), Emit(bench.send("GET", "/api/v1/namespaces/a"), "Kept", "made a ConfigMap", "keeper")
    seen: list[str] = []

    class Noting:
        def send(self, request: Request) -> Response:
            seen.append(request.method)
            return bench.transport.send(request)

    def say(memory: Said | None) -> tuple[list[str], Any]:
        seen.clear()
        made = run_in_place(publish(emit, bench.clock.now(), memory), Noting())
        return list(seen), made and made["count"]

    assert say(said) == (["POST"], 1)
    assert say(said) == (["PATCH"], 2)
    assert say(None) == (["POST", "GET", "PATCH"], 3), "another process finds out by asking"
    name = bench.send("GET", "/api/v1/namespaces/default/events")["items"][-1]["metadata"]["name"]
    bench.send("DELETE", f"/api/v1/namespaces/default/events/{name}")
    assert say(said) == (["PATCH", "POST"], 1), "the Event expired meanwhile"


def test_of_many_limited_events_about_one_object_the_first_25_are_written_and_then_one_in_five_minutes() -> None:
    said, now = Said(), VirtualClock().now()

    def emit(number: int, name: str = "one", *, limited: bool = True) -> Emit:
        regarding = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}}
        return Emit(regarding, "Made", f"made {number}", "keeper", limited=limited)

    assert [said.admits(emit(one), now) for one in range(27)] == [True] * 25 + [False] * 2
    assert said.admits(emit(0, "two"), now) and said.admits(emit(0, limited=False), now)
    later = now + timedelta(seconds=299)
    assert not said.admits(emit(28), later)
    assert said.admits(emit(29), later + timedelta(seconds=2))
    assert not said.admits(emit(30), later + timedelta(seconds=2))
    assert list(publish_requests(said, emit(31), later + timedelta(seconds=2))) == [], "nothing is asked either"


def publish_requests(said: Said, emit: Emit, now: datetime) -> list[Request]:
    return list(publish(emit, now, said))
