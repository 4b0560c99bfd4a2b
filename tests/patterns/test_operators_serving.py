"""Webhooks and aggregated APIs of operators: what is registered, what the phases wait for, and certificates."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography import x509
from tests.patterns.operating import MODES, OLM, Flaky, Operators, channel, package

from syncline.gitops.gates.checks import GATES, subscription_ref
from syncline.kube.client import Request
from syncline.kube.objects import Obj, ObjectRef

HOOKS = "/apis/admissionregistration.k8s.io/v1"
APIS = "/apis/apiregistration.k8s.io/v1/apiservices"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
CSVS = f"{OLM}/team/clusterserviceversions"
RULES = [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}]
VALIDATING: Obj = {
    "type": "ValidatingAdmissionWebhook",
    "generateName": "vwidget.example.com",
    "deploymentName": "manager",
    "containerPort": 443,
    "targetPort": 9443,
    "rules": RULES,
    "failurePolicy": "Fail",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "webhookPath": "/validate",
}
MUTATING = {**VALIDATING, "type": "MutatingAdmissionWebhook", "generateName": "mwidget.example.com"}
CONVERTING: Obj = {
    "type": "ConversionWebhook",
    "generateName": "cwidget.example.com",
    "deploymentName": "manager",
    "containerPort": 443,
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "conversionCRDs": ["widgets.example.com"],
}
API: Obj = {
    "name": "gauges",
    "kind": "Gauge",
    "group": "metrics.example.com",
    "version": "v1",
    "deploymentName": "manager",
    "containerPort": 8443,
}


def manifests(version: str, spec: Obj, modes: tuple[str, ...]) -> list[Obj]:
    labels = {"app": "manager"}
    container = {"name": "manager", "image": f"manager:{version}"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {"name": "manager", "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}}
    owned = [{"name": "widgets.example.com", "kind": "Widget", "version": "v1"}]
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"widgets.v{version}"},
        "spec": {
            "displayName": "Widgets",
            "version": version,
            "installModes": [{"type": mode, "supported": mode in modes} for mode in MODES],
            "install": {"strategy": "deployment", "spec": {"deployments": [deployment]}},
            "customresourcedefinitions": {"owned": owned},
            **spec,
        },
    }
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v1beta1")
            ],
        },
    }
    return [csv, definition]


def a_bundle(version: str, spec: Obj, modes: tuple[str, ...] = MODES) -> Obj:
    objects = [json.dumps(one).encode() for one in manifests(version, spec, modes)]
    given = [{"type": "olm.package", "value": {"packageName": "widgets", "version": version}}]
    given += [{"type": "olm.bundle.object", "value": {"data": base64.b64encode(one).decode()}} for one in objects]
    return {
        "schema": "olm.bundle",
        "name": f"widgets.v{version}",
        "package": "widgets",
        "image": "",
        "properties": given,
    }


def started(*bundles: Obj, targets: tuple[str, ...] = ("team",), **options: Any) -> Operators:
    names = [one["name"] for one in bundles]
    entries = [{"name": name, "replaces": before} for name, before in zip(names[1:], names, strict=False)]
    world = Operators(package("widgets"), channel("widgets", "stable", names[0], *entries), *bundles, **options)
    world.namespace("team", *targets)
    world.subscribe("team", "widgets", startingCSV=names[0])
    return world


def hooks(world: Operators, kind: str) -> list[Obj]:
    return [
        one for one in world.get(f"{HOOKS}/{kind}")["items"] if "olm.owner" in (one["metadata"].get("labels") or {})
    ]


def secret(world: Operators) -> Obj:
    return world.get("/api/v1/namespaces/team/secrets/manager-service-cert")


def authority(world: Operators) -> str:
    return str(secret(world)["data"]["olmCAKey"])


def test_webhooks_are_registered_as_upstream_registers_them() -> None:
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [VALIDATING, MUTATING]}))
    world.until("team", "widgets.v1.0.0")
    (validating,), (mutating,) = (hooks(world, f"{one}webhookconfigurations") for one in ("validating", "mutating"))
    labels = validating["metadata"]["labels"]
    assert labels["olm.webhook-description-generate-name"] == "vwidget.example.com"
    assert (labels["olm.owner"], labels["olm.owner.namespace"], labels["olm.managed"]) == (
        "widgets.v1.0.0",
        "team",
        "true",
    )
    assert validating["metadata"]["name"].startswith("vwidget.example.com-")
    (hook,) = validating["webhooks"]
    assert hook["clientConfig"]["service"] == {
        "namespace": "team",
        "name": "manager-service",
        "path": "/validate",
        "port": 443,
    }
    assert hook["clientConfig"]["caBundle"] == authority(world)
    assert mutating["webhooks"][0]["clientConfig"]["caBundle"] == authority(world)
    group = world.get("/apis/operators.coreos.com/v1/namespaces/team/operatorgroups/group")
    label = f"olm.operatorgroup.uid/{group['metadata']['uid']}"
    assert hook["namespaceSelector"] == {"matchLabels": {label: ""}}
    assert label in world.get("/api/v1/namespaces/team")["metadata"]["labels"]


def test_the_deployment_mounts_a_certificate_of_its_service() -> None:
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [VALIDATING]}))
    world.until("team", "widgets.v1.0.0")
    service = world.get("/api/v1/namespaces/team/services/manager-service")
    assert [(one["name"], one["port"], one["targetPort"]) for one in service["spec"]["ports"]] == [("443", 443, 9443)]
    template = world.get("/apis/apps/v1/namespaces/team/deployments/manager")["spec"]["template"]
    assert template["metadata"]["annotations"]["olmcahash"] == secret(world)["metadata"]["annotations"]["olmcahash"]
    mounts = {one["name"]: one["mountPath"] for one in template["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["webhook-cert"] == "/tmp/k8s-webhook-server/serving-certs"
    root, leaf = (
        x509.load_pem_x509_certificate(base64.b64decode(secret(world)["data"][key])) for key in ("olmCAKey", "tls.crt")
    )
    leaf.verify_directly_issued_by(root)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "manager-service.team.svc" in names.get_values_for_type(x509.DNSName)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    assert world.get(f"{rbac}/namespaces/team/roles/manager-service-cert")["rules"][0]["verbs"] == ["get"]
    assert world.get(f"{rbac}/clusterrolebindings/manager-service-system:auth-delegator")
    assert world.get(f"{rbac}/namespaces/kube-system/rolebindings/manager-service-auth-reader")


def test_a_webhook_answers_while_its_operator_is_up_and_refuses_all_while_it_is_not() -> None:
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [VALIDATING]}))
    world.until("team", "widgets.v1.0.0")
    widgets = "/apis/example.com/v1/namespaces/team/widgets"
    world.send("POST", widgets, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
    world.send("PATCH", "/apis/apps/v1/namespaces/team/deployments/manager", {"spec": {"replicas": 0}})
    world.time.advance(5)
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}}
    refused = world.admin.send(Request("POST", widgets, body=body))
    assert refused.status == 500
    assert "no endpoints available for service" in str(refused.obj["message"])


PLURALS = {
    "Subscription": ("/apis/operators.coreos.com/v1alpha1", "subscriptions"),
    "ClusterServiceVersion": ("/apis/operators.coreos.com/v1alpha1", "clusterserviceversions"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Service": ("/api/v1", "services"),
    "Endpoints": ("/api/v1", "endpoints"),
}


def test_the_gate_of_an_operator_is_open_while_its_webhooks_answer() -> None:
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [VALIDATING]}))

    def known(ref: ObjectRef) -> Obj | None:
        root, plural = PLURALS[ref.kind]
        where = f"/namespaces/{ref.namespace}" if ref.namespace else ""
        answer = world.admin.send(Request("GET", f"{root}{where}/{plural}/{ref.name}"))
        return answer.obj if answer.ok else None

    gate, subject = GATES["csv-succeeded"], subscription_ref("team", "widgets")
    assert "has no installed version yet" in gate.problem(subject, known)
    world.until("team", "widgets.v1.0.0")
    assert gate.problem(subject, known) == ""
    world.send("PATCH", "/apis/apps/v1/namespaces/team/deployments/manager", {"spec": {"replicas": 0}})
    world.time.advance(5)
    said = gate.problem(subject, known)
    assert said == "Service team/manager-service of a webhook has no ready pod" or "widgets.v1.0.0 is " in said


def test_a_webhook_that_is_deleted_comes_back_by_way_of_a_reinstallation() -> None:
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [VALIDATING]}))
    world.until("team", "widgets.v1.0.0")
    before = authority(world)
    (hook,) = hooks(world, "validatingwebhookconfigurations")
    world.send("DELETE", f"{HOOKS}/validatingwebhookconfigurations/{hook['metadata']['name']}")
    world.time.advance(60)
    said = [(one["phase"], one["reason"]) for one in world.get(f"{CSVS}/widgets.v1.0.0")["status"]["conditions"]]
    assert ("Pending", "NeedsReinstall") in said
    assert world.phase("team", "widgets.v1.0.0") == "Succeeded"
    assert len(hooks(world, "validatingwebhookconfigurations")) == 1
    assert authority(world) == before


def test_certificates_are_replaced_a_day_before_they_end_or_when_they_are_gone() -> None:
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [VALIDATING]}))
    world.until("team", "widgets.v1.0.0")
    first, path = authority(world), "/api/v1/namespaces/team/secrets/manager-service-cert"
    world.send("DELETE", path)
    world.time.advance(60)
    second = authority(world)
    assert second != first
    assert hooks(world, "validatingwebhookconfigurations")[0]["webhooks"][0]["clientConfig"]["caBundle"] == second
    status = world.get(f"{CSVS}/widgets.v1.0.0")["status"]
    assert (status["phase"], status["certsRotateAt"][:4]) == ("Succeeded", "2027")
    world.send("PATCH", f"{CSVS}/widgets.v1.0.0/status", {"status": {"certsRotateAt": "2020-01-01T00:00:00Z"}})
    world.time.advance(87_000)
    said = [one["reason"] for one in world.get(f"{CSVS}/widgets.v1.0.0")["status"]["conditions"]]
    assert "NeedsCertRotation" in said
    assert world.phase("team", "widgets.v1.0.0") == "Succeeded"


def test_an_aggregated_api_is_registered_and_waited_for() -> None:
    world = started(a_bundle("1.0.0", {"apiservicedefinitions": {"owned": [API]}}))
    world.until("team", "widgets.v1.0.0")
    service = world.get(f"{APIS}/v1.metrics.example.com")
    assert service["spec"]["service"] == {"name": "manager-service", "namespace": "team", "port": 8443}
    assert service["spec"]["caBundle"] == authority(world)
    assert (service["spec"]["groupPriorityMinimum"], service["spec"]["versionPriority"]) == (2000, 15)
    assert world.get("/apis/metrics.example.com/v1/namespaces/team/gauges")["items"] == []
    said = [one["message"] for one in world.get(f"{CSVS}/widgets.v1.0.0")["status"]["conditions"]]
    assert "install strategy completed with no errors" in said
    assert world.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/gauges-v1-view")
    world.send("DELETE", f"{APIS}/v1.metrics.example.com")
    world.time.advance(60)
    reasons = [one["reason"] for one in world.get(f"{CSVS}/widgets.v1.0.0")["status"]["conditions"]]
    assert "APIServiceResourceIssue" in reasons
    assert "APIServiceResourcesNeedReinstall" in reasons
    assert world.phase("team", "widgets.v1.0.0") == "Succeeded"


def test_a_conversion_webhook_is_set_in_the_definition_and_taken_from_it_again() -> None:
    spec = {"webhookdefinitions": [CONVERTING]}
    world = started(a_bundle("1.0.0", spec, ("AllNamespaces",)), targets=())
    world.until("team", "widgets.v1.0.0")
    conversion = world.get(CRD)["spec"]["conversion"]
    assert conversion["strategy"] == "Webhook"
    assert conversion["webhook"]["clientConfig"]["caBundle"] == authority(world)
    body = {"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": {"name": "a"}}
    world.send("POST", "/apis/example.com/v1beta1/namespaces/team/widgets", body)
    assert world.get("/apis/example.com/v1/namespaces/team/widgets/a")["apiVersion"] == "example.com/v1"
    world.send("DELETE", f"{OLM}/team/subscriptions/widgets")
    world.send("DELETE", f"{CSVS}/widgets.v1.0.0")
    world.time.advance(30)
    assert world.get(CRD)["spec"]["conversion"] == {"strategy": "None"}


def test_a_conversion_webhook_needs_an_operator_for_all_namespaces() -> None:
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [CONVERTING]}))
    world.time.advance(30)
    status = world.get(f"{CSVS}/widgets.v1.0.0")["status"]
    why = "CSVs with conversion webhooks must support only AllNamespaces"
    said = [one["message"] for one in status["conditions"] if one["reason"] == "InstallComponentFailed"]
    assert said[0] == f"install strategy failed: unable to manage conversion webhook: {why}"


def test_descriptions_that_fit_nothing_stop_no_other_operator() -> None:
    strange = {**VALIDATING, "generateName": "strange.example.com", "deploymentName": "nowhere"}
    world = started(a_bundle("1.0.0", {"webhookdefinitions": [VALIDATING, strange]}))
    world.until("team", "widgets.v1.0.0")
    found = {one["webhooks"][0]["name"]: one for one in hooks(world, "validatingwebhookconfigurations")}
    assert "caBundle" not in found["strange.example.com"]["webhooks"][0]["clientConfig"]


def served(world: Operators) -> None:
    """The new version serves, with one certificate, and nothing is left of the old one's registrations."""
    assert (world.phase("team", "widgets.v1.0.0"), world.phase("team", "widgets.v1.1.0")) == ("absent", "Succeeded")
    (hook,) = hooks(world, "validatingwebhookconfigurations")
    assert hook["metadata"]["labels"]["olm.owner"] == "widgets.v1.1.0"
    assert hook["webhooks"][0]["clientConfig"]["caBundle"] == authority(world)
    api = world.get(f"{APIS}/v1.metrics.example.com")
    assert (api["metadata"]["labels"]["olm.owner"], api["spec"]["caBundle"]) == ("widgets.v1.1.0", authority(world))
    owners = [one["name"] for one in secret(world)["metadata"]["ownerReferences"]]
    assert owners == ["widgets.v1.1.0"]


SERVING: Obj = {"webhookdefinitions": [VALIDATING], "apiservicedefinitions": {"owned": [API]}}


@pytest.mark.parametrize("every", [0, 2, 3])
def test_an_upgrade_takes_over_what_serves_whatever_write_fails(every: int) -> None:
    wrap = (lambda inner: Flaky(inner, every)) if every else None
    world = started(a_bundle("1.0.0", SERVING), a_bundle("1.1.0", SERVING), wrap=wrap)
    world.time.advance(90)
    served(world)


@pytest.mark.parametrize("seconds", [0.4])
def test_an_upgrade_takes_over_what_serves_when_the_controllers_are_killed_again_and_again(seconds: float) -> None:
    world = started(a_bundle("1.0.0", SERVING), a_bundle("1.1.0", SERVING))
    for _ in range(9):
        world.time.advance(seconds)
        world.restart()
    world.time.advance(90)
    served(world)
