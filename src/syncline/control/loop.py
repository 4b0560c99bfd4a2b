"""The one loop that runs controllers, :class:`ControlLoop`: without sockets, threads or sleeping.

Drivers (``manager.py`` live, ``virtual.py`` in virtual time) pass it changes and the time, take keys from its queue and
run the generators that it returns. So both make the same decisions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, assert_never, cast

from syncline.base.action import Action, Handler, Purpose, Work
from syncline.base.clock import Clock
from syncline.base.journal import Entry, Journal
from syncline.control.cache import Cache, same_parts
from syncline.control.controller import ANYTHING, EVERY, HOME, Controller, MapToKeys, Predicate
from syncline.control.executor import Execution, HandlersOf, Together, execute
from syncline.control.informer import CRDS, WHOLE, Change, Informer, Part, Scope
from syncline.control.ownwrites import OwnWrites
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
from syncline.kube.client import PatchType, Request
from syncline.kube.errors import AlreadyExists, Conflict, TooManyRequests
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ResourceInfo, ref_of, resource_version

T = TypeVar("T")

log = logging.getLogger("syncline.control")

STALE_RETRY_S = 0.02
"""A key whose cache does not show its own last write is checked again after this time."""

TWINS = frozenset({GroupKind("events.k8s.io", "Event")})
"""Kinds that serve the objects of another kind again: a controller of every kind has them already."""

MAX_ROUNDS = 1000
"""The most rounds of one reconcile: a sync needs a few; more means that a controller loops."""

Reconcile = Generator["Request | Work | Together", Any, None]
"""One reconcile of one key, a generator that a driver runs to its end."""


class Observer:
    """Receives the decisions and results of reconciles with their times (for metrics, traces, records). It changes
    nothing, never waits and never raises. Each method does nothing unless overridden."""

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        """Called when objects of a kind changed, before the changes wake their keys."""

    def planned(self, key: Key, plan: Plan, began: datetime, ended: datetime) -> None:
        """Called when a reconcile has a plan: its first, or a further one made from results."""

    def acted(self, key: Key, result: Result, began: datetime, ended: datetime) -> None:
        """Called when one action of the plan was carried out or refused."""

    def reconciled(self, key: Key, began: datetime, ended: datetime) -> None:
        """Called when a reconcile has ended, with or without an error."""


@dataclass(frozen=True, slots=True)
class _Route:
    """Which controller a change of a kind (None: every kind) wakes. ``keys`` None: the object itself is the key."""

    kind: GroupKind | None
    controller: str
    keys: MapToKeys | None
    when: Predicate | None
    cluster: str
    """The cluster whose changes count; EVERY: each cluster."""
    of: str
    """The cluster of the keys; EVERY: that of the change."""
    wanted: bool = True
    """Whether the kind is watched for it."""
    wait_s: float = 0.0
    """Seconds from the change to the reconcile."""
    reads: frozenset[str] = ANYTHING


@dataclass(frozen=True, slots=True)
class Spaces:
    """The only namespaces of a cluster that are watched; empty: all. ``wide``: objects of the cluster are watched,
    too. Definitions of kinds always are."""

    names: tuple[str, ...] = ()
    wide: bool = True

    def of(self, info: ResourceInfo, scope: Scope) -> tuple[Scope, ...]:
        """Return the parts of a scope."""
        if not self.names or not info.namespaced:
            return (scope,) if self.wide or info.group_kind == CRDS else ()
        return tuple(replace(scope, namespace=name, part=True) for name in self.names)

    def outside(self, ref: ObjectRef, mapper: Mapper) -> str:
        """Return why an object is not watched; empty if it is."""
        info = mapper.preferred(ref.group_kind)
        if info is None or not self.names:
            return ""
        if not info.namespaced:
            return "" if self.wide or ref.group_kind == CRDS else f"{ref.kind} of the cluster are not watched"
        known = not ref.namespace or ref.namespace in self.names
        return "" if known else f"namespace {ref.namespace} is not among those that are watched"


class Watched(Protocol):
    """A cluster that a driver watches: that of a :class:`ControlLoop`, or a :class:`Joined` one."""

    mapper: Mapper
    cache: Cache
    scopes: Mapping[GroupKind, Scope | None]
    """Kinds of which only a part is watched, or nothing (None)."""
    spaces: Spaces
    wanted_changed: Callable[[], None]
    """Set by the driver, called when :meth:`wanted_kinds` changed."""

    def wanted_kinds(self) -> set[GroupKind]: ...

    def needed_kinds(self) -> set[GroupKind]:
        """Return the kinds without which no controller can work."""
        ...

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None: ...

    def unread(self, kind: GroupKind, why: str, space: str = "") -> None: ...


def part_of(informer: Informer) -> Part:
    """Return what an informer watches."""
    return informer.info.group_kind, informer.space


def scopes_of(watched: Watched, info: ResourceInfo) -> tuple[Scope, ...]:
    """Return what of a kind is watched, each by an informer of its own; empty: nothing."""
    scope = watched.scopes.get(info.group_kind, WHOLE)
    return watched.spaces.of(info, scope) if scope is not None else ()


def informers_of(watched: Watched, info: ResourceInfo) -> tuple[Informer, ...]:
    """Return the informers of a kind: mostly one, none for what is not watched."""
    scopes = scopes_of(watched, info)
    watched.cache.reads.expect(info.group_kind, (one.namespace for one in scopes if one.part))
    return tuple(Informer(info, watched.cache, one) for one in scopes)


def awaits_kinds(watched: Watched) -> bool:
    """Return whether kinds are wanted that are not served, and no definition that is watched will announce them."""
    if watched.scopes.get(CRDS, WHOLE) is not None:
        return False
    wanted = (kind for kind in watched.wanted_kinds() if watched.scopes.get(kind, WHOLE) is not None)
    return any(watched.mapper.preferred(kind) is None for kind in wanted)


class Joined:
    """Another cluster of a loop, with its own cache; a driver watches it for the loop."""

    def __init__(
        self, loop: ControlLoop, name: str, leaves_out: Callable[[GroupKind], bool], spaces: Spaces = Spaces()
    ) -> None:
        self.spaces = spaces
        self.mapper = Mapper()
        self.cache = Cache(self.mapper)
        if spaces.names:
            self.cache.reads.outside = partial(spaces.outside, mapper=self.mapper)
        self.scopes: Mapping[GroupKind, Scope | None] = {}
        """Kinds of which only a part is watched, or nothing (None)."""
        self.wanted_changed: Callable[[], None] = lambda: None
        self._followed: frozenset[GroupKind] = frozenset()
        self._loop, self._name, self._leaves_out = loop, name, leaves_out

    def wanted_kinds(self) -> set[GroupKind]:
        return self._loop.kinds_of(self.mapper, self._name, self._leaves_out) | self._followed

    def follow(self, kinds: frozenset[GroupKind], keeps: Callable[[ObjectRef], bool]) -> None:
        """Watch the metadata of these kinds, too, instead of those of the last call. Of them only the objects that
        ``keeps`` accepts are cached; changes of all are routed."""
        own = self._loop.kinds_of(self.mapper, self._name, self._leaves_out)
        others = {kind: scope for kind, scope in self.scopes.items() if kind not in self._followed}
        self.scopes = {**dict.fromkeys(kinds - own, Scope(metadata=True)), **others}
        self.cache.keeps = dict.fromkeys(kinds - own, keeps)
        self._followed = kinds
        self.wanted_changed()

    def needed_kinds(self) -> set[GroupKind]:
        return set()

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        self._loop.changed(kind, changes, self._name)

    def unread(self, kind: GroupKind, why: str, space: str = "") -> None:
        self._loop.unread(kind, why, space, self._name)


class ControlLoop:
    """Controllers on one cluster and on joined ones, each with a cache; they share one queue."""

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
        scopes: Mapping[GroupKind, Scope | None] = MappingProxyType({}),
    ) -> None:
        """``strict`` raises a planner's exception (for tests); otherwise it is logged and the key backs off.
        ``elsewhere`` returns the handlers of other clusters (None: none). ``leaves_out`` excludes kinds from
        controllers of every kind. ``scopes``: kinds of which only a part is watched, or nothing (None)."""
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
        self.scopes = scopes
        self.spaces = Spaces()
        self.wanted_changed: Callable[[], None] = lambda: None
        self.joined: dict[str, Joined] = {}
        """The other clusters, by name."""
        self._own_writes = OwnWrites(self._cache_of)
        self._woken: set[Key] = set()
        """Keys that were woken during their reconcile."""
        self._lost: set[Key] = set()
        """Keys whose last reconcile lost a conflict; the queue holds their back-off."""
        self._at_rest: dict[Key, str] = {}
        """The resourceVersion of the status by which the last reconcile of a key ended with nothing left to do."""
        self._failed: dict[Key, tuple[object, datetime]] = {}
        """For keys that back off and controllers with a ``stimulus``: that of the failed reconcile, and until when a
        change with an equal stimulus does not trigger another one."""
        self._urgent: dict[GroupKind, list[tuple[str, Callable[[Obj], bool]]]] = {}
        """For each kind the controllers that prioritize some of its objects."""
        for name, controller in self.controllers.items():
            if controller.urgent is not None:
                self._urgent.setdefault(controller.kind, []).append((name, controller.urgent))
        self._routes = _routes(self.controllers.values())
        self._routes_by_kind: dict[tuple[GroupKind, str], list[_Route]] = {}

    def now(self) -> datetime:
        """Return the time by which the controllers plan."""
        return self._clock.now()

    # -- what to watch -----------------------------------------------------------------------------------------

    def wanted_kinds(self) -> set[GroupKind]:
        """Return every kind that needs an informer, as far as discovery knows it."""
        return self.kinds_of(self.mapper, HOME, self._leaves_out)

    def needed_kinds(self) -> set[GroupKind]:
        """Return the kinds without which no controller can work."""
        return {controller.kind for controller in self.controllers.values() if controller.cluster in (HOME, EVERY)}

    def kinds_of(self, mapper: Mapper, cluster: str, leaves_out: Callable[[GroupKind], bool]) -> set[GroupKind]:
        """Return :meth:`wanted_kinds` for any cluster."""
        routes = [route for route in self._routes if route.cluster in (cluster, EVERY) and route.wanted]
        if any(route.kind is None for route in routes):
            listed = {i.group_kind for i in mapper.all() if {"list", "watch"} <= set(i.verbs)}
            return {kind for kind in listed - TWINS if not leaves_out(kind)}
        wanted = {route.kind for route in routes if route.kind is not None}
        for controller in self.controllers.values():
            wanted |= set(controller.reads) if controller.cluster in (cluster, EVERY) else set()
        return wanted

    # -- other clusters ----------------------------------------------------------------------------------------

    def join(
        self, name: str, leaves_out: Callable[[GroupKind], bool] | None = None, spaces: Spaces = Spaces()
    ) -> Joined:
        """Add a cluster; a driver watches it."""
        joined = self.joined[name] = Joined(self, name, leaves_out or self._leaves_out, spaces)
        for controller in self.controllers.values():
            if EVERY in (controller.cluster, *(watch.cluster for watch in controller.watches)):
                for index, values in controller.indices.items():
                    joined.cache.add_index(index, values)
        return joined

    def leave(self, name: str) -> None:
        """Remove a cluster; its keys plan nothing more."""
        self.joined.pop(name, None)
        self._own_writes.forget(name)

    def reached(self, name: str) -> None:
        """Wake the keys that depend on a cluster that was fully listed for the first time, was lost, or is back."""
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
        """Queue the keys of changed objects. The old state counts too: an object that no longer matches needs a
        reconcile."""
        changes = list(changes)
        for observer in self.observers if cluster == HOME else ():
            observer.changed(kind, changes)
        now = self._clock.now()
        routes = self._routes_of(kind, cluster)
        urgent = self._urgent.get(kind, ())
        for change in changes:
            for name, is_urgent in urgent:
                self._put_first(name, is_urgent, change, cluster)
            for key, wait in self._keys(change.old, change.new, routes, cluster).items():
                self.queue.add(key, now + timedelta(seconds=wait) if wait else now)
        for key in self._own_writes.take_late():
            self.queue.add(key, now)

    def _put_first(self, controller: str, is_urgent: Callable[[Obj], bool], change: Change, cluster: str) -> None:
        known = change.new if change.new is not None else change.old
        assert known is not None, "a change has an old or a new state"
        if self.controllers[controller].cluster in (cluster, EVERY):
            self.queue.prioritize(
                Key(controller, ref_of(known), cluster), change.new is not None and is_urgent(change.new)
            )

    def _keys(self, old: Obj | None, new: Obj | None, routes: list[_Route], cluster: str) -> dict[Key, float]:
        """Return the keys of a change in the order of routes, with the seconds to wait; old and new state mostly give
        the same ones."""
        known = new if new is not None else old
        assert known is not None, "a change has an old or a new state"
        ref = ref_of(known)
        keys: dict[Key, float] = {}
        cache = self._cache_of(cluster) or self.cache
        same = same_parts(old, new)
        both = (known,) if old is None or new is None else (old, new)
        for route in routes:
            if route.when is not None and not route.when(old, new):
                continue
            place = cluster if route.of == EVERY else route.of
            if route.keys is None:
                key = Key(route.controller, ref, place)
                if self._at_rest and self._at_rest.pop(key, None) == resource_version(known):
                    continue
                keys[key] = route.wait_s
                continue
            for obj in both if not route.reads or not route.reads <= same else both[-1:]:
                for each in route.keys(obj, cache):
                    key = Key(route.controller, each, place)
                    keys[key] = min(route.wait_s, keys.get(key, route.wait_s))
        return keys

    def _routes_of(self, kind: GroupKind, cluster: str) -> list[_Route]:
        place = cluster if cluster == HOME or any(route.cluster == cluster for route in self._routes) else EVERY
        known = self._routes_by_kind.get((kind, place))
        if known is None:
            mine = [route for route in self._routes if route.cluster in (place, EVERY)]
            known = self._routes_by_kind[kind, place] = [route for route in mine if route.kind in (None, kind)]
        return known

    def wake(self, controller: str, ref: ObjectRef, cluster: str = HOME) -> None:
        """Queue a key because of something outside the API (a process that ended).

        A wake-up during a reconcile counts after it. A key that lost a conflict is not queued: it would lose again,
        until the cache shows the write that it conflicted with.
        """
        key = Key(controller, ref, cluster)
        if self.queue.is_busy(key):
            self._woken.add(key)
        elif key not in self._lost:
            self.queue.add(key, self._clock.now())

    def unread(self, kind: GroupKind, why: str, space: str = "", cluster: str = HOME) -> None:
        """Record that a kind cannot be read any more (in a namespace that is watched by itself), or (``why`` empty) can
        again. The keys that read it reconcile, so that they report it and conclude nothing from missing objects."""
        cache = self._cache_of(cluster)
        was = cache.unread(ObjectRef(*kind, space, "")) if cache is not None else why
        if cache is None or bool(why) == bool(was):
            return
        if why:
            cache.mark_unread(kind, why, space)
        readers = {name for name, controller in self.controllers.items() if kind in controller.reads}
        for name in readers | {route.controller for route in self._routes_of(kind, cluster)}:
            if self.controllers[name].cluster in (cluster, EVERY):
                for obj in cache.objects(self.controllers[name].kind):
                    self.wake(name, ref_of(obj), cluster)

    # -- what to do --------------------------------------------------------------------------------------------

    def begin(self, key: Key) -> Reconcile:
        """Return the reconcile of a key taken from the queue. Run it to its end; it marks the key as finished."""
        now = self._clock.now()
        if self._own_writes.must_wait(key, now):
            self.queue.finish(key)
            self.queue.add(key, now + timedelta(seconds=STALE_RETRY_S))
            return
        self._lost.discard(key)
        try:
            yield from self._reconcile(key, self.controllers[key.controller])
        except Exception as error:
            if self._strict:
                raise
            log.exception("%s: the reconcile failed; it is repeated after its back-off", key)
            self._note(key, "failed", f"{type(error).__name__}: {error}")
            self.queue.fail(key, self._clock.now())
        finally:
            for observer in self.observers:
                observer.reconciled(key, now, self._clock.now())
            self.queue.finish(key)
            if key in self._woken:
                self._woken.discard(key)
                self.wake(*key)

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
        """Remember the write that ends a reconcile with nothing left to do, for controllers with ``at_rest``."""
        if controller.at_rest is None or not results or not isinstance(plan.outcome, Done | Requeue):
            return
        if not all(_is_whole(action, key.ref) for step in plan.steps for action in step):
            return
        mine = SetStatus | Patch | Replace
        last = next((result for result in reversed(results) if isinstance(result.action, mine)), None)
        written = _written(last) if last is not None else None
        if written is not None and ref_of(written) == key.ref and controller.at_rest(written):
            self._at_rest[key] = resource_version(written)

    def _settle(
        self, key: Key, controller: Controller[Any], observed: Any, plan: Plan, results: tuple[Result, ...]
    ) -> Generator[Any, Any, tuple[Plan, tuple[Result, ...], tuple[Result, ...]]]:
        """Let the controller continue from results, round by round, until nothing is left to do. Return the last plan,
        all results, and those of the last round."""
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
        revisions: dict[tuple[str, GroupKind], int] = {}
        for result in results:
            verdict = "" if result.ok else f" refused: {result.error}"
            self._note(key, result.action.describe() + result.action.address + verdict, result.action.reason)
            written, cache = _written(result), self._cache_of(result.action.cluster)
            if written is not None and cache is not None and cache.has_synced(ref_of(written).group_kind):
                place = result.action.cluster, ref_of(written).group_kind
                revisions[place] = max(revisions.get(place, 0), int(resource_version(written)))
        if revisions:
            self._own_writes.record(key, revisions, self._clock.now())

    def _conclude(self, key: Key, plan: Plan, results: tuple[Result, ...], last: tuple[Result, ...]) -> float:
        """Queue the key according to the outcome, or earlier after a failed action. Return the back-off in seconds, 0
        without a failure."""
        now = self._clock.now()
        failed = [result for result in results if not result.ok]
        if isinstance(plan.outcome, Stalled):
            self._note(key, "stalled", f"{plan.outcome.reason}; {plan.outcome.fix}")
        if any(isinstance(result.error, Conflict | AlreadyExists) for result in failed):
            self._lost.add(key)
            self.queue.lose(key, now)  # a conflict is not a failure (style rule 13), but two may lose in turns forever
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
        own = _Route(each.kind, each.name, None, each.predicate, each.cluster, each.cluster, wait_s=each.debounce_s)
        routes.append(own)
        for one in each.watches:
            wait_s = max(one.gather_s, each.debounce_s)
            routes.append(
                _Route(
                    one.kind, each.name, one.keys, one.when, one.cluster, each.cluster, one.wanted, wait_s, one.reads
                )
            )
    return routes


def _is_whole(action: Action, own: ObjectRef) -> bool:
    """Return whether an action leaves an object as the plan wants it; of a Patch only its author knows: one in JSON of
    its own object."""
    if isinstance(action, Patch):
        return action.kind is PatchType.JSON and action.target == own
    return isinstance(action, Emit | SetStatus | Replace)


def _made(key: Key, controller: Controller[Any], observed: Any, make: Callable[[], T]) -> Generator[Any, Any, T]:
    """Return the result of ``make``, run in a thread of the driver if it takes long."""
    share = controller.beside(observed) if controller.beside is not None else None
    if share is None:
        return make()
    made: T = yield Work(f"plan {key}", make, Purpose.PLANNING, share)
    return made


def _at(plan: Plan, cluster: str) -> Plan:
    """Return the plan with ``cluster`` as the target of each action that names none."""

    def there(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return tuple(action if action.cluster else replace(action, cluster=cluster) for action in actions)

    return replace(plan, steps=tuple(map(there, plan.steps)), status=there(plan.status))


def _is_unanswered(result: Result) -> bool:
    """Return True for a failure for which the plan's own requeue time was not meant. A disruption budget that refuses
    an eviction is expected: the plan says when to try again."""
    return not result.ok and not (isinstance(result.action, Evict) and isinstance(result.error, TooManyRequests))


def _written(result: Result) -> Obj | None:
    """Return the object that an action wrote. The cache must show this version before the key is planned again."""
    if not result.ok or isinstance(result.action, Delete) or _is_dry_run(result.action):
        return None
    value = result.value if isinstance(result.value, dict) else getattr(result.value, "obj", None)
    if not isinstance(value, dict) or "kind" not in value or not resource_version(value).isdigit():
        return None
    return cast(Obj, value)


def _is_dry_run(action: Action) -> bool:
    return isinstance(action, Create | Replace | Patch | Apply) and action.dry_run
