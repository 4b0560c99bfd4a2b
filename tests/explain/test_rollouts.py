"""What ``syncline explain`` says of the order over clusters: of a roll-out, an Application, a cluster and a set."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.base.cause import Cause
from syncline.base.clock import parse_time
from syncline.cli.views.cause import describe_cause
from syncline.control.cache import Cache
from syncline.explain.fleet.rollouts import order_causes, rollout_of, with_rollout
from syncline.explain.graph import explain_object
from syncline.explain.naming import object_ref
from syncline.explain.view import Found, View
from syncline.fleet.pull import names
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.syncline import BUDGET
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, Obj, ResourceInfo, gvk_of

NOW = parse_time("2026-03-01T12:10:00Z")
APP = GVK("argoproj.io", "v1alpha1", "Application")
WAVE_0 = "wave 0 comes first: shop-aws-1 on cluster aws-1 has not proved this release, until 2026-03-01T12:13:00Z"
FULL = "FleetDisruptionBudget edge permits 1 unavailable, and aws-1 is held by FleetRollout argocd/web"


def served(gvk: GVK, plural: str, *, namespaced: bool = True) -> ResourceInfo:
    return ResourceInfo(gvk.group, gvk.version, gvk.kind, plural, namespaced=namespaced)


KINDS = (
    served(ROLLOUT, "fleetrollouts"),
    served(MANAGED_CLUSTER, "managedclusters", namespaced=False),
    served(BUDGET, "fleetdisruptionbudgets", namespaced=False),
    served(APP, "applications"),
)


def view(*objects: Obj, kinds: tuple[ResourceInfo, ...] = KINDS) -> View:
    cache = Cache(Mapper(kinds))
    for info in kinds:
        cache.mark_synced(info.group_kind)
    for one in objects:
        cache.put(gvk_of(one).group_kind, one)
    return View(cache, NOW)


def entry(cluster: str, wave: int, state: str, why: str = "", **more: str) -> Obj:
    made = {"cluster": cluster, "application": f"shop-{cluster}", "wave": wave, "state": state, "why": why}
    return {**made, "since": "2026-03-01T12:03:00Z", **more}


PROVING = entry("aws-1", 0, "Proving", healthySince="2026-03-01T12:03:00Z", until="2026-03-01T12:13:00Z")


def rollout(*entries: Obj, phase: str = "Progressing", message: str = "on its way: aws-1", **spec: Any) -> Obj:
    status = {"release": "3fa9c1e2ab44", "phase": phase, "message": message, "progress": "0/3", "clusters": entries}
    return {
        "apiVersion": ROLLOUT.api_version,
        "kind": ROLLOUT.kind,
        "metadata": {"name": "shop", "namespace": "argocd"},
        "spec": {"of": {"kind": "ApplicationSet", "name": "shop"}, **spec},
        "status": status,
    }


def app(cluster: str) -> Obj:
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shop", "uid": "u"}
    metadata = {
        "name": f"shop-{cluster}",
        "namespace": "argocd",
        "uid": "0123456789",
        "labels": {names.PULL: "true"},
        "annotations": {names.CLUSTER: cluster},
        "ownerReferences": [owner],
    }
    return {"apiVersion": APP.api_version, "kind": APP.kind, "metadata": metadata, "spec": {}}


def cluster(name: str, status: str = "True", message: str = "Managed cluster is available") -> Obj:
    times = {"lastTransitionTime": "2026-03-01T11:00:00Z"}
    conditions = [
        {"type": "HubAcceptedManagedCluster", "status": "True", **times},
        {"type": "ManagedClusterJoined", "status": "True", **times},
        {"type": "ManagedClusterConditionAvailable", "status": status, "message": message, **times},
    ]
    made = {"apiVersion": MANAGED_CLUSTER.api_version, "kind": MANAGED_CLUSTER.kind, "metadata": {"name": name}}
    return {**made, "spec": {"hubAcceptsClient": True}, "status": {"conditions": conditions}}


def told(obj: Obj, *others: Obj) -> str:
    return describe_cause(explain_object(view(obj, *others), obj).cause, NOW)


def test_a_roll_out_names_what_goes_on_before_what_waits() -> None:
    waiting = entry("aws-2", 1, "Waiting", WAVE_0)
    assert told(rollout(waiting, PROVING)).splitlines() == [
        "FleetRollout argocd/shop Progressing for 7m: on its way: aws-1 (0/3 done)",
        "  cluster aws-1 (wave 0) Proving for 7m: is healthy since 2026-03-01T12:03:00Z, and has to stay so until "
        "2026-03-01T12:13:00Z",
        f"  cluster aws-2 (wave 1) Waiting for 7m: {WAVE_0}",
    ]


def test_a_stopped_roll_out_says_who_stopped_it_why_and_how_it_goes_on() -> None:
    stopped = {"since": "2026-03-01T12:05:00Z", "by": "ada", "reason": "the canary is slow"}
    found = rollout(PROVING, phase="Stopped", stopped=stopped)
    lines = told(found).splitlines()
    assert lines[0] == (
        "FleetRollout argocd/shop Stopped for 5m: stopped since 2026-03-01T12:05:00Z by ada: the canary is slow "
        "(0/3 done)"
    )
    assert lines[-1] == "next: syncline rollout resume shop"
    assert explain_object(view(found), found).blocked


def test_a_failure_comes_first_with_the_three_ways_out() -> None:
    failed = entry("aws-1", 0, "Failed", "its health is Degraded")
    lines = told(rollout(entry("aws-2", 1, "Waiting", "stopped by a failure"), failed, phase="Failed")).splitlines()
    assert lines[1] == "  cluster aws-1 (wave 0) Failed for 7m: its health is Degraded"
    assert lines[-3:] == [
        "next: correct the cause in Git",
        "  or: syncline rollout roll-back shop",
        "  or: to pass over it: syncline rollout skip shop aws-1",
    ]


def test_a_cluster_that_is_not_available_leads_to_it_and_may_be_passed_over() -> None:
    away = cluster("aws-2", "Unknown", "Registration agent stopped updating its lease.")
    waiting = entry("aws-2", 1, "Waiting", "cluster aws-2 is not available since 11:00")
    said = told(rollout(waiting, phase="Waiting"), away)
    assert "    ManagedCluster aws-2 Unreachable for 70m" in said


def test_a_budget_without_room_leads_to_who_holds_its_places() -> None:
    place = {"cluster": "aws-1", "holder": {"kind": "FleetRollout", "namespace": "argocd", "name": "web"}}
    budget = {
        "apiVersion": BUDGET.api_version,
        "kind": BUDGET.kind,
        "metadata": {"name": "edge"},
        "status": {"unavailable": 1, "permitted": 1, "selected": 3, "places": [place]},
    }
    said = told(rollout(entry("aws-2", 1, "Waiting", FULL), phase="Waiting"), budget)
    assert "    FleetDisruptionBudget edge Full: 1 of 1 permitted clusters are unavailable" in said
    assert "      cluster aws-1 reserved: by FleetRollout argocd/web" in said


@pytest.mark.parametrize("phase", ["Done", "RolledBack", "Unordered"])
def test_nothing_waits_where_the_order_has_ended_or_is_not_in_force(phase: str) -> None:
    found = rollout(entry("aws-2", 1, "Waiting", "old"), phase=phase, message="all have it")
    seen = view(found, app("aws-2"))
    assert not explain_object(seen, found).blocked and "old" not in told(found)
    assert order_causes(seen, app("aws-2")) == ()
    made = Found(Cause("ApplicationSet argocd/shop", "up to date", ""), blocked=False)
    assert with_rollout(seen, made, found) == made


def test_an_application_says_what_its_cluster_waits_for() -> None:
    (found,) = order_causes(view(rollout(PROVING, entry("aws-2", 1, "Waiting", WAVE_0))), app("aws-2"))
    assert (found.subject, found.state) == ("syncline.dev/FleetRollout/argocd/shop", "Progressing")
    assert [one.message for one in found.because] == [WAVE_0]


def test_a_cluster_says_what_it_waits_for_in_each_roll_out() -> None:
    said = told(cluster("aws-2"), rollout(PROVING, entry("aws-2", 1, "Waiting", WAVE_0)))
    assert f"  rollout shop Waiting for 7m: shop-aws-2 (wave 1): {WAVE_0}" in said


def test_a_set_whose_applications_are_well_waits_for_its_order() -> None:
    made = Found(Cause("ApplicationSet argocd/shop", "up to date", "all as they should be"), blocked=False)
    seen = view(rollout(PROVING))
    found = with_rollout(seen, made, rollout_of(seen, "argocd", "shop"))
    assert (found.cause.state, found.blocked) == ("Progressing", False)
    assert found.cause.because[0].subject == "syncline.dev/FleetRollout/argocd/shop"


def test_a_hub_without_the_kind_is_explained_as_before() -> None:
    seen = view(cluster("aws-2"), kinds=KINDS[1:])
    assert rollout_of(seen, "argocd", "shop") is None and order_causes(seen, app("aws-2")) == ()
    assert not explain_object(seen, cluster("aws-2")).blocked


def test_a_roll_out_is_named_in_the_namespace_of_applications() -> None:
    assert object_ref(Mapper(KINDS), "rollout/shop", ("default", "argocd")).namespace == "argocd"
