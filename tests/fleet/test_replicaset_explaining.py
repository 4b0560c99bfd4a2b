"""What a roll-out says of each cluster: what happens next, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.fleet.rollouts import Hub, controllers, hub_with, template

from syncline.fleet.hub.replicasets.explaining import Explained, Next, explained
from syncline.fleet.hub.replicasets.observe import SETS, observe
from syncline.kube.objects import ObjectRef

FOUR = ["c1", "c2", "c3", "c4"]


@pytest.fixture
def hub() -> Hub:
    made = hub_with(*controllers(), clusters=FOUR)
    made.placement()
    return made


def look(hub: Hub, name: str = "foo") -> Explained:
    looked = observe(hub.role.loop.cache, ObjectRef(*SETS, "default", name))
    assert looked is not None
    return explained(looked.observed, hub.clock.now())


def outlook(hub: Hub) -> list[tuple[str, str]]:
    return [(one.next.value, one.why) for one in look(hub).clusters]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "Progressive", "maxConcurrency": 1}, "all places of the roll-out are taken by c1 (maxConcurrency)"),
        (
            {"type": "Progressive", "mandatoryDecisionGroups": [{"groupName": "first"}]},
            "decision group 0 'first' comes first: c1, c2",
        ),
        ({"type": "ProgressivePerGroup"}, "decision group 0 'first' comes first: c1, c2"),
    ],
)
def test_a_cluster_whose_turn_has_not_come_says_who_goes_first(hub: Hub, given: dict[str, Any], said: str) -> None:
    for cluster in ("c1", "c2"):
        hub.label(cluster, first="yes")
    selector = {"labelSelector": {"matchLabels": {"first": "yes"}}}
    groups = [{"groupName": "first", "groupClusterSelector": selector}]
    if given["type"] != "Progressive" or "mandatoryDecisionGroups" in given:
        hub.send(
            "PATCH", hub.placements("pl"), {"spec": {"decisionStrategy": {"groupStrategy": {"decisionGroups": groups}}}}
        )
    hub.roll_out(**given)
    hub.settle()
    assert outlook(hub)[-1] == ("wait", said)


@pytest.mark.parametrize(
    ("conditions", "given", "expected"),
    [
        ({"Progressing": "True"}, {}, ("run", "its agent applies the work")),
        ({"Progressing": "False"}, {}, ("nothing", "its work has succeeded")),
        (
            {"Progressing": "False"},
            {"minSuccessTime": "1h"},
            ("soak", "its work has succeeded; that must last until 2026-01-01T01:00:00Z (minSuccessTime)"),
        ),
        (
            {"Progressing": "True", "Degraded": "True"},
            {},
            ("failed", "its work is degraded; it keeps its place (no progressDeadline)"),
        ),
        ({}, {}, ("run", "its work is applied; its agent has not said how it progresses")),
        ({"Applied": "False"}, {}, ("run", "its agent has not applied the work")),
    ],
)
def test_a_cluster_that_has_begun_says_how_far_it_is(
    hub: Hub, conditions: dict[str, str], given: dict[str, str], expected: tuple[str, str]
) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=1, **given)
    hub.time.advance(0.4)
    hub.say("c1", **conditions)
    hub.time.advance(0.4)
    move, why = outlook(hub)[0]
    assert move == expected[0]
    assert why.startswith(expected[1])


def test_without_a_rule_it_says_why_the_roll_out_does_not_go_on(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=1, content=template(rules=False))
    hub.settle()
    hub.say("c1")
    hub.settle()
    assert "no condition rule says how it progresses" in outlook(hub)[0][1]


def test_too_many_failures_are_named(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=2)
    hub.settle()
    hub.say("c1", Progressing="True", Degraded="True")
    hub.settle()
    assert outlook(hub)[-1] == (
        "wait",
        "more clusters have failed than maxFailures allows (c1); no further one begins",
    )


def test_a_cluster_that_waits_for_a_budget_names_it_and_since_when(hub: Hub) -> None:
    hub.budget(most=1)
    hub.roll_out()
    hub.settle()
    found = look(hub)
    assert [(one.next, one.budget) for one in found.clusters] == [(Next.RUN, ""), *[(Next.WAIT, "b")] * 3]
    assert "c1 is held by ManifestWorkReplicaSet default/foo since " in found.clusters[1].why
    assert found.waiting_since == "2026-01-01T00:00:00Z"


def test_a_cluster_behind_one_that_waits_for_a_budget_names_both(hub: Hub) -> None:
    hub.budget(most=0)
    hub.roll_out(type="Progressive", maxConcurrency=1)
    hub.settle()
    first, *others = look(hub).clusters
    assert (first.next, first.budget) == (Next.WAIT, "b")
    assert {(one.next, one.why) for one in others} == {(Next.WAIT, "it comes after c1, held back by b")}


def test_before_the_controller_acts_it_says_what_the_controller_will_do(hub: Hub) -> None:
    hub.roll_out(type="Progressive", maxConcurrency=1)
    hub.settle()
    hub.succeed("c1")
    hub.succeed("c2")
    looked = observe(hub.role.loop.cache, ObjectRef(*SETS, "default", "foo"))
    assert looked is not None
    before = looked.observed
    changed = {**before.obj, "spec": {**before.obj["spec"], "manifestWorkTemplate": template("2")}}
    (decision,) = before.decisions
    left = {**decision, "status": {"decisions": [{"clusterName": name} for name in ("c1", "c3", "c4")]}}
    placement = {**before.placements["pl"], "status": {"numberOfSelectedClusters": 3}}
    after = replace(before, obj=changed, decisions=(left,), placements={"pl": placement})
    assert [(one.cluster, one.next) for one in explained(after, hub.clock.now()).clusters] == [
        ("c1", Next.UPDATE),
        ("c2", Next.DELETE),
        ("c3", Next.WAIT),
        ("c4", Next.WAIT),
    ]
    unsure = replace(after, placements=before.placements)
    assert explained(unsure, hub.clock.now()).clusters[1].next is Next.STAY


def test_a_missing_placement_and_a_set_that_ends_are_said(hub: Hub) -> None:
    hub.roll_out(placements=("pl", "none"), cascadeDeletionPolicy="Foreground")
    hub.settle()
    assert look(hub).problems == (
        "Placement none does not exist; the works of it and of the placements after it stay as they are",
    )
    looked = observe(hub.role.loop.cache, ObjectRef(*SETS, "default", "foo"))
    assert looked is not None
    metadata = {**looked.observed.obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    found = explained(replace(looked.observed, obj={**looked.observed.obj, "metadata": metadata}), hub.clock.now())
    assert {one.next for one in found.clusters} == {Next.DELETE}
    assert "4 works are gone" in found.problems[0]
