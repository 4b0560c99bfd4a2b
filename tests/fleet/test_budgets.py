"""FleetDisruptionBudgets: who may begin, who waits for whom, and what a budget says of itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fleet.rollouts import BUDGETS, CLUSTERS, REPLICA_SETS, Hub, controllers, hub_with, template

from syncline.control.plan import Patch, SetStatus
from syncline.fleet.hub.budgets.model import Fleet, Holder, Member
from syncline.fleet.hub.budgets.reserve import Reserving
from syncline.fleet.hub.replicasets.observe import SETS, observe
from syncline.fleet.hub.replicasets.plan import plan_set
from syncline.kube.errors import Invalid
from syncline.kube.objects import Obj, ObjectRef

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOUR = ["c1", "c2", "c3", "c4"]


@pytest.fixture
def hub() -> Hub:
    made = hub_with(*controllers(), clusters=FOUR)
    made.placement()
    return made


def test_no_more_clusters_begin_than_the_budget_permits_and_places_follow_success(hub: Hub) -> None:
    hub.budget(most=2)
    hub.roll_out()
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c2"]
    assert hub.places() == {"c1": "foo", "c2": "foo"}
    hub.say("c1", Progressing="True")
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c2"]
    for cluster in FOUR:
        hub.succeed(cluster)
    assert sorted(hub.works()) == FOUR
    assert hub.places() == {}
    assert hub.condition("PlacementRolledOut") == ("True", "Complete")


def test_a_set_that_waits_says_for_which_budget_and_who_holds_its_places(hub: Hub) -> None:
    hub.budget(most="25%")
    hub.roll_out()
    hub.settle()
    assert hub.condition("WaitingForBudget") == ("True", "NoPlaceFree")
    said = hub.message("WaitingForBudget")
    assert said.startswith(
        "c2, c3, c4: FleetDisruptionBudget b permits 1 (25% of 4) unavailable, and c1 is held by "
        "ManifestWorkReplicaSet default/foo since "
    )
    assert said in hub.events("WaitingForBudget")
    for cluster in FOUR:
        hub.succeed(cluster)
    assert hub.condition("WaitingForBudget") == ("False", "PlacesReserved")


def test_two_roll_outs_share_a_budget(hub: Hub) -> None:
    hub.budget(most=1)
    hub.roll_out("foo")
    hub.roll_out("other")
    hub.settle()
    assert sorted(hub.works("foo")) == sorted(hub.works("other")) == ["c1"]  # one cluster, disturbed once
    hub.succeed("c1", set_name="foo")
    assert sorted(hub.works("foo")) == ["c1"]
    for _ in FOUR:
        for name in ("foo", "other"):
            for cluster in hub.works(name):
                hub.say(cluster, name, Progressing="False")
                assert len(hub.places()) <= 1
        hub.settle()
    assert sorted(hub.works("foo")) == sorted(hub.works("other")) == FOUR


def test_a_cluster_that_is_not_available_takes_a_place(hub: Hub) -> None:
    hub.available("c4", "Unknown")
    hub.budget(most=2)
    hub.roll_out()
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c4"]  # c4 is counted already
    hub.budget("older", most=1)
    hub.succeed("c1")
    assert "c4 is held by" in hub.message("WaitingForBudget")
    hub.succeed("c4")
    assert sorted(hub.works()) == ["c1", "c4"]
    assert "c4 is not available since 2026-01-01T00:00:00Z" in hub.message("WaitingForBudget")
    hub.available("c4")
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c2", "c4"]


def test_a_failed_cluster_keeps_its_place_also_after_its_deadline(hub: Hub) -> None:
    hub.budget(most=1)
    hub.roll_out(type="Progressive", maxFailures=3, progressDeadline="1m")
    hub.settle()
    hub.say("c1", Progressing="True", Degraded="True")
    hub.time.advance(300)
    assert sorted(hub.works()) == ["c1"]
    hub.succeed("c1")
    assert sorted(hub.works()) == ["c1", "c2"]


def test_without_condition_rules_a_work_that_is_applied_and_available_gives_its_place_back(hub: Hub) -> None:
    hub.budget(most=1)
    hub.roll_out(content=template(rules=False))
    hub.settle()
    assert sorted(hub.works()) == ["c1"]
    hub.say("c1", Available="False")
    hub.settle()
    assert sorted(hub.works()) == ["c1"]
    hub.say("c1")
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c2"]


def test_a_cluster_without_a_place_holds_up_none_that_has_one(hub: Hub) -> None:
    hub.send("PATCH", f"{CLUSTERS}/c1", {"metadata": {"labels": {"edge": "yes"}}})
    hub.budget(most=0, selector={"matchLabels": {"edge": "yes"}})
    hub.roll_out(type="Progressive", maxConcurrency=1)
    hub.settle()
    assert sorted(hub.works()) == ["c2"]
    hub.succeed("c2")
    assert sorted(hub.works()) == ["c2", "c3"]
    assert "c1" in hub.message("WaitingForBudget")


def test_a_cluster_needs_a_place_in_every_budget_that_selects_it(hub: Hub) -> None:
    hub.budget("all", most=3)
    hub.budget("two", most=1, selector={"matchExpressions": [{"key": "edge", "operator": "Exists"}]})
    for cluster in ("c1", "c2"):
        hub.send("PATCH", f"{CLUSTERS}/{cluster}", {"metadata": {"labels": {"edge": "yes"}}})
    hub.roll_out()
    hub.settle()
    assert sorted(hub.works()) == ["c1", "c3", "c4"]
    assert (set(hub.places("all")), set(hub.places("two"))) == ({"c1", "c3", "c4"}, {"c1"})


def test_a_budget_that_comes_during_a_roll_out_counts_what_has_begun(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=3)
    hub.settle()
    hub.budget(most=1)
    hub.settle()
    assert set(hub.places()) == {"c1", "c2", "c3"}
    hub.succeed("c1", "c2")
    assert sorted(hub.works()) == ["c1", "c2", "c3"]
    hub.succeed("c3")
    assert sorted(hub.works()) == FOUR


def test_places_of_a_set_that_is_gone_are_taken_back(hub: Hub) -> None:
    hub.budget(most=1)
    hub.roll_out("foo")
    hub.settle()
    hub.roll_out("other")
    hub.settle()
    hub.send("DELETE", f"{REPLICA_SETS}/foo")
    hub.time.advance(120)
    assert hub.places() == {"c1": "other"}


def test_a_cluster_that_leaves_the_roll_out_gives_its_place_back(hub: Hub) -> None:
    hub.budget(most=1)
    hub.roll_out()
    hub.settle()
    hub.send("PATCH", hub.placements("pl"), {"spec": {"predicates": [predicate("c2", "c3")]}})
    hub.settle()
    assert hub.places() == {"c2": "foo"}


def predicate(*names: str) -> Obj:
    expressions = [f"managedCluster.metadata.name in {list(names)}"]
    return {"requiredClusterSelector": {"celSelector": {"celExpressions": expressions}}}


@pytest.mark.parametrize(
    ("most", "selector", "kind", "said"),
    [
        (1, {"matchLabels": {"a": "b"}}, "InForce", ("False", "SelectsNothing", "no accepted ManagedCluster")),
        (0, {}, "InForce", ("True", "PermitsNothing", "maxUnavailable 0 of 4 selected clusters is 0")),
        ("10%", {}, "InForce", ("True", "PermitsNothing", "25% or a number permits one")),
        ("50%", {}, "InForce", ("True", "Counted", "2 (50% of 4)")),
        (
            1,
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "InForce",
            ("False", "Malformed", "clusterSelector"),
        ),
        (0, {}, "Exhausted", ("True", "NoPlaceFree", "no cluster that it selects may begin")),
        (3, {}, "Exhausted", ("False", "PlacesFree", "3 of 3 places are free")),
    ],
)
def test_a_budget_says_what_it_counts(hub: Hub, most: Any, selector: Obj, kind: str, said: tuple[str, ...]) -> None:
    hub.budget(most=most, selector=selector)
    hub.settle()
    status, reason, message = hub.budget_condition(kind)
    assert (status, reason) == said[:2]
    assert said[2] in message


@pytest.mark.parametrize(
    ("most", "selector", "begun"),
    [
        (0, {"matchLabels": {"a": "b"}}, FOUR),
        (0, {}, []),
        ("24%", {}, []),
        ("100%", {}, FOUR),
        (0, {"matchExpressions": [{"key": "a", "operator": "In"}]}, []),
    ],
)
def test_a_budget_that_selects_nothing_bounds_nothing_and_one_that_cannot_be_read_everything(
    hub: Hub, most: Any, selector: Obj, begun: list[str]
) -> None:
    hub.budget(most=most, selector=selector)
    hub.roll_out()
    hub.settle()
    assert sorted(hub.works()) == begun


@pytest.mark.parametrize("most", [-1, "101%", "5", "-5%", "x"])
def test_the_api_refuses_what_is_neither_a_count_nor_a_percentage(hub: Hub, most: Any) -> None:
    with pytest.raises(Invalid):
        hub.budget(most=most)


def test_clusters_that_the_hub_does_not_accept_neither_count_nor_begin(hub: Hub) -> None:
    hub.join("c5", accepted=False)
    hub.available("c5", "Unknown")
    hub.budget(most="25%")
    hub.roll_out()
    hub.settle()
    assert sorted(hub.works()) == ["c1"]
    for cluster in FOUR:
        hub.succeed(cluster)
    assert sorted(hub.works()) == FOUR
    assert "the hub does not accept it" in hub.message("WaitingForBudget")


def test_while_budgets_cannot_be_read_nothing_begins_and_what_has_begun_stays() -> None:
    holder = Holder(ObjectRef("", "K", "ns", "n"), "u")
    reserving = Reserving(Fleet(unknown="cannot read FleetDisruptionBudgets: forbidden"), holder, NOW)
    reserving.keep("c1", "begun")
    assert not reserving.take("c2", "next")
    assert reserving.steps() == ()
    assert [wait.why for wait in reserving.waits()] == ["cannot read FleetDisruptionBudgets: forbidden"]


def test_a_place_reserved_before_a_crash_is_used_and_confirmed() -> None:
    holder = Holder(ObjectRef("", "K", "ns", "n"), "u")
    budget = {
        "metadata": {"name": "b", "resourceVersion": "7"},
        "spec": {"clusterSelector": {}, "maxUnavailable": 1},
        "status": {
            "places": [{"cluster": "c1", "holder": holder.written(), "holderUID": "u", "since": "", "reason": ""}]
        },
    }
    clusters = {name: Member(name, {}, True, False, True, "") for name in FOUR}
    reserving = Reserving(Fleet((budget,), clusters), holder, NOW)
    assert [reserving.take(cluster, "next") for cluster in ("c1", "c2")] == [True, False]
    ((write,),) = reserving.steps()
    assert (write.resource_version, write.old == write.new) == ("7", True)


def test_before_a_place_is_given_back_the_work_is_confirmed_to_be_the_one_that_succeeded(hub: Hub) -> None:
    hub.budget(most=1)
    hub.roll_out()
    hub.settle()
    hub.say("c1", Progressing="False")
    work = hub.works()["c1"]
    looked = observe(hub.role.loop.cache, ObjectRef(*SETS, "default", "foo"))
    assert looked is not None
    plan = plan_set(replace(looked.observed, works=(work,)), hub.clock.now())
    (check,), (release,) = plan.reservations
    assert isinstance(check, Patch)
    assert check.body == {"metadata": {key: work["metadata"][key] for key in ("uid", "resourceVersion")}}
    assert isinstance(release, SetStatus)
    assert [one["cluster"] for one in release.new["places"]] == ["c2"]


def test_the_status_of_a_budget_counts_distinct_clusters(hub: Hub) -> None:
    hub.available("c1", "False")
    hub.budget(most=3)
    hub.roll_out("foo", type="Progressive", maxConcurrency=2)
    hub.settle()
    status = hub.get(f"{BUDGETS}/b")["status"]
    assert (status["selected"], status["permitted"], status["unavailable"]) == (4, 3, 2)
    assert [one["reason"] for one in status["places"]] == [
        "Placement pl: the rollout has reached the cluster (decision group 0)"
    ] * 2
