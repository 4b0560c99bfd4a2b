"""What an OperatorPolicy says of a cluster, in upstream's words, and what it does there.

The messages are those of upstream's config-policy-controller on the same objects (docs/policies.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from tests.fleet.world import Fleet, Member
from tests.patterns.policies.world import GROUP, Policies, made, namespace, policy

from syncline.kube.client import Request
from syncline.kube.kinds.operatorlifecycle import (
    catalog_source_crd,
    install_plan_crd,
    operator_group_crd,
    service_version_crd,
    subscription_crd,
)
from syncline.kube.objects import Obj

OLM = "operators.coreos.com/v1alpha1"
POLICIES = f"/apis/{GROUP}/v1beta1/namespaces/{{}}/operatorpolicies"
CRDS = (catalog_source_crd, install_plan_crd, operator_group_crd, service_version_crd, subscription_crd)


class Case(NamedTuple):
    """``there``: objects of the cluster; ``says``: the parts of the last message that are not those of an operator
    that is installed well."""

    there: tuple[Obj, ...]
    spec: Obj
    state: str
    says: dict[str, str]


WELL = {
    "valid": "the policy spec is valid",
    "group": "the OperatorGroup matches what is required by the policy",
    "sub": "the Subscription matches what is required by the policy",
    "plan": "no InstallPlans requiring approval were found",
    "csv": "ClusterServiceVersion (quay.v1) - install strategy completed with no errors",
    "crd": "there are CRDs present for the operator",
    "deployment": "all operator Deployments have their minimum availability",
    "catalog": "CatalogSource was found",
}
NOTHING = {
    "plan": "there are no relevant InstallPlans in the namespace",
    "csv": "the ClusterServiceVersion required by the policy was not found",
    "crd": "no CRDs were found for the operator",
    "deployment": "there are no relevant deployments because the ClusterServiceVersion is missing",
}


def mark(place: str) -> dict[str, str]:
    return {f"operators.coreos.com/quay.{place}": ""}


def subscription(place: str, channel: str = "stable", approval: str = "Manual", **status: Any) -> Obj:
    spec = {
        "name": "quay",
        "channel": channel,
        "source": "catalog",
        "sourceNamespace": "market",
        "installPlanApproval": approval,
    }
    one = made(OLM, "Subscription", "quay", place)
    return {**one, "spec": spec, "status": {"lastUpdated": "2026-01-01T00:00:00Z", **status}}


def at(version: str = "quay.v1", current: str = "", **more: Any) -> dict[str, Any]:
    return {"installedCSV": version, "currentCSV": current or version, "state": "AtLatestKnown", **more}


def group(place: str, name: str = "quay-group", *targets: str) -> Obj:
    one = made("operators.coreos.com/v1", "OperatorGroup", name, place)
    return {**one, "spec": {"targetNamespaces": list(targets or (place,))}}


def version(place: str, name: str = "quay.v1", replicas: int = 0, **labels: str) -> Obj:
    pod = {"metadata": {"labels": {"app": "q"}}, "spec": {"containers": [{"name": "q", "image": "q:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "q"}}, "template": pod}
    install = {"strategy": "deployment", "spec": {"deployments": [{"name": "quay-operator", "spec": spec}]}}
    one = made(OLM, "ClusterServiceVersion", name, place)
    one["metadata"]["labels"] = {**mark(place), **labels}
    status = {
        "phase": "Succeeded",
        "reason": "InstallSucceeded",
        "message": "install strategy completed with no errors",
    }
    return {**one, "spec": {"displayName": "Quay", "install": install}, "status": status}


def deployment(place: str, replicas: int = 0) -> Obj:
    spec = version(place, replicas=replicas)["spec"]["install"]["spec"]["deployments"][0]["spec"]
    return {**made("apps/v1", "Deployment", "quay-operator", place), "spec": spec}


def plan(place: str, *names: str, phase: str = "Complete", **more: Any) -> Obj:
    one = made(OLM, "InstallPlan", f"install-{names[0].replace('.', '-')}", place)
    spec = {"approval": "Manual", "approved": phase != "RequiresApproval", "clusterServiceVersionNames": list(names)}
    status = {"phase": phase, "catalogSources": ["catalog"], **more}
    return {**one, "spec": {**spec, "generation": 1}, "status": status}


def crd(place: str) -> Obj:
    plural = f"q{place}s"
    names = {"plural": plural, "singular": f"q{place}", "kind": f"Q{place}", "listKind": f"Q{place}List"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    served = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    one = made("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.quay.io")
    one["metadata"]["labels"] = mark(place)
    return {**one, "spec": {"group": "quay.io", "names": names, "scope": "Namespaced", "versions": served}}


def catalog(state: str = "READY", name: str = "catalog") -> Obj:
    one = made(OLM, "CatalogSource", name, "market")
    status = {"connectionState": {"lastObservedState": state}} if state else {}
    return {**one, "spec": {"sourceType": "grpc", "image": "c:1"}, "status": status}


def installed(place: str, *plans: Obj, replicas: int = 0, approval: str = "Manual", **status: Any) -> tuple[Obj, ...]:
    listed = plans or (plan(place, "quay.v1"),)
    known = subscription(place, approval=approval, **at(**status))
    return (
        namespace(place),
        group(place),
        known,
        version(place, replicas=replicas),
        deployment(place, replicas),
        crd(place),
        *listed,
    )


def wants(place: str, action: str = "inform", kind: str = "musthave", sub: Obj | None = None, **more: Any) -> Obj:
    given = {"name": "quay", "namespace": place, "channel": "stable", "source": "catalog", "sourceNamespace": "market"}
    named = {"name": "quay-group", "namespace": place, "targetNamespaces": [place]}
    return {
        "remediationAction": action,
        "complianceType": kind,
        "severity": "low",
        "subscription": {key: one for key, one in {**given, **(sub or {})}.items() if one is not None},
        "operatorGroup": named,
        "upgradeApproval": "None",
        **more,
    }


def case(there: Iterable[Obj], spec: Obj, state: str = "NonCompliant", **says: str) -> Case:
    return Case(tuple(there), spec, state, says)


def invalid(spec: Obj, message: str) -> Case:
    return case([namespace("m1")], spec, only=message)


def absent(kind: str) -> str:
    return f"the {kind} is not present"


def ignored(kind: str) -> str:
    return f"MustNotHave policies ignore kind {kind}"


NO_GROUP = "the OperatorGroup required by the policy was not found"
NO_SUB = "the Subscription required by the policy was not found"
WAITING = plan("m6", "quay.v2", phase="RequiresApproval")
APPROVABLE = plan("m7", "quay.v2", phase="RequiresApproval")
REFUSED = {"type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable"}
REFUSED_WHY = "constraints not satisfiable: no operators found in channel x of package quay in the catalog"
LOST = {"type": "ResolutionFailed", "status": "True", "reason": "ErrorPreventedResolution", "message": "it is away"}
COPY = version("m21", **{"olm.copiedFrom": "operators"})
COPY["metadata"]["annotations"] = {
    "operatorframework.io/properties": '{"properties":[{"type":"olm.package","value":{"packageName":"quay"}}]}'
}
EVERYWHERE = "the operator is installed in namespace operators and is available via AllNamespaces mode"

CASES = {
    "nothing is there": case([namespace("m1")], wants("m1"), group=NO_GROUP, sub=NO_SUB, **NOTHING),
    "the namespace is missing": case(
        [],
        wants("m2"),
        valid="the operator namespace ('m2') does not exist",
        group=NO_GROUP,
        sub=NO_SUB,
        **NOTHING,
    ),
    "it is enforced and OLM has not begun": case([namespace("m3")], wants("m3", "enforce"), **NOTHING),
    "it is installed": case(installed("m4"), wants("m4"), "Compliant"),
    "the channel is another one": case(
        [*installed("m5")],
        wants("m5", sub={"channel": "beta"}),
        sub="the Subscription found on the cluster does not match the policy",
    ),
    "the channel is corrected": case(installed("m22"), wants("m22", "enforce", sub={"channel": "beta"}), "Compliant"),
    "an upgrade waits": case(
        installed("m6", WAITING, current="quay.v2"),
        wants("m6", complianceConfig={"upgradesAvailable": "NonCompliant"}),
        plan="an InstallPlan to update to [quay.v2] is available for approval",
    ),
    "an upgrade may wait": case(
        installed("m23", plan("m23", "quay.v2", phase="RequiresApproval"), current="quay.v2"),
        wants("m23"),
        "Compliant",
        plan="an InstallPlan to update to [quay.v2] is available for approval",
    ),
    "an upgrade is approved": case(
        installed("m7", APPROVABLE, current="quay.v2", approval="Automatic"),
        wants("m7", "enforce", upgradeApproval="Automatic"),
        "Compliant",
        plan="the InstallPlan for quay.v2 was approved",
    ),
    "an upgrade is not an allowed version": case(
        installed("m8", plan("m8", "quay.v2", phase="RequiresApproval"), current="quay.v2"),
        wants("m8", "enforce", upgradeApproval="Automatic", versions=["quay.v1"]),
        "Compliant",
        plan="an InstallPlan to update to [quay.v2] is available for approval but approval for [quay.v2] is required",
    ),
    "the installed version is not allowed": case(
        installed("m9"),
        wants("m9", versions=["quay.v3, quay.v4"]),
        csv="ClusterServiceVersion (quay.v1) is not an approved version",
    ),
    "an InstallPlan runs": case(
        installed("m10", plan("m10", "quay.v2", phase="Installing"), current="quay.v2"),
        wants("m10"),
        plan="a relevant InstallPlan is actively installing",
    ),
    "an InstallPlan failed": case(
        installed("m11", plan("m11", "quay.v2", phase="Failed"), current="quay.v2"),
        wants("m11"),
        plan="the current InstallPlan has failed",
    ),
    "there are two groups": case(
        [*installed("m12"), group("m12", "other")],
        wants("m12"),
        group="there is more than one OperatorGroup in the namespace",
    ),
    "there is a group and the policy names none": case(
        installed("m13"),
        wants("m13", operatorGroup=None),
        "Compliant",
        group="the policy does not specify an OperatorGroup but one already exists in the namespace - assuming that "
        "OperatorGroup is correct",
    ),
    "the group has another name": case(
        installed("m14"),
        wants("m14", "enforce", operatorGroup={"name": "mine", "targetNamespaces": ["m14"]}),
        group="the OperatorGroup found on the cluster does not match the policy",
    ),
    "the group is corrected": case(
        installed("m15"),
        wants("m15", "enforce", operatorGroup={"name": "quay-group", "targetNamespaces": ["m14", "m15"]}),
        "Compliant",
    ),
    "a Deployment is not available": case(
        installed("m16", replicas=1),
        wants("m16"),
        deployment="the deployments quay-operator do not have their minimum availability",
    ),
    "a Deployment need not be available": case(
        installed("m17", replicas=1),
        wants("m17", complianceConfig={"deploymentsUnavailable": "Compliant"}),
        "Compliant",
        deployment="the deployments quay-operator do not have their minimum availability",
    ),
    "OLM finds no versions": case(
        [
            namespace("m18"),
            group("m18"),
            subscription("m18", conditions=[{**REFUSED, "message": REFUSED_WHY}]),
        ],
        wants("m18"),
        sub="constraints not satisfiable: refer to the Subscription for more details",
        **NOTHING,
    ),
    "OLM cannot resolve": case(
        [namespace("m19"), group("m19"), subscription("m19", conditions=[LOST])],
        wants("m19"),
        sub="it is away",
        **NOTHING,
    ),
    "the catalogue is missing": case(
        [namespace("m20"), group("m20")],
        wants("m20", sub={"source": "lost"}),
        sub=NO_SUB,
        catalog="CatalogSource 'lost' was not found",
        **NOTHING,
    ),
    "the catalogue is not healthy": case(
        [namespace("m24"), catalog("TRANSIENT_FAILURE", "ill"), group("m24")],
        wants("m24", sub={"source": "ill"}),
        sub=NO_SUB,
        catalog="CatalogSource was found but is unhealthy",
        **NOTHING,
    ),
    "it is installed for all namespaces": case(
        [namespace("m21"), COPY],
        wants("m21", "enforce", operatorGroup=None),
        "Compliant",
        **dict.fromkeys(("group", "sub", "plan", "crd", "deployment", "catalog"), EVERYWHERE),
    ),
    "it must not be there and is": case(
        installed("m25"),
        wants("m25", kind="mustnothave"),
        group="the OperatorGroup is present",
        sub="the Subscription is present",
        plan=ignored("InstallPlan"),
        csv="the ClusterServiceVersion (quay.v1) is present",
        crd="the policy specifies to keep the CustomResourceDefinition",
        deployment=ignored("Deployment"),
        catalog=ignored("CatalogSource"),
    ),
    "it must not be there and is removed": case(
        installed("m26"),
        wants("m26", "enforce", kind="mustnothave", removalBehavior={"customResourceDefinitions": "Delete"}),
        "Compliant",
        group=absent("OperatorGroup"),
        sub=absent("Subscription"),
        plan=NOTHING["plan"],
        csv=absent("ClusterServiceVersion"),
        crd=NOTHING["crd"],
        deployment=ignored("Deployment"),
        catalog=ignored("CatalogSource"),
    ),
    "it must not be there and stays": case(
        installed("m27"),
        wants(
            "m27",
            "enforce",
            kind="mustnothave",
            removalBehavior={"subscriptions": "Keep", "clusterServiceVersions": "Keep", "operatorGroups": "Keep"},
        ),
        "Compliant",
        group="the policy specifies to keep the OperatorGroup",
        sub="the policy specifies to keep the Subscription",
        plan=ignored("InstallPlan"),
        csv="the policy specifies to keep the ClusterServiceVersion",
        crd="the policy specifies to keep the CustomResourceDefinition",
        deployment=ignored("Deployment"),
        catalog=ignored("CatalogSource"),
    ),
    "a template names the channel": case(
        [namespace("m28"), {**made("v1", "ConfigMap", "quay", "m28"), "data": {"channel": "beta"}}, group("m28")],
        wants("m28", "enforce", sub={"channel": '{{ fromConfigMap "m28" "quay" "channel" }}'}),
        **NOTHING,
    ),
    "no name": invalid(wants("m1", sub={"name": None}), "name is required in spec.subscription"),
    "a wrong name": invalid(
        wants("m1", sub={"name": "Q!"}),
        "the name 'Q!' used for the subscription is invalid: a lowercase RFC 1123 label must consist of lower case "
        "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
        "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ),
    "an unknown field": invalid(
        wants("m1", sub={"wish": "x"}), 'the policy spec.subscription is invalid: json: unknown field "wish"'
    ),
    "approval in the subscription": invalid(
        wants("m1", sub={"installPlanApproval": "Manual"}), "installPlanApproval is prohibited in spec.subscription"
    ),
    "no name of the group": invalid(
        wants("m1", operatorGroup={"targetNamespaces": ["m1"]}), "name is required in spec.operatorGroup"
    ),
    "another namespace of the group": invalid(
        wants("m1", operatorGroup={"name": "g", "namespace": "m2"}),
        "the namespace specified in spec.operatorGroup ('m2') must match the namespace used for the subscription "
        "('m1')",
    ),
    "no channel, and no package": invalid(
        wants("m1", sub={"channel": None}),
        "the subscription defaults could not be determined because the PackageManifest was not found",
    ),
    "no namespace": invalid(
        wants("m1", sub={"namespace": None}),
        "the subscription defaults could not be determined because the PackageManifest was not found",
    ),
}


def named(text: str) -> str:
    return text.replace(" ", "-").replace(",", "").lower()


def post(member: Member, obj: Obj) -> Obj:
    """Create an object and set its status."""
    version_, kind = obj["apiVersion"], obj["kind"]
    base = f"/apis/{version_}" if "/" in version_ else f"/api/{version_}"
    place = obj["metadata"].get("namespace")
    base += f"/namespaces/{place}" if place else ""
    plural = "operatorpolicies" if kind == "OperatorPolicy" else f"{kind.lower()}s"
    status, body = obj.get("status"), {key: one for key, one in obj.items() if key != "status"}
    answer = member.admin.send(Request("POST", f"{base}/{plural}", body=body))
    assert answer.ok, answer.obj
    if status and kind != "Deployment":
        member.send("PATCH", f"{base}/{plural}/{obj['metadata']['name']}/status", {"status": status})
    return answer.obj


def with_olm(member: Member) -> None:
    """Serve OLM's kinds, and a catalogue."""
    for one in CRDS:
        post(member, one())
    post(member, namespace("market"))
    post(member, catalog())


