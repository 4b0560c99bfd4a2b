"""The decision who may get a release, in drawn worlds: clusters that report, fail, leave and return, windows, budgets,
people who stop, skip and roll back. Laws of each decision, and its cost as a count of calls."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.control.plan import SetStatus
from syncline.fleet.hub.budgets.model import Budget, Fleet, Member
from syncline.fleet.pull.order.annotations import Asked
from syncline.fleet.pull.order.evidence import Facts
from syncline.fleet.pull.order.forecasting import forecast
from syncline.fleet.pull.order.groups import ROLLOUTS
from syncline.fleet.pull.order.model import ClusterSeen, GroupSeen, Target
from syncline.fleet.pull.order.plan import OrderPlan, decide_order, plan_group
from syncline.fleet.pull.order.proven import Proven
from syncline.fleet.pull.order.status import Judgement, status_of
from syncline.kube.objects import Obj, ObjectRef

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
REF = ObjectRef(*ROLLOUTS, "argocd", "set")
Key = tuple[str, str]
GOOD = {"sync": "Synced", "health": "Healthy", "phase": "Succeeded", "applied": True}
NIGHT = json.dumps([{"kind": "allow", "schedule": "0 2 * * *", "duration": "4h", "timeZone": "UTC"}])
EVENTS = (
    r"^the roll-out is stopped",  # syncline rollout resume
    r"is not available since .*; it gets the release when it returns|is not available since",
    r"^stopped by a failure: cluster ",
    r"^wave -?\d+ comes first: ",
    r"^waiting for ",
    r"^nodes of cluster \S+: ",
    r"^FleetDisruptionBudget \S+ permits",
    r"allowed is an integer",
    r"^its agent (reports|has not)",
    r"^its health is Progressing",
    r"^sync is OutOfSync",
    r"^an operation runs",
    r"^release \w+ is rolled back, and it has proved none before",
)
"""What a wait without an end may name: each is something that a person, a cluster or another one of the group does."""


@dataclass
class World:
    """Targets as they are, the status of the roll-out, and what the test knows beside the code under test."""

    draws: random.Random
    targets: dict[Key, Target] = field(default_factory=dict)
    spec: Obj = field(default_factory=dict)
    status: Obj = field(default_factory=dict)
    budgets: tuple[Obj, ...] = ()
    now: datetime = START
    version: int = 2
    healthy: dict[Key, datetime] = field(default_factory=dict)
    """Since which pass a target has been as wanted without a lapse."""

    @property
    def seen(self) -> GroupSeen:
        found = {one.cluster.name: one.cluster for one in self.targets.values()}
        members = {
            name: Member(name, {}, one.accepted, one.leaving, one.available, one.since) for name, one in found.items()
        }
        rollout = {"metadata": {"namespace": "argocd", "name": "set", "uid": "u", "generation": 1}, "spec": self.spec}
        fleet = Fleet(self.budgets, members) if self.budgets else Fleet()
        targets = tuple(self.targets.values())
        return GroupSeen(REF, {}, {**rollout, "status": self.status}, "x", targets, {"v": self.version}, fleet)

    def decide(self) -> OrderPlan:
        """Make one pass, and write what it says."""
        for key, one in self.targets.items():
            if one.carried == one.wanted and is_good(one) and one.cluster.available:
                self.healthy.setdefault(key, self.now)
            else:
                self.healthy.pop(key, None)
        order = decide_order(self.seen, self.now)
        parts = order.release, order.revisions, order.standings, order.going_back, order.waits, order.permits
        self.status = status_of(self.seen, Judgement(*parts), self.now)
        written = {one.name: one.new for step in order.reservations for one in step if isinstance(one, SetStatus)}
        self.budgets = tuple({**one, "status": written.get("b", one.get("status") or {})} for one in self.budgets)
        return order

    def go_on(self, order: OrderPlan) -> None:
        """Let the controller of works write, clusters report, people steer, and time pass."""
        for one in order.standings:
            key, target = one.target.key, self.targets[one.target.key]
            if one.newly:
                if not order.going_back:
                    assert self.now - self.healthy[key] >= target.asked.healthy_for, "not without evidence for so long"
                before = tuple(each for each in target.proven if each.release != one.goal)
                group = order.release if one.back is None else one.back.group
                made = Proven(one.goal, group, max((each.number for each in before), default=0) + 1, {})
                self.targets[key] = replace(target, proven=(made, *before))
            elif key in order.permits and self.draws.random() < 0.8:
                self.targets[key] = replace(target, carried=order.permits[key], facts=Facts(release="before"))
            else:
                self._report(key, target)
        self._people(order)
        self.now += timedelta(seconds=self.draws.choice((1, 5, 20, 60, 3600)))

    def _report(self, key: Key, target: Target) -> None:
        drawn = self.draws.random()
        if drawn < 0.5:
            self.targets[key] = replace(target, facts=Facts(release=target.carried, **GOOD))
        elif drawn < 0.6:
            lapse = self.draws.choice(({"health": "Progressing"}, {"phase": "Running"}, {"sync": "OutOfSync"}))
            self.targets[key] = replace(target, facts=Facts(release=target.carried, **{**GOOD, **lapse}))
        elif drawn < 0.63:
            self.targets[key] = replace(target, facts=Facts(release=target.carried, **{**GOOD, "health": "Degraded"}))
        elif drawn < 0.7:
            available = not target.cluster.available
            self.targets[key] = replace(target, cluster=replace(target.cluster, available=available, since="T"))
        elif drawn < 0.75:
            updating = "" if target.cluster.updating else "pool worker is updating"
            self.targets[key] = replace(target, cluster=replace(target.cluster, updating=updating))

    def _people(self, order: OrderPlan) -> None:
        drawn = self.draws.random()
        if drawn < 0.05:
            self.spec = {} if self.spec.get("stopped") else {**self.spec, "stopped": {"reason": "r"}}
        elif drawn < 0.1:
            cluster = self.draws.choice(sorted(self.targets))[0]
            self.spec = {**self.spec, "skip": [{"cluster": cluster, "release": order.release}]}
        elif drawn < 0.13:
            self.spec = {**self.spec, "rollBack": {"from": order.release}}
        elif drawn < 0.18:
            self.version += 1
            for key, one in self.targets.items():
                self.targets[key] = replace(one, wanted=f"{key[1]}-{self.version}")


def is_good(one: Target) -> bool:
    facts = one.facts
    return (facts.release, facts.sync, facts.health, facts.phase) == (one.carried, "Synced", "Healthy", "Succeeded")


def drawn(draws: random.Random, count: int) -> World:
    world = World(draws)
    for number in range(count):
        name, app = f"c{number}", f"a{number}"
        cluster = ClusterSeen(
            name,
            accepted=draws.random() > 0.05,
            available=draws.random() > 0.1,
            since="T",
            windows=(("ManagedCluster", NIGHT),) if draws.random() < 0.15 else (),
            updating="pool worker is updating" if draws.random() < 0.05 else "",
        )
        asked = Asked(healthy_for=timedelta(seconds=draws.choice((0, 30, 600))))
        if draws.random() < 0.03:
            asked = replace(asked, problem="annotation x is 'y'; allowed is an integer")
        needs = "waiting for Application db, which does not exist" if draws.random() < 0.05 else ""
        old = f"{app}-1"
        target = Target(
            {"metadata": {"name": app, "namespace": "argocd"}},
            cluster,
            draws.randrange(4),
            asked,
            wanted=f"{app}-2",
            carried=draws.choice(("", old, old)),
            aside="" if cluster.accepted else "the hub does not accept it",
            needs=needs,
            depends=bool(needs),
            ordered=True,
        )
        made = Proven(old, "first", 1, {})
        facts = Facts(release=target.carried, **GOOD)
        world.targets[target.key] = replace(target, proven=(made,) if target.carried else (), facts=facts)
    if draws.random() < 0.6:
        spec = {"clusterSelector": {}, "maxUnavailable": draws.choice((1, 2, "30%"))}
        world.budgets = ({"metadata": {"name": "b", "uid": "b", "resourceVersion": "1"}, "spec": spec},)
    return world


# -- laws --------------------------------------------------------------------------------------------------------------


def check_waves(world: World, order: OrderPlan) -> None:
    """No cluster gets a release before all of the waves before it have proved it, or are skipped."""
    skipped = {one["cluster"] for one in world.spec.get("skip") or () if one["release"] == order.release}
    counted = [one for one in world.targets.values() if not one.aside and one.cluster.name not in skipped]
    for key in () if order.going_back else order.permits:
        for one in counted:
            if one.wave >= world.targets[key].wave:
                continue
            proved = bool(one.proven) and one.proven[0].release == one.wanted
            assert one.carried == one.wanted and proved, f"{key} before {one.key}"


def check_gates(world: World, order: OrderPlan) -> None:
    """What is permitted is the release that its cluster is to have, and nothing speaks against it."""
    for key, release in order.permits.items():
        one = world.targets[key]
        assert not world.spec.get("stopped") and not one.aside
        assert not one.cluster.updating and not (one.cluster.windows and not 2 <= world.now.hour < 6)
        if order.going_back:
            assert release in {each.release for each in one.proven if each.group != order.release}
        else:
            assert release == one.wanted and one.cluster.available and not one.asked.problem and not one.needs


def held(world: World) -> set[str]:
    """Return the clusters that count in the budget: those with a place, and those that are not available."""
    places = {one.cluster for budget in world.budgets for one in Budget.of(budget).places}
    accepted = [one.cluster for one in world.targets.values() if one.cluster.accepted]
    return places | {one.name for one in accepted if not one.available}


def check_budget(world: World, order: OrderPlan, before: set[str]) -> None:
    """What begins has a place, and never more places are taken than there are."""
    for one in world.budgets:
        members = [each.cluster for each in world.targets.values() if each.cluster.accepted]
        begun = {name for name, _ in order.permits}
        assert begun <= held(world)
        if begun - before:
            assert len(held(world)) <= Budget.of(one).permitted(len(members))


def check_words(world: World, order: OrderPlan) -> None:
    """Each cluster that is not done says why, and until when or for which event it waits."""
    listed = {(one["cluster"], one["application"]): one for one in world.status["clusters"]}
    for key, one in world.targets.items():
        done = bool(one.proven) and one.proven[0].release == one.wanted == one.carried
        entry = listed.get(key)
        if entry is None:
            assert done or order.going_back, key
            continue
        assert entry["since"]
        if entry["state"] in ("Waiting", "Progressing"):
            text = entry["why"]
            assert entry.get("until") or any(re.search(event, text) for event in EVENTS), entry
        elif entry["state"] != "Permitted":
            assert entry["why"], entry


@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_whatever_happens_the_laws_of_the_order_hold(draws: random.Random, count: int) -> None:
    world = drawn(draws, count)
    for _ in range(8):
        before = held(world)
        order = world.decide()
        check_waves(world, order)
        check_gates(world, order)
        check_budget(world, order, before)
        check_words(world, order)
        again = world.decide()
        assert again.permits == order.permits, "what was permitted stays so while nothing changes"
        world.go_on(order)


@given(st.randoms(use_true_random=False), st.integers(2, 9))
def test_a_release_is_never_taken_from_a_cluster_that_has_it_but_by_people(draws: random.Random, count: int) -> None:
    world = drawn(draws, count)
    had = dict[Key, str]()
    for _ in range(8):
        order = world.decide()
        if not order.going_back:
            for one in order.standings:
                if had.get(one.target.key) == one.target.wanted:
                    assert one.target.carried == one.target.wanted and not (
                        one.pending and one.goal != one.target.wanted
                    )
        world.go_on(order)
        had = {key: one.carried for key, one in world.targets.items()}


# -- cost --------------------------------------------------------------------------------------------------------------


def even(count: int, wave: Callable[[int], int], **parts: Any) -> World:
    """Return a group of equal targets, all of which have something to do."""
    world = World(random.Random(1))
    for number in range(count):
        name, app = f"c{number:05}", f"a{number:05}"
        target = Target({"metadata": {"name": app, "namespace": "argocd"}}, ClusterSeen(name), wave(number), **parts)
        world.targets[name, app] = replace(target, wanted=f"{app}-2", carried=f"{app}-1", ordered=True)
    return world


def budgeted(world: World) -> World:
    spec = {"clusterSelector": {}, "maxUnavailable": "50%"}
    world.budgets = tuple(
        {"metadata": {"name": f"b{number}", "uid": f"{number}", "resourceVersion": "1"}, "spec": spec}
        for number in (1, 2)
    )
    return world


def skipping(world: World) -> World:
    world.decide()
    world.spec = {
        "skip": [{"cluster": name, "release": world.status["release"]} for name, _ in list(world.targets)[::2]]
    }
    return world


def under_way(world: World) -> World:
    for key, one in world.targets.items():
        world.targets[key] = replace(one, carried=one.wanted, facts=Facts(release=one.wanted, **GOOD))
    return world


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the steps of the interpreter: what a machine that is busy does not change."""
    found = [0]

    def note(frame: FrameType, _event: str, _arg: Any) -> Any:
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        found[0] += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        yield found
    finally:
        sys.settrace(before)


