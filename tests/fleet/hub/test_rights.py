"""The rights in ``deploy/hub.yaml`` are what the role asks for: no less, and no rule too many."""

from __future__ import annotations

from typing import Any

import pytest
from tests.assembly.test_deploy import manifests
from tests.fleet.addons.hubs import PLACEMENTS, SETS, TEMPLATE_KIND, TEMPLATES, WIDE, by, cluster_addon
from tests.fleet.addons.test_template import CLIENT, deployment, template
from tests.fleet.hub.hubs import BOOTSTRAP, CLUSTER, CSRS, Hub, agent, core_of, csr, hub_of
from tests.fleet.hub.test_admission import cluster
from tests.fleet.rollouts import BUDGETS, REPLICA_SETS
from tests.fleet.rollouts import template as work_template

from syncline.assembly.embedded.install import ensure_objects, install_missing
from syncline.assembly.fleet.hub import HUB_MANAGER, HUB_NAMESPACE, HubSettings
from syncline.assembly.fleet.objects import foreign_hub_objects
from syncline.assembly.fleet.webhookserver import shared_authority
from syncline.cluster.access.authz import Decision
from syncline.cluster.access.rbac import Attributes, rules_of
from syncline.cluster.access.users import UserInfo, service_account_user
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings, Share, release_all, share_round
from syncline.fleet.hub.registration.leases import ACCEPTED
from syncline.kube.client import Request, Transport
from syncline.kube.errors import Forbidden
from syncline.kube.objects import Obj

ACCOUNT = service_account_user(HUB_NAMESPACE, HUB_MANAGER)
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
GRANTS = next(one for one in manifests("hub.yaml") if one["metadata"]["name"] == "syncline-hub-grants")["rules"]
RULES = [
    (manifest["metadata"].get("namespace", ""), rule)
    for manifest in manifests("hub.yaml")
    if manifest["kind"] in ("Role", "ClusterRole") and manifest["metadata"]["name"] != "syncline-hub-grants"
    for rule in manifest["rules"]
]


def hub_with(rights: list[Obj]) -> tuple[Hub, dict[Attributes, bool]]:
    """A hub whose account has these rights alone, and everything that it asked for."""
    core, asked = core_of(), dict[Attributes, bool]()
    run_in_place(ensure_objects(rights), core.transport())
    decide = core.authorizer.decide

    def recording(user: UserInfo, attributes: Attributes) -> Decision:
        decision = decide(user, attributes)
        if user.name == ACCOUNT.name:
            asked[attributes] = decision.allowed
        return decision

    core.authorizer.decide = recording  # type: ignore[method-assign]
    account = core.transport(ACCOUNT)
    missing = foreign_hub_objects()
    for _ in range(10):
        missing = run_in_place(install_missing(missing), account) if missing else []
    assert not missing
    lead(account, core.clock.now())
    return hub_of(HubSettings(auto_approve_users=(BOOTSTRAP.name,)), core=core), asked


def lead(account: Transport, now: Any) -> None:
    """A replica makes the authority of the webhooks, takes its Lease, and gives it back."""
    pair, _ = run_in_place(shared_authority(now), account)
    assert run_in_place(shared_authority(now), account)[0] == pair
    share, leader = Share(), LeaderSettings("a", "argocd", name="syncline-hub-controller")
    for _ in range(2):
        share = run_in_place(share_round(share, leader, now), account)
    assert share.held and not share.trouble
    run_in_place(release_all(share, leader, now), account)


