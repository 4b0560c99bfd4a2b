"""GitOpsClusters of argocd-pull-integration (v1alpha1) beside those of v1beta1: kept as they are, with a condition."""

from __future__ import annotations

import pytest
from tests.fleet.pulls import Table, gitops
from tests.fleet.world import Fleet

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.kube.errors import Invalid
from syncline.kube.objects import Obj

PATH = "/apis/apps.open-cluster-management.io/{}/namespaces/argocd/gitopsclusters"
SPEC = {
    "placementRef": {"name": "p"},
    "argoCDAgentAddon": {"principalServerAddress": "hub.test", "principalServerPort": "443", "mode": "managed"},
}


def test_a_v1alpha1_object_keeps_its_fields_and_says_what_is_not_supported() -> None:
    fleet, settings = Fleet(), PullSettings()
    fleet.start_role(pull_role(settings, objects=tuple(pull_objects(settings))))
    kind = {"apiVersion": "apps.open-cluster-management.io/v1alpha1", "kind": "GitOpsCluster"}
    fleet.hub.send("POST", PATH.format("v1alpha1"), {**kind, "metadata": {"name": "agents"}, "spec": SPEC})
    rbac = {"type": "RBACReady", "status": "True", "reason": "Success", "message": "x"}
    theirs = {"conditions": [{**rbac, "lastTransitionTime": "2026-01-01T00:00:00Z"}], "other": "y"}
    fleet.hub.send("PATCH", PATH.format("v1alpha1") + "/agents/status", {"status": theirs})
    fleet.time.advance(60)
    for version in ("v1alpha1", "v1beta1"):
        found = fleet.hub.get(f"{PATH.format(version)}/agents")
        assert found["spec"] == SPEC
        assert found["status"]["other"] == "y"
        conditions = {one["type"]: one for one in found["status"]["conditions"]}
        assert conditions["RBACReady"]["status"] == "True"
        ready = conditions["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "VersionNotSupported")
        assert "spec.argoCDAgentAddon) is not supported" in ready["message"]
    version = found["metadata"]["resourceVersion"]
    fleet.time.advance(600)
    assert fleet.hub.get(f"{PATH.format('v1beta1')}/agents")["metadata"]["resourceVersion"] == version


def test_a_v1beta1_object_still_needs_its_argo_cd() -> None:
    fleet, settings = Fleet(), PullSettings()
    fleet.start_role(pull_role(settings, objects=tuple(pull_objects(settings))))
    kind = {"apiVersion": "apps.open-cluster-management.io/v1beta1", "kind": "GitOpsCluster", "metadata": {"name": "g"}}
    with pytest.raises(Invalid, match=r"spec\.argoServer: Required value"):
        fleet.hub.send("POST", PATH.format("v1beta1"), {**kind, "spec": SPEC})


def _planned(spec: Obj, *objects: Obj) -> Obj:
    """The status of a GitOpsCluster whose Placement has cluster c1, after one pass, with the Secrets that it writes."""
    reference = {"kind": "Placement", "apiVersion": "cluster.open-cluster-management.io/v1beta1", "name": "p"}
    label = {"cluster.open-cluster-management.io/placement": "p"}
    decision = {"metadata": {"name": "p-1", "namespace": "argocd", "labels": label}}
    labels = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    table = Table(
        [
            {"kind": "Service", "metadata": {"name": "s", "namespace": "argocd", "labels": labels}},
            {"kind": "Placement", "metadata": {"name": "p", "namespace": "argocd"}},
            {**decision, "kind": "PlacementDecision", "status": {"decisions": [{"clusterName": "c1"}]}},
            {
                "apiVersion": "apps.open-cluster-management.io/v1beta1",
                "kind": "GitOpsCluster",
                "metadata": {"name": "g", "namespace": "argocd"},
                "spec": {"argoServer": {"argoNamespace": "argocd"}, "placementRef": reference, **spec},
            },
            *objects,
        ]
    )
    gitops(table)
    found = table.get("GitOpsCluster", "argocd", "g")
    assert found is not None
    return {**found["status"], "secrets": table.of("Secret", "argocd")}


def _cluster(*addresses: str) -> Obj:
    spec = {"managedClusterClientConfigs": [{"url": one} for one in addresses]}
    return {"kind": "ManagedCluster", "metadata": {"name": "c1"}, "spec": spec}


IMPORTED: Obj = {
    "kind": "Secret",
    "metadata": {"name": "c1-cluster-secret", "namespace": "c1"},
    "stringData": {"name": "c1", "config": '{"bearerToken": "t"}'},
}


@pytest.mark.parametrize(
    ("url", "server"), [("https://api.c1:6443", "https://api.c1:6443"), ("api.c1", "https://api.c1")]
)
def test_an_imported_secret_without_a_server_takes_the_address_of_its_cluster(url: str, server: str) -> None:
    status = _planned({}, _cluster(url, "https://other"), IMPORTED)
    assert status["phase"] == "successful"
    assert [one["stringData"]["server"] for one in status["secrets"]] == [server]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ('{"bearerToken": "t"}', "no client configs found for managed cluster: c1"),
        ("{}", "bearerToken field is missing or empty"),
        ("", "empty secret data config"),
    ],
)
def test_without_server_and_address_or_token_the_failure_is_upstreams(config: str, why: str) -> None:
    status = _planned({}, _cluster(), {**IMPORTED, "stringData": {"name": "c1", "config": config}})
    assert status["phase"] == "failed"
    assert status["message"].endswith(f"all options exhausted for managed cluster c1: {why}")


@pytest.mark.parametrize(("account", "ready"), [("", "True"), ("sa", "False")])
def test_a_policy_that_is_asked_for_is_said_to_be_missing(account: str, ready: str) -> None:
    spec = {"createPolicyTemplate": True, "createBlankClusterSecrets": True, "managedServiceAccountRef": account}
    status = _planned(spec, _cluster())
    said = {one["type"]: one for one in status["conditions"]}
    assert (said["PolicyTemplateReady"]["status"], said["Ready"]["status"]) == (ready, ready)
    assert status["phase"] == "successful", "the clusters are registered all the same"
