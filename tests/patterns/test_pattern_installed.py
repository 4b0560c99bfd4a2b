"""A Pattern on the embedded cluster, in virtual time: its reconcile order, its reports, and how it is taken down."""

from __future__ import annotations

from typing import Any

import pytest
from tests.patterns.installing import APPS, ARGOCDS, FILES, ORIGIN, PATTERNS, REPO, Installed

from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig

SUBSCRIPTIONS = "/apis/operators.coreos.com/v1alpha1/namespaces/openshift-operators/subscriptions"
CONFIG = "/api/v1/namespaces/openshift-operators/configmaps"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
PRUNE = "patterns.gitops.hybrid-cloud-patterns.io/prune"


def config(name: str, namespace: str = "default") -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def child(name: str = "child") -> Obj:
    spec = {
        "project": "default",
        "source": {"repoURL": "https://git.example.com/child", "path": ".", "targetRevision": "main"},
        "destination": {"name": "in-cluster", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    metadata = {
        "name": name,
        "namespace": "vp-gitops",
        "labels": {"validatedpatterns.io/pattern": "mypattern"},
        "finalizers": ["resources-finalizer.argocd.argoproj.io/foreground"],
    }
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def staged(**git: Any) -> Installed:
    stage = Installed()
    stage.repositories.objects = {
        "https://charts.validatedpatterns.io/": (config("of-the-group"), child()),
        "https://git.example.com/child": (config("of-the-child"),),
    }
    stage.install(**git)
    return stage


def test_a_pattern_is_installed_in_upstreams_order() -> None:
    stage = staged()
    stage.driver.advance(60)
    assert stage.step() == ("reconcile complete", "")
    done = [entry.what for entry in stage.world.journal if entry.what.startswith(("create ", "read "))]
    order = [
        "create /ConfigMap/openshift-operators/patterns-operator-config",
        "create operators.coreos.com/Subscription/openshift-operators/openshift-gitops-operator",
        "create /Namespace//vp-gitops",
        "create /ConfigMap/vp-gitops/trusted-ca-bundle",
        "create argoproj.io/ArgoCD/vp-gitops/vp-gitops",
        f"read {REPO}@main",
        "create argoproj.io/Application/vp-gitops/mypattern-hub",
    ]
    assert [one for one in done if one in order] == order
    assert stage.pattern()["metadata"]["finalizers"] == ["foregroundDeletePattern"]


def test_the_group_and_its_applications_are_synced_by_the_instance_of_the_argocd_object() -> None:
    stage = staged()
    stage.driver.advance(120)
    maps = stage.names("/api/v1/namespaces/default/configmaps")
    assert {"of-the-group", "of-the-child"} <= set(maps)
    listed = dig(stage.pattern(), "status", "applications")
    assert [(one["name"], one["syncStatus"], one["healthStatus"]) for one in listed] == [
        ("child", "Synced", "Healthy"),
        ("mypattern-hub", "Synced", "Healthy"),
    ]


def test_facts_of_openshift_reach_the_parent_and_its_certificates_are_awaited() -> None:
    stage = Installed(openshift=True)
    stage.install()
    step, error = stage.step()
    assert step == "waiting for trusted-ca-bundle to be populated"
    assert error == "trusted-ca-bundle configmap in vp-gitops not yet populated by cluster network operator"
    stage.patch("/api/v1/namespaces/vp-gitops/configmaps/trusted-ca-bundle", {"data": {"ca-bundle.crt": "PEM"}})
    stage.driver.advance(30)
    status = stage.pattern()["status"]
    facts = ("clusterName", "clusterPlatform", "clusterVersion", "clusterDomain", "clusterID")
    assert [status[one] for one in facts] == ["hub", "AWS", "4.16", "hub.example.com", "id-1"]
    parent = stage.parent()
    assert parent is not None
    assert "$patternref/values-AWS-4.16.yaml" in parent["spec"]["sources"][1]["helm"]["valueFiles"]
    link = stage.get("/apis/console.openshift.io/v1/consolelinks/vp-gitops-gitops-link")
    assert link is not None and link["spec"]["href"] == "https://vp-gitops-server-vp-gitops.apps.hub.example.com"


def test_a_cluster_without_openshift_is_said_and_waits_for_no_certificates() -> None:
    stage = staged()
    said = "the cluster has no ClusterVersion: its platform, version and domain are empty"
    assert stage.conditions()["Unknown"] == said


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"values-global.yaml": ""}, "values-hub.yaml"),
        ({"values-hub.yaml": "", "variants/other/values-other.yaml": ""}, "variants/hub/values-hub.yaml"),
    ],
)
def test_a_group_without_values_is_missing_until_they_come(files: dict[str, str], missing: str) -> None:
    stage = Installed()
    stage.repositories.files[REPO] = files
    stage.install()
    error = f"required values file not found: {missing}"
    assert stage.step() == ("prerequisite validation", error)
    assert stage.conditions()["Missing"] == error
    stage.repositories.files[REPO] = FILES
    stage.driver.advance(400)
    assert stage.step() == ("reconcile complete", "")
    assert "Missing" not in stage.conditions()


