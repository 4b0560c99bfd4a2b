"""The rights in ``deploy/pull.yaml`` are what the pull model asks for: no less, and no rule too many."""

from __future__ import annotations

import pytest
from tests.assembly.test_deploy import manifests
from tests.fleet.test_pull_controllers import APPS, SETS, application, in_a_set, report, works
from tests.fleet.world import Fleet

from syncline.assembly.embedded.install import ensure_objects, install_missing, not_established
from syncline.assembly.fleet.pull import foreign_pull_objects, pull_role
from syncline.cluster.access.authz import Decision
from syncline.cluster.access.rbac import Attributes, rules_of
from syncline.cluster.access.users import UserInfo
from syncline.control.executor import run_in_place
from syncline.control.leader import LeaderSettings, Share, release_all, share_round
from syncline.fleet.pull.controllers.parts import PullSettings

CLUSTER_GROUP = "cluster.open-cluster-management.io"
GITOPS = "/apis/apps.open-cluster-management.io/v1beta1/namespaces/argocd/gitopsclusters"


EVERY = {"clusterSelector": {}, "maxUnavailable": 1}


def _story(fleet: Fleet) -> None:
    """Two Applications come, ask for a sync, report and go; a GitOpsCluster brings a cluster, which leaves."""
    send = fleet.hub.send
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}, "spec": {}}
    send("POST", "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", project)
    in_a_set(fleet, "c1")
    send("POST", APPS.format("argocd"), application("web", operation={"sync": {}}))
    query = {"apiVersion": "syncline.dev/v1alpha1", "kind": "ApplicationQuery", "metadata": {"name": "q"}}
    asked = {"application": {"namespace": "argocd", "name": "web"}, "ask": "diff", "askedBy": "kubernetes-admin"}
    send("POST", "/apis/syncline.dev/v1alpha1/namespaces/c1/applicationqueries", {**query, "spec": asked})
    send("PATCH", "/apis/rbac.authorization.k8s.io/v1/namespaces/c1/roles/syncline:reports", {"rules": []})
    budget = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetDisruptionBudget", "metadata": {"name": "all"}}
    send("POST", "/apis/syncline.dev/v1alpha1/fleetdisruptionbudgets", {**budget, "spec": EVERY})
    ordered = application("ordered")
    ordered["metadata"]["annotations"]["syncline.dev/healthy-for"] = "1s"
    send("POST", APPS.format("argocd"), ordered)
    fleet.time.advance(30)
    for work in works(fleet):
        report(fleet, work, syncStatus="Synced", healthStatus="Healthy")
    send("DELETE", f"{APPS.format('argocd')}/web")
    labels = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": labels}}
    send("POST", "/api/v1/namespaces/argocd/services", {**service, "spec": {"ports": [{"port": 443}]}})
    placement = {"apiVersion": f"{CLUSTER_GROUP}/v1beta1", "kind": "Placement", "name": "p"}
    made = {"apiVersion": "apps.open-cluster-management.io/v1beta1", "kind": "GitOpsCluster", "metadata": {"name": "g"}}
    spec = {"argoServer": {"argoNamespace": "argocd"}, "placementRef": placement, "createBlankClusterSecrets": True}
    send("POST", GITOPS, {**made, "spec": spec})
    base = f"/apis/{CLUSTER_GROUP}/v1beta1/namespaces/argocd"
    bound = {"apiVersion": f"{CLUSTER_GROUP}/v1beta2", "kind": "ManagedClusterSetBinding"}
    of_all = {**bound, "metadata": {"name": "global"}, "spec": {"clusterSet": "global"}}
    send("POST", f"/apis/{CLUSTER_GROUP}/v1beta2/namespaces/argocd/managedclustersetbindings", of_all)
    kind = {key: placement[key] for key in ("apiVersion", "kind")}
    send("POST", f"{base}/placements", {**kind, "metadata": {"name": "p"}, "spec": {}})
    fleet.time.advance(400)
    blank = "/api/v1/namespaces/argocd/secrets/c1-application-manager-cluster-secret"
    assert not fleet.hub.absent(blank)
    send("PATCH", blank, {"metadata": {"labels": {"apps.open-cluster-management.io/acm-cluster": "other"}}})
    fleet.time.advance(400)
    send("PATCH", GITOPS + "/g", {"spec": {"managedServiceAccountRef": "msa"}})
    fleet.time.advance(400)
    send("DELETE", f"{SETS}/set")
    send("DELETE", f"/apis/{CLUSTER_GROUP}/v1/managedclusters/c1")
    fleet.time.advance(400)


@pytest.fixture(scope="module")
def asked() -> dict[Attributes, bool]:
    fleet, settings, found = Fleet(), PullSettings(), dict[Attributes, bool]()
    role, core = pull_role(settings), fleet.hub.core
    run_in_place(ensure_objects(manifests("pull.yaml")), fleet.hub.admin)
    decide = core.authorizer.decide

    def recording(user: UserInfo, attributes: Attributes) -> Decision:
        decision = decide(user, attributes)
        if user.name == role.user.name:
            found[attributes] = decision.allowed
        return decision

    core.authorizer.decide = recording  # type: ignore[method-assign]
    transport = core.transport(role.user)
    missing = foreign_pull_objects(settings)
    while missing:
        missing = run_in_place(install_missing(missing), transport)
        fleet.time.advance(1)
    crds = [one for one in foreign_pull_objects(settings) if one["kind"] == "CustomResourceDefinition"]
    assert run_in_place(not_established(crds), transport) == []
    leader, now = LeaderSettings("a", "argocd", name="syncline-pull-controller"), fleet.clock.now()
    share = Share()
    for _ in range(2):
        share = run_in_place(share_round(share, leader, now), transport)
    assert share.held
    run_in_place(release_all(share, leader, now), transport)
    fleet.start_role(role)
    fleet.add("c1")
    _story(fleet)
    return found


def test_the_controllers_of_the_pull_model_are_refused_nothing(asked: dict[Attributes, bool]) -> None:
    # The API server asks for these verbs first; who holds the granted rights needs neither.
    granting = ("escalate", "bind")
    assert [each for each, allowed in asked.items() if not allowed and each.verb not in granting] == []


GRANTED = ("placementdecisions", "placementrules")
"""What generators get from a Role: the API server lets only those grant it who have it, and asks for no verb."""
RULES = [
    (manifest["metadata"].get("namespace", ""), rule)
    for manifest in manifests("pull.yaml")
    if manifest["kind"] in ("Role", "ClusterRole")
    for rule in manifest["rules"]
    if not (rule["verbs"] == ["list"] and set(rule["resources"]) <= set(GRANTED))
]


@pytest.mark.parametrize("dropped", range(len(RULES)))
def test_without_one_rule_something_is_refused(dropped: int, asked: dict[Attributes, bool]) -> None:
    kept = [(space, rules_of({"rules": [rule]})[0]) for n, (space, rule) in enumerate(RULES) if n != dropped]

    def allowed(one: Attributes) -> bool:
        return any(rule.allows(one) for space, rule in kept if space in ("", one.namespace))

    assert [one for one in asked if one.resource and asked[one] and not allowed(one)], RULES[dropped]
