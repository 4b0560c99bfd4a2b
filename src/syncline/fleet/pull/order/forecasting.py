"""The order that a group would take from now on, by the controller's own plan; pure. :func:`forecast`.

The plan is made again and again at the moments at which it says that something changes, as if each cluster that gets
the release were Synced and Healthy at once. So its times are the earliest possible ones. What only a person, a cluster
or another group can change (a cluster that is away, nodes that are updating, what an Application depends on) stays as
it is, and what waits for it does not begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
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
    waits: dict[Key, list[Wait]] = field(default_factory=dict)
    begins: dict[Key, datetime] = field(default_factory=dict)
    ends: dict[Key, datetime] = field(default_factory=dict)

    def note(self, order: OrderPlan, moment: datetime) -> None:
        passing = any(one.newly for one in order.standings)  # what a cluster has proved is noted: a matter of a moment
        for key, wait in order.waits.items():
            known = self.waits.setdefault(key, [])
            if known and _about(known[-1]) == _about(wait):
                known[-1] = known[-1] if passing else wait
            elif len(known) < MAX_WAITS:
                known.append(wait)
        for key in order.permits:
            self.begins.setdefault(key, moment)
        for one in order.standings:
            if one.counts and one.done:
                self.ends.setdefault(one.target.key, moment)


def forecast(seen: GroupSeen, now: datetime) -> Forecast:
    """Return the order from now on. The roll-out of ``seen`` must exist, if only as what would be created."""
    first = decide_order(seen, now)
    run, order, moment, complete = _Run(), first, now, False
    for _ in range(MAX_ROUNDS):
        run.note(order, moment)
        following = _following(order, moment)
        if following is None:
            complete = True
            break
        seen, moment = _after(seen, order, moment), following
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


def _following(order: OrderPlan, moment: datetime) -> datetime | None:
    """Return the next moment that the plan waits for: this one again if something has begun; None: there is none."""
    going = [one for one in order.standings if one.begun and _can_prove(one) and one.proves_at is None]
    if order.permits or going or any(one.newly for one in order.standings):
        return moment
    moments = [one.proves_at for one in order.standings if one.proves_at is not None]
    moments += [wait.until for wait in order.waits.values() if wait.until is not None]
    if order.recheck is not None:
        moments.append(moment + order.recheck)
    later = [one for one in moments if one > moment]
    return min(later, default=None)


def _can_prove(one: Standing) -> bool:
    return not one.failed and one.target.cluster.available


def _after(seen: GroupSeen, order: OrderPlan, now: datetime) -> GroupSeen:
    """Return the group as it is when this plan is carried out and each cluster that has the release is well."""
    made = Judgement(order.release, order.revisions, order.standings, order.going_back, order.waits, order.permits)
    status = status_of(seen, made, now)
    rollout: Obj = {**(seen.rollout or {}), "status": status}
    targets = tuple(_target(one, order.permits.get(one.target.key, ""), order.release) for one in order.standings)
    return replace(seen, rollout=rollout, targets=targets, fleet=_fleet(seen.fleet, order.reservations))


def _about(wait: Wait) -> str:
    """Return what a wait is about, without times that come to be known."""
    return wait.why.partition(", until ")[0].partition(" (")[0]


def _target(one: Standing, permitted: str, release: str) -> Target:
    target = one.target
    if permitted:
        app = {key: value for key, value in target.app.items() if key != "operation"}
        made = replace(target, app=app, carried=permitted)
        return replace(made, facts=_well(made))
    if one.newly:
        number = max((each.number for each in target.proven), default=0) + 1
        before = tuple(each for each in target.proven if each.release != one.goal)
        group = release if one.back is None else one.back.group
        return replace(target, proven=(Proven(one.goal, group, number, {}), *before))
    return replace(target, facts=_well(target)) if one.begun and _can_prove(one) else target


def _well(target: Target) -> Facts:
    """Return what a cluster reports that has synced what its work carries."""
    pins: Sequence[str] = target.pins.commits
    revision = pins[0] if len(pins) == 1 else ""
    return Facts(target.carried, sync="Synced", revision=revision, health="Healthy", phase="Succeeded", applied=True)


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
