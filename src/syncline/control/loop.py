"""The one logical loop that runs controllers, without sockets, threads or sleeping.

Drivers (``manager.py`` live, ``virtual.py`` in virtual time) feed it changes and the time, take keys out of it and
drive the generators it hands out. Everything it decides is therefore the same in both worlds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar, assert_never, cast

from syncline.base.action import Action, Handler, Purpose, Work
from syncline.base.clock import Clock
from syncline.base.journal import Entry, Journal
from syncline.control.cache import Cache
from syncline.control.controller import EVERY, HOME, Controller, MapToKeys, Predicate
from syncline.control.executor import Execution, HandlersOf, Together, execute
from syncline.control.informer import Change
from syncline.control.plan import (
    Apply,
    Create,
    Delete,
    Done,
    Emit,
    Evict,
    Patch,
    Plan,
    Replace,
    Requeue,
    Result,
    Retry,
    SetStatus,
    Stalled,
)
from syncline.control.workqueue import BACKOFF_BASE_S, Key, WorkQueue
from syncline.kube.client import Request
from syncline.kube.errors import AlreadyExists, Conflict, TooManyRequests
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ref_of, resource_version

__all__ = ["OWN_WRITE_PATIENCE_S", "ControlLoop", "Joined", "Observer", "Reconcile", "Watched"]

T = TypeVar("T")

log = logging.getLogger("syncline.control")

OWN_WRITE_PATIENCE_S = 5.0
"""How long a key waits for the cache to show its own last write; then it plans on what there is."""
STALE_RETRY_S = 0.02
"""A key whose cache is stale is checked again this soon, for as long as :data:`OWN_WRITE_PATIENCE_S`."""

TWINS = frozenset({GroupKind("events.k8s.io", "Event")})
"""Kinds that show the objects of another one: who reads every kind has seen them already."""

MAX_ROUNDS = 1000
"""Rounds of one reconcile: a sync pass has a few; beyond this a controller talks to itself."""

Reconcile = Generator["Request | Work | Together", Any, None]
"""One reconcile of one key, to be driven to its end."""


class Observer:
    """Sees what reconciles decide and do, and when (metrics, traces, records); it changes nothing, waits for nothing
    and does not raise. Each method does nothing unless it is overridden."""

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        """Objects of a kind have changed; called before the changes wake their keys."""

    def planned(self, key: Key, plan: Plan, began: datetime, ended: datetime) -> None:
        """A reconcile has a plan: its first, or a further one made from answers."""

    def acted(self, key: Key, result: Result, began: datetime, ended: datetime) -> None:
        """One action of the plan was carried out or refused."""

    def reconciled(self, key: Key, began: datetime, ended: datetime) -> None:
        """A reconcile has ended, whatever came of it."""


@dataclass(frozen=True, slots=True)
class _Route:
    """The controllers that changes of a kind (None: of every kind) wake. ``keys`` is None where the object itself is
    the key."""

    kind: GroupKind | None
    controller: str
    keys: MapToKeys | None
    when: Predicate | None
    cluster: str
    """Where changes count; EVERY: on each cluster."""
    of: str
    """Whose keys; EVERY: of the cluster of the change."""


@dataclass(slots=True)
class _OwnWrite:
    """The write that the cache must show before the key is planned again."""

    revisions: dict[GroupKind, int]
    deadline: datetime


class Watched(Protocol):
    """What is to be known of a cluster: a :class:`ControlLoop` of its own, or a ``Joined`` one of a loop."""

    mapper: Mapper
    cache: Cache

    def wanted_kinds(self) -> set[GroupKind]: ...

    def needed_kinds(self) -> set[GroupKind]:
        """Without which there is no work."""
        ...

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None: ...

    def unread(self, kind: GroupKind, why: str) -> None: ...


class Joined:
    """Another cluster of a loop, as those see it who watch it for the loop: it has its own cache."""

    def __init__(self, loop: ControlLoop, name: str, leaves_out: Callable[[GroupKind], bool]) -> None:
        self.mapper = Mapper()
        self.cache = Cache(self.mapper)
        self._loop, self._name, self._leaves_out = loop, name, leaves_out

    def wanted_kinds(self) -> set[GroupKind]:
        return self._loop.kinds_of(self.mapper, self._name, self._leaves_out)

    def needed_kinds(self) -> set[GroupKind]:
        return set()

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        self._loop.changed(kind, changes, self._name)

    def unread(self, kind: GroupKind, why: str) -> None:
        self._loop.unread(kind, why, self._name)


class ControlLoop:
    """Controllers over one cluster and those that were joined, each with a cache, and one queue."""

    def __init__(
        self,
        controllers: Iterable[Controller[Any]],
        *,
        mapper: Mapper,
        handlers: Mapping[type, Handler],
        elsewhere: HandlersOf | None = None,
        clock: Clock,
        journal: Journal,
        cache: Cache | None = None,
        strict: bool = False,
        leaves_out: Callable[[GroupKind], bool] = lambda _kind: False,
    ) -> None:
        """``strict`` lets a planner's exception through (tests); otherwise it is logged and the key backs off.
        ``elsewhere``: handlers of other clusters (None: there are none). ``leaves_out``: kinds that are not watched by
        controllers that watch every kind."""
        self.controllers = {controller.name: controller for controller in controllers}
        self.mapper = mapper
        self.cache = cache or Cache(mapper)
        for controller in self.controllers.values():
            for name, values in controller.indices.items():
                self.cache.add_index(name, values)
        self.queue = WorkQueue()
        self.journal = journal
        self.observers: list[Observer] = []
        self._handlers = handlers
        self._elsewhere = elsewhere
        self._clock = clock
        self._strict = strict
        self._leaves_out = leaves_out
        self.joined: dict[str, Joined] = {}
        """Other clusters, by name."""
        self._own_writes: dict[Key, _OwnWrite] = {}
        self._woken: set[Key] = set()
        """Keys that were woken while they were worked on."""
        self._lost: set[Key] = set()
        """Keys whose last reconcile lost a conflict; their back-off is in the queue."""
        self._at_rest: dict[Key, str] = {}
        """Keys whose last reconcile wrote a status and left nothing to do, with the resourceVersion that it wrote."""
        self._failed: dict[Key, tuple[object, datetime]] = {}
        """Keys that wait after a failure, for controllers that can tell one reason to look from another: what the
        failed pass started from, and until when an equal start is not worth another pass."""
        self._urgent: dict[GroupKind, list[tuple[str, Callable[[Obj], bool]]]] = {}
        """Of each kind those controllers that put some of its objects before others."""
        for name, controller in self.controllers.items():
            if controller.urgent is not None:
                self._urgent.setdefault(controller.kind, []).append((name, controller.urgent))
        self._routes = _routes(self.controllers.values())
        self._routes_by_kind: dict[tuple[GroupKind, str], list[_Route]] = {}

    def now(self) -> datetime:
        """The time by which its controllers plan."""
        return self._clock.now()

    # -- what to watch -----------------------------------------------------------------------------------------

    def wanted_kinds(self) -> set[GroupKind]:
        """Every kind an informer is needed for, as far as discovery knows it."""
        return self.kinds_of(self.mapper, HOME, self._leaves_out)

    def needed_kinds(self) -> set[GroupKind]:
        """Kinds without which there is no work."""
        return {controller.kind for controller in self.controllers.values() if controller.cluster in (HOME, EVERY)}

    def kinds_of(self, mapper: Mapper, cluster: str, leaves_out: Callable[[GroupKind], bool]) -> set[GroupKind]:
        """As :meth:`wanted_kinds`, of any cluster."""
        routes = [route for route in self._routes if route.cluster in (cluster, EVERY)]
        if any(route.kind is None for route in routes):
            listed = {i.group_kind for i in mapper.all() if {"list", "watch"} <= set(i.verbs)}
            return {kind for kind in listed - TWINS if not leaves_out(kind)}
        wanted = {route.kind for route in routes if route.kind is not None}
        for controller in self.controllers.values():
            wanted |= set(controller.reads) if controller.cluster in (cluster, EVERY) else set()
        return wanted

    # -- other clusters ----------------------------------------------------------------------------------------

    def join(self, name: str, leaves_out: Callable[[GroupKind], bool] | None = None) -> Joined:
        """Begin to know a cluster; a driver watches it."""
        joined = self.joined[name] = Joined(self, name, leaves_out or self._leaves_out)
        for controller in self.controllers.values():
            if EVERY in (controller.cluster, *(watch.cluster for watch in controller.watches)):
                for index, values in controller.indices.items():
                    joined.cache.add_index(index, values)
        return joined

    def leave(self, name: str) -> None:
        """Forget a cluster; keys of it plan nothing more."""
        self.joined.pop(name, None)

    def reached(self, name: str) -> None:
        """A cluster was seen whole for the first time, was lost, or is back."""
        for controller in self.controllers.values():
            for ref in controller.reaches(name, self.cache) if controller.reaches is not None else ():
                self.wake(controller.name, ref)

    def _cache_of(self, cluster: str) -> Cache | None:
        if not cluster:
            return self.cache
        joined = self.joined.get(cluster)
        return joined.cache if joined is not None else None

    # -- what happened -----------------------------------------------------------------------------------------

    def changed(self, kind: GroupKind, changes: Iterable[Change], cluster: str = HOME) -> None:
        """Route changes to the keys that care. The old state counts too: who stopped matching must look again."""
        changes = list(changes)
        for observer in self.observers if cluster == HOME else ():
            observer.changed(kind, changes)
        now = self._clock.now()
        routes = self._routes_of(kind, cluster)
        urgent = self._urgent.get(kind, ())
        for change in changes:
            for name, is_urgent in urgent:
                self._put_first(name, is_urgent, change, cluster)
            for key in self._keys(change.old, change.new, routes, cluster):
                wait = self.controllers[key.controller].debounce_s
                self.queue.add(key, now + timedelta(seconds=wait) if wait else now)

    def _put_first(self, controller: str, is_urgent: Callable[[Obj], bool], change: Change, cluster: str) -> None:
        known = change.new if change.new is not None else change.old
        assert known is not None, "a change has an old or a new state"
        if self.controllers[controller].cluster in (cluster, EVERY):
            self.queue.prioritize(
                Key(controller, ref_of(known), cluster), change.new is not None and is_urgent(change.new)
            )

    def _keys(self, old: Obj | None, new: Obj | None, routes: list[_Route], cluster: str) -> dict[Key, None]:
        """In the order of routes; the old and the new state mostly name the same."""
        known = new if new is not None else old
        assert known is not None, "a change has an old or a new state"
        ref = ref_of(known)
        keys: dict[Key, None] = {}
        cache = self._cache_of(cluster) or self.cache
        for route in routes:
            if route.when is not None and not route.when(old, new):
                continue
            place = cluster if route.of == EVERY else route.of
            if route.keys is None:
                key = Key(route.controller, ref, place)
                if self._at_rest and self._at_rest.pop(key, None) == resource_version(known):
                    continue
                keys[key] = None
                continue
            for obj in (old, new):
                if obj is not None:
                    for each in route.keys(obj, cache):
                        keys[Key(route.controller, each, place)] = None
        return keys

    def _routes_of(self, kind: GroupKind, cluster: str) -> list[_Route]:
        place = cluster if cluster == HOME or any(route.cluster == cluster for route in self._routes) else EVERY
        known = self._routes_by_kind.get((kind, place))
        if known is None:
            mine = [route for route in self._routes if route.cluster in (place, EVERY)]
            known = self._routes_by_kind[kind, place] = [route for route in mine if route.kind in (None, kind)]
        return known

    def wake(self, controller: str, ref: ObjectRef, cluster: str = HOME) -> None:
        """Something outside the API (a process that ended) concerns this key.

        A pass often does itself what it is woken for. One that lost a conflict is not made again for that: it would
        lose again, at once and for ever, until the cache shows what it lost against.
        """
        key = Key(controller, ref, cluster)
        if self.queue.is_busy(key):
            self._woken.add(key)
        elif key not in self._lost:
            self.queue.add(key, self._clock.now())

    def unread(self, kind: GroupKind, why: str, cluster: str = HOME) -> None:
        """A kind may not be read from now on, or (``why`` empty) may again: the keys of that cluster that look at it
        look once more, so that they say so and conclude nothing from what is not in the cache."""
        cache = self._cache_of(cluster)
        was = cache.unread(ObjectRef(*kind, "", "")) if cache is not None else why
        if cache is None or bool(why) == bool(was):
            return
        if why:
            cache.mark_unread(kind, why)
        readers = {name for name, controller in self.controllers.items() if kind in controller.reads}
        for name in readers | {route.controller for route in self._routes_of(kind, cluster)}:
            if self.controllers[name].cluster in (cluster, EVERY):
                for obj in cache.objects(self.controllers[name].kind):
                    self.wake(name, ref_of(obj), cluster)

    # -- what to do --------------------------------------------------------------------------------------------

    def begin(self, key: Key) -> Reconcile:
        """The pass for a key taken from the queue. Drive it to its end; it finishes the key by itself."""
        now = self._clock.now()
        if self._must_wait_for_cache(key, now):
            self.queue.finish(key)
            self.queue.add(key, now + timedelta(seconds=STALE_RETRY_S))
            return
        self._lost.discard(key)
        try:
            yield from self._reconcile(key, self.controllers[key.controller])
        except Exception as error:
            if self._strict:
                raise
            log.exception("%s: the pass failed", key)
            self._note(key, "failed", f"{type(error).__name__}: {error}")
            self.queue.fail(key, self._clock.now())
        finally:
            for observer in self.observers:
                observer.reconciled(key, now, self._clock.now())
            self.queue.finish(key)
            if key in self._woken:
                self._woken.discard(key)
                self.wake(*key)

    def _must_wait_for_cache(self, key: Key, now: datetime) -> bool:
        own = self._own_writes.get(key)
        if own is None:
            return False
        cache = self._cache_of(key.cluster)
        behind = cache is not None and any(
            cache.observed_revision(kind) < revision for kind, revision in own.revisions.items()
        )
        if behind and now < own.deadline:
            return True
        del self._own_writes[key]
        return False

    def _reconcile(self, key: Key, controller: Controller[Any]) -> Reconcile:
        cache = self._cache_of(key.cluster)
        observed = controller.observe(cache, key.ref) if cache is not None else None
        if observed is None:
            self.queue.forgive(key)
            self._failed.pop(key, None)
            return
        now = self._clock.now()
        start = controller.stimulus(observed) if controller.stimulus is not None else None
        if (failed := self._failed.get(key)) is not None and failed[0] == start and now < failed[1]:
            self.queue.add(key, failed[1])
            return
        plan = yield from _made(key, controller, observed, partial(controller.plan, observed, now))
        results = last = yield from self._execute(key, plan, now)
        self._record(key, results)
        if controller.settle is not None:
            plan, results, last = yield from self._settle(key, controller, observed, plan, results)
        self._failed.pop(key, None)
        wait = self._conclude(key, plan, results, last)
        if wait and controller.stimulus is not None:
            self._failed[key] = (start, self._clock.now() + timedelta(seconds=wait))
        self._note_rest(key, controller, plan, results)

    def _note_rest(self, key: Key, controller: Controller[Any], plan: Plan, results: tuple[Result, ...]) -> None:
        """Remember a status of its own as the last word of a reconcile, for controllers that say so."""
        if controller.at_rest is None or not results or not isinstance(plan.outcome, Done | Requeue):
            return
        if not all(isinstance(action, Emit | SetStatus) for step in plan.steps for action in step):
            return
        last = next((result for result in reversed(results) if isinstance(result.action, SetStatus | Patch)), None)
        written = _written(last) if last is not None else None
        if written is not None and ref_of(written) == key.ref and controller.at_rest(written):
            self._at_rest[key] = resource_version(written)

    def _settle(
        self, key: Key, controller: Controller[Any], observed: Any, plan: Plan, results: tuple[Result, ...]
    ) -> Generator[Any, Any, tuple[Plan, tuple[Result, ...], tuple[Result, ...]]]:
        """Let the controller continue from the answers, round by round, until it has nothing to add. The last plan, all
        results, and those of the last round."""
        everything, settle = results, controller.settle
        assert settle is not None, "only controllers that settle get here"
        for _ in range(MAX_ROUNDS):
            now = self._clock.now()
            more = yield from _made(key, controller, observed, partial(settle, observed, plan, results, now))
            if more is None:
                return plan, everything, results
            observed, plan = more
            results = yield from self._execute(key, plan, now)
            self._record(key, results)
            everything += results
        raise AssertionError(f"{key}: not settled after {MAX_ROUNDS} rounds of its own answers")

    def _execute(self, key: Key, plan: Plan, began: datetime) -> Execution:
        observers, clock = self.observers, self._clock
        if key.cluster:
            plan = _at(plan, key.cluster)
        if not observers:
            return execute(plan, self._handlers_of)
        for observer in observers:
            observer.planned(key, plan, began, clock.now())

        def tell(action: Action) -> Callable[[Result], None]:
            begun = clock.now()

            def acted(result: Result) -> None:
                for observer in observers:
                    observer.acted(key, result, begun, clock.now())

            return acted

        return execute(plan, self._handlers_of, tell)

    def _handlers_of(self, cluster: str) -> Mapping[type, Handler]:
        if not cluster:
            return self._handlers
        if self._elsewhere is None:
            raise ConnectionError(f"cluster {cluster} is not connected")
        return self._elsewhere(cluster)

    def _record(self, key: Key, results: tuple[Result, ...]) -> None:
        now = self._clock.now()
        own, cache = self._own_writes.get(key), self._cache_of(key.cluster)
        revisions: dict[GroupKind, int] = dict(own.revisions) if own is not None else {}
        for result in results:
            verdict = "" if result.ok else f" refused: {result.error}"
            self._note(key, result.action.describe() + result.action.address + verdict, result.action.reason)
            written = _written(result) if result.action.cluster == key.cluster else None
            if written is not None and cache is not None and cache.has_synced(ref_of(written).group_kind):
                kind = ref_of(written).group_kind
                revisions[kind] = max(revisions.get(kind, 0), int(resource_version(written)))
        if revisions:
            self._own_writes[key] = _OwnWrite(revisions, now + timedelta(seconds=OWN_WRITE_PATIENCE_S))

    def _conclude(self, key: Key, plan: Plan, results: tuple[Result, ...], last: tuple[Result, ...]) -> float:
        """Ask for the key again as the outcome says, or sooner after a failure without a plan; how long it
        waits after a failure in seconds, 0 without one."""
        now = self._clock.now()
        failed = [result for result in results if not result.ok]
        if isinstance(plan.outcome, Stalled):
            self._note(key, "stalled", f"{plan.outcome.reason}; {plan.outcome.fix}")
        if any(isinstance(result.error, Conflict | AlreadyExists) for result in failed):
            self._lost.add(key)
            self.queue.lose(key, now)  # a conflict is not a failure (style rule 13), but two may lose in turns for ever
            return 0.0
        match plan.outcome:
            case Requeue(after_s=after_s, background=background):
                if not (failed and after_s < BACKOFF_BASE_S) and not any(map(_is_unanswered, last)):
                    self.queue.forgive(key)
                    self.queue.add(key, now + timedelta(seconds=after_s), background=background)
                    return 0.0
                wait = self.queue.fail(key, now)
                if after_s >= BACKOFF_BASE_S:
                    self.queue.add(key, now + timedelta(seconds=after_s), background=background)  # the earlier one wins
                    wait = min(wait, after_s)
                return wait
            case Retry(error=error):
                if not failed:
                    self._note(key, "retry", error)
                return self.queue.fail(key, now)
            case Done() | Stalled():
                if failed:
                    return self.queue.fail(key, now)
                self.queue.forgive(key)
            case _ as never:
                assert_never(never)
        return 0.0

    def _note(self, key: Key, what: str, why: str) -> None:
        self.journal.write(
            Entry(
                self._clock.now(),
                key.controller,
                str(key.ref) + (f" on {key.cluster}" if key.cluster else ""),
                what,
                why,
            )
        )


def _routes(controllers: Iterable[Controller[Any]]) -> list[_Route]:
    routes: list[_Route] = []
    for each in controllers:
        routes.append(_Route(each.kind, each.name, None, each.predicate, each.cluster, each.cluster))
        routes += [_Route(w.kind, each.name, w.keys, w.when, w.cluster, each.cluster) for w in each.watches]
    return routes


def _made(key: Key, controller: Controller[Any], observed: Any, make: Callable[[], T]) -> Generator[Any, Any, T]:
    """A plan, made in a thread of the driver where it is made of much."""
    share = controller.beside(observed) if controller.beside is not None else None
    if share is None:
        return make()
    made: T = yield Work(f"plan {key}", make, Purpose.PLANNING, share)
    return made


def _at(plan: Plan, cluster: str) -> Plan:
    """What says nothing else is done where the key is."""

    def there(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return tuple(action if action.cluster else replace(action, cluster=cluster) for action in actions)

    return replace(plan, steps=tuple(map(there, plan.steps)), status=there(plan.status))


def _is_unanswered(result: Result) -> bool:
    """Whether it failed in a way that the time its plan gives was not made for. That a budget does not let a pod go is
    an answer: who evicts says when to ask again."""
    return not result.ok and not (isinstance(result.action, Evict) and isinstance(result.error, TooManyRequests))


def _written(result: Result) -> Obj | None:
    """The object as an action left it: the evidence that the cache must show before the key is planned again."""
    if not result.ok or isinstance(result.action, Delete) or _is_dry_run(result.action):
        return None
    value = result.value if isinstance(result.value, dict) else getattr(result.value, "obj", None)
    if not isinstance(value, dict) or "kind" not in value or not resource_version(value).isdigit():
        return None
    return cast(Obj, value)


def _is_dry_run(action: Action) -> bool:
    return isinstance(action, Create | Replace | Patch | Apply) and action.dry_run
