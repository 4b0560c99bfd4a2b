"""An ArgoCD object makes its namespace a control namespace with its settings, and gives no rights."""

from __future__ import annotations

from typing import Any

import pytest
from tests.patterns.installing import APPS, ARGOCDS, Installed

from syncline.argo.parameters import parse_parameters
from syncline.argo.settings import parse_system
from syncline.argo.tracking import TrackingMethod
from syncline.kube.objects import Obj, dig
from syncline.patterns.argocd.settings import config_maps, not_run

MAPS = "/api/v1/namespaces/{}/configmaps"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"
REPO = "https://git.example.com/app"


def instance(name: str = "argo", namespace: str = "team", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace, "finalizers": ["argoproj.io/finalizer"]}
    return {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": metadata, "spec": spec}


def settings_of(*, source_namespaces: bool = True, **spec: Any) -> dict[str, dict[str, str]]:
    found = config_maps(instance(**spec), source_namespaces=source_namespaces)
    return {one["metadata"]["name"]: one["data"] for one in found}


@pytest.mark.parametrize(
    ("spec", "name", "key", "value"),
    [
        ({}, "argocd-cm", "application.instanceLabelKey", "app.kubernetes.io/instance"),
        ({"applicationInstanceLabelKey": "a/b"}, "argocd-cm", "application.instanceLabelKey", "a/b"),
        ({}, "argocd-cm", "application.resourceTrackingMethod", "annotation"),
        ({"resourceTrackingMethod": "label"}, "argocd-cm", "application.resourceTrackingMethod", "label"),
        ({"resourceTrackingMethod": "moon"}, "argocd-cm", "application.resourceTrackingMethod", "annotation"),
        ({"disableAdmin": True}, "argocd-cm", "admin.enabled", "false"),
        ({"kustomizeBuildOptions": "--enable-helm"}, "argocd-cm", "kustomize.buildOptions", "--enable-helm"),
        ({"kustomizeVersions": [{"version": "v5", "path": "/k"}]}, "argocd-cm", "kustomize.version.v5", "/k"),
        ({"resourceExclusions": "- kinds: [A]"}, "argocd-cm", "resource.exclusions", "- kinds: [A]"),
        ({"installationID": "one"}, "argocd-cm", "installationID", "one"),
        ({"controller": {"respectRBAC": "strict"}}, "argocd-cm", "resource.respectRBAC", "strict"),
        (
            {"resourceHealthChecks": [{"group": "a.b", "kind": "C", "check": "return hs"}]},
            "argocd-cm",
            "resource.customizations.health.a.b_C",
            "return hs",
        ),
        (
            {"resourceHealthChecks": [{"kind": "PersistentVolumeClaim", "check": "x"}]},
            "argocd-cm",
            "resource.customizations.health.PersistentVolumeClaim",
            "x",
        ),
        (
            {"resourceActions": [{"group": "a.b", "kind": "C", "action": "y"}]},
            "argocd-cm",
            "resource.customizations.actions.a.b_C",
            "y",
        ),
        (
            {"resourceIgnoreDifferences": {"all": {"jsonPointers": ["/spec/replicas"]}}},
            "argocd-cm",
            "resource.customizations.ignoreDifferences.all",
            "jsonPointers:\n- /spec/replicas\n",
        ),
        ({"extraConfig": {"admin.enabled": "x"}}, "argocd-cm", "admin.enabled", "x"),
        ({}, "argocd-rbac-cm", "policy.default", "role:readonly"),
        ({"rbac": {"defaultPolicy": ""}}, "argocd-rbac-cm", "policy.default", ""),
        ({"rbac": {"policy": "g, a, role:admin"}}, "argocd-rbac-cm", "policy.csv", "g, a, role:admin"),
        ({"rbac": {"policyMatcherMode": "regex"}}, "argocd-rbac-cm", "policy.matchMode", "regex"),
        ({"sourceNamespaces": ["a", "b*"]}, "argocd-cmd-params-cm", "application.namespaces", "a,b*"),
        ({"cmdParams": {"x": "1"}}, "argocd-cmd-params-cm", "x", "1"),
    ],
)
def test_a_field_becomes_the_setting_that_its_operator_writes(spec: Obj, name: str, key: str, value: str) -> None:
    assert settings_of(**spec)[name][key] == value


def test_the_settings_are_those_that_our_controllers_read() -> None:
    found = settings_of(resourceTrackingMethod="annotation+label", sourceNamespaces=["apps-*"])
    system, parameters = parse_system(found["argocd-cm"]), parse_parameters(found["argocd-cmd-params-cm"])
    assert system.problems == ()
    assert system.tracking is not None and system.tracking.method is TrackingMethod.ANNOTATION_AND_LABEL
    assert system.excluded.excludes("", "Endpoints", "") and not system.excluded.excludes("", "ConfigMap", "")
    assert parameters.application_namespaces == ("apps-*",)


@pytest.mark.parametrize("spec", [{"sourceNamespaces": ["*"]}, {"cmdParams": {"application.namespaces": "*"}}])
def test_an_instance_that_the_administrator_does_not_list_works_in_its_own_namespace(spec: Obj) -> None:
    assert "application.namespaces" not in settings_of(source_namespaces=False, **spec)["argocd-cmd-params-cm"]


def test_what_is_asked_of_workloads_is_named() -> None:
    spec = {"sso": {"dex": {"openShiftOAuth": True}}, "server": {"route": {"enabled": True}}, "ha": {"enabled": False}}
    assert not_run(instance(**spec)) == ["the route of the server", "dex"]


# -- on the cluster ----------------------------------------------------------------------------------------------------


def staged(*, listed: bool = False, **spec: Any) -> tuple[Installed, str]:
    stage, namespace = Installed(), "vp-gitops" if listed else "team"
    stage.repositories.objects[REPO] = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": namespace}},
    )
    stage.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    stage.send("POST", ARGOCDS.format(namespace), instance(namespace=namespace, **spec))
    stage.driver.advance(10)
    return stage, namespace