def operator_policy(name: str, spec: Obj, place: str = "") -> Obj:
    spec = {key: one for key, one in spec.items() if one is not None}
    return {**made(f"{GROUP}/v1beta1", "OperatorPolicy", name, place), "spec": spec}


@pytest.fixture(scope="module")
def found() -> dict[str, Obj]:
    """Return the status of each policy; all of them are on one cluster."""
    fleet = Fleet("c1")
    member = fleet.members["c1"]
    fleet.time.advance(5)
    post(member, namespace("c1"))
    with_olm(member)
    for one in CASES.values():
        for obj in one.there:
            if obj["kind"] != "Namespace" or member.absent(f"/api/v1/namespaces/{obj['metadata']['name']}"):
                post(member, obj)
    fleet.time.settle()
    fleet.time.advance(5)
    for name, one in CASES.items():
        post(member, operator_policy(named(name), one.spec, "c1"))
    fleet.time.settle()
    fleet.time.advance(60)
    listed = member.get(POLICIES.format("c1"))["items"]
    return {one["metadata"]["name"]: one.get("status") or {} for one in listed}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_policy_says(name: str, found: dict[str, Obj]) -> None:
    one, status = CASES[name], found[named(name)]
    said = one.says.get("only") or ", ".join({**WELL, **one.says}.values())
    assert status["history"][0]["message"] == f"{one.state}; {said}"
    assert status["compliant"] == one.state


