"""OpenAPI documents hold what kubectl looks for, and nothing that leads nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from syncline.kube.objects import GVK, ResourceInfo
from syncline.kube.schema.openapi.document import openapi_v2, openapi_v3, openapi_v3_index
from syncline.kube.schema.resources import builtin_resources

CREW = ResourceInfo("example.com", "v1", "Crew", "crews", True, subresources=("status", "scale"), singular="crew")
CREWS: dict[GVK, dict[str, Any]] = {
    CREW.gvk: {
        "type": "object",
        "description": "People on a ship.",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}]}},
            }
        },
    }
}


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(references(item) for item in value))
    return set()


@pytest.mark.parametrize(("group", "version"), sorted({(r.group, r.version) for r in builtin_resources()}))
def test_every_reference_of_every_group_version_is_resolved(group: str, version: str) -> None:
    document = openapi_v3(group, version, builtin_resources())
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= known


def test_a_patch_tells_its_kind_its_parameters_and_its_media_types() -> None:
    path = openapi_v3("apps", "v1", builtin_resources())["paths"]
    patch = path["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "kind": "Deployment", "version": "v1"}
    names = {p["name"] for p in patch["parameters"] if p["in"] == "query"}
    assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= names
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_a_kind_is_found_by_its_identity_and_described() -> None:
    schemas = openapi_v3("", "v1", builtin_resources())["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert {"group": "", "version": "v1", "kind": "Pod"} in pod["x-kubernetes-group-version-kind"]
    assert "collection of containers" in pod["description"]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert (containers["x-kubernetes-patch-merge-key"], containers["description"][:4]) == ("name", "List")


def test_a_document_holds_only_its_group_version() -> None:
    document = openapi_v3("policy", "v1", builtin_resources())
    assert "io.k8s.api.core.v1.PodSpec" not in document["components"]["schemas"]
    assert all(path.startswith("/apis/policy/v1/") for path in document["paths"])


def test_a_custom_kind_is_described_beside_its_list_and_takes_no_strategic_patch() -> None:
    document = openapi_v3("example.com", "v1", [*builtin_resources(), CREW], CREWS)
    schema = document["components"]["schemas"]["com.example.v1.Crew"]
    assert schema["description"] == "People on a ship."
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert "com.example.v1.CrewList" in document["components"]["schemas"]
    assert references(document) <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/crews/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    scale = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/crews/{name}/scale"]["get"]
    assert scale["x-kubernetes-group-version-kind"]["kind"] == "Scale"


def test_the_index_names_each_document_with_a_hash_that_moves_with_its_schemas() -> None:
    groups = [("", "v1"), ("example.com", "v1")]
    before, after = openapi_v3_index(groups), openapi_v3_index(groups, CREWS)
    url = before["paths"]["api/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/api/v1?hash=")
    assert after["paths"]["api/v1"] == before["paths"]["api/v1"]
    assert after["paths"]["apis/example.com/v1"] != before["paths"]["apis/example.com/v1"]


def test_swagger_two_has_its_own_references_and_no_newer_keywords() -> None:
    document = openapi_v2([*builtin_resources(), CREW], CREWS)
    known = {f"#/definitions/{name}" for name in document["definitions"]}
    assert references(document) <= known
    quantity = document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity["type"] == "string"
    assert "anyOf" not in json.dumps(document["definitions"]["com.example.v1.Crew"])
    crd = document["definitions"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"]
    assert "oneOf" in crd["properties"]


def test_equal_input_gives_equal_documents() -> None:
    first = json.dumps(openapi_v3("batch", "v1", builtin_resources()))
    assert first == json.dumps(openapi_v3("batch", "v1", reversed(builtin_resources())))