def bind(stage: Installed, role: str, namespace: str = "team") -> None:
    """What a tenant can do in their own namespace."""
    account = {"kind": "ServiceAccount", "name": "argo-argocd-application-controller", "namespace": namespace}
    made = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "argo", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [account],
    }
    stage.send("POST", BINDINGS.format(namespace), made)
    stage.driver.advance(10)


def application(namespace: str, to: str) -> Obj:
    spec = {
        "project": "default",
        "source": {"repoURL": REPO, "path": ".", "targetRevision": "main"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": to},
        "syncPolicy": {"automated": {}},
    }
    metadata = {"name": "app", "namespace": namespace}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def conditions(stage: Installed, namespace: str, name: str = "argo") -> dict[str, tuple[str, str, str]]:
    found = stage.get(f"{ARGOCDS.format(namespace)}/{name}")
    listed = dig(found, "status", "conditions") or ()
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in listed}


def test_a_listed_namespace_gets_settings_a_project_an_account_and_controllers() -> None:
    stage, namespace = staged(listed=True, resourceTrackingMethod="label")
    assert {"argocd-cm", "argocd-rbac-cm", "argocd-cmd-params-cm"} <= set(stage.names(MAPS.format(namespace)))
    assert conditions(stage, namespace)["Reconciled"] == ("True", "Success", "")
    stage.send("POST", APPS.format(namespace), application(namespace, namespace))
    stage.driver.advance(60)
    made = stage.get(f"{MAPS.format(namespace)}/made")
    assert made is not None and made["metadata"]["labels"] == {"app.kubernetes.io/instance": "app"}


def test_an_argocd_object_of_a_tenant_gives_no_rights() -> None:
    stage, namespace = staged()
    stage.send("POST", APPS.format(namespace), application(namespace, "kube-system"))
    stage.driver.advance(60)
    status, reason, message = conditions(stage, namespace)["Reconciled"]
    assert (status, reason) == ("False", "NoRights")
    assert message == "no binding names ServiceAccount team/argo-argocd-application-controller, so it may do nothing"
    bindings = stage.send("GET", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")["items"]
    assert not [one for one in bindings if "team" in str(one.get("subjects"))]
    assert stage.send("GET", BINDINGS.format(namespace))["items"] == []


def test_controllers_of_a_tenants_instance_can_do_what_the_tenant_bound_and_no_more() -> None:
    stage, namespace = staged()
    bind(stage, "cluster-admin")
    assert conditions(stage, namespace)["Reconciled"][0] == "True"
    stage.repositories.objects[REPO] = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "kube-system"}},
    )
    stage.send("POST", APPS.format(namespace), application(namespace, "kube-system"))
    stage.driver.advance(120)
    assert stage.get(f"{MAPS.format('kube-system')}/made") is None


def test_a_second_argocd_object_of_a_namespace_is_refused() -> None:
    stage, namespace = staged(listed=True)
    stage.send("POST", ARGOCDS.format(namespace), instance("second", namespace))
    stage.driver.advance(10)
    said = conditions(stage, namespace, "second")["Reconciled"]
    assert said == ("False", "Duplicate", "namespace vp-gitops is the control namespace of ArgoCD argo")


def test_what_does_not_run_here_is_a_condition() -> None:
    stage, namespace = staged(listed=True, sso={"dex": {"openShiftOAuth": True}}, notifications={"enabled": True})
    assert conditions(stage, namespace)["WorkloadsRun"] == ("False", "NotRunHere", "not run here: dex, notifications")


def test_a_changed_setting_reaches_the_controllers() -> None:
    stage, namespace = staged(listed=True)
    stage.patch(f"{ARGOCDS.format(namespace)}/argo", {"spec": {"applicationInstanceLabelKey": "own/label"}})
    stage.driver.advance(5)
    found = stage.get(f"{MAPS.format(namespace)}/argocd-cm")
    assert found is not None and found["data"]["application.instanceLabelKey"] == "own/label"


def test_the_controllers_stop_with_their_object() -> None:
    stage, namespace = staged(listed=True)
    stage.send("DELETE", f"{ARGOCDS.format(namespace)}/argo")
    stage.driver.advance(5)
    assert stage.names(ARGOCDS.format(namespace)) == []
    stage.send("POST", APPS.format(namespace), application(namespace, namespace))
    stage.driver.advance(60)
    assert stage.get(f"{MAPS.format(namespace)}/made") is None


def test_the_older_version_is_served_and_unknown_fields_are_kept() -> None:
    stage, namespace = staged(listed=True, notKnown={"a": 1})
    found = stage.get(f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/argocds/argo")
    assert found is not None and found["spec"]["notKnown"] == {"a": 1}
