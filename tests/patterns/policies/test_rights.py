"""The rights in ``deploy/policies.yaml`` are what the role asks for: no less, and no rule too many. A hub without the
role costs its agents nothing, and one with it is asked for leases only while nothing changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from tests.assembly.test_deploy import manifests
from tests.fleet.world import Fleet, Member
from tests.patterns.policies.world import POLICY, Policies, binding, made, namespace, policy, template

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.policies import policies_role, policy_objects
from syncline.assembly.inspection.pulled import pulled
from syncline.cluster.access.authz import Decision
from syncline.cluster.access.rbac import Attributes, rules_of
from syncline.cluster.access.users import UserInfo
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings, Share, release_all, share_round
from syncline.explain.graph import explain_object
from syncline.explain.view import View
from syncline.kube.client import Request, Response, Transport


@pytest.fixture(scope="module")
def asked() -> dict[Attributes, bool]:
    """Return what the role asked of a hub in a long story, and whether it was allowed."""
    fleet, found = Policies(role=False), dict[Attributes, bool]()
    run_in_place(ensure_objects(manifests("policies.yaml")), fleet.hub.admin)
    run_in_place(ensure_objects(policy_objects()), fleet.hub.admin)
    fleet.time.advance(2)
    role, core = policies_role(), fleet.hub.core
    decide = core.authorizer.decide

    def recording(user: UserInfo, attributes: Attributes) -> Decision:
        decision = decide(user, attributes)
        if user.name == role.user.name:
            found[attributes] = decision.allowed
        return decision

    core.authorizer.decide = recording  # type: ignore[method-assign]
    leader, now = LeaderSettings("a", "argocd", name="syncline-policies-controller"), fleet.clock.now()
    share = Share()
    for _ in range(2):
        share = run_in_place(share_round(share, leader, now), core.transport(role.user))
    assert share.held
    run_in_place(release_all(share, leader, now), core.transport(role.user))
    fleet.start_role(role)
    _story(fleet)
    return found


def _story(fleet: Policies) -> None:
    fleet.add("c1")
    fleet.time.settle()
    send = fleet.hub.send
    for kind in ("ConfigMap", "Secret"):
        one = {**made("v1", kind, "known", "policies"), "data": {"a": "YQ=="}}
        send("POST", f"/api/v1/namespaces/policies/{kind.lower()}s", one)
    account = made("v1", "ServiceAccount", "reader", "policies")
    send("POST", "/api/v1/namespaces/policies/serviceaccounts", account)
    text = '{{hub fromConfigMap "policies" "known" "a" hub}}{{hub fromSecret "policies" "known" "a" | protect hub}}'
    looked = '{{hub (lookup "cluster.open-cluster-management.io/v1" "ManagedCluster" "" "c1").metadata.name hub}}'
    for name, value, options in (
        ("one", text, {}),
        ("two", looked, {}),
        ("three", looked, {"hubTemplateOptions": {"serviceAccountName": "reader"}}),
    ):
        one = {**made("v1", "ConfigMap", name, "default"), "data": {"a": value}}
        fleet.post(policy(name, template(name, one), **options))
        fleet.post(binding(name, name))
    fleet.post(
        {
            **made("policy.open-cluster-management.io/v1beta1", "PolicySet", "set", "policies"),
            "spec": {"policies": ["one"]},
        }
    )
    fleet.time.advance(60)
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/c1/roles/syncline-policies"
    send("PATCH", roles, {"rules": []})
    fleet.patch("one", remediationAction="inform")
    fleet.time.advance(60)
    send("DELETE", f"{POLICY.format('policies')}/two")
    send("DELETE", "/apis/cluster.open-cluster-management.io/v1/managedclusters/c1")
    fleet.time.advance(200)


def test_the_role_is_refused_nothing(asked: dict[Attributes, bool]) -> None:
    assert [each for each, allowed in asked.items() if not allowed and each.verb not in ("escalate", "bind")] == []


GRANTED = (["get"], ["update"])
"""What agents get from a Role: only those may grant it who have it, and no verb is asked for."""
RULES = [
    (manifest["metadata"].get("namespace", ""), rule)
    for manifest in manifests("policies.yaml")
    if manifest["kind"] in ("Role", "ClusterRole")
    for rule in manifest["rules"]
    if rule["verbs"] not in GRANTED
]


@pytest.mark.parametrize("dropped", range(len(RULES)))
def test_without_one_rule_something_is_refused(dropped: int, asked: dict[Attributes, bool]) -> None:
    kept = [(space, rules_of({"rules": [rule]})[0]) for n, (space, rule) in enumerate(RULES) if n != dropped]

    def allowed(one: Attributes) -> bool:
        return any(rule.allows(one) for space, rule in kept if space in ("", one.namespace))

    assert [one for one in asked if one.resource and asked[one] and not allowed(one)], RULES[dropped]


# -- at rest -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Meter:
    """Counts what passes."""

    inner: Transport
    seen: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    def send(self, request: Request) -> Response:
        answer = self.inner.send(request)
        self.seen[request.method, request.path, answer.status] += 1
        return answer


def metered(member: Member) -> Meter:
    member.hub_cable.inner = meter = Meter(member.hub_cable.inner)
    return meter


LEASE = "/apis/coordination.k8s.io/v1/namespaces/c1/leases/managed-cluster-lease"
AT_REST = {("PUT", LEASE, 200), ("GET", "/api", 200), ("GET", "/apis", 200)}
"""A lease, and a look for kinds that come later: those of roles that this hub does not have."""


@pytest.mark.parametrize("kinds", [False, True], ids=["no policies", "no rights"])
def test_an_agent_asks_a_hub_without_the_role_for_its_kinds_at_times_and_says_nothing(kinds: bool) -> None:
    fleet = Fleet()
    if kinds:
        crds = [one for one in policy_objects() if one["kind"] == "CustomResourceDefinition"]
        run_in_place(ensure_objects(crds), fleet.hub.admin)
    fleet.time.advance(5)
    member = fleet.add("c1")
    fleet.time.advance(600)
    meter, told = metered(member), len(fleet.journal)
    fleet.time.advance(3600)
    assert meter.seen.keys() == AT_REST
    assert all(count == 6 for (method, _, _), count in meter.seen.items() if method == "GET")
    told_later = [one for one in list(fleet.journal)[told:] if "polic" in f"{one.subject} {one.what}".lower()]
    assert told_later == []


def test_an_agent_that_is_older_than_the_role_carries_policies_out_within_minutes() -> None:
    fleet = Policies("c1", role=False)
    fleet.time.advance(1000)
    fleet.start_policies()
    fleet.post(policy("late", template("late", namespace("late"))))
    fleet.bind("late")
    fleet.time.advance(700)
    assert fleet.root("late")["status"]["compliant"] == "Compliant"


def explained(fleet: Fleet) -> list[str]:
    view = View(pulled(fleet.hub.admin, {}), fleet.clock.now())
    return [one.state for one in explain_object(view, fleet.cluster("c1")).cause.because]


def test_explain_says_that_policies_do_not_reach_a_cluster() -> None:
    fleet = Fleet("c1")
    fleet.time.advance(30)
    assert "NoRights" not in explained(fleet), "this hub has no policies at all"
    crds = [one for one in policy_objects() if one["kind"] == "CustomResourceDefinition"]
    run_in_place(ensure_objects(crds), fleet.hub.admin)
    assert "NoRights" in explained(fleet)
    with_role = Policies("c1")
    with_role.time.advance(30)
    assert "NoRights" not in explained(with_role)


def test_an_hour_in_which_nothing_changes_costs_the_hub_leases_only() -> None:
    fleet = Policies("c1")
    fleet.post(policy("rest", template("rest", namespace("rest"))))
    fleet.bind("rest")
    fleet.time.advance(600)
    assert fleet.root("rest")["status"]["compliant"] == "Compliant"
    meter = metered(fleet.members["c1"])
    before = fleet.hub.get("/apis/policy.open-cluster-management.io/v1/policies")["metadata"]["resourceVersion"]
    fleet.time.advance(3600)
    assert meter.seen.keys() == AT_REST
    listed = fleet.hub.get("/apis/policy.open-cluster-management.io/v1/policies")
    assert all(int(one["metadata"]["resourceVersion"]) <= int(before) for one in listed["items"])