def test_an_operator_is_installed_on_two_clusters_by_a_policy_of_the_hub() -> None:
    fleet = Policies("c1", "c2")
    for member in fleet.members.values():
        with_olm(member)
        post(member, namespace("m4"))
    wanted = operator_policy("quay", wants("m4"))
    fleet.post(policy("quay", wanted, remediationAction="enforce"))
    fleet.bind("quay")
    fleet.time.advance(30)
    assert fleet.root("quay")["status"]["compliant"] == "NonCompliant"
    for member in fleet.members.values():
        known = member.get(f"/apis/{OLM}/namespaces/m4/subscriptions/quay")
        assert known["spec"]["installPlanApproval"] == "Manual"
        status = {"lastUpdated": "2026-01-01T00:00:00Z", **at("", "quay.v1")}
        member.send("PATCH", f"/apis/{OLM}/namespaces/m4/subscriptions/quay/status", {"status": status})
        post(member, plan("m4", "quay.v1", phase="RequiresApproval"))
    fleet.time.advance(30)
    for member in fleet.members.values():
        assert member.get(f"/apis/{OLM}/namespaces/m4/installplans/install-quay-v1")["spec"]["approved"]
        for obj in (version("m4"), deployment("m4"), crd("m4")):
            post(member, obj)
        done = {"status": {"phase": "Complete"}}
        member.send("PATCH", f"/apis/{OLM}/namespaces/m4/installplans/install-quay-v1/status", done)
        member.send("PATCH", f"/apis/{OLM}/namespaces/m4/subscriptions/quay/status", {"status": at()})
    fleet.time.advance(30)
    assert fleet.root("quay")["status"]["compliant"] == "Compliant"
    for name in fleet.members:
        assert fleet.messages("quay", name)[0] == f"Compliant; {', '.join(WELL.values())}"


def test_two_enforced_policies_for_one_operator_are_both_refused() -> None:
    fleet = Fleet("c1")
    member = fleet.members["c1"]
    fleet.time.advance(5)
    with_olm(member)
    for name in ("c1", "m1"):
        post(member, namespace(name))
    for name in ("one", "two"):
        post(member, operator_policy(name, wants("m1", "enforce"), "c1"))
    fleet.time.advance(60)
    for name in ("one", "two"):
        status = member.get(f"{POLICIES.format('c1')}/{name}")["status"]
        text = "the specified operator is managed by multiple enforced policies (one.c1, two.c1)"
        assert status["history"][0]["message"] == f"NonCompliant; {text}"
        assert status["overlappingPolicies"] == ["one.c1", "two.c1"]
    member.send("DELETE", f"{POLICIES.format('c1')}/two")
    fleet.time.advance(60)
    status = member.get(f"{POLICIES.format('c1')}/one")["status"]
    assert "overlappingPolicies" not in status or not status["overlappingPolicies"]
    assert status["history"][0]["message"].startswith("NonCompliant; the policy spec is valid, the OperatorGroup ")
