"""Apply priority and fairness to one API server: follow FlowSchemas and PriorityLevelConfigurations and seat requests.

``serve`` calls :meth:`Fairness.enter` for each authenticated request, and ``leave`` when its response is sent; a ticket
wakes a waiting request. One thread only; it never blocks. Long-running requests other than watches take no seat, as in
Kubernetes (``WithPriorityAndFairness``); a watch takes one while it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from syncline.base.remember import MAX_REMEMBERED_CHARS
from syncline.cluster.access.users import UserInfo
from syncline.cluster.fairness.dropped import DroppedRequests
from syncline.cluster.fairness.limits import BORROWING_PERIOD_S, Bounds, Seats, borrowed, bounds_of, smoothed
from syncline.cluster.fairness.measures import Family, Measures
from syncline.cluster.fairness.queues import Level, Response, State, Ticket
from syncline.cluster.fairness.schemas import Asked, Schema, schema_of
from syncline.cluster.resources.routes import Route
from syncline.cluster.storage.store import Event, Store
from syncline.kube.objects import Obj, dig, uid_of

SCHEMAS = "flowcontrol.apiserver.k8s.io/flowschemas"
LEVELS = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"

CACHE_LIMIT_MATCHES = 20_000
"""Cached (user, request) → schema matches; a full cache is cleared."""

BYTES_PER_SEAT = 100_000
BYTES_AT_ONCE = 1_000_000
"""Estimated memory of a list from the cache, at most (``cacheWithStreamingMaxMemoryUsage``)."""

LONG_RUNNING_SUBRESOURCES = frozenset({"attach", "exec", "proxy", "log", "portforward"})
LONG_RUNNING_VERBS = frozenset({"watch", "proxy"})

MANDATORY_LEVELS: dict[str, Obj] = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 5,
            "lendablePercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    },
}
_EVERYTHING = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}


def _group(*names: str) -> list[Obj]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


MANDATORY_SCHEMAS = (
    Schema("exempt", "", "exempt", 1, "", ({"subjects": _group("system:masters"), **_EVERYTHING},)),
    Schema(
        "catch-all",
        "",
        "catch-all",
        10_000,
        "ByUser",
        ({"subjects": _group("system:unauthenticated", "system:authenticated"), **_EVERYTHING},),
    ),
)
"""Defaults for missing objects (``apiserver/pkg/apis/flowcontrol/bootstrap``)."""


@dataclass(frozen=True, slots=True)
class _Match:
    """The schema and level of a user's requests of one kind. ``headers`` name these objects to the caller."""

    schema: Schema
    level: Level
    hash_value: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request's seat and its response headers."""

    ticket: Ticket
    headers: Mapping[str, str]

    @property
    def refused(self) -> bool:
        return self.ticket.state is State.REFUSED

    @property
    def waiting(self) -> bool:
        return self.ticket.state is State.WAITING


def is_long_running(route: Route, verb: str) -> bool:
    """Return whether the caller decides how long a request lasts (API server ``BasicLongRunningRequestCheck``)."""
    return verb in LONG_RUNNING_VERBS or route.subresource in LONG_RUNNING_SUBRESOURCES


