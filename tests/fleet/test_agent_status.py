"""What an agent writes about its cluster, when it gives a sign of life, and when its certificate is due."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from syncline.control.plan import Emit, Plan, Requeue, Result, SetStatus
from syncline.fleet.conditions import condition, find_condition
from syncline.fleet.hub.registration.leases import ACCEPTED, AVAILABLE, CLOCK_SYNCED, SKIP_CLOCK
from syncline.fleet.hub.registration.requests import bootstrap, subject_of
from syncline.fleet.spoke.registration.beats import Beat, Renewal, RenewLease, plan_beat
from syncline.fleet.spoke.registration.certificates import (
    MAX_REQUESTS,
    due_at,
    expiration_problem,
    identity,
    is_ours,
    named_by,
    request,
    rotated,
)
from syncline.fleet.spoke.registration.claims import TRUNCATED, Claims, exposed
from syncline.fleet.spoke.registration.health import Answer, Health
from syncline.fleet.spoke.registration.resources import Resources, resources_of
from syncline.fleet.spoke.registration.rotation import Observed as Rotation
from syncline.fleet.spoke.registration.rotation import Rotate, plan_rotation
from syncline.fleet.spoke.registration.status import Observed, Probe, plan_status, settle_status
from syncline.kube.certificates import Validity, client_key
from syncline.kube.objects import Obj

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
UP, DOWN = Answer(200, version="v1.36.0"), Answer(500, "etcd failed")
HEALTHY = Health().noted(UP, NOW)
YES = condition(ACCEPTED, "True", "HubClusterAdminAccepted")
JOINED = condition("ManagedClusterJoined", "True", "ManagedClusterJoined")


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def cluster(*conditions: Obj, annotations: dict[str, str] | None = None, **status: object) -> Obj:
    metadata = {"name": "c1", "uid": "u", "resourceVersion": "7", "annotations": annotations or {}}
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
    return {**kind, "metadata": metadata, "spec": {}, "status": {"conditions": list(conditions), **status}}


def written(plan: Plan) -> Obj:
    (action,) = (one for one in plan.actions if isinstance(one, SetStatus))
    return action.new


def said(plan: Plan) -> list[str]:
    return [one.event_reason for step in plan.steps for one in step if isinstance(one, Emit)]


# -- the status ------------------------------------------------------------------------------------------------------


def test_b2_an_agent_writes_nothing_before_the_hub_accepts() -> None:
    assert plan_status(Observed(cluster(), HEALTHY), NOW).empty
    denied = condition(ACCEPTED, "False", "HubClusterAdminDenied")
    assert plan_status(Observed(cluster(denied), Health()), NOW).empty
    assert plan_beat(Beat(cluster(denied)), NOW).empty


def test_an_accepted_cluster_joins_once_and_shows_what_it_has() -> None:
    observed = Observed(
        cluster(YES), HEALTHY, Resources({"cpu": "4"}, {"cpu": "3"}), Claims(({"name": "a", "value": "b"},))
    )
    plan = plan_status(observed, NOW)
    status = written(plan)
    assert find_condition(status["conditions"], "ManagedClusterJoined") == {
        **JOINED,
        "message": "Managed cluster joined",
        "lastTransitionTime": "2026-07-01T12:00:00Z",
    }
    assert status["version"] == {"kubernetes": "v1.36.0"}
    assert (status["capacity"], status["allocatable"]) == ({"cpu": "4"}, {"cpu": "3"})
    assert status["clusterClaims"] == [{"name": "a", "value": "b"}]
    assert said(plan) == ["Available"]
    again = {**cluster(), "status": status}
    assert plan_status(Observed(again, HEALTHY, observed.resources, observed.claims), after(30)).empty


def test_what_is_not_known_of_the_cluster_stays_on_the_hub() -> None:
    have = {"capacity": {"cpu": "4"}, "clusterClaims": [{"name": "a", "value": "b"}]}
    status = written(plan_status(Observed(cluster(YES, **have), HEALTHY), NOW))
    assert {key: status[key] for key in have} == have


def test_capacities_of_others_are_kept() -> None:
    live = cluster(YES, JOINED, capacity={"example.com/licences": "7", "cpu": "1"}, allocatable={"x": "1"})
    status = written(plan_status(Observed(live, HEALTHY, Resources({"cpu": "4"}, {"cpu": "3"})), NOW))
    assert status["capacity"] == {"example.com/licences": "7", "cpu": "4"}
    assert status["allocatable"] == {"cpu": "3"}


@pytest.mark.parametrize(
    ("synced", "annotations", "writes"),
    [("False", {}, False), ("False", {SKIP_CLOCK: "true"}, True), ("True", {}, True)],
)
def test_b18_with_another_time_than_the_hub_an_agent_writes_no_status(
    synced: str, annotations: dict[str, str], writes: bool
) -> None:
    live = cluster(YES, condition(CLOCK_SYNCED, synced, "R"), annotations=annotations)
    plan = plan_status(Observed(live, HEALTHY), NOW)
    assert bool(plan.steps) is writes
    assert writes or "clock is out of sync" in plan.why


def test_a_probe_comes_first_and_its_answer_counts_at_once() -> None:
    observed = Observed(cluster(YES), Health())
    plan = plan_status(observed, NOW)
    ((probe,),) = plan.steps
    assert isinstance(probe, Probe)
    settled = settle_status(observed, plan, (Result(probe, ok=True, value=HEALTHY),), NOW)
    assert settled is not None
    assert find_condition(written(settled[1])["conditions"], AVAILABLE) is not None
    assert settled[1].outcome == Requeue(60.0, "the next probe", background=True)


# -- health ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failing_s", "status"),
    [((0,), None), ((0, 5, 10), None), ((0, 5, 10, 15, 19.9), None), ((0, 5, 10, 15, 20), "False")],
)
def test_b16_a_failure_of_the_api_counts_after_20_seconds(failing_s: tuple[float, ...], status: str | None) -> None:
    health = HEALTHY
    for seconds in failing_s:
        health = health.noted(DOWN, after(60 + seconds))
    found = health.judged()
    assert (found and found["status"]) == status
    if found:
        assert found["reason"] == "ManagedClusterKubeAPIServerUnavailable"
        assert found["message"] == "The kube-apiserver is not ok, status code: 500, etcd failed"


def test_b16_a_short_failure_begins_again_after_a_success() -> None:
    health = HEALTHY
    for seconds, answer in ((0, DOWN), (15, DOWN), (16, UP), (17, DOWN), (30, DOWN)):
        health = health.noted(answer, after(seconds))
    assert health.judged() is None


def test_b16_probes_come_every_minute_and_every_5_seconds_after_a_failure() -> None:
    assert Health().next_probe() is None
    assert HEALTHY.next_probe() == after(60)
    assert HEALTHY.noted(DOWN, after(60)).next_probe() == after(65)


def test_b16_an_unavailable_cluster_keeps_what_it_had_and_says_so_once() -> None:
    up = condition(AVAILABLE, "True", "ManagedClusterAvailable")
    health = HEALTHY.noted(DOWN, after(60)).noted(DOWN, after(80))
    plan = plan_status(Observed(cluster(YES, JOINED, up, capacity={"cpu": "4"}), health, Resources({}, {})), after(81))
    assert written(plan)["capacity"] == {"cpu": "4"}
    assert said(plan) == ["Unavailable"]


# -- resources and claims --------------------------------------------------------------------------------------------


def node(cpu: str, memory: str = "8Gi", cordoned: bool = False) -> Obj:
    amounts = {"cpu": cpu, "memory": memory}
    return {"spec": {"unschedulable": cordoned}, "status": {"capacity": amounts, "allocatable": amounts}}


def test_b24_a_cordoned_node_counts_as_capacity_alone() -> None:
    found = resources_of([node("1500m"), node("2", cordoned=True)])
    assert found.capacity == {"cpu": "3500m", "memory": "16Gi"}
    assert found.allocatable == {"cpu": "1500m", "memory": "8Gi"}


def test_an_amount_that_cannot_be_read_does_not_count() -> None:
    assert resources_of([node("many"), node("2")]).capacity == {"cpu": "2", "memory": "16Gi"}


def claim(name: str, value: str = "v", **labels: str) -> Obj:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"value": value}}


def test_b22_reserved_claims_come_first_and_20_others_by_name() -> None:
    made = [claim(f"claim-{number:02}") for number in reversed(range(25))]
    found = exposed([*made, claim("platform.open-cluster-management.io", "AWS"), claim("id.k8s.io", "7")], [])
    names = [one["name"] for one in found.shown]
    assert names[:2] == ["id.k8s.io", "platform.open-cluster-management.io"]
    assert names[2:] == [f"claim-{number:02}" for number in range(20)]
    assert found.dropped == (
        "25 cluster claims are found. It exceeds the max number of custom cluster claims (20). "
        "5 custom cluster claims are not exposed."
    )
    plan = plan_status(Observed(cluster(YES, JOINED), HEALTHY, None, found), NOW)
    assert TRUNCATED in said(plan)


def test_b22_names_with_a_reserved_suffix_are_never_left_out() -> None:
    found = exposed([claim("a"), claim("z.example.com")], [], most=0, suffixes=(".example.com",))
    assert [one["name"] for one in found.shown] == ["z.example.com"]


def test_b23_a_claim_that_stays_on_its_cluster_is_not_shown() -> None:
    label = {"open-cluster-management.io/spoke-only": ""}
    assert exposed([claim("a", **label), claim("b")], []).shown == ({"name": "b", "value": "v"},)


def test_a_property_wins_over_a_claim_of_its_name() -> None:
    assert exposed([claim("a", "claim")], [claim("a", "property")]).shown == ({"name": "a", "value": "property"},)


# -- signs of life ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("duration", "draw", "since_s", "renews"),
    [
        (60, 0.0, 59.9, False),
        (60, 0.0, 60, True),
        (60, 1.0, 74.9, False),
        (60, 1.0, 75, True),
        (10, 0.5, 11, False),
        (10, 0.5, 11.3, True),
        (0, 0.0, 59, False),
        (60, 0.0, -3600, True),  # the clock was set back
    ],
)
def test_b12_a_lease_is_renewed_after_1_to_125_percent_of_its_duration(
    duration: int, draw: float, since_s: float, renews: bool
) -> None:
    one = cluster(YES)
    one["spec"]["leaseDurationSeconds"] = duration
    plan = plan_beat(Beat(one, Renewal(NOW, draw)), after(since_s))
    assert [type(action) for action in plan.actions] == ([RenewLease] if renews else [])
    assert isinstance(plan.outcome, Requeue)
    assert plan.outcome.background


# -- certificates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("draw", "left"), [(0.0, 0.2), (0.5, 0.225), (1.0, 0.25)])
def test_b9_a_certificate_is_due_at_20_to_25_percent_of_its_life(draw: float, left: float) -> None:
    validity = Validity(NOW, NOW + timedelta(days=100))
    due = NOW + timedelta(days=100 * (1 - left))
    assert abs(due_at(validity, draw) - due) < timedelta(seconds=1)
    early, late = due - timedelta(minutes=1), due + timedelta(minutes=1)
    assert plan_rotation(Rotation(cluster(YES), validity, draw), early).empty
    (action,) = plan_rotation(Rotation(cluster(YES), validity, draw), late).actions
    assert isinstance(action, Rotate)
    assert plan_rotation(Rotation(cluster(), validity, draw), late).empty, "the hub does not accept it"


def test_a_request_is_one_that_a_hub_approves_by_its_rules() -> None:
    made = request("c1", "a1", client_key(), 7200)
    assert made["metadata"] == {
        "generateName": "c1-",
        "labels": {"open-cluster-management.io/cluster-name": "c1"},
    }
    assert made["spec"]["expirationSeconds"] == 7200
    assert made["spec"]["usages"] == ["digital signature", "key encipherment", "client auth"]
    made["spec"]["username"] = "boot"

    pem = base64.b64decode(made["spec"]["request"]).decode()
    assert subject_of(made, pem).common_name == identity("c1", "a1").user
    assert bootstrap(made, pem, ["boot"]).approved


@pytest.mark.parametrize(
    ("user", "names"),
    [
        ("system:open-cluster-management:c1:a1", ("c1", "a1")),
        ("system:open-cluster-management:c1", None),
        ("system:open-cluster-management:c1:", None),
        ("system:open-cluster-management:c1:a:b", None),
        ("c1:a1", None),
    ],
)
def test_a_certificate_names_exactly_cluster_and_agent(user: str, names: tuple[str, str] | None) -> None:
    assert named_by(user) == names


@pytest.mark.parametrize(("seconds", "allowed"), [(0, True), (3599, False), (3600, True), (86400, True), (-1, False)])
def test_the_lifetime_asked_for_is_at_least_an_hour(seconds: int, allowed: bool) -> None:
    assert (expiration_problem(seconds) == "") is allowed


def test_b10_requests_of_addons_do_not_count() -> None:
    labels = {"open-cluster-management.io/cluster-name": "c1"}
    assert is_ours({"metadata": {"labels": labels}}, "c1")
    assert not is_ours({"metadata": {"labels": {**labels, "open-cluster-management.io/addon-name": "a"}}}, "c1")
    assert not is_ours({"metadata": {"labels": labels}}, "c2")
    assert MAX_REQUESTS == 10


def test_a_rotation_is_reported_in_upstreams_words() -> None:
    assert rotated(Validity(NOW, NOW + timedelta(hours=1))) == {
        "type": "ClusterCertificateRotated",
        "status": "True",
        "reason": "ClientCertificateUpdated",
        "message": "client certificate rotated starting from 2026-07-01 12:00:00 +0000 UTC to "
        "2026-07-01 13:00:00 +0000 UTC",
    }