def test_a_repository_that_does_not_answer_is_said_and_tried_again_each_minute() -> None:
    stage = Installed()
    stage.repositories.fails = "the host does not answer"
    stage.install()
    assert stage.step() == ("cloning pattern repo", "the host does not answer")
    stage.repositories.fails = ""
    stage.driver.advance(300)
    assert stage.step() == ("reconcile complete", "")


@pytest.mark.parametrize(
    ("git", "said"),
    [
        ({"targetRepo": ""}, "TargetRepo cannot be empty"),
        ({"targetRepo": "ftp://x/y"}, "repository URL must be either http/https or start with git@"),
        ({"targetRepo": "file:///etc"}, "repository URL must be either http/https or start with git@"),
    ],
)
def test_an_address_that_is_not_permitted_is_not_read(git: Obj, said: str) -> None:
    stage = Installed()
    stage.install(**git)
    step, error = stage.step()
    assert step == "prerequisite validation" and error.startswith(said)


def test_a_fork_that_differs_from_its_origin_is_out_of_sync() -> None:
    stage = Installed()
    stage.repositories.files[ORIGIN] = FILES
    stage.install(originRepo=ORIGIN)
    assert stage.conditions()["GitInSync"] == "Git repositories are in sync"
    stage.repositories.files[ORIGIN] = FILES | {"values-hub.yaml": "clusterGroup: {name: hub, x: 1}\n"}
    stage.driver.advance(600)
    assert stage.conditions()["GitOutOfSync"].startswith("Git repositories are out of sync: ")
    assert "GitInSync" not in stage.conditions()


def test_a_change_of_the_pattern_or_of_its_settings_reaches_what_it_made() -> None:
    stage = staged()
    stage.patch(f"{PATTERNS}/mypattern", {"spec": {"extraParameters": [{"name": "a", "value": "b"}]}})
    stage.patch(f"{CONFIG}/patterns-operator-config", {"data": {"gitops.channel": "gitops-1.19"}})
    stage.driver.advance(60)
    parent = stage.parent()
    assert parent is not None
    assert {"name": "a", "value": "b"} in parent["spec"]["sources"][1]["helm"]["parameters"]
    subscription = stage.get(f"{SUBSCRIPTIONS}/openshift-gitops-operator")
    assert subscription is not None and subscription["spec"]["channel"] == "gitops-1.19"


def test_an_argocd_object_that_was_deleted_comes_back() -> None:
    stage = staged()
    stage.driver.advance(30)
    stage.send("DELETE", f"{ARGOCDS.format('vp-gitops')}/vp-gitops")
    stage.driver.advance(30)
    assert stage.names(ARGOCDS.format("vp-gitops")) == ["vp-gitops"]


def test_credentials_of_a_private_repository_are_copied_and_no_value_is_printed() -> None:
    stage = Installed()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git"}, "stringData": {"password": "hunter2"}}
    stage.send("POST", "/api/v1/namespaces/openshift-operators/secrets", secret)
    stage.install(tokenSecret="git", tokenSecretNamespace="openshift-operators")
    copy = stage.get("/api/v1/namespaces/vp-gitops/secrets/vp-private-repo-credentials")
    assert copy is not None
    assert copy["metadata"]["labels"] == {"argocd.argoproj.io/secret-type": "repository"}
    said = " ".join(entry.what + str(entry.why) for entry in stage.world.journal)
    assert "hunter2" not in said and copy["data"]["password"] not in said


def test_only_one_pattern_is_acted_on() -> None:
    stage = staged()
    stage.driver.advance(5)
    stage.send("DELETE", f"{BINDINGS}/single-pattern.syncline.dev")
    stage.install("second")
    status = stage.pattern("second")["status"]
    assert status["lastError"] == "only one Pattern resource is allowed; there is openshift-operators/mypattern"


def test_a_pattern_in_a_tenants_namespace_is_not_acted_on() -> None:
    stage = Installed()
    stage.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    body = {"apiVersion": "gitops.hybrid-cloud-patterns.io/v1alpha1", "kind": "Pattern", "metadata": {"name": "p"}}
    path = PATTERNS.replace("openshift-operators", "team")
    stage.send("POST", path, body | {"spec": {"clusterGroupName": "hub", "gitSpec": {"targetRepo": REPO}}})
    stage.driver.advance(30)
    found = stage.get(f"{path}/p")
    assert found is not None and found["status"]["lastStep"] == "not acted on"
    assert stage.get("/api/v1/namespaces/vp-gitops") is None