class Fairness:
    """``server_seats`` is the sum of ``--max-requests-inflight`` and ``--max-mutating-requests-inflight``."""

    def __init__(self, store: Store, server_seats: int) -> None:
        self._store = store
        self._server_seats = server_seats
        self._levels: dict[str, Level] = {}
        self._schemas: list[Schema] = []
        self._matches: dict[tuple[object, ...], _Match] = {}
        self._dropped = DroppedRequests()
        self._measures = Measures()
        self._stale = True
        self._adjusted = 0.0
        store.subscribe(self._on_event)

    def enter(self, user: UserInfo, verb: str, route: Route, query: Mapping[str, str], now: float) -> Admitted:
        """Return the request seated, waiting (then wait for the ticket's ``wake``) or refused. ``now``: seconds."""
        if self._stale:
            self._digest(now)
        match = self._match(user, verb, route)
        level = match.level
        listing = not route.name and verb in ("list", "watch")
        seats = self._list_seats(route, verb, query, level) if listing and level.response is not Response.EXEMPT else 1
        ticket = level.enter(match.schema.name, match.hash_value, seats, now)
        match ticket.state:
            case State.SEATED:
                self._measures.seated(level.name, match.schema.name)
            case State.REFUSED:
                why = "queue-full" if level.response is Response.QUEUE else "concurrency-limit"
                self._refused(ticket, why, now)
            case State.WAITING:
                self._measures.queued(level.name, match.schema.name)
        return Admitted(ticket, match.headers)

    def began(self, ticket: Ticket, now: float) -> None:
        """Record that a waiting request got its seat."""
        self._measures.seated(ticket.level.name, ticket.flow, now - ticket.arrived)

    def give_up(self, ticket: Ticket, why: str, now: float) -> None:
        """Record that a request stopped waiting: ``time-out``, or ``cancelled`` by its caller."""
        ticket.level.leave(ticket, now)
        ticket.state = State.REFUSED
        self._refused(ticket, why, now)

    def leave(self, ticket: Ticket, now: float) -> None:
        """Release the request's seat; idempotent."""
        if ticket.state is State.SEATED:
            self._measures.ended(ticket.level.name, ticket.flow, now - ticket.seated)
        ticket.level.leave(ticket, now)

    def retry_after_s(self, ticket: Ticket) -> int:
        return self._dropped.retry_after_s(ticket.level.name)

    def tick(self, now: float) -> None:
        """Adjust borrowing when its period is over; call it about once a second."""
        if self._stale:
            self._digest(now)
        if now - self._adjusted >= BORROWING_PERIOD_S:
            self._adjust(now)

    def families(self) -> Iterator[Family]:
        """Yield metrics under Kubernetes' names."""
        yield from self._measures.families(list(self._levels.values()))

    def _refused(self, ticket: Ticket, why: str, now: float) -> None:
        self._measures.refused(ticket.level.name, ticket.flow, why)
        self._dropped.note(ticket.level.name, int(now))

    # -- classification -------------------------------------------------------------------------------------------

    def _match(self, user: UserInfo, verb: str, route: Route) -> _Match:
        where = (route.group, route.resource, route.subresource, route.namespace) if route.resource else (route.path,)
        key = (user.name, user.groups, verb, *where)
        found = self._matches.get(key)
        if found is None:
            found = self._judge(Asked(user, verb, route))
            if len(route.path) > MAX_REMEMBERED_CHARS or len(verb) > MAX_REMEMBERED_CHARS:
                return found
            if len(self._matches) >= CACHE_LIMIT_MATCHES:
                self._matches.clear()
            self._matches[key] = found
        return found

    def _judge(self, asked: Asked) -> _Match:
        catch_all = next(each for each in self._schemas if each.name == "catch-all")
        schema = next((each for each in self._schemas if each.matches(asked)), catch_all)
        level = self._levels[schema.level]
        hash_value = schema.hash_of(schema.distinguisher(asked)) if level.queue_count > 1 else 0
        headers = {
            "X-Kubernetes-Pf-Flowschema-Uid": schema.uid,
            "X-Kubernetes-Pf-Prioritylevel-Uid": level.uid,
        }
        return _Match(schema, level, hash_value, headers)

    def _list_seats(self, route: Route, verb: str, query: Mapping[str, str], level: Level) -> int:
        """Estimate a list's seats from the bytes of its response (``listWorkEstimator.seatsBasedOnObjectSize``)."""
        since = query.get("resourceVersion", "")
        if verb == "watch" and since not in ("", "0") and query.get("sendInitialEvents") != "true":
            return 1
        resource = f"{route.group}/{route.resource}"
        count = self._store.count(resource, route.namespace)
        limit = query.get("limit", "")
        if limit.isascii() and limit.isdigit() and 0 < int(limit[:9]) < count:
            count = int(limit[:9])
        if not count:
            return 1
        size = len(self._store.list_page(resource, route.namespace, limit=1)[0].raw)
        seats = -(-min(count * size, BYTES_AT_ONCE) // BYTES_PER_SEAT)
        return max(1, min(seats, level.most_seats))

    # -- configuration --------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if event.stored.key.resource in (SCHEMAS, LEVELS):
            self._stale = True

    def _digest(self, now: float) -> None:
        """Read the changed objects. A deleted level gets no new requests; those that wait there stay queued."""
        self._stale = False
        self._matches.clear()
        objects = {each.key.name: each.obj for each in self._store.list(LEVELS)}
        specs: dict[str, Obj] = {name: obj.get("spec") or {} for name, obj in objects.items()}
        for name, spec in MANDATORY_LEVELS.items():
            specs.setdefault(name, spec)
        bounds = bounds_of(specs, self._server_seats)
        known = self._levels
        self._levels = {name: known.get(name) or Level(name, now) for name in sorted(specs)}
        for name, level in self._levels.items():
            fresh = name not in known
            obj = objects.get(name)
            _configure(level, uid_of(obj) if obj else "", specs[name], bounds[name])
            if fresh:
                level.limit(bounds[name].first, now)
        self._schemas = self._order(objects)
        self._adjust(now)

    def _order(self, levels: Mapping[str, Obj]) -> list[Schema]:
        """Return schemas by precedence, then name; dangling ones, without an existing level, are ignored."""
        stored = [schema_of(each.obj) for each in self._store.list(SCHEMAS)]
        usable = [each for each in stored if each.level in levels or each.level in MANDATORY_LEVELS]
        names = {each.name for each in usable}
        usable += [each for each in MANDATORY_SCHEMAS if each.name not in names]
        return sorted(usable, key=lambda each: (each.precedence, each.name))

    def _adjust(self, now: float) -> None:
        self._adjusted = now
        seen = {}
        for name, level in self._levels.items():
            demand = level.observe(now)
            level.smooth = smoothed(level.smooth, demand)
            seen[name] = Seats(level.bounds, demand, level.smooth)
        for name, seats in borrowed(seen).items():
            self._levels[name].limit(seats, now)


def _configure(level: Level, uid: str, spec: Obj, bounds: Bounds) -> None:
    if spec.get("type") == "Exempt":
        level.configure(uid, Response.EXEMPT, bounds)
        return
    response = dig(spec, "limited", "limitResponse", default={})
    if response.get("type") != "Queue":
        level.configure(uid, Response.REJECT, bounds)
        return
    queuing = response.get("queuing") or {}
    level.configure(
        uid,
        Response.QUEUE,
        bounds,
        queues=int(queuing.get("queues") or 0),
        hand=int(queuing.get("handSize") or 0),
        length=int(queuing.get("queueLengthLimit") or 0),
    )
