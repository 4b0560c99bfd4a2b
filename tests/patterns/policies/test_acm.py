"""The policies of the acm chart, as recorded from it, on two clusters: enforced, drift repaired, reported."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from tests.patterns.policies.world import GROUP, PLACEMENTS, Policies, made, namespace
from tests.recorded import CONFORMANCE, cases_of

from syncline.kube.kinds.structure import ANY, definition, kind_schema
from syncline.kube.objects import GVK, Obj, gvk_of, name_of, namespace_of

ROOM, KIND = "patterns", "acm"
SPACE = "open-cluster-management"
HOSTED = "/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications"
CONFIG = "config.openshift.io"
NAMESPACES = ("openshift-gitops", "golang-external-secrets")
FACTS: list[tuple[str, str, Obj]] = [
    ("Infrastructure", "cluster", {"spec": {"platformSpec": {"type": "AWS"}}}),
    ("ClusterVersion", "version", {"status": {"history": [{"version": "4.19.3"}]}}),
    ("Ingress", "cluster", {"spec": {"domain": "apps.one.example.com"}}),
]
"""What the templates of the chart read of an OpenShift cluster."""


@cache
def pool() -> Any:
    return json.loads((CONFORMANCE / ROOM / f"{KIND}-pool.json").read_text())


def rendered() -> list[Obj]:
    """Return the objects of the recorded chart with the most policies that are all different."""
    best: list[Obj] = []
    for case in cases_of(ROOM, KIND):
        if not case["expect"].get("ok"):
            continue
        objects = [pool()["objects"][one] if isinstance(one, str) else one for one in case["expect"]["objects"]]
        policies = {name_of(one) for one in objects if one["kind"] == "Policy"}
        groups = {name_of(one) for one in objects if name_of(one).endswith("-clustergroup-policy")}
        if len(groups) == 1 and len(policies) > sum(one["kind"] == "Policy" for one in best):
            best = objects
    return best


def kinds(policy: Obj) -> set[GVK]:
    """Return the kinds of the objects that a policy names."""
    found = set()
    for entry in policy["spec"]["policy-templates"]:
        for one in entry["objectDefinition"]["spec"].get("object-templates") or ():
            found.add(gvk_of(one["objectDefinition"]))
    return found


def spaces(policies: list[Obj]) -> set[str]:
    """Return the namespaces that the objects of the policies are in."""
    found = set()
    for one in policies:
        for entry in one["spec"]["policy-templates"]:
            for each in entry["objectDefinition"]["spec"].get("object-templates") or ():
                found.add(namespace_of(each["objectDefinition"]))
    return {one for one in found if one and "{" not in one}


def serve(fleet: Policies, policies: list[Obj]) -> None:
    """Let the clusters serve the kinds of OpenShift and of operators that the policies name."""
    needed = {
        each for one in policies for each in kinds(one) if "." in each.group and not each.group.endswith("k8s.io")
    }
    schema = kind_schema(ANY, ANY, about="Any.") | {"x-kubernetes-preserve-unknown-fields": True}
    for member in fleet.members.values():
        for gvk in sorted(needed | {GVK(CONFIG, "v1", kind) for kind, _, _ in FACTS}):
            plural = gvk.kind.lower() + ("es" if gvk.kind.endswith("s") else "s")
            crd = definition(gvk, plural, schema, namespaced=gvk.group != CONFIG, status=False)
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            if member.absent(f"{path}/{plural}.{gvk.group}"):
                member.send("POST", path, crd)
        fleet.time.advance(2)
        for kind, name, content in FACTS:
            path = f"/apis/{CONFIG}/v1/{kind.lower()}{'es' if kind.endswith('s') else 's'}"
            member.send("POST", path, {**made(f"{CONFIG}/v1", kind, name), **content})
        for one in (*NAMESPACES, *spaces(policies)):
            if member.absent(f"/api/v1/namespaces/{one}"):
                member.send("POST", "/api/v1/namespaces", namespace(one))


@pytest.fixture(scope="module")
def fleet() -> Policies:
    objects = rendered()
    found = Policies("c1", "c2")
    found.space(SPACE, "unused")
    labels = {"metadata": {"labels": {"clusterGroup": _group(objects)}}}
    for name in ("c1", "c2"):
        found.hub.send("PATCH", f"/apis/cluster.open-cluster-management.io/v1/managedclusters/{name}", labels)
    serve(found, [one for one in objects if one["kind"] == "Policy"])
    for name, key in (("openshift-service-ca.crt", "service-ca.crt"), ("kube-root-ca.crt", "ca.crt")):
        path = f"/api/v1/namespaces/{SPACE}/configmaps"
        content = {**made("v1", "ConfigMap", name, SPACE), "data": {key: "-----BEGIN\nCERTIFICATE-----\n"}}
        if found.hub.absent(f"{path}/{name}"):
            found.hub.send("POST", path, content)
    credentials = made("v1", "Secret", "vp-private-repo-credentials", SPACE)
    found.hub.send("POST", f"/api/v1/namespaces/{SPACE}/secrets", {**credentials, "stringData": {"password": "hidden"}})
    for one in objects:
        placed = {**one, "metadata": {**one["metadata"], "namespace": SPACE}}
        if one["kind"] == "Placement":
            found.hub.send("POST", PLACEMENTS.format(SPACE), placed)
        elif one["kind"] in ("Policy", "PlacementBinding"):
            found.post(placed)
    found.time.advance(120)
    return found


def _group(objects: list[Obj]) -> str:
    name = next(name_of(one) for one in objects if name_of(one).endswith("-clustergroup-policy"))
    return name.removesuffix("-clustergroup-policy")


def _roots(fleet: Policies) -> list[Obj]:
    found: list[Obj] = fleet.hub.get(f"/apis/{GROUP}/v1/namespaces/{SPACE}/policies")["items"]
    return found


def test_the_policies_of_the_acm_chart_are_enforced_on_two_clusters(fleet: Policies) -> None:
    said = {
        name_of(one): tuple((each["clustername"], each.get("compliant")) for each in one["status"]["status"])
        for one in _roots(fleet)
        if one["status"].get("status")
    }
    assert len(said) >= 6
    assert said == dict.fromkeys(said, (("c1", "Compliant"), ("c2", "Compliant")))
    for member in fleet.members.values():
        (application,) = member.get(HOSTED)["items"]
        parameters = {one["name"]: one["value"] for one in application["spec"]["source"]["helm"]["parameters"]}
        assert (parameters["global.clusterPlatform"], parameters["global.clusterVersion"]) == ("AWS", "4.19")


def test_drift_of_an_application_is_repaired_and_reported(fleet: Policies) -> None:
    member = fleet.members["c1"]
    (application,) = member.get(HOSTED)["items"]
    path = f"{HOSTED}/{name_of(application)}"
    member.send("PATCH", path, {"spec": {"project": "other", "extra": True}})
    fleet.time.advance(60)
    assert member.get(path)["spec"] == application["spec"]
    policy = next(name_of(one) for one in _roots(fleet) if name_of(one).endswith("-clustergroup-policy"))
    copy = fleet.hub.get(f"/apis/{GROUP}/v1/namespaces/c1/policies/{SPACE}.{policy}")
    messages = [one["message"] for one in copy["status"]["details"][0]["history"]]
    assert any(f"applications [{name_of(application)}] found but not as specified" in one for one in messages)
    assert copy["status"]["compliant"] == "Compliant"
