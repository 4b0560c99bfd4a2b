"""Policies of a hub on two clusters, in virtual time."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.patterns.policies.world import (
    BINDING,
    CONFIGURATION,
    GROUP,
    POLICY,
    SETS,
    Policies,
    made,
    namespace,
    policy,
    template,
)

from syncline.kube.client import Request
from syncline.kube.kinds.structure import ANY, definition, kind_schema
from syncline.kube.objects import GVK, Obj

MAPS = "/api/v1/namespaces/default/configmaps"


def config(name: str, **data: str) -> Obj:
    return {**made("v1", "ConfigMap", name, "default"), "data": data}


@pytest.fixture(scope="module")
def fleet() -> Policies:
    return Policies("c1", "c2")


def states(fleet: Policies, name: str) -> dict[str, str]:
    found = fleet.root(name).get("status", {}).get("status") or ()
    return {one["clustername"]: one.get("compliant", "") for one in found}


def put(fleet: Policies, name: str, *templates: Obj, **spec: Any) -> None:
    fleet.post(policy(name, *templates, **spec))
    fleet.bind(name)
    fleet.time.advance(30)


def test_a_missing_namespace_is_made_on_both_clusters_and_reported(fleet: Policies) -> None:
    put(fleet, "shop", template("shop-config", namespace("shop")))
    for name in ("c1", "c2"):
        assert not fleet.members[name].absent("/api/v1/namespaces/shop")
        assert fleet.messages("shop", name) == [
            "Compliant; notification - namespaces [shop] found as specified",
            "Compliant; notification - namespaces [shop] was created successfully",
            "NonCompliant; violation - namespaces [shop] not found",
        ]
    root = fleet.root("shop")["status"]
    assert root["compliant"] == "Compliant"
    assert states(fleet, "shop") == {"c1": "Compliant", "c2": "Compliant"}
    assert root["placement"] == [{"placement": "all", "placementBinding": "shop"}]


def test_drift_is_repaired_where_a_policy_is_enforced_and_reported_where_it_informs(fleet: Policies) -> None:
    put(fleet, "fixed", template("fixed-config", config("fixed", a="1")))
    put(fleet, "seen", template("seen-config", config("fixed", a="1"), action="inform"))
    fleet.members["c1"].send("PATCH", f"{MAPS}/fixed", {"data": {"a": "2"}})
    fleet.time.advance(30)
    assert fleet.members["c1"].get(f"{MAPS}/fixed")["data"] == {"a": "1"}
    assert "NonCompliant; violation - configmaps [fixed] found but not as specified in namespace default" in (
        fleet.messages("fixed", "c1")
    )
    assert states(fleet, "fixed") == states(fleet, "seen") == {"c1": "Compliant", "c2": "Compliant"}
    assert len(fleet.messages("fixed", "c2")) == 3
    fleet.patch("fixed", disabled=True)
    fleet.members["c1"].send("PATCH", f"{MAPS}/fixed", {"data": {"a": "3"}})
    fleet.time.advance(30)
    assert states(fleet, "seen") == {"c1": "NonCompliant", "c2": "Compliant"}
    assert fleet.root("seen")["status"]["compliant"] == "NonCompliant"
    assert "status" not in fleet.root("fixed")["status"]
    assert fleet.hub.absent(f"{POLICY.format('c1')}/policies.fixed")


def test_a_policy_that_goes_leaves_what_it_has_made_unless_it_prunes(fleet: Policies) -> None:
    put(fleet, "stays", template("stays-config", config("stays", a="1")))
    put(fleet, "goes", template("goes-config", config("goes", a="1"), pruneObjectBehavior="DeleteIfCreated"))
    for name in ("stays", "goes"):
        fleet.hub.send("DELETE", f"{POLICY.format('policies')}/{name}")
    fleet.time.advance(60)
    member = fleet.members["c1"]
    assert not member.absent(f"{MAPS}/stays")
    assert member.absent(f"{MAPS}/goes")
    for name in ("stays", "goes"):
        assert member.absent(f"{CONFIGURATION.format('c1')}/{name}-config")
        assert member.absent(f"{POLICY.format('c1')}/policies.{name}")


def test_objects_that_a_policy_does_not_name_any_more_are_pruned_if_it_made_them(fleet: Policies) -> None:
    fleet.members["c1"].send("POST", MAPS, config("found", a="1"))
    prune = {"pruneObjectBehavior": "DeleteIfCreated"}
    put(fleet, "few", template("few-config", config("made", a="1"), config("found", a="1"), **prune))
    entry = {"objectDefinition": template("few-config", config("other", a="1"), **prune)}
    fleet.patch("few", **{"policy-templates": [entry]})
    fleet.time.advance(60)
    member = fleet.members["c1"]
    assert member.absent(f"{MAPS}/made")
    assert not member.absent(f"{MAPS}/found")
    assert fleet.members["c2"].absent(f"{MAPS}/found")


def test_the_action_of_a_policy_comes_before_that_of_its_templates(fleet: Policies) -> None:
    put(fleet, "soft", template("soft-config", config("soft", a="1")), remediationAction="inform")
    assert fleet.members["c1"].absent(f"{MAPS}/soft")
    fleet.hub.send(
        "PATCH", f"{BINDING.format('policies')}/soft", {"bindingOverrides": {"remediationAction": "enforce"}}
    )
    fleet.time.advance(30)
    assert not fleet.members["c1"].absent(f"{MAPS}/soft")
    assert fleet.root("soft")["spec"]["remediationAction"] == "inform"
    assert fleet.copy("soft", "c1")["spec"]["remediationAction"] == "enforce"


def test_a_restricted_binding_enforces_on_some_of_the_chosen_clusters(fleet: Policies) -> None:
    expression = {"key": "name", "operator": "In", "values": ["c2"]}
    fleet.hub.send(
        "PATCH",
        "/apis/cluster.open-cluster-management.io/v1/managedclusters/c2",
        {"metadata": {"labels": {"name": "c2"}}},
    )
    selector = {"requiredClusterSelector": {"labelSelector": {"matchExpressions": [expression]}}}
    fleet.space("policies", "some", predicates=[selector])
    fleet.post(policy("rolled", template("rolled-config", config("rolled", a="1")), remediationAction="inform"))
    fleet.bind("rolled")
    more = {"subFilter": "restricted", "bindingOverrides": {"remediationAction": "enforce"}}
    fleet.post(
        {
            **made(f"{GROUP}/v1", "PlacementBinding", "rolled-now", "policies"),
            "placementRef": {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "some"},
            "subjects": [{"apiGroup": GROUP, "kind": "Policy", "name": "rolled"}],
            **more,
        }
    )
    fleet.time.advance(30)
    assert states(fleet, "rolled") == {"c1": "NonCompliant", "c2": "Compliant"}


def test_a_set_is_bound_as_one_and_leaves_clusters_out(fleet: Policies) -> None:
    for name in ("one", "two"):
        fleet.post(policy(name, template(f"{name}-config", config(name, a="1"))))
    out = {"policyName": "two", "clusterNames": ["c2"]}
    both = made(f"{GROUP}/v1beta1", "PolicySet", "both", "policies")
    fleet.post({**both, "spec": {"policies": ["one", "two"], "exclusions": [out]}})
    fleet.bind("both", kind="PolicySet")
    fleet.time.advance(30)
    assert (states(fleet, "one"), states(fleet, "two")) == (
        {"c1": "Compliant", "c2": "Compliant"},
        {"c1": "Compliant"},
    )
    found = fleet.hub.get(f"{SETS.format('policies')}/both")["status"]
    assert found["compliant"] == "Compliant"
    assert found["placement"] == [{"placement": "all", "placementBinding": "both"}]
    assert found["statusMessage"] == (
        "All policies are reporting status; One or more policies were excluded. For details, see status.exclusions."
    )


def test_a_template_waits_for_what_it_depends_on(fleet: Policies) -> None:
    needed = {"apiVersion": f"{GROUP}/v1", "kind": "Policy", "name": "first", "compliance": "Compliant"}
    fleet.post(policy("later", template("later-config", config("later", a="1")), dependencies=[needed]))
    fleet.bind("later")
    put(fleet, "first", template("first-config", config("first", a="1")), remediationAction="inform")
    assert fleet.messages("later", "c1") == [
        "Pending; Dependencies were not satisfied: 1 is still pending (Policy policies.first)"
    ]
    assert states(fleet, "later") == {"c1": "Pending", "c2": "Pending"}
    fleet.patch("first", remediationAction="enforce")
    fleet.time.advance(30)
    assert states(fleet, "later") == {"c1": "Compliant", "c2": "Compliant"}
    assert not fleet.members["c1"].absent(f"{MAPS}/later")


def test_a_template_that_nothing_knows_is_an_error_of_its_policy(fleet: Policies) -> None:
    certificate = {**made(f"{GROUP}/v1", "IamPolicy", "certs"), "spec": {}}
    put(fleet, "odd", certificate, config("plain", a="1"))
    kind = f"{GROUP}/v1, Kind=IamPolicy"
    text = (
        "NonCompliant; template-error; Mapping not found, check if you have the CRD deployed: the resource version was"
    )
    assert fleet.messages("odd", "c1") == [f"{text} not found: {kind}"]
    unknown = "NonCompliant; template-error; policy-template kind is not supported: /v1, Kind=ConfigMap"
    assert fleet.messages("odd", "c1", 1) == [unknown]


def test_a_policy_follows_the_definition_of_its_kind_as_it_comes_and_goes(fleet: Policies) -> None:
    part = {**made("example.io/v1", "Part", "one", "default"), "spec": {}}
    put(fleet, "parts", template("parts-config", part))
    assert "couldn't find mapping resource with kind Part" in fleet.messages("parts", "c1")[0]
    member, path = fleet.members["c1"], "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = kind_schema(ANY, ANY, about="A part.")
    crd = definition(GVK("example.io", "v1", "Part"), "parts", schema, namespaced=True, status=False)
    member.send("POST", path, crd)
    fleet.time.advance(5)
    assert fleet.copy("parts", "c1")["status"]["compliant"] == "Compliant"
    member.send("DELETE", f"{path}/parts.example.io")
    fleet.time.advance(30)
    assert fleet.copy("parts", "c1")["status"]["compliant"] == "NonCompliant"
    assert "couldn't find mapping resource with kind Part" in fleet.messages("parts", "c1")[0]


def test_an_agent_that_begins_again_writes_nothing_more(fleet: Policies) -> None:
    put(fleet, "calm", template("calm-config", config("calm", a="1")))
    before = fleet.copy("calm", "c1")["metadata"]["resourceVersion"]
    fleet.stop_agent("c1")
    fleet.members["c1"].send("PATCH", f"{MAPS}/calm", {"data": {"a": "2"}})
    fleet.time.advance(30)
    fleet.start_agent("c2")
    fleet.time.advance(30)
    assert fleet.members["c1"].get(f"{MAPS}/calm")["data"] == {"a": "2"}
    assert fleet.copy("calm", "c1")["metadata"]["resourceVersion"] == before
    fleet.start_agent("c1")
    fleet.time.advance(30)
    assert fleet.members["c1"].get(f"{MAPS}/calm")["data"] == {"a": "1"}


# -- templates of the hub ----------------------------------------------------------------------------------------------


def hub_config(fleet: Policies, name: str, space: str = "policies", **data: str) -> None:
    fleet.hub.send(
        "POST", f"/api/v1/namespaces/{space}/configmaps", {**made("v1", "ConfigMap", name, space), "data": data}
    )


def hub_secret(fleet: Policies, name: str, space: str = "policies", **data: str) -> None:
    path = f"/api/v1/namespaces/{space}/secrets"
    if fleet.hub.absent(f"{path}/{name}"):
        fleet.hub.send("POST", path, {**made("v1", "Secret", name, space), "stringData": data})


def test_hub_templates_read_the_namespace_of_their_policy_and_follow_it(fleet: Policies) -> None:
    hub_config(fleet, "values", v="one")
    text = '{{hub fromConfigMap "" "values" "v" hub}} on {{hub .ManagedClusterName hub}} {{ "a" | upper }}'
    put(fleet, "hubbed", template("hubbed-config", config("hubbed", v=text)))
    assert fleet.members["c2"].get(f"{MAPS}/hubbed")["data"] == {"v": "one on c2 A"}
    fleet.hub.send("PATCH", "/api/v1/namespaces/policies/configmaps/values", {"data": {"v": "two"}})
    fleet.time.advance(30)
    assert fleet.members["c2"].get(f"{MAPS}/hubbed")["data"] == {"v": "two on c2 A"}


HOSTILE = {
    '{{hub fromConfigMap "kube-system" "x" "v" hub}}': "the namespace argument is restricted to policies",
    '{{hub (lookup "v1" "Namespace" "" "kube-system").metadata.uid hub}}': (
        "lookup of cluster-scoped resource 'Namespace/kube-system' is not allowed"
    ),
    '{{hub (lookup "cluster.open-cluster-management.io/v1" "ManagedCluster" "" "c2").metadata.uid hub}}{{hub '
    '(lookup "cluster.open-cluster-management.io/v1" "ManagedCluster" "" "c1").metadata.uid hub}}': (
        "lookup of cluster-scoped resource 'ManagedCluster/c"
    ),
    '{{hub (lookup "v1" "Secret" "" "s").data.k hub}}': "Secrets are not looked up in hub templates",
    '{{hub $x := fromSecret "" "s" "k" hub}}{{hub $x hub}}': "values of Secrets leave the hub only encrypted",
    '{{hub fromSecret "c1" "policy-encryption-key" "key" hub}}': "the namespace argument is restricted to policies",
    '{{hub env "HOME" hub}}': "function 'env' is considered a security risk",
    "{{hub range $i := until 100000 hub}}{{hub range $j := until 100000 hub}}x{{hub end hub}}{{hub end hub}}": "exceed",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hub_template_reaches_no_further_than_its_policy(fleet: Policies, text: str) -> None:
    hub_secret(fleet, "s", k="hidden")
    name = f"reach-{list(HOSTILE).index(text)}"
    put(fleet, name, template(f"{name}-config", config(name, v=text)))
    message = fleet.messages(name, "c1")[0]
    assert message.startswith("NonCompliant; template-error; ")
    assert HOSTILE[text] in message or (HOSTILE[text] == "exceed" and "error" in message)
    assert fleet.members["c1"].absent(f"{MAPS}/{name}")


def test_a_service_account_reads_for_hub_templates_what_it_may(fleet: Policies) -> None:
    text = '{{hub fromConfigMap "elsewhere" "values" "v" hub}}'
    fleet.hub.send("POST", "/api/v1/namespaces", namespace("elsewhere"))
    hub_config(fleet, "values", "elsewhere", v="far")
    put(
        fleet,
        "asks",
        template("asks-config", config("asks", v=text)),
        hubTemplateOptions={"serviceAccountName": "reader"},
    )
    assert fleet.messages("asks", "c1")[0] == (
        "NonCompliant; template-error; the service account in hubTemplateOptions.serviceAccountName (policies/reader) "
        "does not exist"
    )
    fleet.hub.send(
        "POST", "/api/v1/namespaces/policies/serviceaccounts", made("v1", "ServiceAccount", "reader", "policies")
    )
    fleet.time.advance(60)
    assert (
        'configmaps "values" is forbidden: User "system:serviceaccount:policies:reader" cannot get'
        in (fleet.messages("asks", "c1")[0])
    )
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/elsewhere"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    fleet.hub.send(
        "POST", f"{rbac}/roles", {**made("rbac.authorization.k8s.io/v1", "Role", "r", "elsewhere"), "rules": rules}
    )
    bound = made("rbac.authorization.k8s.io/v1", "RoleBinding", "r", "elsewhere")
    who = {"kind": "ServiceAccount", "name": "reader", "namespace": "policies"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    fleet.hub.send("POST", f"{rbac}/rolebindings", {**bound, "roleRef": reference, "subjects": [who]})
    fleet.time.advance(90)
    assert fleet.members["c1"].get(f"{MAPS}/asks")["data"] == {"v": "far"}


def test_values_of_secrets_travel_encrypted_with_the_key_of_their_cluster(fleet: Policies) -> None:
    hub_secret(fleet, "s", k="hidden")
    text = '{{hub fromSecret "" "s" "k" hub}}'
    wanted = {**made("v1", "Secret", "got", "default"), "data": {"k": text}}
    put(fleet, "sealed", template("sealed-config", wanted))
    sealed = str(fleet.copy("sealed", "c1"))
    plain = base64.b64encode(b"hidden").decode()
    assert "$ocm_encrypted:" in sealed
    assert plain not in sealed
    assert plain not in str(fleet.members["c1"].get(f"{CONFIGURATION.format('c1')}/sealed-config"))
    assert fleet.members["c1"].get("/api/v1/namespaces/default/secrets/got")["data"] == {"k": plain}
    keys = {
        fleet.hub.get(f"/api/v1/namespaces/{one}/secrets/policy-encryption-key")["data"]["key"] for one in ("c1", "c2")
    }
    assert len(keys) == 2
    assert states(fleet, "sealed") == {"c1": "Compliant", "c2": "Compliant"}


# -- rights ------------------------------------------------------------------------------------------------------------


def test_an_agent_reads_and_reports_the_policies_of_its_own_cluster_alone(fleet: Policies) -> None:
    put(fleet, "own", template("own-config", config("own", a="1")))
    agent = fleet.members["c1"].hub_cable

    def ask(verb: str, path: str, body: Any = None) -> int:
        headers = {"content-type": "application/merge-patch+json"} if verb == "PATCH" else {}
        return agent.send(Request(verb, path, headers=headers, body=body)).status

    mine, other = (f"{POLICY.format(one)}/policies.own" for one in ("c1", "c2"))
    secret = "/api/v1/namespaces/{}/secrets/policy-encryption-key"
    assert ask("GET", mine) == 200
    assert ask("GET", secret.format("c1")) in (200, 404)
    refused = [
        ask("GET", other),
        ask("GET", f"{POLICY.format('policies')}/own"),
        ask("GET", secret.format("c2")),
        ask("GET", "/api/v1/namespaces/c1/secrets/other"),
        ask("PATCH", mine, {"spec": {"disabled": True}}),
        ask("PATCH", f"{other}/status", {"status": {"compliant": "Compliant"}}),
        ask("PATCH", f"{POLICY.format('policies')}/own/status", {"status": {}}),
        ask("DELETE", mine),
    ]
    assert refused == [403] * 8
