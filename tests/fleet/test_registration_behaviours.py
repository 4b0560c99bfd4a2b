"""Decisions of registration that no recording has: clocks, grace to the second, bindings, lists of refusals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.recordings import NOW

from syncline.base.clock import format_micro_time
from syncline.fleet.hub.admission import Refused, check_binding, check_cluster, completed
from syncline.fleet.hub.registration.leases import ACCEPTED, SKIP_CLOCK, clock, heartbeat
from syncline.kube.objects import Obj

BOB = {"username": "bob", "groups": ["g"], "uid": "7"}


def cluster(name: str = "c1", *, conditions: Any = (), annotations: Any = (), **spec: Any) -> Obj:
    metadata = {"name": name, "annotations": dict(annotations)}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions)}}


def lease(age_s: float) -> Obj:
    return {"spec": {"renewTime": format_micro_time(NOW - timedelta(seconds=age_s))}}


@pytest.mark.parametrize(
    ("duration", "age", "lost", "recheck"),
    [(60, 299, False, 1), (60, 300, True, 300), (10, 49, False, 1), (10, 50, True, 50), (0, 299, False, 1)],
)
def test_b12_b13_a_cluster_is_lost_after_five_lease_durations(
    duration: int, age: int, lost: bool, recheck: int
) -> None:
    accepted = [{"type": ACCEPTED, "status": "True"}]
    found = heartbeat(cluster(conditions=accepted, leaseDurationSeconds=duration), lease(age), NOW)
    assert bool(found.lost) is lost
    assert found.recheck == timedelta(seconds=recheck)


@pytest.mark.parametrize(
    ("age", "annotations", "status"),
    [(0, {}, "True"), (299, {}, "True"), (300, {}, "False"), (-300, {}, "False"), (900, {SKIP_CLOCK: "true"}, "True")],
)
def test_b18_a_clock_that_differs_by_the_grace_is_out_of_sync(age: int, annotations: Any, status: str) -> None:
    found = clock(cluster(annotations=annotations, leaseDurationSeconds=60), lease(age), NOW)
    assert found is not None
    assert found["status"] == status


def test_b18_the_condition_of_the_clock_is_written_only_when_its_status_changes() -> None:
    first = clock(cluster(), lease(0), NOW)
    assert first is not None
    assert clock(cluster(conditions=[first]), lease(5), NOW) is None


def test_b4_accepting_is_denied_in_upstreams_sentence() -> None:
    (need,) = check_cluster(cluster(hubAcceptsClient=True), cluster(), BOB, terminating=False)
    assert need.review["uid"] == "7"
    assert need.refusal == (
        'managedclusters/accept.cluster.open-cluster-management.io "c1" is forbidden: user "bob" cannot update the'
        " HubAcceptsClient field"
    )


def test_b19_times_of_taints_of_a_new_cluster_are_overwritten() -> None:
    taint = {"key": "a", "effect": "NoSelect", "timeAdded": "2020-01-01T00:00:00Z"}
    made = completed(cluster(taints=[taint]), None, NOW)
    assert made["spec"]["taints"] == [{**taint, "timeAdded": "2026-07-01T12:00:00Z"}]


def test_all_problems_of_a_cluster_are_in_one_refusal() -> None:
    configs = [{"url": "http://x"}, {"url": ""}]
    with pytest.raises(Refused) as refused:
        check_cluster(cluster("a.b", managedClusterClientConfigs=configs), None, BOB, terminating=False)
    assert str(refused.value).split("\n") == [
        "metadata.name format is not correct: must not contain dots",
        'url "http://x" is invalid in client configs',
        'url "" is invalid in client configs',
    ]


def test_a_new_binding_needs_the_right_to_bind_its_set() -> None:
    binding = {"metadata": {"name": "s1", "namespace": "ns"}, "spec": {"clusterSet": "s1"}}
    (need,) = check_binding(binding, None, BOB)
    attributes = need.review["resourceAttributes"]
    assert (attributes["verb"], attributes["subresource"], attributes["name"]) == ("create", "bind", "s1")
    assert need.refusal.endswith('user "bob" is not allowed to bind cluster set "s1"')
    assert check_binding(binding, binding, BOB) == ()


def test_a_binding_has_the_name_of_its_set() -> None:
    binding = {"metadata": {"name": "s1", "namespace": "ns"}, "spec": {"clusterSet": "s2"}}
    with pytest.raises(Refused, match="must have the same name as the target ManagedClusterSet"):
        check_binding(binding, binding, BOB)
