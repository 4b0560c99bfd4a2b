"""The order ahead, as ``syncline plan`` shows it (``golden/fleet/order-*``): decided by the plan of the
controller, on a hub with five clusters in three waves, in virtual time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.cli.fleethub import golden
from tests.fleet.order.worlds import five, ordered_set, push, until
from tests.fleet.test_pull_controllers import SETS
from tests.fleet.world import Fleet

from syncline.appset.questions import Answer, Question
from syncline.assembly.inspection.order import READ, PlannedOrder, order_cache, planned_order
from syncline.assembly.inspection.pulled import pulled
from syncline.assembly.inspection.sets import planned_set
from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.base.clock import parse_time
from syncline.cli.views.fleet.order import describe_order, order_obj
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.fleet.hub.budgets.observe import BUDGETS
from syncline.fleet.hub.registration.leases import NODES_UPDATING
from syncline.fleet.pull.observe import CLUSTERS, DETAILS, WORKS
from syncline.fleet.pull.order.annotations import WINDOWS
from syncline.fleet.pull.order.groups import ROLLOUTS
from syncline.kube.kinds.syncline import BUDGET
from syncline.kube.objects import Obj, ObjectRef, copied, meta, ref_of

LATER = parse_time("2026-01-01T01:00:00Z")
"""When all has been done for long."""
REF = ObjectRef(*ROLLOUTS, "argocd", "set")


@dataclass
class Story:
    """Snapshots of one run: before anything began, when all was done, and three seconds after a change."""

    new: Cache
    done: Cache
    changed: Cache
    lazy: Cache
    """The last one, as a command reads it."""
    times: dict[str, datetime]
    ended: datetime


def look(fleet: Fleet) -> Cache:
    return run_in_place(snapshot_of_cluster({}, frozenset(READ)), fleet.hub.admin).cache


@pytest.fixture(scope="module")
def story() -> Story:
    fleet = five()
    times: dict[str, datetime] = {}
    fleet.hub.send("POST", SETS, ordered_set())
    new, times["new"] = look(fleet), fleet.clock.now()
    until(fleet, 900, "Done")
    done, times["done"] = look(fleet), fleet.clock.now()
    push(fleet, "v2")
    fleet.time.advance(3)
    changed, times["changed"] = look(fleet), fleet.clock.now()
    lazy = order_cache(pulled(fleet.hub.admin, {}))
    until(fleet, 900, "Done")
    return Story(new, done, changed, lazy, times, fleet.clock.now())


def ahead(cache: Cache, now: datetime) -> PlannedOrder:
    found = planned_order(order_cache(cache), REF, now)
    assert found is not None
    return found


def edited(cache: Cache, *objects: Obj) -> Cache:
    """Return a copy of a snapshot with other objects in it."""
    made = order_cache(cache)
    for one in objects:
        made.put(ref_of(one).group_kind, one)
    return made


def cluster(cache: Cache, name: str, annotations: Mapping[str, str], **conditions: str) -> Obj:
    """Return a ManagedCluster of a snapshot, changed. ``conditions``: their status by type."""
    found: Obj = copied(cache.get(ObjectRef(*CLUSTERS, "", name)) or {})
    found["metadata"] = {**meta(found), "annotations": dict(annotations)}
    kept = [one for one in found["status"]["conditions"] if one["type"] not in conditions]
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "pool worker updates (2 of 5 nodes)"}
    found["status"]["conditions"] = [
        *kept,
        *({"type": kind, "status": status, **since} for kind, status in conditions.items()),
    ]
    return found


def steered(cache: Cache, **spec: Any) -> Obj:
    found: Obj = copied(cache.get(REF) or {})
    found["spec"] |= spec
    return found


def begins(order: PlannedOrder) -> dict[str, float | None]:
    """Return for each cluster the seconds after which it may begin."""
    return {
        one.standing.target.cluster.name: (one.begins - order.now).total_seconds() if one.begins else None
        for one in order.forecast.ahead
    }


def test_a_new_set_is_planned_from_the_first_wave_to_the_last(story: Story) -> None:
    order = ahead(story.new, story.times["new"])
    golden("order-new", describe_order(order))
    assert begins(order) == {"c1": 0, "c2": 120, "c3": 120, "c4": 240, "c5": 240}


def test_a_change_under_way_says_who_waits_for_whom(story: Story) -> None:
    order = ahead(story.changed, story.times["changed"])
    found = begins(order)
    assert 100 <= (found["c2"] or 0) <= 120, "what goes on in c1 is seconds old"
    assert found["c3"] == found["c2"] and found["c4"] == found["c5"] == (found["c2"] or 0) + 120
    text = describe_order(order)
    assert re.search(r"~ c1  web-c1  \w+  under way; done at ", text)
    assert re.search(r"~ c2  web-c2  \w+ → \w+  begins at .*\n +waits: wave 0 comes first: web-c1 on cluster c1", text)


def test_nothing_is_earlier_than_the_plan_said_and_a_healthy_fleet_is_not_much_later(story: Story) -> None:
    order = ahead(story.changed, story.times["changed"])
    assert order.forecast.ends is not None
    assert order.forecast.ends <= story.ended <= order.forecast.ends + timedelta(minutes=1)


def test_what_is_done_has_nothing_ahead(story: Story) -> None:
    text = describe_order(ahead(story.done, story.times["done"]))
    assert text.endswith("Order: nothing to do (5 Applications done)")


def test_gates_of_one_cluster_are_named_with_the_time_at_which_they_open(story: Story) -> None:
    window = [{"kind": "allow", "schedule": "0 22 * * *", "duration": "1h", "timeZone": "Europe/Berlin"}]
    budget = {"clusterSelector": {}, "maxUnavailable": 1}
    made = {"apiVersion": BUDGET.api_version, "kind": BUDGET.kind, "metadata": {"name": "edge"}, "spec": budget}
    cache = edited(
        story.done,
        cluster(story.done, "c2", {WINDOWS: json.dumps(window)}),
        cluster(story.done, "c3", {}, **{NODES_UPDATING: "True"}),
        made,
    )
    order = planned(cache, ordered_set("v2"), LATER)
    golden("order-gates", describe_order(order))
    found = begins(order)
    assert found["c1"] == 0 and found["c3"] is None and found["c4"] is None
    opening = order.now + timedelta(seconds=found["c2"] or 0)
    assert opening == parse_time("2026-01-01T21:00:01Z"), "22:00 in Berlin"
    (row,) = [one for one in order_obj(order)["clusters"] if one["cluster"] == "c3"]
    assert row["budgets"] == ["edge"] and "pool worker updates (2 of 5 nodes)" in row["waits"][-1]["why"]


def planned(cache: Cache, wanted: Obj, now: datetime) -> PlannedOrder:
    """Return the order that a set of a file would take, as ``syncline plan appset/set -f FILE``."""

    def refuse(_question: Question) -> Answer:
        raise AssertionError("a list asks nothing")

    stored = cache.get(ObjectRef("argoproj.io", "ApplicationSet", "argocd", "set")) or {}
    appset = {**stored, "spec": wanted["spec"]}
    plan = planned_set(order_cache(cache), appset, "argocd", refuse, now)
    found = planned_order(order_cache(cache), REF, now, plan, appset)
    assert found is not None
    return found


def test_a_set_of_a_file_shows_the_order_that_it_would_take(story: Story) -> None:
    before = ahead(story.done, story.times["done"])
    order = planned(story.done, ordered_set("v2", healthy_for="10s"), story.times["done"])
    assert order.forecast.now.release != before.forecast.now.release
    assert begins(order) == {"c1": 0, "c2": 10, "c3": 10, "c4": 20, "c5": 20}
    assert all(one.standing.target.carried for one in order.forecast.ahead), "from which release is known"
    assert ahead(story.done, story.times["done"]).forecast.now.release == before.forecast.now.release, "a private copy"


def test_a_budget_of_one_lets_clusters_of_a_wave_begin_one_after_the_other(story: Story) -> None:
    budget = {"clusterSelector": {}, "maxUnavailable": 1}
    made = {"apiVersion": BUDGET.api_version, "kind": BUDGET.kind, "metadata": {"name": "edge"}, "spec": budget}
    order = ahead(edited(story.new, made), story.times["new"])
    found = begins(order)
    assert found["c1"] == 0 and found["c2"] == 120
    assert (found["c3"] or 0) >= 240 and (found["c5"] or 0) >= (found["c4"] or 0) + 120
    assert order.forecast.ends is not None
    assert not edited(story.new, made).objects(BUDGETS)[0].get("status"), "nothing is reserved"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda cache: steered(cache, stopped={"reason": "slow", "by": "ada"}), "the roll-out is stopped by ada"),
        (
            lambda cache: cluster(cache, "c2", {}, ManagedClusterConditionAvailable="Unknown"),
            "cluster c2 is not available",
        ),
        (lambda cache: cluster(cache, "c2", {WINDOWS: "nonsense"}), "cannot be read: is no JSON"),
    ],
    ids=["stopped", "away", "unreadable windows"],
)
def test_what_only_people_or_clusters_end_has_no_end(story: Story, change: Any, words: str) -> None:
    order = ahead(edited(story.changed, change(story.changed)), story.times["changed"])
    assert order.forecast.ends is None and order.forecast.complete
    assert words in describe_order(order) and "no end is known for" in describe_order(order)


def test_a_skipped_cluster_is_passed_over(story: Story) -> None:
    release = ahead(story.changed, story.times["changed"]).forecast.now.release
    skip = steered(story.changed, skip=[{"cluster": name, "release": release} for name in ("c2", "c3")])
    order = ahead(edited(story.changed, skip), story.times["changed"])
    assert 100 <= (begins(order)["c4"] or 0) <= 120 and "people skip it for this release" in describe_order(order)


def test_a_failure_lets_nothing_begin(story: Story) -> None:
    cache = edited(story.changed)
    for work in cache.objects(WORKS, "c1"):
        report: Obj = copied(cache.get(ObjectRef(*DETAILS, "c1", work["metadata"]["name"])) or {})
        report["report"] |= {"release": carried(work), "stale": False}
        report["report"]["sync"] = {**report["report"]["sync"], "status": "Synced"}
        report["report"]["health"] = {"status": "Degraded", "message": "no pods"}
        cache.put(DETAILS, report)
    order = ahead(cache, story.times["changed"])
    assert "failed: its health is Degraded: no pods" in describe_order(order)
    assert order.forecast.ends is None and begins(order)["c2"] is None


def carried(work: Obj) -> str:
    manifests = work["spec"]["workload"]["manifests"]
    found: str = next(one["metadata"]["annotations"]["syncline.dev/release"] for one in manifests)
    return found


def test_what_may_not_be_listed_is_no_absence(story: Story) -> None:
    cache = order_cache(story.changed)
    cache.mark_unread(WORKS, "forbidden")
    with pytest.raises(ValueError, match=r"ManifestWork.* may not be listed"):
        planned_order(order_cache(cache), REF, story.times["changed"])


def test_a_lazy_cache_of_a_command_gives_the_same_order(story: Story) -> None:
    texts = [describe_order(ahead(one, story.times["changed"])) for one in (story.changed, story.lazy)]
    assert texts[0] == texts[1]
