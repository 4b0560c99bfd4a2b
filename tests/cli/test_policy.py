"""``syncline policy``: what it prints of what the hub's controllers and two agents wrote in virtual time."""

from __future__ import annotations

import pytest
from tests.patterns.policies.world import Policies, binding, made, namespace, policy, template

from syncline.assembly.inspection.fleet import fleet_snapshot
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.fleet.policy import (
    describe_copy,
    describe_policy,
    is_good,
    policy_obj,
    policy_rows,
    repaired,
)
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.explain.graph import explain_object
from syncline.explain.view import View
from syncline.kube.kinds.governance import BINDING, POLICY, POLICY_SET
from syncline.kube.kinds.hive import CLUSTER_POOL
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION
from syncline.kube.objects import Obj, ObjectRef, name_of
from syncline.patterns.policies.hub.explaining import explain_copy
from syncline.patterns.policies.names import ROOT_LABEL

READ = [one.group_kind for one in (POLICY, BINDING, POLICY_SET, MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION)]


@pytest.fixture(scope="module")
def hub() -> Policies:
    fleet = Policies("c1", "c2")
    fleet.post(policy("good", template("good-config", namespace("good"))))
    fleet.bind("good")
    fleet.post(policy("bad", template("bad-config", namespace("bad"), action="inform"), remediationAction="inform"))
    fleet.bind("bad")
    fleet.post(policy("alone", template("alone-config", namespace("alone"))))
    fleet.post(policy("off", template("off-config", namespace("off")), disabled=True))
    fleet.post(policy("ruled", template("ruled-config", namespace("ruled"))))
    rule = {"apiGroup": "apps.open-cluster-management.io", "kind": "PlacementRule", "name": "old"}
    fleet.post({**binding("ruled", "ruled"), "placementRef": rule})
    fleet.time.advance(60)
    return fleet


def cache(hub: Policies) -> Cache:
    return run_in_place(fleet_snapshot(READ), hub.hub.admin).cache


def roots(hub: Policies) -> list[Obj]:
    return cache(hub).objects(POLICY.group_kind, "policies")


def explained(hub: Policies, name: str) -> tuple[bool, str]:
    view = View(cache(hub), hub.clock.now())
    obj = view.cluster.get(ObjectRef(*POLICY.group_kind, "policies", name))
    assert obj is not None
    found = explain_object(view, obj)
    return found.blocked, describe_cause(found.cause, view.now)


def test_a_list_says_what_each_policy_does_and_whether_clusters_comply(hub: Policies) -> None:
    assert policy_rows(roots(hub), hub.clock.now()) == "\n".join(
        (
            "NAMESPACE   NAME    ACTION   STATE          CLUSTERS   AGE",
            "policies    alone   -        NotPlaced      -          60s",
            "policies    bad     inform   NonCompliant   0/2        60s",
            "policies    good    -        Compliant      2/2        60s",
            "policies    off     -        Disabled       -          60s",
            "policies    ruled   -        NotPlaced      -          60s",
        )
    )
    assert [name_of(one) for one in roots(hub) if is_good(one)] == ["good", "off"]
    copies = cache(hub).objects(POLICY.group_kind, "c1")
    wide = policy_rows(roots(hub), hub.clock.now(), copies=copies, wide=True).splitlines()
    assert wide[2].split()[-6:] == ["-", "c1:", "namespaces", "[bad]", "not", "found"]