SHAPES: dict[str, Callable[[int], World]] = {
    "one wave": lambda count: even(count, lambda _: 0),
    "a wave each": lambda count: even(count, lambda number: number),
    "two budgets": lambda count: budgeted(even(count, lambda number: number % 3)),
    "every other one skipped": lambda count: skipping(even(count, lambda number: number % 3)),
    "all under way": lambda count: under_way(even(count, lambda number: number % 3)),
    "all wait for windows": lambda count: even(count, lambda _: 0, needs="waiting for x", depends=True),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cost_of_a_plan_grows_with_the_clusters_and_no_faster(shape: str) -> None:
    spent = []
    for count in (50, 200):
        world = SHAPES[shape](count)
        world.decide()
        seen = world.seen
        with counted() as found:
            plan_group(seen, START + timedelta(seconds=6))
        spent.append(found[0])
    assert spent[1] <= 4.6 * spent[0], f"{spent}: four times as many clusters"


def test_a_status_fits_into_an_object_however_long_the_reasons_are() -> None:
    world = even(2000, lambda number: number % 2)
    for key, one in world.targets.items():
        facts = Facts(release=one.wanted, phase="Failed", started="now", operation_message="x" * 400, broken="y" * 400)
        world.targets[key] = replace(one, carried=one.wanted if one.wave == 0 else one.carried, facts=facts)
    world.status = {
        "clusters": [{"cluster": name, "application": app, "release": f"{app}-2"} for name, app in world.targets]
    }
    world.decide()
    assert len(world.status["clusters"]) == 2000 and world.status["failed"] == 1000
    assert len(json.dumps(world.status)) < 1_100_000
    assert "x" * 400 in world.status["message"], "the first failure is whole"


def test_a_forecast_makes_a_bounded_number_of_plans() -> None:
    with counted() as few:
        forecast(even(5, lambda number: number).seen, START)
    with counted() as many:
        forecast(even(20, lambda number: number).seen, START)
    assert many[0] <= 18 * few[0], "it is of waves times clusters"
