"""ManifestWorkReplicaSets: who gets a work next, and what stays; numbers are those of the reference."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.placements import paged
from tests.fleet.recordings import NOW

from syncline.base.clock import format_time
from syncline.control.plan import Create, Delete, Patch
from syncline.fleet.hub.placement.model import GROUP_INDEX_LABEL, GROUP_NAME_LABEL
from syncline.fleet.hub.placement.ordering import layers
from syncline.fleet.hub.replicasets.plan import SetObserved, SetPlan, finish, plan_set
from syncline.fleet.hub.replicasets.works import work_of
from syncline.kube.objects import Obj, namespace_of

TEMPLATE: Obj = {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}]}}
PLACEMENT = "cluster.open-cluster-management.io/placement"


def replica_set(**strategy: Any) -> Obj:
    kind = strategy.pop("type", "All")
    block = {"type": kind, kind[0].lower() + kind[1:]: strategy}
    spec = {"manifestWorkTemplate": TEMPLATE, "placementRefs": [{"name": "pl", "rolloutStrategy": block}]}
    return {"metadata": {"name": "foo", "namespace": "ns"}, "spec": spec}


def child(obj: Obj, cluster: str, *conditions: tuple[str, str], since: timedelta = timedelta(hours=1)) -> Obj:
    made = work_of(obj, cluster, "pl")
    time = format_time(NOW - since)
    shown = [
        {"type": kind, "status": status, "observedGeneration": 1, "lastTransitionTime": time}
        for kind, status in (("Applied", "True"), *conditions)
    ]
    metadata = {**made["metadata"], "name": f"foo-{cluster}", "generation": 1, "uid": f"uid-{cluster}"}
    return {**made, "metadata": metadata, "status": {"conditions": shown}}


def look(obj: Obj, works: list[Obj], clusters: list[str], *, decided: bool = True) -> SetPlan:
    labels = {PLACEMENT: "pl", GROUP_INDEX_LABEL: "0", GROUP_NAME_LABEL: ""}
    chosen = [{"clusterName": cluster} for cluster in clusters]
    decisions = ({"metadata": {"labels": labels}, "status": {"decisions": chosen}},) if decided else ()
    placement = {"metadata": {"name": "pl"}, "status": {"numberOfSelectedClusters": len(clusters)}}
    return plan_set(SetObserved(obj, tuple(works), {"pl": placement}, decisions), NOW)


def begun(plan: SetPlan) -> list[str]:
    return [namespace_of(one.obj) for one in plan.actions if isinstance(one, Create)]


SIX = [f"c{number}" for number in range(1, 7)]
DONE, RUNS, FAILS = ("Progressing", "False"), ("Progressing", "True"), ("Degraded", "True")


def test_b70_a_child_has_a_generated_name_and_the_label_of_its_set() -> None:
    made = look(replica_set(), [], ["c1"]).actions[0]
    assert isinstance(made, Create)
    assert made.obj["metadata"]["generateName"] == "foo"
    assert made.obj["metadata"]["labels"]["work.open-cluster-management.io/manifestworkreplicaset"] == "ns.foo"


@pytest.mark.parametrize(
    ("conditions", "next_ones"), [([], []), ([DONE], ["c3", "c4"]), ([RUNS], []), ([RUNS, FAILS], [])]
)
def test_b72_places_get_free_only_when_a_work_says_that_it_no_longer_progresses(
    conditions: list[tuple[str, str]], next_ones: list[str]
) -> None:
    obj = replica_set(type="Progressive", maxConcurrency=2)
    assert begun(look(obj, [child(obj, name, *conditions) for name in ("c1", "c2")], SIX)) == next_ones


def test_b73_failures_stop_clusters_that_have_not_begun() -> None:
    obj = replica_set(type="Progressive", maxConcurrency=4, maxFailures=1)
    works = [child(obj, "c1", RUNS, FAILS), child(obj, "c2", RUNS, FAILS), child(obj, "c3", RUNS)]
    assert begun(look(obj, works, SIX)) == []
    assert begun(look(obj, [works[0], works[2]], SIX)) == ["c2", "c4"]


def test_b74_more_failures_than_clusters_are_none() -> None:
    obj = replica_set(type="Progressive", maxConcurrency=2, maxFailures=10)
    assert begun(look(obj, [child(obj, "c1", RUNS, FAILS)], ["c1", "c2", "c3", "c4"])) == []


def test_b75_success_must_last_before_the_next_begins() -> None:
    obj = replica_set(type="Progressive", maxConcurrency=1, minSuccessTime="1m")
    early = look(obj, [child(obj, "c1", DONE, since=timedelta(seconds=20))], SIX)
    assert (begun(early), early.recheck) == ([], timedelta(seconds=40))
    assert begun(look(obj, [child(obj, "c1", DONE, since=timedelta(seconds=60))], SIX)) == ["c2"]


def test_b76_a_cluster_that_leaves_the_placement_loses_its_work() -> None:
    obj = replica_set()
    changed = child(obj, "c3", DONE)
    changed["spec"] = {"workload": {"manifests": []}}
    found = look(obj, [child(obj, "c1", DONE), child(obj, "c2", DONE), changed], ["c1"])
    assert [one.uid for one in found.actions if isinstance(one, Delete)] == ["uid-c2", "uid-c3"]


@pytest.mark.parametrize("seed", range(6))
def test_while_pages_are_rewritten_no_cluster_that_stays_loses_its_work(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"c{number:03}" for number in range(240)]
    had = [name for name in names if chance.random() < 0.9]
    has = sorted({*had} ^ {*chance.sample(names, 3)})
    obj = replica_set()
    works = tuple(child(obj, name, DONE) for name in had)
    state = paged(had)
    for layer in layers(paged(had), paged(has)):
        for name, clusters in layer.items():
            state[name] = clusters
            for counted in (had, has):  # the status of the Placement is written before or after
                plan = plan_set(SetObserved(obj, works, {"pl": placed(len(counted))}, written(state)), NOW)
                deleted = {one.namespace for one in plan.actions if isinstance(one, Delete)}
                assert not deleted & {*has}


def placed(count: int) -> Obj:
    return {"metadata": {"name": "pl"}, "status": {"numberOfSelectedClusters": count}}


def written(state: dict[str, frozenset[str]]) -> tuple[Obj, ...]:
    labels = {PLACEMENT: "pl", GROUP_INDEX_LABEL: "0", GROUP_NAME_LABEL: ""}
    return tuple(
        {"metadata": {"labels": labels}, "status": {"decisions": [{"clusterName": one} for one in sorted(clusters)]}}
        for clusters in state.values()
    )


def test_a_new_page_that_is_empty_for_a_moment_deletes_nothing() -> None:
    obj = replica_set()
    works = tuple(child(obj, name, DONE) for name in SIX)
    state = {"pl-decision-1": frozenset(SIX[:3]), "pl-decision-2": frozenset[str]()}
    assert not plan_set(SetObserved(obj, works, {"pl": placed(6)}, written(state)), NOW).actions


def test_absent_decisions_are_no_decision_to_delete() -> None:
    obj = replica_set()
    found = look(obj, [child(obj, "c1", DONE)], ["c1", "c2"], decided=False)
    assert not found.actions
    assert "no work is deleted until they agree" in found.errors[0]


def test_a_changed_template_reaches_works_one_place_at_a_time() -> None:
    obj = replica_set(type="Progressive", maxConcurrency=1)
    old = child(obj, "c1", DONE), child(obj, "c2", DONE)
    obj["spec"]["manifestWorkTemplate"] = {"workload": {"manifests": [{"kind": "Secret", "metadata": {"name": "y"}}]}}
    found = look(obj, list(old), ["c1", "c2"]).actions
    assert [(type(one), one.name) for one in found if isinstance(one, Patch)] == [(Patch, "foo-c1")]
    assert len(found) == 1


@pytest.mark.parametrize(("policy", "released"), [("Background", True), ("Foreground", False)])
def test_a_set_that_goes_deletes_its_works_and_waits_for_them_in_the_foreground(policy: str, released: bool) -> None:
    obj = replica_set()
    obj["spec"]["cascadeDeletionPolicy"] = policy
    actions, done = finish(SetObserved(obj, (child(obj, "c1"),)))
    assert (len(actions), done) == (1, released)
    assert finish(SetObserved(obj)) == ((), True)
