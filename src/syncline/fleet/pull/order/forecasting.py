"""The order that a group would take from now on, by the controller's own plan; pure. :func:`forecast`.

The plan is made again and again at the moments at which it says that something changes, and at those at which a cluster
that got the release says something else of it: what it says, and when, is a function of the caller. By default each
cluster is Synced and Healthy at once, so that the times are the earliest possible ones. What only a person, a cluster
or another group can change (a cluster that is away, nodes that are updating, what an Application depends on) stays as
it is, and what waits for it does not begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from syncline.control.plan import SetStatus
from syncline.fleet.hub.budgets.model import Fleet
from syncline.fleet.pull.order.evidence import Facts
from syncline.fleet.pull.order.gates import Wait
from syncline.fleet.pull.order.model import GroupSeen, Target
from syncline.fleet.pull.order.plan import OrderPlan, decide_order
from syncline.fleet.pull.order.proven import Proven
from syncline.fleet.pull.order.standing import Standing
from syncline.fleet.pull.order.status import Judgement, status_of
from syncline.kube.objects import Obj, name_of

MAX_ROUNDS: Final = 400
"""Plans that are made; clusters that begin after that have no time."""
MAX_WAITS: Final = 6
"""Reasons that are kept of one cluster."""
Key = tuple[str, str]
"""Cluster and Application."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a cluster says of a release from a moment on. ``after``: the time since it got the release.

    ``facts``: without the release, its commit and that the work is applied, which are added. ``updating``: which pools
    are being updated; empty: none of them, None: as before, or there are no pools.
    """

    after: timedelta
    facts: Facts
    updating: str | None = None


GOOD: Final = Facts(sync="Synced", health="Healthy", phase="Succeeded")
Reactions = Callable[[Target, str, datetime], Sequence[Said]]
"""From a target, the release that it gets and the moment to what its cluster says, by time; empty: it says nothing."""


def at_once(_target: Target, _release: str, _moment: datetime) -> Sequence[Said]:
    """Return the best reaction: the release is synced and healthy when the cluster gets it."""
    return (Said(timedelta(), GOOD),)


@dataclass(frozen=True, slots=True)
class Ahead:
    """What becomes of one Application of the group. ``waits``: what it waits for, one after the other; ``begins`` and
    ``ends``: the earliest times, None: not known."""

    standing: Standing
    waits: tuple[Wait, ...] = ()
    begins: datetime | None = None
    ends: datetime | None = None

    @property
    def key(self) -> Key:
        return self.standing.target.key


@dataclass(frozen=True, slots=True)
class Forecast:
    """``now``: the plan of this moment; ``ahead``: by wave; ``ends``: when the last cluster may have proved the
    release, None: something waits for what has no known end."""

    now: OrderPlan
    ahead: tuple[Ahead, ...]
    ends: datetime | None
    complete: bool = True
    """False: more rounds were needed than are made."""


@dataclass
class _Run:
    react: Reactions
    waits: dict[Key, list[Wait]] = field(default_factory=dict)
    begins: dict[Key, datetime] = field(default_factory=dict)
    ends: dict[Key, datetime] = field(default_factory=dict)
    saying: dict[Key, list[tuple[datetime, Said]]] = field(default_factory=dict)
    """What is still to be said, by time."""

    def note(self, order: OrderPlan, moment: datetime) -> None:
        passing = any(one.newly for one in order.standings)  # what a cluster has proved is noted: a matter of a moment
        for key, wait in order.waits.items():
            known = self.waits.setdefault(key, [])
            if known and _about(known[-1]) == _about(wait):
                known[-1] = known[-1] if passing else wait
            elif len(known) < MAX_WAITS:
                known.append(wait)
        for one in order.standings:
            key = one.target.key
            if key in order.permits:
                self.begins.setdefault(key, moment)
                self._hear(one.target, order.permits[key], moment)
            elif one.counts and one.done:
                self.ends.setdefault(key, moment)
            elif one.begun and _can_prove(one) and key not in self.saying:
                self._hear(one.target, one.goal, moment)

    def _hear(self, target: Target, release: str, moment: datetime) -> None:
        said = self.react(target, release, moment)
        self.saying[target.key] = [(moment + one.after, one) for one in said]

    def said(self, key: Key, moment: datetime) -> Said | None:
        """Return the newest that a cluster has said by a moment, and forget what came before; None: nothing new."""
        found, queue = None, self.saying.get(key, [])
        while queue and queue[0][0] <= moment:
            found = queue.pop(0)[1]
        return found

    def moments(self) -> Iterator[datetime]:
        """Return when clusters say something."""
        return (queue[0][0] for queue in self.saying.values() if queue)


def forecast(seen: GroupSeen, now: datetime, react: Reactions = at_once, *, rounds: int = MAX_ROUNDS) -> Forecast:
    """Return the order from now on. The roll-out of ``seen`` must exist, if only as what would be created. ``rounds``:
    how many plans are made at most."""
    first = decide_order(seen, now)
    run, order, moment, complete = _Run(react), first, now, False
    for _ in range(rounds):
        run.note(order, moment)
        following = _following(order, moment, run)
        if following is None:
            complete = True
            break
        seen, moment = _after(seen, order, moment, following, run), following
        order = decide_order(seen, moment)
    ahead = tuple(_ahead(one, run, now) for one in first.standings)
    counted = [one for one in ahead if one.standing.counts]
    known = [one.ends for one in counted if one.ends is not None]
    whole = complete and len(known) == len(counted)
    return Forecast(first, ahead, max(known, default=now) if whole else None, complete)


def _ahead(one: Standing, run: _Run, now: datetime) -> Ahead:
    key = one.target.key
    ends = now if one.done else run.ends.get(key)
    return Ahead(one, tuple(run.waits.get(key, ())), run.begins.get(key), ends)


def _following(order: OrderPlan, moment: datetime, run: _Run) -> datetime | None:
    """Return the next moment at which something changes: this one again if something has begun; None: there is none."""
    if order.permits or any(one.newly for one in order.standings):
        return moment
    moments = [one.proves_at for one in order.standings if one.proves_at is not None]
    moments += [wait.until for wait in order.waits.values() if wait.until is not None]
    if order.recheck is not None:
        moments.append(moment + order.recheck)
    later = [one for one in moments if one > moment]
    return min([*later, *(max(one, moment) for one in run.moments())], default=None)


def _can_prove(one: Standing) -> bool:
    return not one.failed and one.target.cluster.available


def _after(seen: GroupSeen, order: OrderPlan, now: datetime, following: datetime, run: _Run) -> GroupSeen:
    """Return the group as it is at the ``following`` moment when this plan is carried out."""
    made = Judgement(order.release, order.revisions, order.standings, order.going_back, order.waits, order.permits)
    status = status_of(seen, made, now)
    rollout: Obj = {**(seen.rollout or {}), "status": status}
    targets = tuple(_target(one, order, following, run) for one in order.standings)
    return replace(seen, rollout=rollout, targets=targets, fleet=_fleet(seen.fleet, order.reservations))


def _about(wait: Wait) -> str:
    """Return what a wait is about, without times that come to be known."""
    return wait.why.partition(", until ")[0].partition(" (")[0]


def _target(one: Standing, order: OrderPlan, following: datetime, run: _Run) -> Target:
    target = one.target
    permitted = order.permits.get(target.key, "")
    if permitted:
        app = {key: value for key, value in target.app.items() if key != "operation"}
        target = replace(target, app=app, carried=permitted, facts=Facts())
    elif one.newly:
        number = max((each.number for each in target.proven), default=0) + 1
        before = tuple(each for each in target.proven if each.release != one.goal)
        group = order.release if one.back is None else one.back.group
        target = replace(target, proven=(Proven(one.goal, group, number, {}), *before))
    said = run.said(target.key, following)
    return target if said is None else _saying(target, said)


def _saying(target: Target, said: Said) -> Target:
    """Return a target whose cluster says this of what its work carries."""
    pins: Sequence[str] = target.pins.commits
    revision = pins[0] if len(pins) == 1 else ""
    facts = replace(said.facts, release=target.carried, revision=said.facts.revision or revision, applied=True)
    cluster = target.cluster
    if said.updating is not None:
        cluster = replace(cluster, updating=said.updating, machines=True)
    return replace(target, facts=facts, cluster=cluster)


def _fleet(fleet: Fleet, reservations: Sequence[Sequence[object]]) -> Fleet:
    written: Mapping[str, Obj] = {
        one.name: one.new for step in reservations for one in step if isinstance(one, SetStatus)
    }
    if not written:
        return fleet
    budgets = tuple(
        {**one, "status": written[name_of(one)]} if name_of(one) in written else one for one in fleet.budgets
    )
    return replace(fleet, budgets=budgets)