def test_one_policy_is_shown_with_its_bindings_and_clusters(hub: Policies) -> None:
    copies = [hub.copy("bad", one) for one in ("c1", "c2")]
    assert describe_policy(hub.root("bad"), copies, hub.clock.now()) == "\n".join(
        (
            "Policy policies/bad: NonCompliant",
            "  action:      inform",
            "  templates:   ConfigurationPolicy/bad-config",
            "  binding:     bad to all",
            "",
            "CLUSTER   STATE          SINCE   LAST CHANGE   MESSAGE",
            "c1        NonCompliant   60s     -             namespaces [bad] not found",
            "c2        NonCompliant   60s     -             namespaces [bad] not found",
        )
    )
    assert describe_copy(copies[0], hub.clock.now()).splitlines()[1:] == [
        "  template bad-config: NonCompliant",
        "    60s ago: NonCompliant; violation - namespaces [bad] not found",
    ]
    found = policy_obj(hub.root("bad"), copies)
    assert [(one["cluster"], one["compliant"]) for one in found["clusters"]] == [
        ("c1", "NonCompliant"),
        ("c2", "NonCompliant"),
    ]


def test_an_explanation_leads_to_the_message_of_a_cluster_and_what_to_do(hub: Policies) -> None:
    blocked, text = explained(hub, "bad")
    assert blocked
    assert "0 of 2 clusters comply" in text
    assert "template bad-config NonCompliant for 60s: namespaces [bad] not found" in text
    assert "set remediationAction: enforce" in text
    assert explained(hub, "good")[0] is False
    assert explained(hub, "off")[0] is False


def copy_of(action: str, *told: str) -> Obj:
    """Return a copy of a policy with one template that told these messages, the last first."""
    history = [{"lastTimestamp": f"2026-01-01T00:00:{50 - 10 * at:02}Z", "message": one} for at, one in enumerate(told)]
    details = [{"templateMeta": {"name": "t"}, "compliant": told[0].partition(";")[0], "history": history}]
    made = policy("p", template("t"), remediationAction=action)
    metadata = {**made["metadata"], "labels": {ROOT_LABEL: "policies.p"}, "namespace": "c1"}
    return {**made, "metadata": metadata, "status": {"compliant": details[0]["compliant"], "details": details}}


FINE, BAD = "notification - roles [a] found as specified", "violation - maps [b] not found"
DRIFTED = (
    "NonCompliant; " + BAD,
    "Compliant; notification - maps [b] was created successfully",
    f"NonCompliant; {BAD}",
)


def test_a_history_tells_what_is_new_and_when_the_cluster_was_changed(hub: Policies) -> None:
    copy, now = copy_of("inform", f"NonCompliant; {FINE}; {BAD}", f"Compliant; {FINE}"), hub.clock.now()
    assert describe_copy(copy, now).splitlines()[2].endswith(f"ago: NonCompliant; {BAD}")
    assert repaired(copy) is None
    changed = repaired(copy_of("enforce", *DRIFTED))
    assert changed is not None and changed.second == 40


def test_an_explanation_counts_from_the_last_drift_and_says_who_tries_what() -> None:
    explained = explain_copy(copy_of("enforce", *DRIFTED)).cause
    (below,) = explained.because
    assert (below.message, below.since) == ("maps [b] not found", explained.since)
    assert below.since is not None and below.since.second == 50
    assert below.next_action.startswith("it is enforced, and the agent tries again")
    assert "set remediationAction" in explain_copy(copy_of("inform", *DRIFTED)).cause.because[0].next_action


def test_an_explanation_names_the_binding_that_is_missing_or_unsupported(hub: Policies) -> None:
    assert "none in namespace policies names the policy" in explained(hub, "alone")[1]
    assert "PlacementRule old is not supported here: nothing decides it" in explained(hub, "ruled")[1]


def test_what_nothing_acts_on_says_so(hub: Policies) -> None:
    pool = made("hive.openshift.io/v1", "ClusterPool", "pool", "policies")
    hub.hub.send("POST", "/apis/hive.openshift.io/v1/namespaces/policies/clusterpools", {**pool, "spec": {"size": 1}})
    view = View(run_in_place(fleet_snapshot([CLUSTER_POOL.group_kind]), hub.hub.admin).cache, hub.clock.now())
    (found,) = view.cluster.objects(CLUSTER_POOL.group_kind)
    text = describe_cause(explain_object(view, found).cause, view.now)
    assert "no controller of ClusterPool is here" in text