def story(hub: Hub) -> None:
    """Clusters join, get works and an add-on by Placements, are denied, and leave."""
    version = "cluster.open-cluster-management.io/v1beta2"
    binding = {"apiVersion": version, "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"}}
    hub.send(
        "POST", f"{SETS}/namespaces/default/managedclustersetbindings", binding | {"spec": {"clusterSet": "global"}}
    )
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement"}
    hub.send("POST", PLACEMENTS, kind | {"metadata": {"name": "p"}, "spec": {}})
    hub.join(accepted=False)
    hub.asks(BOOTSTRAP, "POST", CSRS, csr("c1")).or_raise()
    assert hub.condition(ACCEPTED) == ("True", "HubClusterAdminAccepted")
    hub.asks(agent("c1"), "POST", CSRS, csr("c1", "r2")).or_raise()
    assert hub.approval("r2")
    hub.available("True")
    hub.send("POST", CLUSTER, cluster("c2", hubAcceptsClient=True))
    budget = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetDisruptionBudget", "metadata": {"name": "b"}}
    hub.send("POST", BUDGETS, budget | {"spec": {"clusterSelector": {}, "maxUnavailable": 1}})
    made = {"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet"}
    spec = {"placementRefs": [{"name": "p"}], "manifestWorkTemplate": work_template(rules=False)}
    hub.send("POST", REPLICA_SETS, made | {"metadata": {"name": "s"}, "spec": spec})
    hub.send("POST", TEMPLATES, template(deployment(), registration=(CLIENT,)))
    hub.send("POST", WIDE, cluster_addon("a", by("p"), configs=(TEMPLATE_KIND | {"defaultConfig": {"name": "t"}},)))
    hub.time.advance(60)
    hub.send("PATCH", f"{REPLICA_SETS}/s", {"spec": {"manifestWorkTemplate": work_template("2", rules=False)}})
    hub.time.advance(60)
    hub.send(
        "PATCH",
        f"{SETS}/managedclustersets/global",
        {"spec": {"clusterSelector": {"labelSelector": {"matchLabels": {"a": "b"}}}}},
    )
    hub.send("DELETE", f"{SETS}/managedclustersets/default")
    for one in hub.get(HOOKS)["items"]:
        hub.send("PATCH", f"{HOOKS}/{one['metadata']['name']}", {"spec": {"failurePolicy": "Ignore"}})
        hub.send("DELETE", f"{HOOKS}/{one['metadata']['name']}")
    hub.send("DELETE", f"{PLACEMENTS}/p")
    hub.send("DELETE", f"{REPLICA_SETS}/s")
    hub.send("DELETE", f"{WIDE}/a")
    hub.time.advance(400)
    hub.accept(False)
    hub.send("DELETE", f"{CLUSTER}/c1")
    hub.time.advance(60)


@pytest.fixture(scope="module")
def asked() -> dict[Attributes, bool]:
    hub, asked = hub_with(manifests("hub.yaml"))
    story(hub)
    return asked


def test_the_controllers_of_a_hub_are_refused_nothing(asked: dict[Attributes, bool]) -> None:
    # The API server asks for these verbs first; who holds the granted rights needs neither.
    assert [each for each, allowed in asked.items() if not allowed and each.verb not in ("escalate", "bind")] == []


@pytest.mark.parametrize("dropped", range(len(RULES)))
def test_without_one_rule_something_is_refused(dropped: int, asked: dict[Attributes, bool]) -> None:
    kept = [(space, rules_of({"rules": [rule]})[0]) for n, (space, rule) in enumerate(RULES) if n != dropped]

    def allowed(one: Attributes) -> bool:
        return any(rule.allows(one) for space, rule in kept if space in ("", one.namespace))

    assert [one for one in asked if one.resource and not allowed(one)], RULES[dropped]


@pytest.mark.parametrize("dropped", range(len(GRANTS)))
def test_without_one_granted_right_no_cluster_is_accepted(dropped: int) -> None:
    rights = manifests("hub.yaml")
    role = next(one for one in rights if one["metadata"]["name"] == "syncline-hub-grants")
    role["rules"] = [rule for number, rule in enumerate(role["rules"]) if number != dropped]
    try:
        hub, _ = hub_with(rights)
    except Forbidden as refusal:
        assert "attempting to grant RBAC permissions not currently held" in str(refusal)
        return
    hub.admin.send(Request("POST", CLUSTER, body=cluster(hubAcceptsClient=True))).or_raise()
    hub.time.advance(2)
    conditions = hub.admin.send(Request("GET", f"{CLUSTER}/c1")).or_raise()["status"]["conditions"]
    assert next((one["status"], one["reason"]) for one in conditions if one["type"] == ACCEPTED) == ("False", "Error")
