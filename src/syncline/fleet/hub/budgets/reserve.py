"""Reserves places in budgets for one roll-out: :class:`Reserving`; pure but for what it gathers.

Every roll-out uses it in its plan::

    reserving = Reserving(fleet, Holder.of(obj), now, done=those whose work is seen to have succeeded)
    for cluster in those it has begun that have not succeeded: reserving.keep(cluster, reason)
    if reserving.refused(those that are next): decide again with passed_over=reserving.shut(all that are selected)
    for cluster in those that would begin: if reserving.take(cluster, reason): write to it
    reserving.steps()                        # come before the step that writes to the clusters
    reserving.waits()                        # what did not begin, and why

The write of a budget's status has its resourceVersion as a precondition: of two roll-outs that see the same last place
one loses the conflict, and a step that failed stops those after it, so nothing is written to a cluster without its
place. Budgets are written one after the other by name, so that no two roll-outs wait for each other in a circle.

A place that is neither kept nor taken is given back: at once if its work is done, else when it is a minute old. Until
then a cache may not show what was begun with it, by a replica that died for example. After a crash before the work was
written the place is still held by the roll-out, whose next plan uses it, or gives it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import format_time
from syncline.control.plan import SetStatus
from syncline.fleet.hub.budgets.model import Budget, Fleet, Holder, Member, Place
from syncline.kube.kinds.syncline import BUDGET, MAX_PLACES
from syncline.kube.objects import Obj, name_of, resource_version, uid_of

SHOWN: Final = 5
"""Clusters that one sentence names."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Clusters that do not begin now. ``budget``: the one whose place they wait for, empty if it is something else."""

    clusters: tuple[str, ...]
    budget: str
    why: str

    def sentence(self) -> str:
        return f"{some(self.clusters)}: {self.why}"


@dataclass(slots=True)
class Ledger:
    """The places of one budget while a plan is made. ``counted``: clusters that count as unavailable."""

    budget: Budget
    selected: int
    counted: set[str]
    others: list[Place]
    before: dict[str, Place]
    """The holder's own places as observed."""
    unavailable: dict[str, Member]
    own: dict[str, Place] = field(default_factory=dict)
    confirm: bool = False
    """A cluster begins with a place that was reserved before: that it is still there must be confirmed."""

    @classmethod
    def of(cls, obj: Obj, clusters: Iterable[Member], holder: Holder | None = None) -> Ledger:
        """Open the ledger of a budget for a holder; None: only to read it."""
        budget = Budget.of(obj)
        members = budget.counted(clusters)
        unavailable = {one.name: one for one in members if not one.available}
        places = budget.places
        others = [one for one in places if holder is None or one.holder.uid != holder.uid]
        before = {one.cluster: one for one in places if holder is not None and one.holder.uid == holder.uid}
        return cls(budget, len(members), {*unavailable, *(one.cluster for one in others)}, others, before, unavailable)

    @property
    def permitted(self) -> int:
        return self.budget.permitted(self.selected)

    def retain(self, now: datetime, done: Set[str]) -> None:
        """Keep the own places that are too young to be given back, but for those of ``done``."""
        for cluster, place in self.before.items():
            if cluster not in done and now < (place.settled_at or now):
                self.own[cluster] = place
                self.counted.add(cluster)

    def has_room(self, cluster: str) -> bool:
        full = len(self.others) + len(self.own) >= MAX_PLACES and cluster not in self.own
        return not full and len(self.counted) + (cluster not in self.counted) <= self.permitted

    def add(self, place: Place) -> None:
        known = self.before.get(place.cluster)
        self.own.setdefault(place.cluster, known or place)
        self.counted.add(place.cluster)

    def why_full(self) -> str:
        """Return a sentence on why no further cluster may begin."""
        head = f"FleetDisruptionBudget {self.budget.name} permits {self.budget.bound(self.selected)} unavailable"
        if self.budget.problem:
            return f"{head}: {self.budget.problem}"
        if not self.permitted:
            return f"{head}, so no cluster that it selects may begin"
        held = sorted({*self.others, *self.own.values()}, key=lambda one: (one.cluster, one.holder.uid))
        named = {one.cluster for one in held}
        parts = [one.sentence() for one in held]
        parts += [_unavailable(one) for name, one in sorted(self.unavailable.items()) if name not in named]
        more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
        return f"{head}, and {'; '.join(parts[:SHOWN])}{more}"

    def write(self) -> tuple[SetStatus, ...]:
        """Return the conditional write of the places; nothing if they are as observed and need no confirmation."""
        status: Obj = self.budget.obj.get("status") or {}
        if self.own == self.before:
            return (_conditional(self.budget.obj, status, "confirm its places"),) if self.confirm else ()
        places = sorted((*self.others, *self.own.values()), key=lambda one: (one.cluster, one.holder.uid))
        new = {**status, "places": [one.written() for one in places]}
        return (_conditional(self.budget.obj, new, _changes(self.before, self.own)),)