# -- taking it down ----------------------------------------------------------------------------------------------------


def deleted(*, prune: bool) -> Installed:
    stage = staged()
    stage.driver.advance(120)
    if prune:
        stage.patch(f"{PATTERNS}/mypattern", {"metadata": {"annotations": {PRUNE: "true"}}})
    stage.send("DELETE", f"{PATTERNS}/mypattern")
    stage.driver.advance(1)
    return stage


def test_without_the_annotation_everything_stays() -> None:
    stage = deleted(prune=False)
    stage.driver.advance(60)
    assert stage.get(f"{PATTERNS}/mypattern") is None
    assert stage.names(APPS.format("vp-gitops")) == ["child", "mypattern-hub"]


def test_with_the_annotation_children_go_before_their_parent_and_before_the_pattern() -> None:
    stage = deleted(prune=True)
    stage.driver.until(lambda: stage.get(f"{PATTERNS}/mypattern") is None, 600)
    assert stage.names(APPS.format("vp-gitops")) == []
    assert not {"of-the-group", "of-the-child"} & set(stage.names("/api/v1/namespaces/default/configmaps"))
    done = [entry.what for entry in stage.world.journal]
    prefix = "argoproj.io/Application/vp-gitops"
    child_gone = next(number for number, what in enumerate(done) if what == f"prune {prefix}/child")
    parent_gone = next(number for number, what in enumerate(done) if what == f"delete {prefix}/mypattern-hub")
    assert child_gone < parent_gone


def test_a_hub_waits_for_a_person_before_its_spokes_count_as_empty() -> None:
    stage = staged()
    stage.driver.advance(60)
    hub = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
    clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
    stage.send("POST", clusters, hub | {"metadata": {"name": "edge"}, "spec": {"hubAcceptsClient": True}})
    stage.patch(f"{PATTERNS}/mypattern", {"metadata": {"annotations": {PRUNE: "true"}}})
    stage.send("DELETE", f"{PATTERNS}/mypattern")
    stage.patch(f"{PATTERNS}/mypattern/status", {"status": {"deletionPhase": "DeleteSpokeChildApps"}})
    stage.driver.advance(120)
    step, error = stage.step()
    assert step == "finalize"
    assert error.startswith(
        "waiting for applications to be deleted from spoke clusters (edge): look there, then annotate"
    )
    stage.patch(f"{PATTERNS}/mypattern", {"metadata": {"annotations": {"syncline.dev/spokes-empty": "true"}}})
    stage.driver.until(lambda: stage.get(f"{PATTERNS}/mypattern") is None, 900)
    assert stage.names(APPS.format("vp-gitops")) == []


GIT_APP = f"{APPS.format('vp-gitops')}/gitea-in-cluster"
GIT_SECRET = "/api/v1/namespaces/vp-gitea/secrets/gitea-admin-secret"


def test_a_git_server_is_installed_and_who_copies_the_repository_is_said() -> None:
    stage = Installed()
    stage.install(targetRepo="", originRepo=ORIGIN)
    stage.driver.advance(60)
    where = "https://gitea-route-vp-gitea.DOMAIN/gitea_admin/mypattern"
    step, error = stage.step()
    assert step == "waiting for the repository in the git server"
    assert f"push it to {where} (login: Secret vp-gitea/gitea-admin-secret)" in error
    assert error in stage.conditions()["Unknown"]
    app, secret = stage.get(GIT_APP), stage.get(GIT_SECRET)
    assert app is not None and app["spec"]["source"]["chart"] == "gitea"
    assert secret is not None and set(secret["data"]) == {"username", "password"}
    stage.repositories.files[where] = FILES
    stage.patch(f"{PATTERNS}/mypattern", {"spec": {"gitSpec": {"targetRepo": where, "targetRevision": "main"}}})
    stage.driver.advance(200)
    assert stage.step() == ("reconcile complete", "")
    assert "Git server" not in stage.conditions()["Unknown"]
    assert stage.get(GIT_SECRET) == secret, "its password is drawn once"


def test_a_second_pattern_and_one_without_a_group_are_refused() -> None:
    stage = staged()
    body = {"apiVersion": "gitops.hybrid-cloud-patterns.io/v1alpha1", "kind": "Pattern"}
    git = {"gitSpec": {"targetRepo": REPO}}
    with pytest.raises(ApiError, match="only one Pattern resource is allowed"):
        stage.send("POST", PATTERNS, body | {"metadata": {"name": "two"}, "spec": git | {"clusterGroupName": "hub"}})
    with pytest.raises(ApiError, match=r"one of spec\.variant or spec\.clusterGroupName must be set"):
        stage.patch(f"{PATTERNS}/mypattern", {"spec": {"clusterGroupName": None}})