def _conditional(budget: Obj, status: Obj, why: str) -> SetStatus:
    """Return a status write that is refused if the budget has changed; also where it changes nothing."""
    return SetStatus(
        BUDGET, "", name_of(budget), budget.get("status") or {}, status, why, resource_version(budget), uid_of(budget)
    )


def _unavailable(cluster: Member) -> str:
    return f"{cluster.name} is not available" + (f" since {cluster.since}" if cluster.since else "")


def _changes(before: dict[str, Place], after: dict[str, Place]) -> str:
    taken, left = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    parts = [f"{what} {some(names)}" for what, names in (("reserve", taken), ("give back", left)) if names]
    return "; ".join(parts)


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many there are more."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


class Reserving:
    """The places that one roll-out keeps and takes in one plan. ``done``: clusters whose work is seen to have
    succeeded."""

    def __init__(self, fleet: Fleet, holder: Holder, now: datetime, done: Set[str] = frozenset()) -> None:
        self._fleet, self._holder, self._now = fleet, holder, now
        known = () if fleet.unknown else fleet.budgets
        members = tuple(fleet.clusters.values())
        self._ledgers = sorted((Ledger.of(one, members, holder) for one in known), key=lambda one: one.budget.name)
        for ledger in self._ledgers:
            ledger.retain(now, done)
        self._used: set[str] = set()
        self._refused: dict[str, Ledger | str] = {}

    def keep(self, cluster: str, reason: str) -> None:
        """Note a cluster that the roll-out has begun and that has not succeeded: it has a place whether there is room
        or not (the budget may be younger, or the cluster selected since), and nothing further begins without room."""
        self._used.add(cluster)
        for ledger in self._of(cluster):
            if len(ledger.others) + len(ledger.own) < MAX_PLACES:
                ledger.add(self._place(cluster, reason))

    def shut(self, clusters: Iterable[str]) -> frozenset[str]:
        """Return those of ``clusters`` that cannot begin now, whatever the order."""
        return frozenset(cluster for cluster in clusters if self._refusal(cluster))

    def refused(self, clusters: Iterable[str]) -> bool:
        """Note those of ``clusters``, which are the next to begin, that cannot; return whether there are any."""
        found = {cluster: why for cluster in clusters if (why := self._refusal(cluster))}
        self._refused |= found
        return bool(found)

    def take(self, cluster: str, reason: str) -> bool:
        """Reserve a place for a cluster in all budgets that select it, or in none; return whether it may begin."""
        refusal = self._refusal(cluster)
        if refusal:
            self._refused.setdefault(cluster, refusal)
            return False
        for ledger in self._of(cluster):
            ledger.confirm |= cluster in ledger.before and cluster not in self._used
            ledger.add(self._place(cluster, reason))
        self._used.add(cluster)
        return True

    def steps(self) -> tuple[tuple[SetStatus, ...], ...]:
        """Return one conditional status write for each budget whose places change, each a step."""
        return tuple(step for ledger in self._ledgers if (step := ledger.write()))

    def given_back(self) -> frozenset[str]:
        """Return the clusters that lose a place."""
        return frozenset(cluster for one in self._ledgers for cluster in one.before.keys() - one.own.keys())

    def recheck(self) -> timedelta | None:
        """Return after which time a place that is not used is old enough to be given back."""
        left = [
            place.settled_at - self._now
            for ledger in self._ledgers
            for cluster, place in ledger.own.items()
            if cluster not in self._used and place.settled_at is not None
        ]
        return min(left, default=None)

    def _place(self, cluster: str, reason: str) -> Place:
        return Place(cluster, self._holder, format_time(self._now), reason)

    def waits(self) -> tuple[Wait, ...]:
        """Return what waits, by what it waits for."""
        found: dict[int | str, tuple[Ledger | str, list[str]]] = {}
        for cluster, why in self._refused.items():
            found.setdefault(why if isinstance(why, str) else id(why), (why, []))[1].append(cluster)
        return tuple(
            Wait(tuple(sorted(names)), "", why)
            if isinstance(why, str)
            else Wait(tuple(sorted(names)), why.budget.name, why.why_full())
            for why, names in found.values()
        )

    def _refusal(self, cluster: str) -> Ledger | str | None:
        """Return the budget without room for a cluster, or a sentence; None: it may begin."""
        if self._fleet.unknown:
            return self._fleet.unknown
        if not self._ledgers:
            return None
        member = self._fleet.clusters.get(cluster)
        if member is None:
            return "the hub has no ManagedCluster of that name yet, so the budgets that select it are not known"
        for ledger in self._of(cluster):
            if not member.accepted:
                return f"FleetDisruptionBudget {ledger.budget.name} selects it, and the hub does not accept it"
            if not ledger.has_room(cluster):
                return ledger
        return None

    def _of(self, cluster: str) -> list[Ledger]:
        member = self._fleet.clusters.get(cluster)
        return [] if member is None else [one for one in self._ledgers if one.budget.selects(member)]
